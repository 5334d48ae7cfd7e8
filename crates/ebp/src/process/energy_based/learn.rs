//! One step of neural collapsed inference: posterior, estimate of log Z, update.
//!
//! ```text
//! loss = E_q(θ) [ likelihood part ] + κ KL(q(θ | all) ‖ prior) / n + penalty E‖∇ₓf‖²   per element
//! ```

use candle_core::Tensor;

use super::config::{Estimator, Proposal, TrainingMode};
use super::latent::Gaussians;
use super::targets::Targets;
use super::{EnergyBasedProcess, Learner, Task};
use crate::nn::{Mode, Record, Step, TensorBatch};
use crate::process::task::check_tasks;
use crate::tensor::Tensors;
use crate::{IndexedSet, Result};

/// A latent coordinate whose KL exceeds this many nats on average is active.
const ACTIVE: f32 = 0.01;

impl Learner for EnergyBasedProcess {
    /// The record: `loss` per set; `nats`, the negative log-density per target; `kl` in nats per
    /// set; `active_units`, latent coordinates that carry information (0: a collapsed posterior);
    /// `effective_candidates` of the estimate of log Z; `gradient_norm` before clipping; and
    /// `sampler_loss`, E_q[τ L − f], where a sampler is trained.
    fn learn(&mut self, tasks: &[Task], step: &Step) -> Result<Record> {
        check_tasks(tasks, self.config.location_dim, self.config.value_dim)?;
        self.use_parameters()?;
        let num_sets = tasks.len();
        let all = tasks.iter().map(Task::union).collect::<Result<Vec<_>>>()?;
        let posterior = self.posterior.encode(&all.iter().collect::<Vec<_>>())?;
        let (prior, targets): (_, Vec<&IndexedSet>) = match self.config.mode {
            TrainingMode::FullSet => {
                (Gaussians::standard(num_sets, self.config.latent_dim)?, all.iter().collect())
            }
            TrainingMode::Predictive => {
                let contexts: Vec<_> = tasks.iter().map(|task| &task.context).collect();
                let targets = tasks.iter().map(|task| &task.target).collect();
                (self.posterior.encode(&contexts)?, targets)
            }
        };
        let targets = Targets::new(&targets, self.config.location_frequencies)?;
        let theta = posterior.draw(step.stream.child(0))?;
        let sampler_loss = match self.sampler {
            Some(_) => Some(self.train_sampler(&targets, &theta, step)?),
            None => None,
        };

        let kl_terms = posterior.kl_terms(&prior)?;
        let kl = (kl_terms.sum_all()? / num_sets as f64)?;
        let parameters = self.energy.parameters(Mode::Train)?;
        let estimate = self.estimate(&targets, &theta, &parameters, step)?;
        let kl_weight = self.kappa(step) * estimate.unit / targets.per_set();
        let mut loss = (&estimate.loss + (&kl * kl_weight)?)?;
        if self.config.gradient_penalty > 0.0 {
            let penalty = self.mean_squared_slope(&targets, &estimate, &theta, &parameters)?;
            loss = (loss + (penalty * (self.config.gradient_penalty * step.cosine()))?)?;
        }
        let gradients = loss.backward()?;
        let update = self.adam.step(&gradients, step.learning_rate(self.config.learning_rate))?;
        self.average.update()?;

        let scalar = |tensor: &Tensor| Ok::<_, crate::Error>(f64::from(tensor.to_scalar::<f32>()?));
        let unit_kl = kl_terms.mean(0)?.to_vec1::<f32>()?;
        let mut record = vec![
            ("loss", scalar(&loss)? * targets.per_set()),
            ("nats", scalar(&estimate.nats)?),
            ("kl", scalar(&kl)?),
            ("active_units", unit_kl.iter().filter(|kl| **kl > ACTIVE).count() as f64),
            ("effective_candidates", estimate.effective_candidates),
            ("gradient_norm", update.gradient_norm),
        ];
        record.extend(sampler_loss.map(|loss| ("sampler_loss", loss)));
        Ok(record)
    }

    fn use_average(&mut self) -> Result<()> {
        if self.average.is_swapped_in() { Ok(()) } else { self.average.swap_in() }
    }

    fn use_parameters(&mut self) -> Result<()> {
        if self.average.is_swapped_in() { self.average.swap_out() } else { Ok(()) }
    }

    fn state(&self) -> Result<Tensors> {
        self.export()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.import(state)
    }
}

/// The likelihood part of a loss, per element.
struct Estimate {
    loss: Tensor,
    /// What a nat is worth in `loss`: 1, or τ for the adversarial gap.
    unit: f64,
    /// Negative log-density per element, for the record.
    nats: Tensor,
    effective_candidates: f64,
    /// Draws of the sampler, `[n · count, d_x]`; `None` for importance sampling.
    draws: Option<Tensor>,
}

impl EnergyBasedProcess {
    fn estimate(
        &self,
        targets: &Targets,
        theta: &Tensor,
        parameters: &Tensor,
        step: &Step,
    ) -> Result<Estimate> {
        let stream = step.stream.child(2);
        if self.config.estimator == Estimator::Importance {
            let calibrated = self.energy.calibrated(parameters)?;
            let proposal = self.config.proposal;
            let (nats, effective_candidates) =
                self.negative_log_density(targets, theta, &calibrated, proposal, stream)?;
            let loss = nats.clone();
            return Ok(Estimate { loss, unit: 1.0, nats, effective_candidates, draws: None });
        }
        let (loss, draws) = self.adversarial_gap(targets, theta, parameters, step)?;
        // What the energy alone says, by the same candidates as importance sampling.
        let calibrated = self.energy.calibrated(&parameters.detach())?.detach();
        let (nats, effective_candidates) = self.negative_log_density(
            targets,
            &theta.detach(),
            &calibrated,
            Proposal::Stratified,
            stream,
        )?;
        let (unit, draws) = (self.config.temperature, Some(draws));
        Ok(Estimate { loss, unit, nats, effective_candidates, draws })
    }

    /// κ, which grows from 0 during the warm-up.
    fn kappa(&self, step: &Step) -> f64 {
        let grown = (step.number + 1) as f64 / self.config.kl_warm_up.max(1) as f64;
        self.config.kl_weight * grown.min(1.0)
    }

    /// E‖∇ₓf‖² at the sampler's draws, or at the data where there is no sampler.
    fn mean_squared_slope(
        &self,
        targets: &Targets,
        estimate: &Estimate,
        theta: &Tensor,
        parameters: &Tensor,
    ) -> Result<Tensor> {
        let (elements, offsets) = match &estimate.draws {
            Some(draws) => {
                let count = draws.dim(0)? / targets.offsets.num_elements();
                let locations = targets.repeated_locations(count)?;
                (Tensor::cat(&[draws, &locations], 1)?, targets.repeated_offsets(count)?)
            }
            None => (targets.elements.clone(), targets.offsets.clone()),
        };
        let score = self.energy.module.score(&TensorBatch {
            elements: &elements,
            context: Some(theta),
            parameters,
            offsets: &offsets,
        })?;
        Ok(score.sqr()?.sum(1)?.mean_all()?)
    }
}
