//! The processes as [`Trainable`]s: climbing by the evaluation, or steps on fresh sets.

use std::sync::Arc;

use super::sets::LatentSets;
use super::settings::{LatentProcessName, LatentSettings};
use crate::process::bruno::BrunoProcess;
use crate::process::gplvm::{
    BayesianGplvm, Climb, Conditional, Gplvm, LatentMap, principal_components,
};
use crate::process::statistician::StatisticianProcess;
use crate::process::{LogDensity, Process};
use crate::rng::Stream;
use crate::tape::Device;
use crate::tensor::{Tensor, TensorValues, Tensors};
use crate::train::{Record, Step, Trainable};
use crate::{Error, Result, SetOffsets};

/// The tensors of a map's state.
const PARAMETERS: &str = "parameters";
const VALUES: &str = "values";

/// Rows at latent locations, of either kind.
#[derive(Debug)]
pub(crate) enum Map {
    Point(Gplvm),
    Bayesian(BayesianGplvm),
}

/// What both kinds answer.
macro_rules! of_map {
    ($map:expr, $model:ident => $answer:expr) => {
        match $map {
            Map::Point($model) => $answer,
            Map::Bayesian($model) => $answer,
        }
    };
}

impl Map {
    /// At the principal components of `values` `[n, d]`.
    pub(super) fn new(settings: &LatentSettings, values: Vec<f64>, dim: usize) -> Result<Self> {
        let gplvm = &settings.gplvm;
        let (latents, _) = principal_components(&values, dim, gplvm.latent_dim)?;
        Self::at(settings, latents, values, dim)
    }

    fn at(
        settings: &LatentSettings,
        latents: Vec<f64>,
        values: Vec<f64>,
        dim: usize,
    ) -> Result<Self> {
        let gplvm = &settings.gplvm;
        if gplvm.evaluations_per_step == 0 {
            return Err(Error::invalid("gplvm.evaluations_per_step", "at least 1", 0));
        }
        let (latent_dim, noise) = (gplvm.latent_dim, gplvm.noise_variance);
        Ok(if gplvm.is_bayesian {
            let count = gplvm.num_inducing.min(values.len() / dim.max(1));
            Self::Bayesian(BayesianGplvm::new(latents, latent_dim, values, dim, count, noise)?)
        } else {
            let extra = [gplvm.has_linear, gplvm.has_constant];
            Self::Point(Gplvm::new(latents, latent_dim, values, dim, extra, noise)?)
        })
    }

    /// What [`state`](Self::state) gave.
    pub(super) fn from_state(settings: &LatentSettings, state: &Tensors) -> Result<Self> {
        let (dims, values) = numbers(state, VALUES)?;
        let [num_rows, dim] = dims[..] else {
            return Err(Error::invalid("state", "`values` as rows", format!("{dims:?}")));
        };
        let latents = vec![0.0; num_rows * settings.gplvm.latent_dim];
        let mut map = Self::at(settings, latents, values.to_vec(), dim)?;
        map.restore(state)?;
        Ok(map)
    }

    pub(super) fn state(&self) -> Result<Tensors> {
        let (parameters, values, dim) = of_map!(self, model => {
            (model.parameters(), model.values().to_vec(), model.value_dim())
        });
        let rows = values.len() / dim;
        let tensor = |dims, numbers| Tensor::from_values(dims, TensorValues::F64(numbers));
        Ok(Tensors::from([
            (PARAMETERS.to_owned(), tensor(vec![parameters.len()], parameters)?),
            (VALUES.to_owned(), tensor(vec![rows, dim], values)?),
        ]))
    }

    pub(super) fn restore(&mut self, state: &Tensors) -> Result<()> {
        let (_, values) = numbers(state, VALUES)?;
        if values != of_map!(self, model => model.values()) {
            let message = "the rows are not those that the run began with";
            return Err(Error::refused(message).with_help("give the same table, or begin anew"));
        }
        let (_, parameters) = numbers(state, PARAMETERS)?;
        *self = match self {
            Self::Point(model) => Self::Point(model.with_parameters(parameters)?),
            Self::Bayesian(model) => Self::Bayesian(model.with_parameters(parameters)?),
        };
        Ok(())
    }

    fn climb(&mut self, max_evaluations: usize) -> Result<Climb> {
        let (next, climb) = match self {
            Self::Point(model) => {
                let (model, climb) = model.climbed(max_evaluations)?;
                (Self::Point(model), climb)
            }
            Self::Bayesian(model) => {
                let (model, climb) = model.climbed(max_evaluations)?;
                (Self::Bayesian(model), climb)
            }
        };
        *self = next;
        Ok(climb)
    }

    /// log p(x | t) or its bound.
    pub(crate) fn value(&self) -> Result<f64> {
        match self {
            Self::Point(model) => model.log_marginal(),
            Self::Bayesian(model) => model.bound(),
        }
    }

    pub(crate) fn latents(&self) -> &[f64] {
        of_map!(self, model => model.latents())
    }

    pub(crate) fn latent_dim(&self) -> usize {
        of_map!(self, model => model.latent_dim())
    }

    pub(crate) fn num_values(&self) -> usize {
        of_map!(self, model => model.values().len())
    }

    pub(crate) fn length_scales(&self) -> Vec<f64> {
        of_map!(self, model => model.length_scales())
    }

    pub(crate) fn conditional(&self) -> Result<Conditional> {
        of_map!(self, model => model.conditional())
    }
}

fn numbers<'a>(state: &'a Tensors, name: &str) -> Result<(&'a [usize], &'a [f64])> {
    let tensor = state.get(name);
    match tensor.map(|tensor| (tensor.dims(), tensor.values())) {
        Some((dims, TensorValues::F64(numbers))) => Ok((dims, numbers)),
        _ => Err(Error::invalid("state", format!("`{name}` in double precision"), "none")),
    }
}

/// A map that climbs: a step is so many evaluations, and goes on from where the last one ended.
#[derive(Debug)]
pub(super) struct MapTraining {
    pub(super) map: Map,
    pub(super) evaluations: usize,
}

impl Trainable for MapTraining {
    fn step(&mut self, _step: &Step) -> Result<Record> {
        let climb = self.map.climb(self.evaluations)?;
        let count = self.map.num_values() as f64;
        Ok(vec![
            ("nats", -climb.value / count),
            ("evaluations", climb.num_evaluations as f64),
            ("jitter", climb.jitter),
        ])
    }

    fn state(&self) -> Result<Tensors> {
        self.map.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.map.restore(state)
    }
}

/// A process of sets, of either kind.
#[derive(Debug)]
pub(crate) enum SetProcess {
    Bruno(BrunoProcess),
    Statistician(StatisticianProcess),
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
            LatentProcessName::Gplvm => {
                return Err(Error::invalid("process", "one of sets", "gplvm"));
            }
        })
    }

    pub(crate) fn process(&self) -> &dyn Process {
        match self {
            Self::Bruno(process) => process,
            Self::Statistician(process) => process,
        }
    }

    pub(crate) fn dim(&self) -> usize {
        match self {
            Self::Bruno(process) => process.dim(),
            Self::Statistician(process) => process.dim(),
        }
    }

    pub(super) fn use_average(&mut self, is_wanted: bool) {
        match self {
            Self::Bruno(process) => process.use_average(is_wanted),
            Self::Statistician(process) => process.use_average(is_wanted),
        }
    }

    pub(super) fn restore(&mut self, state: &Tensors) -> Result<()> {
        match self {
            Self::Bruno(process) => process.restore(state),
            Self::Statistician(process) => process.restore(state),
        }
    }

    pub(super) fn sample(&self, count: usize, size: usize, stream: Stream) -> Result<Vec<f32>> {
        match self {
            Self::Bruno(process) => process.sample(count, size, stream),
            Self::Statistician(process) => process.sample(count, size, stream),
        }
    }

    /// Of every set of `values` `[sets, size, d]`; `draws` are those of the statistician.
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
            Self::Statistician(process) => values
                .chunks_exact(width)
                .enumerate()
                .map(|(number, set)| {
                    let found = process.score(set, draws, stream.child(number as u64))?;
                    let effective_draws = Some(found.effective_draws);
                    Ok(SetLikelihood { log_density: found.log_density, effective_draws })
                })
                .collect(),
        }
    }
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
        match &mut self.process {
            SetProcess::Bruno(process) => process.learn(sets.values, self.set_size, step),
            SetProcess::Statistician(process) => process.learn(sets.values, self.set_size, step),
        }
    }

    fn state(&self) -> Result<Tensors> {
        match &self.process {
            SetProcess::Bruno(process) => process.state(),
            SetProcess::Statistician(process) => process.state(),
        }
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.process.restore(state)
    }
}
