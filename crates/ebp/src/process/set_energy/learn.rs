//! One step: the guess learns from the energy or from data, the energy from data, draws and candidates.
//!
//! ```text
//! guess    from the energy   min over q:  E_q[ L − u(x̃₁, …, x̃ₙ) ] / n
//!          from data         max over q:  E[ log q(x | z) + log q(z) − log r(z | x) ] / n
//! energy   plain             max over f:  (E u(x) − E_q u(x̃)) / n − penalty E‖∇u‖² / n
//!          weighted          max over f:  (E u(x) − log mean_q exp(u(x̃) − L)) / n
//!          of the guess      the same with f in the place of u and of u − L
//!          given the others  `pseudolikelihood.rs`
//! ```
//!
//! L is the log density of a draw on the space of its elements, momenta and z (`draw.rs`). Weighted, the
//! step is that of maximum likelihood with log Zₙ by importance sampling: whole sets weigh w ∝ exp(u − L),
//! and all sets of a step have the same n and the same Zₙ. Components of a mixture are chosen, which no path
//! leads through: their shares learn by (L − u − the mean of the other sets) Σ log π. ‖∇u‖² is
//! E_δ (u(x + h δ) − u(x))²/h² over normal δ.

use super::config::{GuessTarget, SetEstimator};
use super::energy::Layout;
use super::{Generator, SetEnergyProcess};
use crate::nn::{Record, Step};
use crate::recipe::NegativePhase;
use crate::rng::Stream;
use crate::tape::{Array, Tape, Var};
use crate::{Error, Result};

/// h of the penalty: small against the networks' scale of 0.1, large against rounding of u.
const DIFFERENCE: f64 = 0.02;
/// The learning rate of a guess that follows the energy falls to this share: it must keep up to the end.
const FOLLOWING_FLOOR: f64 = 0.4;
/// That of a guess that learns from data.
const FITTING_FLOOR: f64 = 0.05;

/// Numbers of a step, read back at its end.
#[derive(Default)]
struct Said {
    names: Vec<&'static str>,
    numbers: Vec<Var>,
}

impl Said {
    fn push(&mut self, name: &'static str, number: Var) {
        self.names.push(name);
        self.numbers.push(number);
    }
}

impl SetEnergyProcess {
    /// Learns from `sets` `[num_sets, set_size, d]`, flat.
    ///
    /// The record: `sampler_loss`, E[L − u] or −E(evidence) per element; `data`, mean u per element, or f
    /// where the guess is the base; of whole draws `gap`, E u(data) − E u(draws) per element, `drawn`, `nats`, −log p per element by the draws'
    /// weights, `effective_share`, (Σw)²/(K Σw²), `slack`, (E[L − u] + log Ẑₙ)/n, and where it is penalised
    /// `squared_slope`, E‖∇u‖²/n;
    /// `conditional_nats`, −log p of an element given the others; `gradient_norm`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the sets are whole, [`Error::NonFinite`] and
    /// [`Error::NonFiniteGradient`] if the step diverged.
    pub fn learn(&mut self, sets: &[f32], set_size: usize, step: &Step) -> Result<Record> {
        self.use_parameters();
        let dim = self.config.element_dim;
        let rows = set_size * dim;
        if rows == 0 || sets.is_empty() || !sets.len().is_multiple_of(rows) {
            let expected = format!("whole sets of {set_size} x {dim} numbers");
            return Err(Error::invalid("sets", expected, format!("{} numbers", sets.len())));
        }
        let layout = Layout::uniform(sets.len() / rows, set_size)?;
        let real = self.parameters.device().upload(sets.to_vec())?;
        let guess_loss = match self.config.guess_target {
            GuessTarget::Energy => self.follow_energy(set_size, step)?,
            GuessTarget::Data => self.fit_data(&layout, &real, step)?,
        };
        let mut record = self.train_energy(&layout, (real, sets), guess_loss.clone(), step)?;
        let guess_loss = self.parameters.device().download(&guess_loss)?;
        record.insert(0, ("sampler_loss", f64::from(guess_loss[0])));
        Ok(record)
    }

    /// One update of the energy.
    fn train_energy(
        &mut self,
        layout: &Layout,
        (real, sets): (Array, &[f32]),
        guess_loss: Array,
        step: &Step,
    ) -> Result<Record> {
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        tape.read(&self.sampler_parameters);
        let shape = (layout.offsets.num_elements(), self.config.element_dim);
        let size = layout.offsets.size(0);
        let real = tape.constant(real, shape)?;
        let u = self.compared(&mut tape, real, layout)?;
        let mean = tape.mean(u)?;
        let mean = tape.affine(mean, 1.0 / size as f64, 0.0)?;
        let mut said = Said::default();
        said.push("data", mean);
        let mut losses = Vec::new();
        if self.config.estimator != SetEstimator::Pseudolikelihood {
            let sides = (mean, guess_loss);
            losses.push(self.against_draws(&mut tape, sides, size, &mut said, step)?);
            if self.config.gradient_penalty > 0.0 {
                losses.push(self.penalty(&mut tape, (real, u), layout, &mut said, step)?);
            }
        }
        if self.config.estimator != SetEstimator::Ade {
            let stream = step.stream.child(3);
            let nats = self.given_others(&mut tape, (sets, u), size, stream)?;
            said.push("conditional_nats", nats);
            losses.push(nats);
        }
        let mut loss = losses[0];
        for other in &losses[1..] {
            loss = tape.add(loss, *other)?;
        }
        let numbers = tape.concat(&said.numbers)?;
        let numbers = tape.array(numbers).clone();
        let rate = step.learning_rate(self.config.learning_rate);
        let update = self.parameters.descend(tape, loss, rate)?;
        let numbers = self.parameters.device().download(&numbers)?;
        let mut record: Record =
            said.names.into_iter().zip(numbers.into_iter().map(f64::from)).collect();
        record.push(("gradient_norm", update.gradient_norm));
        Ok(record)
    }

    /// What data and draws are compared by: u, and f where the guess is the base.
    pub(super) fn compared(&self, tape: &mut Tape, elements: Var, layout: &Layout) -> Result<Var> {
        match self.energy.guess() {
            Some(_) => self.energy.change(tape, elements, layout),
            None => self.energy.log_potential(tape, (elements, None), layout),
        }
    }

    /// log Zₙ, or in a plain game its stand-in, less u of the data, per element, `[1, 1]`; log q of the data is
    /// known by its bound.
    fn against_draws(
        &self,
        tape: &mut Tape,
        (mean, guess_loss): (Var, Array),
        size: usize,
        said: &mut Said,
        step: &Step,
    ) -> Result<Var> {
        let count = self.config.num_draws;
        let drawn = self.draw_alone((count, size), step.stream.child(1))?;
        let layout = Layout::uniform(count, size)?;
        let fake = tape.constant(drawn.elements, (count * size, self.config.element_dim))?;
        let u = self.compared(tape, fake, &layout)?;
        let per_element = 1.0 / size as f64;
        let drawn_mean = tape.mean(u)?;
        let drawn_mean = tape.affine(drawn_mean, per_element, 0.0)?;
        let log_weights = if self.energy.guess().is_some() {
            u
        } else {
            let log_density = tape.constant(drawn.log_density, (count, 1))?;
            tape.subtract(u, log_density)?
        };
        let log_weights = tape.reshape(log_weights, (1, count))?;
        let log_partition = tape.log_sum_exp(log_weights)?;
        let log_partition =
            tape.affine(log_partition, per_element, -(count as f64).ln() * per_element)?;
        let mut nats = tape.subtract(log_partition, mean)?;
        if self.energy.guess().is_some() {
            let of_guess = tape.constant(guess_loss, (1, 1))?;
            nats = tape.add(nats, of_guess)?;
        }
        let gap = tape.subtract(mean, drawn_mean)?;
        let lost = tape.mean(log_weights)?;
        let lost = tape.affine(lost, per_element, 0.0)?;
        let slack = tape.subtract(log_partition, lost)?;
        let still = tape.detach(log_weights);
        let figures = tape.weight_figures(still, None, None)?;
        let effective = tape.columns(figures, 0, 1)?;
        let effective = tape.affine(effective, 1.0 / count as f64, 0.0)?;
        for (name, number) in [
            ("gap", gap),
            ("drawn", drawn_mean),
            ("nats", nats),
            ("effective_share", effective),
            ("slack", slack),
        ] {
            said.push(name, number);
        }
        match self.config.negative_phase {
            NegativePhase::Plain => tape.subtract(drawn_mean, mean),
            NegativePhase::Weighted => Ok(nats),
        }
    }

    /// The weighed E‖∇u‖²/n at the data.
    fn penalty(
        &self,
        tape: &mut Tape,
        (elements, u): (Var, Var),
        layout: &Layout,
        said: &mut Said,
        step: &Step,
    ) -> Result<Var> {
        let per_element = 1.0 / layout.offsets.size(0) as f64;
        let delta = tape.normals(tape.shape(elements), step.stream.child(2))?;
        let delta = tape.affine(delta, DIFFERENCE, 0.0)?;
        let moved = tape.add(elements, delta)?;
        let moved = self.compared(tape, moved, layout)?;
        let difference = tape.subtract(moved, u)?;
        let square = tape.square(difference)?;
        let square = tape.mean(square)?;
        let square = tape.affine(square, per_element / DIFFERENCE.powi(2), 0.0)?;
        said.push("squared_slope", square);
        // Falls to 0 with the learning rate: it would keep the energy from becoming sharp.
        tape.affine(square, self.config.gradient_penalty * step.cosine(), 0.0)
    }

    /// Some updates of the guess, the step sizes and the noises towards the energy; the last loss.
    fn follow_energy(&mut self, size: usize, step: &Step) -> Result<Array> {
        let schedule = step.cosine().max(FOLLOWING_FLOOR) * step.learning_rate_factor;
        let mut last = self.parameters.device().zeros(1)?;
        for round in 0..self.config.generator_updates {
            let stream = step.stream.child(100 + round as u64);
            let mut tape = self.parameters.device().tape();
            tape.train(&self.sampler_parameters);
            tape.read(&self.parameters);
            let (loss, surrogate) = self.reverse_divergence(&mut tape, size, stream)?;
            last = tape.array(loss).clone();
            let rate = self.config.generator_learning_rate * schedule;
            self.sampler_parameters.descend(tape, surrogate, rate)?;
        }
        Ok(last)
    }

    /// E[L − u]/n, `[1, 1]`, and a number with its gradient.
    pub(super) fn reverse_divergence(
        &self,
        tape: &mut Tape,
        size: usize,
        stream: Stream,
    ) -> Result<(Var, Var)> {
        let count = self.config.num_draws;
        let layout = Layout::uniform(count, size)?;
        let drawn = self.draw(tape, &layout, size, stream)?;
        let u = self.energy.log_potential(tape, (drawn.elements, None), &layout)?;
        let excess = tape.subtract(drawn.log_density, u)?;
        let mean = tape.mean(excess)?;
        let loss = tape.affine(mean, 1.0 / size as f64, 0.0)?;
        let Some(choices) = drawn.choices else { return Ok((loss, loss)) };
        let [still, mean] = [tape.detach(excess), tape.detach(mean)];
        let above = tape.subtract(still, mean)?;
        let terms = tape.multiply(choices, above)?;
        let terms = tape.mean(terms)?;
        let others = count as f64 / (count.max(2) - 1) as f64;
        let terms = tape.affine(terms, others / size as f64, 0.0)?;
        Ok((loss, tape.add(loss, terms)?))
    }

    /// Some updates of the guess towards the data; the last loss.
    fn fit_data(&mut self, layout: &Layout, real: &Array, step: &Step) -> Result<Array> {
        let schedule = step.cosine().max(FITTING_FLOOR) * step.learning_rate_factor;
        let weight = (step.number as f64 / self.config.kl_warm_up.max(1) as f64).min(1.0);
        let shape = (layout.offsets.num_elements(), self.config.element_dim);
        let per_element = 1.0 / layout.offsets.size(0) as f64;
        let mut last = self.parameters.device().zeros(1)?;
        for round in 0..self.config.generator_updates {
            let stream = step.stream.child(100 + round as u64);
            let mut tape = self.parameters.device().tape();
            tape.train(&self.sampler_parameters);
            let real = tape.constant(real.clone(), shape)?;
            let Generator::Hierarchical(hierarchy) = &self.generator else {
                return Err(Error::invalid("guess_target", "`energy`", "data"));
            };
            let evidence = hierarchy.evidence(&mut tape, real, layout, (weight, stream))?;
            let mean = tape.mean(evidence)?;
            let loss = tape.affine(mean, -per_element, 0.0)?;
            last = tape.array(loss).clone();
            let rate = self.config.generator_learning_rate * schedule;
            self.sampler_parameters.descend(tape, loss, rate)?;
        }
        Ok(last)
    }
}
