//! Processes of sets as [`Trainable`]s: steps on fresh sets.

use std::sync::Arc;

use super::sets::LatentSets;
use super::settings::{LatentProcessName, LatentSettings};
use crate::process::bruno::BrunoProcess;
use crate::process::hidden_locations::HiddenLocationProcess;
use crate::process::statistician::{SetEstimate, StatisticianProcess};
use crate::process::{LogDensity, Parametric, Process};
use crate::rng::Stream;
use crate::tape::Device;
use crate::tensor::Tensors;
use crate::train::{Record, Step, Trainable};
use crate::{Error, Result, SetOffsets};

/// A process of sets, of either kind.
#[derive(Debug)]
pub(crate) enum SetProcess {
    Bruno(BrunoProcess),
    Statistician(StatisticianProcess),
    HiddenLocations(HiddenLocationProcess),
}

/// What all kinds answer.
macro_rules! of_sets {
    ($sets:expr, $process:ident => $answer:expr) => {
        match $sets {
            SetProcess::Bruno($process) => $answer,
            SetProcess::Statistician($process) => $answer,
            SetProcess::HiddenLocations($process) => $answer,
        }
    };
}

/// How likely a set is, and how many draws counted in that.
pub(crate) struct SetLikelihood {
    pub(crate) log_density: LogDensity,
    pub(crate) effective_draws: Option<f64>,
}

impl SetProcess {
    pub(super) fn new(settings: &LatentSettings, dim: usize, device: &Device) -> Result<Self> {
        let seed = settings.seed;
        Ok(match settings.process {
            LatentProcessName::Bruno => {
                Self::Bruno(BrunoProcess::new(settings.bruno.clone(), dim, seed, device)?)
            }
            LatentProcessName::Statistician => {
                let config = settings.statistician.clone();
                Self::Statistician(StatisticianProcess::new(config, dim, seed, device)?)
            }
            LatentProcessName::HiddenLocations => {
                let config = settings.hidden_locations.clone();
                let process = HiddenLocationProcess::new(config, dim, seed, device)?;
                Self::HiddenLocations(process)
            }
            LatentProcessName::Gplvm => {
                return Err(Error::invalid("process", "one of sets", "gplvm"));
            }
        })
    }

    pub(crate) fn process(&self) -> &dyn Process {
        of_sets!(self, process => process)
    }

    pub(crate) fn dim(&self) -> usize {
        of_sets!(self, process => process.dim())
    }

    pub(super) fn parametric(&self) -> &dyn Parametric {
        of_sets!(self, process => process)
    }

    pub(super) fn parametric_mut(&mut self) -> &mut dyn Parametric {
        of_sets!(self, process => process)
    }

    pub(super) fn sample(&self, count: usize, size: usize, stream: Stream) -> Result<Vec<f32>> {
        of_sets!(self, process => process.sample(count, size, stream))
    }

    /// Of every set of `values` `[sets, size, d]`; `draws` are those of the set's latent and of its elements'.
    pub(crate) fn score(
        &self,
        values: &[f32],
        size: usize,
        draws: [usize; 2],
        stream: Stream,
    ) -> Result<Vec<SetLikelihood>> {
        let width = size * self.dim();
        match self {
            Self::Bruno(process) => {
                let offsets = SetOffsets::uniform(values.len() / width.max(1), size)?;
                let exact = |value| SetLikelihood {
                    log_density: LogDensity { value, std_error: 0.0 },
                    effective_draws: None,
                };
                Ok(process.log_densities(values, &offsets)?.into_iter().map(exact).collect())
            }
            Self::Statistician(process) => {
                each_set(values, width, stream, |set, stream| process.score(set, draws, stream))
            }
            Self::HiddenLocations(process) => {
                each_set(values, width, stream, |set, stream| process.score(set, draws[0], stream))
            }
        }
    }
}

/// Sets of `width` numbers, one after the other.
fn each_set(
    values: &[f32],
    width: usize,
    stream: Stream,
    score: impl Fn(&[f32], Stream) -> Result<SetEstimate>,
) -> Result<Vec<SetLikelihood>> {
    let sets = values.chunks_exact(width).enumerate();
    sets.map(|(number, set)| {
        let SetEstimate { log_density, effective_draws } = score(set, stream.child(number as u64))?;
        Ok(SetLikelihood { log_density, effective_draws: Some(effective_draws) })
    })
    .collect()
}

/// A process of sets and what it learns from.
#[derive(Debug)]
pub(super) struct SetsTraining {
    pub(super) process: SetProcess,
    pub(super) sets: Arc<LatentSets>,
    pub(super) num_sets: usize,
    pub(super) set_size: usize,
}

impl Trainable for SetsTraining {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let sets = self.sets.training(self.num_sets, step.stream.child(0));
        of_sets!(&mut self.process, process => process.learn(sets.values, self.set_size, step))
    }

    fn state(&self) -> Result<Tensors> {
        self.process.parametric().state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.process.parametric_mut().restore(state)
    }
}
