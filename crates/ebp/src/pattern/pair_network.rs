//! A pair potential by a small network of the distance.
//!
//! ```text
//! log λ(u | X) = α + Σ_x φ(‖u − x‖),   φ(d) = c · tanh(B tanh(a d + a₀) + b₀) + c₀   for d below the reach
//! ```
//!
//! φ is linear between knots, where the network is read: the model is [`Interaction::Pairwise`] whose
//! coefficients the network writes, so that simulation, residuals and errors are those of every other Gibbs
//! process, and a step costs the same for any network.

use super::fit::{Regression, joint_design};
use super::gibbs::{Family, Gibbs, Trend};
use super::interaction::Interaction;
use super::likelihood::Likelihood;
use super::network_fit::{NetworkLaw, check_decay, first_parameters, group};
use super::quadrature::Design;
use super::tanh_network::{Backward, TanhNetwork};
use super::window::{Pattern, Window};
use crate::rng::Stream;
use crate::{Error, Result};

/// The network, and the data that it is fitted to.
#[derive(Clone, Debug)]
pub struct PairLaw {
    family: Family,
    window: Window,
    network: TanhNetwork,
    num_knots: usize,
    decay: f64,
    design: Design,
    /// Of every row of the design.
    groups: Vec<usize>,
}

impl PairLaw {
    /// A potential that ends at `reach` and is read at `num_knots`, by a network of two hidden layers of
    /// `width` whose squared weights cost ½ `decay` each, for `patterns`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for settings that mean nothing, otherwise as [`fit`](super::fit()).
    pub fn new(
        (reach, num_knots): (f64, usize),
        width: usize,
        decay: f64,
        patterns: &[Pattern],
    ) -> Result<Self> {
        if !(1..=256).contains(&width) {
            return Err(Error::invalid("width", "1 to 256", width));
        }
        check_decay(decay)?;
        let interaction = Interaction::Pairwise { reach, num_knots };
        let family = Family { trend: Trend::Constant, interaction };
        let design = joint_design(&family, patterns, Regression::Pseudolikelihood)?;
        let places = design.patterns.iter().zip(&design.blocks);
        let groups = places.map(|(&pattern, &block)| group(patterns.len(), pattern, block));
        Ok(Self {
            family,
            window: patterns.first().map_or_else(Window::unit, Pattern::window),
            network: TanhNetwork::new(&[1, width, width, 1]),
            num_knots,
            decay,
            groups: groups.collect(),
            design,
        })
    }

    /// All units at a knot, the first of which is the distance, −3 to 3 from 0 to the reach.
    fn trace(&self, weights: &[f64], knot: usize) -> Vec<f64> {
        let mut trace = vec![0.0; self.network.num_units()];
        trace[0] = 3.0 * (2.0 * (knot as f64 + 0.5) / self.num_knots as f64 - 1.0);
        self.network.run(weights, &mut trace);
        trace
    }

    /// (α, φ at the knots).
    fn coefficients(&self, at: &[f64]) -> Vec<f64> {
        let value = |knot: usize| self.trace(&at[1..], knot).last().copied().unwrap_or(0.0);
        std::iter::once(at[0]).chain((0..self.num_knots).map(value)).collect()
    }

    /// Gradient by α and the weights of Σ slope · coefficient.
    fn backward(&self, at: &[f64], slopes: &[f64]) -> Vec<f64> {
        let (mut gradient, mut back) = (vec![0.0; at.len()], Backward::default());
        gradient[0] = slopes[0];
        for (knot, &slope) in slopes[1..].iter().enumerate() {
            let trace = self.trace(&at[1..], knot);
            self.network.backward(&at[1..], &trace, back.begin(&[slope]), &mut gradient[1..]);
        }
        gradient
    }
}

impl Likelihood for PairLaw {
    fn model(&self, at: &[f64]) -> Result<Gibbs> {
        Gibbs::new(self.family, self.window, self.coefficients(at))
    }

    fn slopes(&self, at: &[f64], pattern: &Pattern) -> Result<Vec<f64>> {
        Ok(self.backward(at, &self.family.totals_or_error(pattern)?))
    }

    fn decay(&self) -> f64 {
        self.decay
    }
}

impl NetworkLaw for PairLaw {
    fn pseudolikelihood(&self, at: &[f64], left_out: Option<usize>) -> (f64, Vec<f64>) {
        let coefficients = self.coefficients(at);
        let (mut value, mut slopes) = (0.0, vec![0.0; self.design.dim]);
        for ((row, weight, is_data), &group) in self.design.rows().zip(&self.groups) {
            if Some(group) == left_out {
                continue;
            }
            let log_intensity: f64 = row.iter().zip(&coefficients).map(|(t, c)| t * c).sum();
            let mass = weight * log_intensity.exp();
            value += if is_data { log_intensity - mass } else { -mass };
            let slope = f64::from(u8::from(is_data)) - mass;
            slopes.iter_mut().zip(row).for_each(|(sum, t)| *sum += slope * t);
        }
        (value, self.backward(at, &slopes))
    }

    fn num_groups(&self) -> usize {
        self.groups.iter().max().map_or(0, |last| last + 1)
    }

    fn num_points(&self) -> usize {
        self.design.num_data()
    }

    fn start(&self, stream: Stream) -> Vec<f64> {
        let total = self.design.weights.iter().sum();
        first_parameters((self.num_points(), total), stream, |draws| self.network.start(draws))
    }
}

/// The mean of a pair potential over pairs closer than `radius`, as they are spread without interaction;
/// none of other processes.
pub fn mean_potential(model: &Gibbs, radius: f64) -> Option<f64> {
    let Interaction::Pairwise { reach, num_knots } = model.family().interaction else {
        return None;
    };
    let first = model.family().trend.names().len();
    let knots = (0..num_knots).map(|k| (k as f64 + 0.5) * reach / num_knots as f64);
    let inside = knots.zip(&model.coefficients()[first..]).filter(|(d, _)| *d < radius);
    let (sum, total) = inside.fold((0.0, 0.0), |(sum, total), (d, phi)| (sum + d * phi, total + d));
    Some(sum / total)
}
