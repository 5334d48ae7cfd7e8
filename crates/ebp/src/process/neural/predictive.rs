//! The predictive law of a neural process.

use std::sync::Arc;

use super::batch::{Ragged, Reading, rounded};
use super::law::HostLaw;
use super::model::{NeuralProcess, Representation};
use crate::batch::SetBatch;
use crate::process::task::{check_dimensions, count_locations};
use crate::process::{LogDensity, Predictive};
use crate::rng::Stream;
use crate::tape::{Array, Choice, Gaussian, Tape};
use crate::{Error, IndexedSet, Result, SetOffsets};

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
    batch: SetBatch,
    /// The context at every place of the grid, for paths over one.
    grids: Option<Vec<f32>>,
    /// Mean and log σ of q(z | C); `None` without a latent.
    prior: Option<[Array; 2]>,
}

impl<'a> NeuralPredictive<'a> {
    pub(super) fn new(model: &'a NeuralProcess, context: &IndexedSet) -> Result<Self> {
        let (dt, dx) = (model.network.location_dim, model.network.value_dim);
        check_dimensions("context", context, dt, dx)?;
        let batch = SetBatch::from_sets(dt, dx, [context])?;
        let grids = match model.path() {
            Some(path) => Some(path.grids(&batch)?),
            None => None,
        };
        let context = Ragged::new(&batch, Reading::new(&model.network))?;
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
        Ok(Self { model, context, batch, grids, prior })
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
        (0..count * m).map(density).collect()
    }

    /// The output laws `[count, m, d_x]` for `count` draws of z from `stream`.
    pub(super) fn laws(
        &self,
        locations: &[f64],
        num_locations: usize,
        count: usize,
        stream: Stream,
    ) -> Result<HostLaw> {
        if let Some(grids) = &self.grids {
            return self.laws_on_grid(grids, (locations, num_locations), count, stream);
        }
        let latents = match &self.prior {
            Some(prior) => {
                let mut tape = self.model.parameters.device().tape();
                let law = repeated(&mut tape, prior, count)?;
                let drawn = tape.draw(law, stream)?;
                Some(tape.download(drawn)?)
            }
            None => None,
        };
        self.laws_under(locations, num_locations, count, latents)
    }

    /// Draws of z given context and targets, `[count, latent_dim]`, and log q(z | C) − log q(z | C and T)
    /// of each; `None` without a latent of the set.
    pub(super) fn latents_given(
        &self,
        targets: &IndexedSet,
        count: usize,
        stream: Stream,
    ) -> Result<Option<(Vec<f32>, Vec<f64>)>> {
        let (Some(path), Some(prior)) = (&self.model.latent, &self.prior) else { return Ok(None) };
        let network = &self.model.network;
        let (dt, dx) = (network.location_dim, network.value_dim);
        let all = self.batch.union(&SetBatch::from_sets(dt, dx, [targets])?)?;
        let mut tape = self.model.parameters.device().tape();
        tape.read(&self.model.parameters);
        let sets = Ragged::new(&all, Reading::new(network))?.upload(&mut tape)?;
        let law = path.law(&mut tape, &sets)?;
        let law = Gaussian {
            mean: tape.tile(law.mean, count)?,
            log_std_dev: tape.tile(law.log_std_dev, count)?,
        };
        let drawn = tape.draw(law, stream)?;
        let prior = repeated(&mut tape, prior, count)?;
        let (above, below) = (tape.log_density(drawn, prior)?, tape.log_density(drawn, law)?);
        let difference = tape.subtract(above, below)?;
        let ratio = tape.row_sums(difference)?;
        let weights = tape.download(ratio)?.into_iter().map(f64::from).collect();
        Ok(Some((tape.download(drawn)?, weights)))
    }

    /// The output laws under given draws of z, `[count, latent_dim]`.
    pub(super) fn laws_under(
        &self,
        locations: &[f64],
        num_locations: usize,
        count: usize,
        latents: Option<Vec<f32>>,
    ) -> Result<HostLaw> {
        let network = &self.model.network;
        let locations: Vec<f32> = rounded(locations).collect();
        let rows = Reading::new(network).locations(&locations, network.location_dim);
        let mut tape = self.model.parameters.device().tape();
        tape.read(&self.model.parameters);
        let contexts = self.context.clone().upload(&mut tape)?;
        let places = tape.upload(rows, (num_locations, network.location_features()))?;
        let single = Arc::new(SetOffsets::uniform(1, num_locations)?);
        let representation = self.model.represent(&mut tape, &contexts, (places, &single))?;
        let latents = match latents {
            Some(latents) => {
                let width = latents.len() / count;
                Some(tape.upload(latents, (count, width))?)
            }
            None => None,
        };
        let places = tape.tile(places, count)?;
        let offsets = Arc::new(SetOffsets::uniform(count, num_locations)?);
        let representation = representation.repeated(&mut tape, count)?;
        let law = self.model.decode(&mut tape, (places, &offsets), latents, representation)?;
        law.download(&mut tape)
    }

    /// The same by convolutions over the grid.
    fn laws_on_grid(
        &self,
        grids: &[f32],
        (locations, num_locations): (&[f64], usize),
        count: usize,
        stream: Stream,
    ) -> Result<HostLaw> {
        let model = self.model;
        let Some(path) = model.path() else {
            return Err(Error::invalid("path", "over a grid", "another"));
        };
        let mut tape = model.parameters.device().tape();
        tape.read(&model.parameters);
        let (found, law) = path.read(&mut tape, grids.to_vec())?;
        let drawn = if law.is_some() { count } else { 1 };
        let z = match law {
            Some(Gaussian { mean, log_std_dev }) => {
                let (mean, log_std_dev) = (tape.tile(mean, count)?, tape.tile(log_std_dev, count)?);
                Some(tape.draw(Gaussian { mean, log_std_dev }, stream)?)
            }
            None => None,
        };
        let all = path.represent(&mut tape, found, z)?;
        let mut asked = SetBatch::new(model.network.location_dim, 1);
        let narrow: Vec<f32> = rounded(locations).collect();
        asked.push(&narrow, &vec![0.0; num_locations])?;
        let places = path.places(&asked)?;
        let shift = |draw: usize| u32::try_from(draw * path.num_places()).unwrap_or(u32::MAX);
        let rows = (0..drawn).flat_map(|draw| places.iter().map(move |p| p + shift(draw)));
        let choice = Choice::new(drawn * path.num_places(), rows.collect())?;
        let features = tape.gather(all, &Arc::new(choice))?;
        let representation = Representation::Alone(features);
        let representation = representation.repeated(&mut tape, count / drawn)?;
        let offsets = Arc::new(SetOffsets::uniform(count, num_locations)?);
        let law = model.decode(&mut tape, (features, &offsets), None, representation)?;
        law.download(&mut tape)
    }
}

/// A law of one set, for `count` draws.
fn repeated(tape: &mut Tape, law: &[Array; 2], count: usize) -> Result<Gaussian> {
    let mut repeat = |numbers: &Array| {
        let row = tape.constant(numbers.clone(), (1, numbers.len()))?;
        tape.tile(row, count)
    };
    Ok(Gaussian { mean: repeat(&law[0])?, log_std_dev: repeat(&law[1])? })
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
        let mut noise = vec![0.0; count * num_locations * network.value_dim];
        stream.child(1).fill_normal(0, 0, &mut noise);
        Ok(laws.draws(&noise))
    }
}
