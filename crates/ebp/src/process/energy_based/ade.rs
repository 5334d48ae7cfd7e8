//! Adversarial dynamics embedding, the paper's estimator.
//!
//! log Z has a dual form, −τ log Z = min_q E_q[ τ L − f ] (`dynamics.rs` for L, log q without
//! dynamics), so a learned sampler q stands in for it. The energy rises at the data and falls at
//! the draws, the sampler follows the energy:
//!
//! ```text
//! sampler   min over q:        E_q[ τ L(x̃ | t, θ) − f(x̃, t; θ) ]
//! energy    max over f, q(θ):  E[ f(x, t; θ) ] − E_q[ f(x̃, t; θ) ] − κ τ KL / n
//! ```
//!
//! At the saddle f = τ log p + const. Draws are constants in the energy's step, as in the paper's
//! released code; θ is a constant in the sampler's.

use candle_core::Tensor;

use super::EnergyBasedProcess;
use super::energy::Energy;
use super::targets::Targets;
use crate::nn::{Mode, Step, TensorBatch};
use crate::{Error, Result};

impl EnergyBasedProcess {
    /// Some updates of the sampler; its last loss.
    pub(super) fn train_sampler(
        &mut self,
        targets: &Targets,
        theta: &Tensor,
        step: &Step,
    ) -> Result<f64> {
        let config = &self.config.sampler;
        let parameters = self.energy.parameters(Mode::Evaluate)?.detach();
        let calibrated = self.energy.calibrated(&parameters)?.detach();
        let theta = theta.detach();
        let Some((sampler, adam)) = &mut self.sampler else { return Err(missing()) };
        // The sampler must keep up with the energy to the end.
        let schedule = step.cosine().max(config.learning_rate_floor) * step.learning_rate_factor;
        let mut last = 0.0;
        for round in 0..config.updates_per_step {
            let stream = step.stream.child(100 + round as u64);
            let energy = (&self.energy, &calibrated);
            let draws =
                sampler.draw(energy, targets, &theta, (config.num_draws, Mode::Train), stream)?;
            let f = values_at(&self.energy, targets, &draws.values, &theta, &parameters)?;
            let entropy_part = (draws.log_density.mean_all()? * self.config.temperature)?;
            let loss = (entropy_part - f.mean_all()?)?;
            last = f64::from(loss.to_scalar::<f32>()?);
            adam.step(&loss.backward()?, config.learning_rate * schedule)?;
        }
        Ok(last)
    }

    /// Mean f at fresh draws less mean f at the data, and the rows of the draws.
    pub(super) fn adversarial_gap(
        &self,
        targets: &Targets,
        theta: &Tensor,
        parameters: &Tensor,
        step: &Step,
    ) -> Result<(Tensor, Tensor)> {
        let Some((sampler, _)) = &self.sampler else { return Err(missing()) };
        let calibrated = self.energy.calibrated(&parameters.detach())?.detach();
        let num_draws = self.config.sampler.num_draws;
        let energy = (&self.energy, &calibrated);
        let draws = sampler.draw(
            energy,
            targets,
            &theta.detach(),
            (num_draws, Mode::Train),
            step.stream.child(1),
        )?;
        let draws = draws.values.detach();
        let fake = values_at(&self.energy, targets, &draws, theta, parameters)?;
        let real = self.energy.module.values(&TensorBatch {
            elements: &targets.elements,
            context: Some(theta),
            parameters,
            offsets: &targets.offsets,
        })?;
        Ok(((fake.mean_all()? - real.mean_all()?)?, draws))
    }
}

/// f at draws `[n · count, d_x]`.
fn values_at(
    energy: &Energy,
    targets: &Targets,
    draws: &Tensor,
    theta: &Tensor,
    parameters: &Tensor,
) -> Result<Tensor> {
    let count = draws.dim(0)? / targets.offsets.num_elements();
    let elements = &Tensor::cat(&[draws, &targets.repeated_locations(count)?], 1)?;
    let offsets = &targets.repeated_offsets(count)?;
    energy.module.values(&TensorBatch { elements, context: Some(theta), parameters, offsets })
}

fn missing() -> Error {
    Error::invalid("estimator", "ade, with its sampler", "another one")
}
