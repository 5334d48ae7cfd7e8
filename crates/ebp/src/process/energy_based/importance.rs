//! Training by maximum likelihood, log Z by importance sampling.
//!
//! ```text
//! L = E_q(θ) Σᵢ [ log Ẑ(tᵢ; θ) − f(xᵢ, tᵢ; θ) ] + κ KL(q(θ | all) ‖ prior)        per set
//! log Ẑ(t; θ) = log Σ_k exp(f(x_k, t; θ)) · volume / K,   x_k one per cell of the domain
//! ```

use candle_core::{Device, Tensor};

use super::features::{Rows, push_features};
use super::latent::Gaussians;
use super::proposal::stratified;
use super::{EnergyBasedProcess, Estimator, Task, TrainingMode};
use crate::nn::{TensorBatch, TensorCandidates};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// What a training step should know of its place in the run.
#[derive(Clone, Copy, Debug)]
pub struct StepSettings {
    /// The number of the step, from 0.
    pub number: u64,
    /// The number of steps of the whole run.
    pub num_steps: u64,
    /// All randomness of the step.
    pub stream: Stream,
    /// Multiplies the learning rate.
    pub learning_rate_factor: f64,
}

/// What one step measured, before its update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Losses {
    /// The whole objective, per set.
    pub loss: f64,
    /// Negative log-density per target element, in nats.
    pub nats: f64,
    /// KL divergence per set, in nats.
    pub kl: f64,
    /// Latent coordinates whose KL exceeds 0.01 nats on average: 0 means a collapsed posterior.
    pub active_units: f64,
    /// Effective number of the K candidates, on average.
    pub effective_candidates: f64,
    /// Euclidean norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// E_q[τ log q − f] of the sampler's last step; 0 without one.
    pub sampler_loss: f64,
}

impl StepSettings {
    /// Half a cosine from 1 to 0 over the run.
    pub(super) fn schedule(&self) -> f64 {
        let progress = self.number as f64 / self.num_steps.max(1) as f64;
        0.5 * (1.0 + (std::f64::consts::PI * progress.min(1.0)).cos())
    }
}

impl EnergyBasedProcess {
    /// One update from a batch of tasks.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a task does not fit, [`Error::NonFinite`] or
    /// [`Error::NonFiniteGradient`] if the step diverged.
    pub fn train_step(&mut self, tasks: &[Task], settings: &StepSettings) -> Result<Losses> {
        self.check_tasks(tasks)?;
        if self.average.is_swapped_in() {
            self.average.swap_out()?;
        }
        let num_sets = tasks.len();
        let all: Vec<IndexedSet> = tasks.iter().map(joined).collect::<Result<_>>()?;
        let posterior = self.posterior.encode(&all.iter().collect::<Vec<_>>())?;
        let prior = match self.config.mode {
            TrainingMode::FullSet => Gaussians::standard(num_sets, self.config.latent_dim)?,
            TrainingMode::Predictive => self
                .posterior
                .encode(&tasks.iter().map(|task| &task.context).collect::<Vec<_>>())?,
        };
        let targets: Vec<&IndexedSet> = match self.config.mode {
            TrainingMode::FullSet => all.iter().collect(),
            TrainingMode::Predictive => tasks.iter().map(|task| &task.target).collect(),
        };
        let warm_up = self.config.kl_warm_up;
        let grown = ((settings.number + 1) as f64 / warm_up.max(1) as f64).min(1.0);
        let kappa = self.config.kl_weight * grown;
        if let Estimator::Ade(ade) = self.config.estimator.clone() {
            return self.ade_step(&ade, &targets, (&posterior, &prior), kappa, settings);
        }
        let theta = posterior.draw(settings.stream.child(0))?;
        let (nats, effective_candidates) =
            self.negative_log_density(&targets, &theta, 1.0, settings.stream.child(1))?;
        let kl_terms = posterior.kl_terms(&prior)?;
        let kl = (kl_terms.sum_all()? / num_sets as f64)?;
        let num_targets: usize = targets.iter().map(|set| set.len()).sum();
        // Per element, so that learning rates do not depend on the sets' sizes.
        let per_set = num_targets as f64 / num_sets as f64;
        let loss = (&nats + (&kl * (kappa / per_set))?)?;

        let gradients = loss.backward()?;
        let rate = self.config.learning_rate * settings.schedule() * settings.learning_rate_factor;
        let step = self.adam.step(&gradients, rate)?;
        self.average.update()?;
        let unit_kl = kl_terms.mean(0)?.to_vec1::<f32>()?;
        Ok(Losses {
            loss: f64::from(loss.to_scalar::<f32>()?) * per_set,
            nats: f64::from(nats.to_scalar::<f32>()?),
            kl: f64::from(kl.to_scalar::<f32>()?),
            active_units: unit_kl.iter().filter(|kl| **kl > 0.01).count() as f64,
            effective_candidates,
            gradient_norm: step.gradient_norm,
            sampler_loss: 0.0,
        })
    }

    /// Mean of log Ẑ − f/τ over all targets (a scalar tensor), and the effective candidates.
    pub(super) fn negative_log_density(
        &self,
        targets: &[&IndexedSet],
        theta: &Tensor,
        temperature: f64,
        stream: Stream,
    ) -> Result<(Tensor, f64)> {
        let config = &self.config;
        let rows = Rows::new(targets.iter().copied(), 0, config.location_frequencies)?;
        let n = rows.offsets.num_elements();
        let elements =
            Tensor::from_vec(rows.elements, (n, self.energy.shape().element_dim()), &Device::Cpu)?;
        let parameters = &self.calibrated_parameters(temperature)?;
        let offsets = &rows.offsets;
        let batch = TensorBatch { elements: &elements, context: Some(theta), parameters, offsets };
        let values = self.energy.values(&batch)?;

        let dims = config.value_dim;
        let proposals = stratified(n, config.num_proposals, dims, config.value_domain, stream);
        let k = proposals.num_candidates;
        let candidates = Tensor::from_vec(proposals.values, (n, k, dims), &Device::Cpu)?;
        let log_weights = Tensor::full(proposals.log_weight, k, &Device::Cpu)?;
        let locations = location_rows(targets, config.location_frequencies)?;
        let partition = self.energy.log_partition(&TensorCandidates {
            values: &candidates,
            context: Some(theta),
            parameters,
            locations: Some(&locations),
            log_weights: Some(&log_weights),
            offsets,
        })?;
        let effective = effective_candidates(&partition.values)?;
        let nats = (partition.log_partition - values.flatten_all()?)?.mean_all()?;
        Ok((nats, effective))
    }

    fn check_tasks(&self, tasks: &[Task]) -> Result<()> {
        if tasks.is_empty() {
            return Err(Error::invalid("tasks", "at least one", 0));
        }
        let expected = (self.config.location_dim, self.config.value_dim);
        for (index, task) in tasks.iter().enumerate() {
            if task.target.is_empty() {
                let field = format!("tasks[{index}].target");
                return Err(Error::invalid(field, "at least one element", "none"));
            }
            for set in [&task.context, &task.target] {
                check_dims(&format!("tasks[{index}]"), set, expected)?;
            }
        }
        Ok(())
    }
}

/// Refuses sets of other dimensions than (d_t, d_x).
pub(super) fn check_dims(field: &str, set: &IndexedSet, expected: (usize, usize)) -> Result<()> {
    let found = (set.location_dim(), set.value_dim());
    if found == expected {
        return Ok(());
    }
    let show = |(t, x): (usize, usize)| format!("locations of {t} and values of {x} numbers");
    Err(Error::invalid(field, show(expected), show(found)))
}

/// Location features of all elements, `[n, features]`.
pub(super) fn location_rows(sets: &[&IndexedSet], num_frequencies: usize) -> Result<Tensor> {
    let mut rows = Vec::new();
    let mut n = 0;
    for set in sets {
        n += set.len();
        for i in 0..set.len() {
            push_features(set.location(i), num_frequencies, &mut rows);
        }
    }
    let width = rows.len() / n.max(1);
    Ok(Tensor::from_vec(rows, (n, width), &Device::Cpu)?)
}

/// Context and target together.
fn joined(task: &Task) -> Result<IndexedSet> {
    let (context, target) = (&task.context, &task.target);
    IndexedSet::new(
        context.location_dim(),
        context.value_dim(),
        [context.locations(), target.locations()].concat(),
        [context.values(), target.values()].concat(),
    )
}

/// Mean over anchors of (Σ w)² / Σ w² with w = exp f.
fn effective_candidates(values: &Tensor) -> Result<f64> {
    let rows = values.to_vec2::<f32>()?;
    let total: f64 = rows
        .iter()
        .map(|row| {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weights = row.iter().map(|f| f64::from(f - largest).exp());
            let (sum, squares) =
                weights.fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
            sum * sum / squares
        })
        .sum();
    Ok(total / rows.len() as f64)
}
