//! Point patterns in a window: sets without a latent, of any number of points.
//!
//! ```text
//! p(x₁, …, x_n) = exp f(x₁, …, x_n) / Z
//! ```
//!
//! That is what the energy-based process becomes when both the locations and θ are collapsed. [`Gibbs`]
//! processes are told by their conditional intensity, fitted by [`fit()`] and by
//! [`maximum_likelihood`], and drawn by [`simulate()`].

mod deep_sets;
mod deep_sets_fit;
mod discs;
mod dpp;
mod draws;
mod envelope;
mod fit;
mod gibbs;
mod hawkes;
mod interaction;
mod langevin;
mod likelihood;
mod near;
mod network_fit;
mod newton;
mod pair_network;
mod quadrature;
mod residual;
mod simulate;
mod summary;
mod tanh_network;
mod window;

pub use deep_sets::{DeepSets, DeepSetsShape};
pub use deep_sets_fit::DeepSetsLaw;
pub use dpp::{DppFit, DppKernel, Ensemble, EnsembleFit, StationaryDpp};
pub use envelope::Envelope;
pub use fit::{Fit, Regression, fit, simulated_errors};
pub use gibbs::{Family, Gibbs, Trend};
pub use hawkes::{Events, Hawkes, HawkesFit, exponential_test};
pub use interaction::Interaction;
pub use likelihood::{
    Likelihood, LikelihoodFit, LikelihoodSettings, climb_likelihood, log_partition,
    maximum_likelihood,
};
pub use network_fit::{Jackknife, NetworkFit, NetworkLaw, fit_network};
pub use pair_network::{PairLaw, mean_potential};
pub use residual::{Residual, smoothed_residual};
pub use simulate::{ChainSettings, Moves, simulate, simulate_watched};
pub use summary::Summary;
pub use window::{Pattern, Window};
