//! The predictive law of a neural process.

use std::sync::Arc;

use super::batch::{Ragged, rounded};
use super::gaussian::HostGaussian;
use super::model::{NeuralProcess, tiled};
use crate::batch::SetBatch;
use crate::process::task::{check_dimensions, count_locations};
use crate::process::{LogDensity, Predictive};
use crate::rng::Stream;
use crate::tape::{Array, Gaussian};
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
    /// Mean and log σ of q(z | C); `None` without a latent.
    prior: Option<[Array; 2]>,
}

impl<'a> NeuralPredictive<'a> {
    pub(super) fn new(model: &'a NeuralProcess, context: &IndexedSet) -> Result<Self> {
        let (dt, dx) = (model.network.location_dim, model.network.value_dim);
        check_dimensions("context", context, dt, dx)?;
        let context = Ragged::new(&SetBatch::from_sets(dt, dx, [context])?)?;
        let prior = match &model.latent {
            Some(path) => {
                let mut tape = model.parameters.device().tape();
                tape.read(&model.parameters);
                let sets = context.clone().upload(&mut tape)?;
                let law = path.law(&mut tape, &sets)?;
                Some([law.mean, law.log_std_dev].map(|var| tape.array(var).clone()))
            }
            None => None,
        };
        Ok(Self { model, context, prior })
    }

    /// log p(x | t, z, C) of every target under every z, `[draws, m]`.
    fn log_densities(&self, targets: &IndexedSet) -> Result<Vec<f64>> {
        let value_dim = self.model.network.value_dim;
        check_dimensions("targets", targets, self.model.network.location_dim, value_dim)?;
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let (m, count) = (targets.len(), self.model.num_draws);
        let stream = self.model.predictive_stream;
        let laws = self.laws(targets.locations(), m, count, stream)?;
        let density = |row: usize| laws.log_density(row * value_dim, targets.value(row % m));
        Ok((0..count * m).map(density).collect())
    }

    /// The output laws `[count, m, d_x]` for `count` draws of z from `stream`.
    pub(super) fn laws(
        &self,
        locations: &[f64],
        num_locations: usize,
        count: usize,
        stream: Stream,
    ) -> Result<HostGaussian> {
        let location_dim = self.model.network.location_dim;
        let mut tape = self.model.parameters.device().tape();
        tape.read(&self.model.parameters);
        let contexts = self.context.clone().upload(&mut tape)?;
        let places = tape.upload(rounded(locations).collect(), (num_locations, location_dim))?;
        let single = Arc::new(SetOffsets::uniform(1, num_locations)?);
        let representation = self.model.represent(&mut tape, &contexts, (places, &single))?;
        let latents = match &self.prior {
            Some(prior) => {
                let mut repeat = |numbers: &Array| {
                    let row = tape.constant(numbers.clone(), (1, numbers.len()))?;
                    tiled(&mut tape, row, count)
                };
                let law = Gaussian { mean: repeat(&prior[0])?, log_std_dev: repeat(&prior[1])? };
                Some(tape.draw(law, stream)?)
            }
            None => None,
        };
        let places = tiled(&mut tape, places, count)?;
        let offsets = Arc::new(SetOffsets::uniform(count, num_locations)?);
        let representation = representation.repeated(&mut tape, count)?;
        let law = self.model.decode(&mut tape, (places, &offsets), latents, representation)?;
        HostGaussian::download(&tape, law)
    }
}

impl Predictive for NeuralPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let terms = self.log_densities(targets)?;
        let m = targets.len();
        let density = |index: usize| {
            let of_target = terms.iter().skip(index).step_by(m).copied();
            LogDensity::of_mean(&of_target.collect::<Vec<f64>>())
        };
        Ok((0..m).map(density).collect())
    }

    fn log_joint(&self, targets: &IndexedSet) -> Result<Option<LogDensity>> {
        let terms = self.log_densities(targets)?;
        let of_draws = terms.chunks_exact(targets.len().max(1)).map(|draw| draw.iter().sum());
        Ok(Some(LogDensity::of_mean(&of_draws.collect::<Vec<f64>>())))
    }

    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        let network = &self.model.network;
        let num_locations = count_locations(locations, network.location_dim)?;
        if num_locations == 0 || count == 0 {
            return Ok(Vec::new());
        }
        let laws = self.laws(locations, num_locations, count, stream.child(0))?;
        let mut noise = vec![0.0; laws.mean.len()];
        stream.child(1).fill_normal(0, 0, &mut noise);
        Ok(laws.shifted(&noise))
    }
}
