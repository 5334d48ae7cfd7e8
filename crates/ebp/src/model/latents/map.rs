//! Rows at latent locations as something that trains: a step is so many evaluations of log p, and goes on
//! from where the last one ended.
//!
//! Kernels are compared by what they are for: those that are asked for all climb from the same principal
//! components for a few steps, and the one with the highest log p goes on alone.

use super::settings::{LatentSettings, MapKernel};
use crate::process::gplvm::{
    BayesianGplvm, Climb, Conditional, Gplvm, LatentMap, principal_components,
};
use crate::tensor::{Tensor, TensorValues, Tensors};
use crate::train::{Record, Step, Trainable};
use crate::{Error, Result};

/// The tensors of a state; of parameters there is one for each kernel.
const PARAMETERS: &str = "parameters ";
const VALUES: &str = "values";
/// After so many steps the best kernel goes on alone.
const COMPARED: u64 = 3;

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
    fn at(
        settings: &LatentSettings,
        kernel: MapKernel,
        latents: Vec<f64>,
        (values, dim): (Vec<f64>, usize),
    ) -> Result<Self> {
        let gplvm = &settings.gplvm;
        let (latent_dim, noise) = (gplvm.latent_dim, gplvm.noise_variance);
        Ok(if gplvm.is_bayesian {
            let count = gplvm.num_inducing.min(values.len() / dim.max(1));
            Self::Bayesian(BayesianGplvm::new(latents, latent_dim, values, dim, count, noise)?)
        } else {
            Self::Point(Gplvm::new(latents, latent_dim, values, dim, kernel.parts(), noise)?)
        })
    }

    /// The likeliest of what [`MapTraining::state`] gave.
    pub(super) fn from_state(settings: &LatentSettings, state: &Tensors) -> Result<Self> {
        let (dims, values) = numbers(state, VALUES)?;
        let [num_rows, dim] = dims[..] else {
            return Err(Error::invalid("state", "`values` as rows", format!("{dims:?}")));
        };
        let latents = vec![0.0; num_rows * settings.gplvm.latent_dim];
        let mut best: Option<(f64, Self)> = None;
        for kernel in MapKernel::ALL {
            let name = kernel.tensor();
            if state.contains_key(&name) {
                let map = Self::at(settings, kernel, latents.clone(), (values.to_vec(), dim))?;
                let map = map.with_parameters(numbers(state, &name)?.1)?;
                let value = map.value()?;
                if best.as_ref().is_none_or(|(most, _)| value > *most) {
                    best = Some((value, map));
                }
            }
        }
        let missing = || Error::invalid("state", "parameters of a kernel", "none");
        best.map(|(_, map)| map).ok_or_else(missing)
    }

    fn with_parameters(&self, parameters: &[f64]) -> Result<Self> {
        Ok(match self {
            Self::Point(model) => Self::Point(model.with_parameters(parameters)?),
            Self::Bayesian(model) => Self::Bayesian(model.with_parameters(parameters)?),
        })
    }

    fn parameters(&self) -> Vec<f64> {
        of_map!(self, model => model.parameters())
    }

    fn values(&self) -> &[f64] {
        of_map!(self, model => model.values())
    }

    fn value_dim(&self) -> usize {
        of_map!(self, model => model.value_dim())
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

    /// Latent locations in units of the length scales: (t_d, ℓ_d) and (c t_d, c ℓ_d) are one process, so that
    /// distances mean something only in these.
    pub(crate) fn in_length_scales(&self, latents: &[f64]) -> Vec<f64> {
        let scales = self.length_scales();
        latents.iter().zip(scales.iter().cycle()).map(|(t, scale)| t / scale).collect()
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

impl MapKernel {
    /// Of its parameters in a state.
    fn tensor(self) -> String {
        format!("{PARAMETERS}{}", self.name())
    }
}

/// Maps that climb.
#[derive(Debug)]
pub(super) struct MapTraining {
    candidates: Vec<(MapKernel, Map)>,
    /// Which of them climb, the likeliest first.
    climbing: Vec<usize>,
    evaluations: usize,
}

impl MapTraining {
    /// At the principal components of `values` `[n, d]`.
    pub(super) fn new(settings: &LatentSettings, values: &[f64], dim: usize) -> Result<Self> {
        let gplvm = &settings.gplvm;
        let evaluations = gplvm.evaluations_per_step;
        if evaluations == 0 {
            return Err(Error::invalid("gplvm.evaluations_per_step", "at least 1", 0));
        }
        let (latents, _) = principal_components(values, dim, gplvm.latent_dim)?;
        let kernels = match (gplvm.kernel, gplvm.is_bayesian) {
            (MapKernel::Best, false) => MapKernel::ALL.to_vec(),
            (MapKernel::Best | MapKernel::Rbf, _) => vec![MapKernel::Rbf],
            (kernel, false) => vec![kernel],
            (kernel, true) => {
                let message = format!("the Bayesian model has no kernel `{}`", kernel.name());
                return Err(Error::refused(message).with_help("leave `gplvm.kernel` out"));
            }
        };
        let map = |kernel: MapKernel| {
            let rows = (values.to_vec(), dim);
            Ok((kernel, Map::at(settings, kernel, latents.clone(), rows)?))
        };
        let candidates = kernels.into_iter().map(map).collect::<Result<Vec<_>>>()?;
        Ok(Self { climbing: (0..candidates.len()).collect(), candidates, evaluations })
    }

    /// The likeliest so far.
    pub(super) fn best(&self) -> &Map {
        &self.candidates[self.climbing[0]].1
    }
}

impl Trainable for MapTraining {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let mut climbs = Vec::with_capacity(self.climbing.len());
        for &number in &self.climbing {
            climbs.push((self.candidates[number].1.climb(self.evaluations)?, number));
        }
        climbs.sort_by(|a, b| b.0.value.total_cmp(&a.0.value));
        let num_evaluations: usize = climbs.iter().map(|(climb, _)| climb.num_evaluations).sum();
        if step.number + 1 >= COMPARED {
            climbs.truncate(1);
        }
        let best = climbs[0].0;
        self.climbing = climbs.into_iter().map(|(_, number)| number).collect();
        let count = self.best().num_values() as f64;
        Ok(vec![
            ("nats", -best.value / count),
            ("evaluations", num_evaluations as f64),
            ("jitter", best.jitter),
        ])
    }

    fn state(&self) -> Result<Tensors> {
        let tensor = |dims, numbers| Tensor::from_values(dims, TensorValues::F64(numbers));
        let (values, dim) = (self.best().values().to_vec(), self.best().value_dim());
        let rows = tensor(vec![values.len() / dim, dim], values)?;
        let mut state = Tensors::from([(VALUES.to_owned(), rows)]);
        for &number in &self.climbing {
            let (kernel, map) = &self.candidates[number];
            let parameters = map.parameters();
            state.insert(kernel.tensor(), tensor(vec![parameters.len()], parameters)?);
        }
        Ok(state)
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let (_, values) = numbers(state, VALUES)?;
        if values != self.best().values() {
            let message = "the rows are not those that the run began with";
            return Err(Error::refused(message).with_help("give the same table, or begin anew"));
        }
        let mut values = Vec::new();
        for (number, (kernel, map)) in self.candidates.iter_mut().enumerate() {
            if state.contains_key(&kernel.tensor()) {
                *map = map.with_parameters(numbers(state, &kernel.tensor())?.1)?;
                values.push((map.value()?, number));
            }
        }
        if values.is_empty() || values.len() + 1 != state.len() {
            return Err(Error::invalid("state", "of the kernels that are compared", "others"));
        }
        values.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.climbing = values.into_iter().map(|(_, number)| number).collect();
        Ok(())
    }
}
