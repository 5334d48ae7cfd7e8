//! Models of whole sets by their energy, without a latent.
//!
//! The path: [`SetEnergySettings`] → [`SetEnergyData`] → `learn` → [`SetEnergyModel`].

mod data;
mod settings;

use std::collections::BTreeMap;

pub use self::data::SetEnergyData;
pub use self::settings::{SetEnergyDataSettings, SetEnergyEvaluation, SetEnergySettings, SetSizes};
use super::{Device, Lesson};
use crate::checkpoint::Checkpoint;
use crate::metric::collection::{CollectionOptions, NeighbourMetrics, evaluate};
use crate::metric::distance::ArrangedCloud;
use crate::process::{Refining, SetEnergyConfig, SetEnergyProcess, SizeLaw};
use crate::rng::Stream;
use crate::train::{Evaluation, Finished, SetTraining, Step};
use crate::{Result, SetOffsets};

/// Sets of the quick looks during training.
const QUICK_SETS: usize = 60;

/// A trained energy of whole sets.
#[derive(Debug)]
pub struct SetEnergyModel {
    settings: SetEnergySettings,
    /// With its averages.
    process: SetEnergyProcess,
    /// Of the sets that it learned from.
    sizes: SizeLaw,
}

fn build(settings: &SetEnergySettings, dim: usize, device: &Device) -> Result<SetEnergyProcess> {
    let config = SetEnergyConfig { element_dim: dim, ..settings.model.clone() };
    SetEnergyProcess::new(config, settings.seed, device.tape())
}

/// Trains the process that the settings describe.
pub(super) fn learn(
    settings: &SetEnergySettings,
    data: &SetEnergyData,
    lesson: Lesson<'_>,
) -> Result<Finished> {
    let process = build(settings, data.dim, &lesson.device)?;
    let (num_sets, size) = (settings.data.num_sets, settings.data.set_size);
    let mut model = SetTraining::new(process, data.source.clone(), num_sets, data.sizes.clone())?;
    let refining = settings.evaluation.refining();
    let look = move |training: &mut SetTraining, step: &Step| {
        let model = training.model_mut();
        model.use_average();
        let drawn = model.sample(QUICK_SETS, size, refining, step.stream.child(7));
        model.use_parameters();
        let found = compare_sets(&drawn?, &data.held_out(QUICK_SETS), size, data.dim)?;
        Ok(vec![
            ("accuracy".to_owned(), found.one_nn_accuracy.value),
            ("matching_distance".to_owned(), found.matching_distance.value),
        ])
    };
    let evaluation = Evaluation::new(settings.evaluation.every, look)?;
    let (sizes, shares): (Vec<f64>, Vec<f64>) =
        data.sizes.shares().into_iter().map(|(size, share)| (size as f64, share)).unzip();
    let numbers = [("element_dim", vec![data.dim as f64]), ("sizes", sizes), ("shares", shares)];
    let numbers = numbers.map(|(name, values)| (name.to_owned(), values));
    lesson.run(&mut model, evaluation, numbers.into())
}

/// Metrics of two collections of sets of `size` elements by Chamfer distance.
pub(crate) fn compare_sets(
    samples: &[f32],
    references: &[f32],
    size: usize,
    dim: usize,
) -> Result<NeighbourMetrics> {
    let clouds = |flat: &[f32]| -> Result<Vec<ArrangedCloud>> {
        let wide: Vec<f64> = flat.iter().map(|&x| f64::from(x)).collect();
        wide.chunks_exact(size * dim).map(|set| ArrangedCloud::new(dim, set)).collect()
    };
    let options = CollectionOptions { emd: None, cache: None, seed: 0 };
    Ok(evaluate(&clouds(samples)?, &clouds(references)?, &options, &mut |_| ())?.chamfer)
}

impl SetEnergyModel {
    /// The model that a checkpoint holds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was a count")]
    pub(super) fn restore(
        settings: &SetEnergySettings,
        checkpoint: &Checkpoint,
        device: &Device,
    ) -> Result<Self> {
        let dim = checkpoint.meta.numbers.get("element_dim").and_then(|dim| dim.first());
        // Sets of the plane, before there was a number for it.
        let dim = dim.map_or(2, |dim| *dim as usize);
        let mut process = build(settings, dim, device)?;
        process.restore(&checkpoint.model_state()?)?;
        process.use_average();
        let numbers = |name: &str| checkpoint.meta.numbers.get(name);
        let sizes = match (numbers("sizes"), numbers("shares")) {
            (Some(sizes), Some(shares)) => {
                let sizes = sizes.iter().map(|&size| size as usize);
                SizeLaw::from_shares(sizes.zip(shares.iter().copied()))?
            }
            // Sets of one size, before there was a law of it.
            _ => SizeLaw::fixed(settings.data.set_size)?,
        };
        Ok(Self { settings: settings.clone(), process, sizes })
    }

    /// The law of the number of elements.
    pub fn sizes(&self) -> &SizeLaw {
        &self.sizes
    }

    /// `count` new sets whose sizes follow [`sizes`](Self::sizes), each `[n, d]`.
    ///
    /// # Errors
    ///
    /// As [`sample`](Self::sample).
    pub fn sample_any(&self, count: usize, stream: Stream) -> Result<Vec<Vec<f32>>> {
        let mut by_size: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for place in 0..count {
            let size = self.sizes.draw(stream.child(0), place as u64);
            by_size.entry(size).or_default().push(place);
        }
        let mut sets = vec![Vec::new(); count];
        for (size, places) in by_size {
            let drawn = self.sample(places.len(), size, stream.child(size as u64))?;
            for (place, set) in places.into_iter().zip(drawn.chunks_exact(size * self.dim())) {
                sets[place] = set.to_vec();
            }
        }
        Ok(sets)
    }

    /// The settings it was trained with.
    pub fn settings(&self) -> &SetEnergySettings {
        &self.settings
    }

    /// The numbers of an element.
    pub fn dim(&self) -> usize {
        self.process.config().element_dim
    }

    /// `count` new sets of `size` elements, `[count, size, d]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a count is 0.
    pub fn sample(&self, count: usize, size: usize, stream: Stream) -> Result<Vec<f32>> {
        self.process.sample(count, size, self.settings.evaluation.refining(), stream)
    }

    /// The same sets brought less far: as [`Refining::NONE`] has them they are first guesses.
    ///
    /// # Errors
    ///
    /// As [`sample`](Self::sample).
    pub fn sample_by(
        &self,
        count: usize,
        size: usize,
        refining: Refining,
        stream: Stream,
    ) -> Result<Vec<f32>> {
        self.process.sample(count, size, refining, stream)
    }

    /// −u per element of sets of `size` elements, `[sets, size, d]`: low is likely.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) unless the sets are whole.
    pub fn energies(&self, sets: &[f32], size: usize) -> Result<Vec<f64>> {
        let offsets = SetOffsets::uniform(sets.len() / (size * self.dim()).max(1), size)?;
        let u = self.process.log_potentials(sets, &offsets)?;
        Ok(u.into_iter().map(|u| -f64::from(u) / size as f64).collect())
    }
}
