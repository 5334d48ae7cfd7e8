//! What a step of a neural process reads, and sets of which some have no elements.

use std::sync::Arc;

use super::config::{Likelihood, NetworkConfig};
use super::grid::GridPath;
use super::law::symbols;
use crate::batch::{SetBatch, TaskBatch};
use crate::energy::push_features;
use crate::nn::Step;
use crate::nn::{Network, Sets};
use crate::point::Pooling;
use crate::process::Preparer;
use crate::tape::{Choice, Shape, Tape, Var};
use crate::{Result, SetOffsets};

/// What a step reads.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) contexts: Ragged,
    /// Context and target of each task; only where there is a latent.
    pub(super) unions: Option<Ragged>,
    pub(super) targets: Targets,
    pub(super) on_grid: Option<OnGrid>,
}

/// What paths over a grid read.
#[derive(Debug)]
pub(super) struct OnGrid {
    /// Contexts at all places, one after the other.
    pub(super) grids: Vec<f32>,
    /// set · places + place of every target.
    pub(super) rows: Vec<u32>,
}

/// Elements to be predicted, at least one in every set.
#[derive(Debug)]
pub(super) struct Targets {
    /// What networks read of them, `[total, location_features]`.
    pub(super) locations: Vec<f32>,
    /// `[total, d_x]`.
    pub(super) values: Vec<f32>,
    /// Levels of the values, one list per coordinate; none for Gaussians.
    pub(super) symbols: Vec<Arc<Vec<u32>>>,
    pub(super) offsets: Arc<SetOffsets>,
}

/// Makes [`Batch`]es.
#[derive(Clone, Debug)]
pub(super) struct BatchMaker {
    location_dim: usize,
    value_dim: usize,
    reading: Reading,
    has_latent: bool,
    likelihood: Likelihood,
    path: Option<GridPath>,
}

/// What networks read of elements: their numbers, with sines and cosines of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    location_frequencies: usize,
    value_frequencies: usize,
}

impl Reading {
    pub(super) fn new(network: &NetworkConfig) -> Self {
        let NetworkConfig { location_frequencies, value_frequencies, .. } = *network;
        Self { location_frequencies, value_frequencies }
    }

    /// Of locations `[total, d_t]`, `[total, location_features]`.
    pub(super) fn locations(self, locations: &[f32], dim: usize) -> Vec<f32> {
        let mut rows = Vec::new();
        for location in locations.chunks_exact(dim) {
            push_features(location, self.location_frequencies, &mut rows);
        }
        rows
    }
}

impl BatchMaker {
    pub(super) fn new(network: &NetworkConfig, has_latent: bool, path: Option<GridPath>) -> Self {
        let NetworkConfig { location_dim, value_dim, likelihood, .. } = *network;
        let reading = Reading::new(network);
        Self { location_dim, value_dim, reading, has_latent, likelihood, path }
    }
}

impl Preparer for BatchMaker {
    type Batch = Batch;

    fn prepare(&self, tasks: &TaskBatch, _step: &Step) -> Result<Batch> {
        tasks.check(self.location_dim, self.value_dim)?;
        let TaskBatch { context, target } = tasks;
        let read = |sets: &SetBatch| Ragged::new(sets, self.reading);
        let unions = if self.has_latent { Some(read(&context.union(target)?)?) } else { None };
        let symbols = match self.likelihood {
            Likelihood::Gaussian => Vec::new(),
            Likelihood::Levels => symbols(target.all_values(), self.value_dim)?,
        };
        let on_grid = match &self.path {
            Some(path) => Some(OnGrid { grids: path.grids(context)?, rows: path.places(target)? }),
            None => None,
        };
        Ok(Batch {
            contexts: read(context)?,
            unions,
            targets: Targets {
                locations: self.reading.locations(target.all_locations(), self.location_dim),
                values: target.all_values().to_vec(),
                symbols,
                offsets: Arc::new(SetOffsets::from_sizes(target.sizes())?),
            },
            on_grid,
        })
    }
}

/// Networks compute in f32.
#[expect(clippy::cast_possible_truncation, reason = "that is what it is for")]
pub(super) fn rounded(numbers: &[f64]) -> impl Iterator<Item = f32> + '_ {
    numbers.iter().map(|&x| x as f32)
}

/// What encoders read of the elements `[x, t]` of several sets, any of which may be empty.
#[derive(Clone, Debug)]
pub(super) struct Ragged {
    sizes: Arc<Vec<usize>>,
    /// Those of the sets that have any; `None` if none has.
    filled: Option<Filled>,
}

#[derive(Clone, Debug)]
struct Filled {
    /// `[total, value_features + location_features]`.
    elements: Vec<f32>,
    shape: Shape,
    offsets: Arc<SetOffsets>,
    /// For each set its place among those with elements, any place for the others, and 1 or 0;
    /// `None` if all have some.
    places: Option<(Arc<Choice>, Vec<f32>)>,
}

impl Ragged {
    pub(super) fn new(sets: &SetBatch, reading: Reading) -> Result<Self> {
        let (dt, dx, total) = (sets.location_dim(), sets.value_dim(), sets.num_elements());
        let sizes: Vec<usize> = sets.sizes().collect();
        let filled = if total == 0 {
            None
        } else {
            let mut elements = Vec::new();
            for index in 0..total {
                let value = &sets.all_values()[index * dx..][..dx];
                push_features(value, reading.value_frequencies, &mut elements);
                let location = &sets.all_locations()[index * dt..][..dt];
                push_features(location, reading.location_frequencies, &mut elements);
            }
            let offsets = SetOffsets::from_sizes(sizes.iter().copied().filter(|&n| n > 0))?;
            let places = if offsets.num_sets() == sizes.len() {
                None
            } else {
                Some(places(&sizes, offsets.num_sets())?)
            };
            let shape = (total, elements.len() / total);
            Some(Filled { elements, shape, offsets: Arc::new(offsets), places })
        };
        Ok(Self { sizes: Arc::new(sizes), filled })
    }

    /// The sets on a tape.
    pub(super) fn upload(self, tape: &mut Tape) -> Result<RaggedVars> {
        let filled = match self.filled {
            Some(Filled { elements, shape, offsets, places }) => {
                let places = match places {
                    Some((choice, is_filled)) => {
                        let rows = is_filled.len();
                        Some((choice, tape.upload(is_filled, (rows, 1))?))
                    }
                    None => None,
                };
                Some(FilledVars { elements: tape.upload(elements, shape)?, offsets, places })
            }
            None => None,
        };
        Ok(RaggedVars { sizes: self.sizes, filled })
    }
}

fn places(sizes: &[usize], num_filled: usize) -> Result<(Arc<Choice>, Vec<f32>)> {
    let mut next = 0..;
    let mut place = |&size: &usize| if size > 0 { next.next().unwrap_or(0) } else { 0 };
    let rows = sizes.iter().map(&mut place).collect();
    let is_filled = sizes.iter().map(|&size| f32::from(u8::from(size > 0))).collect();
    Ok((Arc::new(Choice::new(num_filled, rows)?), is_filled))
}

/// A [`Ragged`] on a tape.
#[derive(Clone, Debug)]
pub(super) struct RaggedVars {
    pub(super) sizes: Arc<Vec<usize>>,
    pub(super) filled: Option<FilledVars>,
}

#[derive(Clone, Debug)]
pub(super) struct FilledVars {
    pub(super) elements: Var,
    pub(super) offsets: Arc<SetOffsets>,
    places: Option<(Arc<Choice>, Var)>,
}

impl FilledVars {
    fn sets(&self) -> Sets<'_> {
        Sets { elements: self.elements, context: None, offsets: &self.offsets }
    }

    /// What `network` makes of each element, `[total, outputs]`.
    pub(super) fn values(&self, tape: &mut Tape, network: &Network) -> Result<Var> {
        network.values(tape, self.sets())
    }

    /// Puts the rows of the sets with elements in their places among zeros.
    fn place(&self, tape: &mut Tape, rows: Var) -> Result<Var> {
        match &self.places {
            Some((choice, is_filled)) => {
                let placed = tape.gather(rows, choice)?;
                tape.multiply(placed, *is_filled)
            }
            None => Ok(rows),
        }
    }

    /// The mean over each set of what `network` makes of its elements, `[sets, outputs]`; zeros
    /// for a set without elements.
    pub(super) fn mean(&self, tape: &mut Tape, network: &Network) -> Result<Var> {
        let pooled = network.pool(tape, self.sets(), Pooling::Mean)?;
        self.place(tape, pooled)
    }

    /// The mean over each set of `rows` `[total, width]`, `[sets, width]`; zeros where empty.
    pub(super) fn mean_rows(&self, tape: &mut Tape, rows: Var) -> Result<Var> {
        let sums = tape.set_sums(rows, &self.offsets)?;
        let count = self.offsets.num_sets();
        let shares = (0..count).map(|set| 1.0 / self.offsets.size(set) as f32).collect();
        let shares = tape.upload(shares, (count, 1))?;
        let means = tape.multiply(sums, shares)?;
        self.place(tape, means)
    }
}

/// Zeros.
pub(super) fn zeros(tape: &mut Tape, shape: Shape) -> Result<Var> {
    let zeros = tape.device().zeros(shape.0 * shape.1)?;
    tape.constant(zeros, shape)
}

#[cfg(test)]
mod tests {
    use super::super::network::network;
    use super::*;
    use crate::point::MlpConfig;
    use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet};

    #[test]
    fn both_means_agree_and_are_zero_for_sets_without_elements() {
        let config =
            MlpConfig { value_dim: 1, location_dim: 1, context_dim: 0, ..MlpConfig::default() };
        let mut builder = ParameterBuilder::new(1);
        let network = network(&mut builder.group("model"), "a", config, 2).unwrap();
        let device = Device::default();
        let set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        let mut sets = SetBatch::new(1, 1);
        sets.push(&[], &[]).unwrap();
        let plain = Reading::new(&NetworkConfig::default());
        assert!(Ragged::new(&sets, plain).unwrap().filled.is_none());
        sets.push(&[1.0, -1.0], &[3.0, 4.0]).unwrap();
        sets.push(&[], &[]).unwrap();
        sets.push(&[0.5], &[2.0]).unwrap();
        let mut tape = device.tape();
        tape.read(&set);
        let ragged = Ragged::new(&sets, plain).unwrap().upload(&mut tape).unwrap().filled.unwrap();
        let pooled = ragged.mean(&mut tape, &network).unwrap();
        let rows = ragged.values(&mut tape, &network).unwrap();
        let by_rows = ragged.mean_rows(&mut tape, rows).unwrap();
        let [pooled, by_rows] = [pooled, by_rows].map(|var| tape.download(var).unwrap());
        assert_eq!((pooled[0], pooled[2]), (0.0, 0.0));
        assert!(pooled[1] != 0.0 && pooled[3] != 0.0);
        for (a, b) in pooled.iter().zip(&by_rows) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
    }
}
