//! One step of adversarial dynamics embedding on whole sets.
//!
//! ```text
//! sampler   min over q:  E_q[ L − u(x̃₁, …, x̃ₙ) ] / n
//! energy    max over f:  (E u(x) − E_q u(x̃)) / n − penalty E‖∇u‖² / n
//! ```
//!
//! L is log q₀ with the gain of the Langevin momenta, L = log q₀ + Σ_t (‖v_t‖² − ‖s ξ_t‖²)/(2 s²), less
//! log r(z | x) where the first guess has a hidden variable. The
//! sampler's gradient passes through the steps as if ∇u did not depend on x: exact for piecewise
//! linear networks, and the first order for smooth ones. ‖∇u‖² is E_δ (u(x + h δ) − u(x))²/h² over
//! normal δ, so that no second derivative through the pooling is needed.

use candle_core::{Device, Tensor};

use super::energy::Weights;
use super::generator::DrawnSets;
use super::{Generator, SetEnergyProcess};
use crate::nn::{Record, Step, normals};
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// h of the penalty: small against the networks' scale of 0.1, large against rounding of u.
const DIFFERENCE: f64 = 0.02;
/// The generator's learning rate falls to this share: it must keep up with the energy to the end.
const RATE_FLOOR: f64 = 0.4;

impl SetEnergyProcess {
    /// Learns from `sets` `[num_sets, set_size, d]`, flat.
    ///
    /// The record: `gap`, E u(data) − E u(draws) per element; `sampler_loss`, E[L − u] per element;
    /// `data` and `drawn`, mean u per element; `slope`, the root of E‖∇u‖²/n; `gradient_norm`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the sets are whole, [`Error::NonFinite`] and
    /// [`Error::NonFiniteGradient`] if the step diverged.
    pub fn learn(&mut self, sets: &[f32], set_size: usize, step: &Step) -> Result<Record> {
        self.use_parameters()?;
        let dim = self.config.element_dim;
        let rows = set_size * dim;
        if rows == 0 || sets.is_empty() || !sets.len().is_multiple_of(rows) {
            let expected = format!("whole sets of {set_size} x {dim} numbers");
            return Err(Error::invalid("sets", expected, format!("{} numbers", sets.len())));
        }
        let num_sets = sets.len() / rows;
        let offsets = SetOffsets::uniform(num_sets, set_size)?;
        let sampler_loss = self.train_sampler(&offsets, set_size, step)?;

        let weights = self.energy.weights();
        let fake = self.draw(&offsets, set_size, &weights.detached(), step.stream.child(1))?;
        let fake = fake.elements.detach();
        let real = Tensor::from_slice(sets, (num_sets * set_size, dim), &Device::Cpu)?;
        let per_element = 1.0 / set_size as f64;
        let mean = |elements: &Tensor| -> Result<(Tensor, Tensor)> {
            let u = self.energy.log_potential(elements, &offsets, &weights)?;
            Ok(((u.mean_all()? * per_element)?, u))
        };
        let ((data, at_data), (drawn, at_drawn)) = (mean(&real)?, mean(&fake)?);
        let gap = (&data - &drawn)?;
        let mut slope = gap.zeros_like()?;
        if self.config.gradient_penalty > 0.0 {
            for (number, elements, u) in [(2, &real, &at_data), (3, &fake, &at_drawn)] {
                let stream = step.stream.child(number);
                let delta = (normals(elements.dims2()?, stream)? * DIFFERENCE)?;
                let moved = self.energy.log_potential(&(elements + delta)?, &offsets, &weights)?;
                let square = ((moved - u)?.sqr()?.mean_all()? / DIFFERENCE.powi(2))?;
                slope = (slope + (square * (0.5 * per_element))?)?;
            }
        }
        let loss = ((&slope * (self.config.gradient_penalty * step.cosine()))? - &gap)?;
        let rate = step.learning_rate(self.config.learning_rate);
        let update = self.adam.step(&loss.backward()?, rate)?;
        self.average.update()?;
        let scalar = |tensor: &Tensor| Ok::<_, Error>(f64::from(tensor.to_scalar::<f32>()?));
        Ok(vec![
            ("gap", scalar(&gap)?),
            ("sampler_loss", sampler_loss),
            ("data", scalar(&data)?),
            ("drawn", scalar(&drawn)?),
            ("slope", scalar(&slope)?.sqrt()),
            ("gradient_norm", update.gradient_norm),
        ])
    }

    /// Some updates of the generator and the step sizes; the last loss.
    fn train_sampler(&mut self, offsets: &SetOffsets, size: usize, step: &Step) -> Result<f64> {
        let weights = self.energy.weights().detached();
        let schedule = step.cosine().max(RATE_FLOOR) * step.learning_rate_factor;
        let mut last = 0.0;
        for round in 0..self.config.generator_updates {
            let stream = step.stream.child(100 + round as u64);
            let drawn = self.draw(offsets, size, &weights, stream)?;
            let u = self.energy.log_potential(&drawn.elements, offsets, &weights)?;
            let loss = ((drawn.log_density - u)?.mean_all()? / size as f64)?;
            last = f64::from(loss.to_scalar::<f32>()?);
            let rate = self.config.generator_learning_rate * schedule;
            self.generator_adam.step(&loss.backward()?, rate)?;
        }
        Ok(last)
    }

    /// Draws of the generator, moved by the trained Langevin steps, with their L.
    pub(super) fn draw(
        &self,
        offsets: &SetOffsets,
        size: usize,
        weights: &Weights,
        stream: Stream,
    ) -> Result<DrawnSets> {
        let num_sets = offsets.num_sets();
        let mut drawn = self.generator.draw(num_sets, size, stream.child(0))?;
        let noise_scale = self.config.step_size.sqrt();
        let step_sizes = self.log_step_sizes.exp()?;
        for number in 0..self.config.num_dynamics_steps {
            let score = self.energy.score(&drawn.elements, offsets, weights)?;
            let score = score.clamp(-self.config.clip, self.config.clip)?;
            let half_step = (step_sizes.narrow(0, number, 1)? * 0.5)?;
            let noise = normals(score.dims2()?, stream.child(1 + number as u64))?;
            let noise = (noise * noise_scale)?;
            // v = s ξ + (η/2) g,  x ← x + v
            let velocity = (&noise + score.broadcast_mul(&half_step)?)?;
            drawn.elements = (drawn.elements + &velocity)?;
            let gained = (velocity.sqr()? - noise.sqr()?)?.reshape((num_sets, ()))?.sum(1)?;
            let scale = 0.5 / (noise_scale * noise_scale);
            drawn.log_density = (drawn.log_density + (gained * scale)?)?;
        }
        if let (Generator::Hierarchical(hierarchy), Some(hidden)) = (&self.generator, &drawn.hidden)
        {
            let guessed = hierarchy.log_posterior(hidden, &drawn.elements, offsets)?;
            drawn.log_density = (drawn.log_density - guessed)?;
        }
        Ok(drawn)
    }
}
