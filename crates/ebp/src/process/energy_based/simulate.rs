//! Simulation-based calibration of q(θ | set) within the model itself (Talts et al., 2018).
//!
//! ```text
//! θ* ~ q(θ | context),   x ~ ∏ p(xᵢ | tᵢ, θ*),   u_j = Φ((θ*_j − μ_j)/σ_j)   of q(θ | context ∪ x)
//! ```
//!
//! If q(θ | context ∪ x) is the posterior that the law q(θ | context) and the likelihood imply, each u_j
//! is uniform over such simulations. Without a context q is N(0, I), and this is calibration of the
//! posterior under the prior. It says whether the amortised posterior is Bayes' rule for *this* model,
//! not whether the model is right about data.

use super::{Energy, EnergyBasedProcess, PredictionRule};
use crate::process::Predictive;
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

impl EnergyBasedProcess {
    /// u_j of one simulation with elements at `locations` `[m, d_t]`, one number for each coordinate of θ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the process has no locations or targets see more than θ, or if a
    /// dimension is wrong.
    pub fn latent_positions(
        &self,
        context: &IndexedSet,
        locations: &[f64],
        stream: Stream,
    ) -> Result<Vec<f64>> {
        let is_simple = matches!(self.parts.energy, Energy::Element(_));
        if !is_simple || self.space.location_dim == 0 || self.parts.picture.is_some() {
            let expected = "an energy of values at locations that sees nothing but θ";
            return Err(Error::invalid("process", expected, "another one"));
        }
        let batch = self.as_batch("context", context)?;
        let theta = self.draw_latents(&batch, 1, stream.child(0))?;
        let given = self.predict_given(&batch, theta.clone(), PredictionRule::Mixture, 1.0)?;
        let values = given.sample(locations, 1, stream.child(1))?;
        let all = IndexedSet::new(
            self.space.location_dim,
            self.space.value_dim,
            [context.locations(), locations].concat(),
            [context.values(), &values].concat(),
        )?;
        let (mean, log_std_dev) = self.latent_law(&self.as_batch("context", &all)?)?;
        let moments = mean.iter().zip(&log_std_dev);
        let position = |(theta, (mean, log_std_dev)): (&f32, (&f32, &f32))| {
            let z = f64::from(theta - mean) / f64::from(*log_std_dev).exp();
            0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
        };
        Ok(theta.iter().zip(moments).map(position).collect())
    }
}
