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

use super::energy::Layout;
use super::generator::DrawnSets;
use super::{Generator, SetEnergyProcess};
use crate::nn::{Record, Step};
use crate::rng::Stream;
use crate::tape::{Array, Tape};
use crate::{Error, Result};

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
    pub fn learn(&mut self, sets: Vec<f32>, set_size: usize, step: &Step) -> Result<Record> {
        self.use_parameters();
        let dim = self.config.element_dim;
        let rows = set_size * dim;
        if rows == 0 || sets.is_empty() || !sets.len().is_multiple_of(rows) {
            let expected = format!("whole sets of {set_size} x {dim} numbers");
            return Err(Error::invalid("sets", expected, format!("{} numbers", sets.len())));
        }
        let layout = Layout::uniform(sets.len() / rows, set_size)?;
        let sampler_loss = self.train_sampler(&layout, set_size, step)?;
        let real = self.parameters.device().upload(sets)?;
        let fake = self.draw_alone(&layout, set_size, step.stream.child(1))?;
        let mut record = self.train_energy(&layout, [real, fake], step)?;
        let sampler_loss = self.parameters.device().download(&sampler_loss)?;
        record.insert(1, ("sampler_loss", f64::from(sampler_loss[0])));
        Ok(record)
    }

    /// One update of the energy, on the data and on draws.
    fn train_energy(
        &mut self,
        layout: &Layout,
        [real, fake]: [Array; 2],
        step: &Step,
    ) -> Result<Record> {
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let offsets = &layout.offsets;
        let shape = (offsets.num_elements(), self.config.element_dim);
        let [real, fake] = [tape.constant(real, shape)?, tape.constant(fake, shape)?];
        let per_element = 1.0 / offsets.size(0) as f64;
        let mut potentials = [real, real];
        let mut means = [real, real];
        for (place, elements) in [real, fake].into_iter().enumerate() {
            potentials[place] = self.energy.log_potential(&mut tape, elements, layout)?;
            let mean = tape.mean(potentials[place])?;
            means[place] = tape.affine(mean, per_element, 0.0)?;
        }
        let gap = tape.subtract(means[0], means[1])?;
        let mut loss = tape.affine(gap, -1.0, 0.0)?;
        let mut said = vec![gap, means[0], means[1]];
        if self.config.gradient_penalty > 0.0 {
            for (number, elements, u) in [(2, real, potentials[0]), (3, fake, potentials[1])] {
                let delta = tape.normals(shape, step.stream.child(number))?;
                let delta = tape.affine(delta, DIFFERENCE, 0.0)?;
                let moved = tape.add(elements, delta)?;
                let moved = self.energy.log_potential(&mut tape, moved, layout)?;
                let difference = tape.subtract(moved, u)?;
                let square = tape.square(difference)?;
                let square = tape.mean(square)?;
                let square = tape.affine(square, 0.5 * per_element / DIFFERENCE.powi(2), 0.0)?;
                said.push(square);
                let weight = self.config.gradient_penalty * step.cosine();
                let penalty = tape.affine(square, weight, 0.0)?;
                loss = tape.add(loss, penalty)?;
            }
        }
        let said = tape.concat(&said)?;
        let said = tape.array(said).clone();
        let rate = step.learning_rate(self.config.learning_rate);
        let update = self.parameters.step(&tape.backward(loss)?, rate)?;
        let said = self.parameters.device().download(&said)?;
        let number = |at: usize| f64::from(said[at]);
        Ok(vec![
            ("gap", number(0)),
            ("data", number(1)),
            ("drawn", number(2)),
            ("slope", said[3..].iter().map(|&x| f64::from(x)).sum::<f64>().sqrt()),
            ("gradient_norm", update.gradient_norm),
        ])
    }

    /// Some updates of the generator and the step sizes; the last loss.
    fn train_sampler(&mut self, layout: &Layout, size: usize, step: &Step) -> Result<Array> {
        let schedule = step.cosine().max(RATE_FLOOR) * step.learning_rate_factor;
        let mut last = self.parameters.device().zeros(1)?;
        for round in 0..self.config.generator_updates {
            let stream = step.stream.child(100 + round as u64);
            let mut tape = self.parameters.device().tape();
            tape.train(&self.sampler_parameters);
            tape.read(&self.parameters);
            let drawn = self.draw(&mut tape, layout, size, stream)?;
            let u = self.energy.log_potential(&mut tape, drawn.elements, layout)?;
            let excess = tape.subtract(drawn.log_density, u)?;
            let mean = tape.mean(excess)?;
            let loss = tape.affine(mean, 1.0 / size as f64, 0.0)?;
            last = tape.array(loss).clone();
            let rate = self.config.generator_learning_rate * schedule;
            self.sampler_parameters.step(&tape.backward(loss)?, rate)?;
        }
        Ok(last)
    }

    /// Draws of the generator, moved by the trained Langevin steps, with their L.
    fn draw(
        &self,
        tape: &mut Tape,
        layout: &Layout,
        size: usize,
        stream: Stream,
    ) -> Result<DrawnSets> {
        let num_sets = layout.offsets.num_sets();
        let mut drawn = self.generator.draw(tape, num_sets, size, stream.child(0))?;
        let shape = tape.shape(drawn.elements);
        let noise_scale = self.config.step_size.sqrt();
        let step_sizes = tape.parameter(&self.log_step_sizes)?;
        let step_sizes = tape.exp(step_sizes)?;
        #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
        let clip = self.config.clip as f32;
        for number in 0..self.config.num_dynamics_steps {
            let score = self.energy.score(&self.parameters, tape.array(drawn.elements), layout)?;
            let score = tape.constant(score, shape)?;
            let score = tape.clamp(score, -clip, clip)?;
            let half_step = tape.columns(step_sizes, number, 1)?;
            let half_step = tape.affine(half_step, 0.5, 0.0)?;
            let noise = tape.normals(shape, stream.child(1 + number as u64))?;
            let noise = tape.affine(noise, noise_scale, 0.0)?;
            // v = s ξ + (η/2) g,  x ← x + v
            let drift = tape.multiply(score, half_step)?;
            let velocity = tape.add(noise, drift)?;
            drawn.elements = tape.add(drawn.elements, velocity)?;
            let [moved, random] = [tape.square(velocity)?, tape.square(noise)?];
            let gained = tape.subtract(moved, random)?;
            let gained = tape.reshape(gained, (num_sets, size * shape.1))?;
            let gained = tape.row_sums(gained)?;
            let gained = tape.affine(gained, 0.5 / (noise_scale * noise_scale), 0.0)?;
            drawn.log_density = tape.add(drawn.log_density, gained)?;
        }
        if let (Generator::Hierarchical(hierarchy), Some(hidden)) = (&self.generator, drawn.hidden)
        {
            let guessed = hierarchy.log_posterior(tape, hidden, drawn.elements, layout)?;
            drawn.log_density = tape.subtract(drawn.log_density, guessed)?;
        }
        Ok(drawn)
    }

    /// The elements of [`draw`](Self::draw), from which nothing is learned.
    pub(super) fn draw_alone(&self, layout: &Layout, size: usize, stream: Stream) -> Result<Array> {
        let mut tape = self.parameters.device().tape();
        tape.read(&self.sampler_parameters);
        tape.read(&self.parameters);
        let drawn = self.draw(&mut tape, layout, size, stream)?;
        Ok(tape.array(drawn.elements).clone())
    }
}
