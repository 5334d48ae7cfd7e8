//! The predictive law of a neural process.

use super::gaussian::Gaussian;
use super::model::NeuralProcess;
use super::ragged::{Ragged, host_tensor};
use crate::nn::normals;
use crate::process::task::{check_dimensions, count_locations};
use crate::process::{LogDensity, Predictive};
use crate::rng::Stream;
use crate::{IndexedSet, Result, SetOffsets};

/// The law of further elements, given a context:
///
/// ```text
/// p(x | t, C) = E_{q(z | C)} N(x; μ(t, z, r), σ(t, z, r)²)
/// ```
///
/// estimated by the mean over z drawn once and for all from the model's seed, so that equal
/// questions get equal answers. Without a latent it is exact.
#[derive(Debug)]
pub(super) struct NeuralPredictive<'a> {
    model: &'a NeuralProcess,
    context: Ragged,
    /// q(z | C), one row; `None` without a latent.
    prior: Option<Gaussian>,
}

impl<'a> NeuralPredictive<'a> {
    pub(super) fn new(model: &'a NeuralProcess, context: &IndexedSet) -> Result<Self> {
        check_dimensions("context", context, model.network.location_dim, model.network.value_dim)?;
        let context = Ragged::new([context])?;
        let prior = match &model.latent {
            Some(path) => Some(path.law(&context)?),
            None => None,
        };
        Ok(Self { model, context, prior })
    }

    /// The output laws `[count, m, d_x]` for `count` draws of z from `stream`.
    pub(super) fn laws(
        &self,
        locations: &[f64],
        num_locations: usize,
        count: usize,
        stream: Stream,
    ) -> Result<Gaussian> {
        let places = host_tensor(locations, self.model.network.location_dim)?;
        let single = SetOffsets::uniform(1, num_locations)?;
        let representation = self.model.represent(&self.context, &places, &single)?;
        let latents = match &self.prior {
            Some(prior) => {
                let repeated = Gaussian {
                    mean: prior.mean.repeat((count, 1))?,
                    std_dev: prior.std_dev.repeat((count, 1))?,
                };
                let noise = normals((count, prior.mean.dim(1)?), stream)?;
                Some(repeated.reparameterised(&noise)?)
            }
            None => None,
        };
        self.model.decode(
            &places.repeat((count, 1))?,
            &SetOffsets::uniform(count, num_locations)?,
            latents.as_ref(),
            &representation.repeated(count)?,
        )
    }
}

impl Predictive for NeuralPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let value_dim = self.model.network.value_dim;
        check_dimensions("targets", targets, self.model.network.location_dim, value_dim)?;
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let (m, count) = (targets.len(), self.model.num_draws);
        let stream = self.model.predictive_stream;
        let laws = self.laws(targets.locations(), m, count, stream)?.to_host()?;
        let density = |index: usize| {
            let terms: Vec<f64> = (0..count)
                .map(|draw| laws.log_density((draw * m + index) * value_dim, targets.value(index)))
                .collect();
            LogDensity::of_mean(&terms)
        };
        Ok((0..m).map(density).collect())
    }

    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        let network = &self.model.network;
        let num_locations = count_locations(locations, network.location_dim)?;
        if num_locations == 0 || count == 0 {
            return Ok(Vec::new());
        }
        let laws = self.laws(locations, num_locations, count, stream.child(0))?.to_host()?;
        let mut noise = vec![0.0; laws.mean.len()];
        stream.child(1).fill_normal(0, 0, &mut noise);
        Ok(laws.shifted(&noise))
    }
}
