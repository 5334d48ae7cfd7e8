//! Neural processes draw by draw of their latent, with the mass of a cell under their Gaussians.

use super::law::HostLaw;
use super::model::NeuralProcess;
use super::predictive::NeuralPredictive;
use crate::process::hypotheses::log_mean_of_draws;
use crate::process::task::check_dimensions;
use crate::process::{Hypotheses, LatentProcess};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

impl LatentProcess for NeuralProcess {
    /// A Gaussian gives a cell the integral of its density; the outermost cells also get what lies
    /// beyond [−1, 1]. Levels have their own shares.
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
        hypotheses_of(&laws, targets, cell, count)
    }

    /// Latents of whole sets are drawn given context and targets; those of places, which have no such
    /// law, given the context.
    fn log_joint_mass(
        &self,
        context: &IndexedSet,
        targets: &IndexedSet,
        cell: f64,
        count: usize,
        stream: Stream,
    ) -> Result<f64> {
        let predictive = NeuralPredictive::new(self, context)?;
        let (locations, m) = (targets.locations(), targets.len());
        let (laws, weights) = match predictive.latents_given(targets, count, stream)? {
            Some((latents, weights)) => {
                (predictive.laws_under(locations, m, count, Some(latents))?, weights)
            }
            None => (predictive.laws(locations, m, count, stream)?, vec![0.0; count]),
        };
        let found = hypotheses_of(&laws, targets, cell, count)?;
        Ok(log_mean_of_draws(&found.log_mass, m, &weights))
    }
}

/// What laws `[count, m, d_x]` say of targets.
fn hypotheses_of(
    laws: &HostLaw,
    targets: &IndexedSet,
    cell: f64,
    count: usize,
) -> Result<Hypotheses> {
    let (m, value_dim) = (targets.len(), targets.value_dim());
    let (mut log_mass, mut log_density) = (Vec::new(), Vec::new());
    for row in 0..count * m {
        let values = targets.value(row % m);
        log_density.push(laws.log_density(row * value_dim, values)?);
        log_mass.push(laws.log_mass(row * value_dim, values, cell)?);
    }
    Ok(Hypotheses { log_mass, log_density, mean: laws.means() })
}
