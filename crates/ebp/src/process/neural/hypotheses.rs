//! Neural processes draw by draw of their latent, with the mass of a cell under their Gaussians.

use super::model::NeuralProcess;
use super::predictive::NeuralPredictive;
use crate::process::hypotheses::log_normal_mass;
use crate::process::task::check_dimensions;
use crate::process::{Hypotheses, LatentProcess};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

impl LatentProcess for NeuralProcess {
    /// A Gaussian gives a cell the integral of its density; the outermost cells also get what lies
    /// beyond [−1, 1].
    fn hypotheses(
        &self,
        context: &IndexedSet,
        targets: &IndexedSet,
        cell: f64,
        count: usize,
        stream: Stream,
    ) -> Result<Hypotheses> {
        let value_dim = self.network.value_dim;
        check_dimensions("targets", targets, self.network.location_dim, value_dim)?;
        let (m, predictive) = (targets.len(), NeuralPredictive::new(self, context)?);
        if m == 0 || count == 0 {
            return Ok(Hypotheses { log_mass: vec![], log_density: vec![], mean: vec![] });
        }
        let laws = predictive.laws(targets.locations(), m, count, stream)?;
        let (mut log_mass, mut log_density) = (Vec::new(), Vec::new());
        for row in 0..count * m {
            let values = targets.value(row % m);
            log_density.push(laws.log_density(row * value_dim, values));
            let masses = values.iter().enumerate().map(|(d, &value)| {
                let at = row * value_dim + d;
                let number = ((value + 1.0) / cell).floor();
                let edge = |number: f64| (number * cell - 1.0 - laws.mean[at]) / laws.std_dev[at];
                let low = if number <= 0.0 { f64::NEG_INFINITY } else { edge(number) };
                let is_last = (number + 1.0) * cell >= 2.0 - 1e-9;
                let high = if is_last { f64::INFINITY } else { edge(number + 1.0) };
                log_normal_mass(low, high)
            });
            log_mass.push(masses.sum());
        }
        Ok(Hypotheses { log_mass, log_density, mean: laws.mean })
    }
}
