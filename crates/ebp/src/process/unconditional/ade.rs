//! Adversarial dynamics embedding, the paper's estimator, in nats per point:
//!
//! ```text
//! sampler   min over q:        E_q[ L(x̃ | θ) − u(x̃; θ) ]
//! energy    max over f, q(θ):  E[ u(x; θ) ] − E_q[ u(x̃; θ) ] − κ KL / n
//! ```
//!
//! Draws are constants in the energy's step, θ is a constant in the sampler's.

use candle_core::Tensor;

use super::UnconditionalProcess;
use super::batch::Batch;
use super::learn::decayed;
use super::sampler::CloudDraws;
use crate::nn::{Mode, Step, TensorBatch};
use crate::{Error, Result};

impl UnconditionalProcess {
    /// Some updates of the sampler; its last loss.
    pub(super) fn train_sampler(&mut self, theta: &Tensor, step: &Step) -> Result<f64> {
        let config = &self.config.sampler;
        let parameters = self.networks.energy()?.parameters(Mode::Evaluate)?.detach();
        let calibrated = self.networks.energy()?.calibrated(&parameters)?.detach();
        let theta = theta.detach();
        let Some((sampler, adam)) = &mut self.sampler else { return Err(missing()) };
        // The sampler must keep up with the energy to the end.
        let rate = config.learning_rate
            * decayed(self.config.decay, step, config.learning_rate_floor)
            * step.learning_rate_factor;
        let mut last = 0.0;
        for round in 0..config.updates_per_step {
            let stream = step.stream.child(100 + round as u64);
            let energy = (self.networks.energy()?, &calibrated);
            let draws = sampler.draw(energy, &theta, config.num_draws, Mode::Train, stream)?;
            let f = self.networks.energy()?.module.values(&TensorBatch {
                elements: &draws.values,
                context: Some(&theta),
                parameters: &calibrated,
                offsets: &draws.offsets,
            })?;
            let scale = -0.5 / f64::from(self.config.base_std_dev).powi(2);
            let base = (draws.values.sqr()?.sum(1)?.mean_all()? * scale)?;
            let u = (f.mean_all()? + base)?;
            let loss = (draws.log_density.mean_all()? - u)?;
            last = f64::from(loss.to_scalar::<f32>()?);
            adam.step(&loss.backward()?, rate)?;
        }
        Ok(last)
    }

    /// Mean u at fresh draws less mean u at the data, in the graph of energy and θ.
    pub(super) fn adversarial_gap(
        &self,
        batch: &Batch,
        theta: &Tensor,
        calibrated: &Tensor,
        step: &Step,
    ) -> Result<Tensor> {
        let draws = self.sampler_draws(theta, calibrated, self.config.sampler.num_draws, step)?;
        let fake = self.networks.energy()?.module.set_sums(&TensorBatch {
            elements: &draws.values.detach(),
            context: Some(theta),
            parameters: calibrated,
            offsets: &draws.offsets,
        })?;
        let count = draws.offsets.size(0) as f64;
        let fake = (fake.flatten_all()? / count)?;
        let real = self.mean_values(&batch.points, &batch.offsets, theta, calibrated)?;
        // The base measure is no function of the parameters: it has no part in the gradient.
        Ok((fake - real)?.mean_all()?)
    }

    /// Fresh draws at a θ that is not moved.
    pub(super) fn sampler_draws(
        &self,
        theta: &Tensor,
        calibrated: &Tensor,
        count: usize,
        step: &Step,
    ) -> Result<CloudDraws> {
        let Some((sampler, _)) = &self.sampler else { return Err(missing()) };
        let energy = (self.networks.energy()?, &calibrated.detach());
        sampler.draw(energy, &theta.detach(), count, Mode::Train, step.stream.child(2))
    }
}

fn missing() -> Error {
    Error::invalid("estimator", "one with a learned sampler", "another one")
}
