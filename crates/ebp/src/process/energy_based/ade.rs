//! Training by adversarial dynamics embedding, the paper's estimator.
//!
//! log Z has a dual form, −log Z/τ = min_q E_q[τ log q − f]/τ, so a learned sampler q stands in for
//! it. The energy rises at the data and falls at the draws, the sampler follows the energy:
//!
//! ```text
//! sampler   min over q:        E_q[ τ log q(x̃ | t, θ) − f(x̃, t; θ) ]
//! energy    max over f, q(θ):  E[ f(x, t; θ) ] − E_q[ f(x̃, t; θ) ] − κ τ KL / n − penalty E‖∇ₓf‖²
//! ```
//!
//! At the saddle f = τ log p + const. Draws are constants in the energy's step, as in the paper's
//! released code; θ is a constant in the sampler's.

use candle_core::Tensor;

use super::EnergyBasedProcess;
use super::config::AdeConfig;
use super::features::Rows;
use super::importance::{Losses, StepSettings, location_rows};
use super::latent::Gaussians;
use crate::nn::TensorBatch;
use crate::{Error, IndexedSet, Result, SetOffsets};

/// The targets of a step, as tensors.
struct Targets {
    elements: Tensor,
    locations: Tensor,
    offsets: SetOffsets,
    /// Every element `num_fakes` times.
    fake_offsets: SetOffsets,
}

impl EnergyBasedProcess {
    /// One update of the sampler (several of its steps) and one of energy and posterior.
    pub(super) fn ade_step(
        &mut self,
        ade: &AdeConfig,
        targets: &[&IndexedSet],
        (posterior, prior): (&Gaussians, &Gaussians),
        kappa: f64,
        settings: &StepSettings,
    ) -> Result<Losses> {
        let theta = posterior.draw(settings.stream.child(0))?;
        let batch = self.targets(targets, ade.num_fakes)?;
        let schedule = settings.schedule();
        // The sampler must keep up with the energy to the end.
        let sampler_schedule = schedule.max(ade.sampler_floor) * settings.learning_rate_factor;
        let mut sampler_loss = 0.0;
        for round in 0..ade.sampler_steps {
            let stream = settings.stream.child(100 + round as u64);
            let fixed = theta.detach();
            let Some(sampler) = &self.sampler else { return Err(missing()) };
            let draws =
                sampler.draw(&batch.locations, &fixed, &batch.offsets, ade.num_fakes, stream)?;
            let f = self.values_at(&batch, &draws.values, &fixed)?;
            let entropy_part = (draws.log_density.mean_all()? * ade.temperature)?;
            let loss = (entropy_part - f.mean_all()?)?;
            sampler_loss = f64::from(loss.to_scalar::<f32>()?);
            let gradients = loss.backward()?;
            let Some(adam) = &mut self.sampler_adam else { return Err(missing()) };
            adam.step(&gradients, ade.sampler_learning_rate * sampler_schedule)?;
        }

        let Some(sampler) = &self.sampler else { return Err(missing()) };
        let stream = settings.stream.child(1);
        let draws = sampler.draw(
            &batch.locations,
            &theta.detach(),
            &batch.offsets,
            ade.num_fakes,
            stream,
        )?;
        let fakes = draws.values.detach();
        let real =
            self.energy.values(&self.tensor_batch(&batch.elements, &theta, &batch.offsets))?;
        let fake_rows = fake_rows(&batch, &fakes)?;
        let fake_batch = self.tensor_batch(&fake_rows, &theta, &batch.fake_offsets);
        let fake = self.energy.values(&fake_batch)?;
        let gap = (fake.mean_all()? - real.mean_all()?)?;
        let kl_terms = posterior.kl_terms(prior)?;
        let num_sets = targets.len() as f64;
        let kl = (kl_terms.sum_all()? / num_sets)?;
        let per_set = batch.offsets.num_elements() as f64 / num_sets;
        let mut loss = (gap + (&kl * (kappa * ade.temperature / per_set))?)?;
        if ade.gradient_penalty > 0.0 {
            let score = self.energy.score(&fake_batch)?;
            let penalty = score.sqr()?.sum(1)?.mean_all()?;
            loss = (loss + (penalty * (ade.gradient_penalty * schedule))?)?;
        }
        let gradients = loss.backward()?;
        let rate = self.config.learning_rate * schedule * settings.learning_rate_factor;
        let step = self.adam.step(&gradients, rate)?;
        self.average.update()?;
        // What the energy alone says, by the same quadrature as the importance estimator.
        let (nats, effective_candidates) = self.negative_log_density(
            targets,
            &theta.detach(),
            ade.temperature,
            settings.stream.child(2),
        )?;
        let unit_kl = kl_terms.mean(0)?.to_vec1::<f32>()?;
        Ok(Losses {
            loss: f64::from(loss.to_scalar::<f32>()?) * per_set,
            nats: f64::from(nats.to_scalar::<f32>()?),
            kl: f64::from(kl.to_scalar::<f32>()?),
            active_units: unit_kl.iter().filter(|kl| **kl > 0.01).count() as f64,
            effective_candidates,
            gradient_norm: step.gradient_norm,
            sampler_loss,
        })
    }

    fn targets(&self, targets: &[&IndexedSet], num_fakes: usize) -> Result<Targets> {
        let frequencies = self.config.location_frequencies;
        let rows = Rows::new(targets.iter().copied(), 0, frequencies)?;
        let shape = (rows.offsets.num_elements(), self.energy.shape().element_dim());
        let sizes = (0..rows.offsets.num_sets()).map(|set| rows.offsets.size(set) * num_fakes);
        Ok(Targets {
            elements: Tensor::from_vec(rows.elements, shape, &candle_core::Device::Cpu)?,
            locations: location_rows(targets, frequencies)?,
            fake_offsets: SetOffsets::from_sizes(sizes)?,
            offsets: rows.offsets,
        })
    }

    fn tensor_batch<'a>(
        &'a self,
        elements: &'a Tensor,
        theta: &'a Tensor,
        offsets: &'a SetOffsets,
    ) -> TensorBatch<'a> {
        let parameters = self.energy_parameters.as_tensor();
        TensorBatch { elements, context: Some(theta), parameters, offsets }
    }

    fn values_at(&self, batch: &Targets, draws: &Tensor, theta: &Tensor) -> Result<Tensor> {
        let rows = fake_rows(batch, draws)?;
        self.energy.values(&self.tensor_batch(&rows, theta, &batch.fake_offsets))
    }
}

fn missing() -> Error {
    Error::invalid("estimator", "ade, with its sampler", "another one")
}

/// Rows `[value, location features]` of draws `[n, fakes, d_x]`.
fn fake_rows(batch: &Targets, draws: &Tensor) -> Result<Tensor> {
    let (n, fakes, dims) = draws.dims3()?;
    let features = batch.locations.dim(1)?;
    let locations = batch.locations.unsqueeze(1)?.expand((n, fakes, features))?;
    let rows = Tensor::cat(&[draws, &locations.contiguous()?], 2)?;
    Ok(rows.reshape((n * fakes, dims + features))?)
}
