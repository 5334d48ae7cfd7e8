//! One step of neural collapsed inference.
//!
//! ```text
//! loss = E_q(θ | all) [ likelihood part ] + κ KL(q(θ | all) ‖ prior) / n + penalty E‖∇ₓf‖²
//! ```
//!
//! per element, every set counting the same. The prior is N(0, I), or the posterior of the context
//! where the other elements are explained (`TrainingMode`). A second level z adds
//! KL(q(z | θ, all) ‖ q(z | θ, context)) at the θ that was drawn.

use std::sync::Arc;

use super::batch::{Batch, Plan};
use super::{EnergyBasedProcess, LOG_ROOT_TAU, PictureParts};
use crate::batch::{SetBatch, TaskBatch};
use crate::energy::{Energy, element_rows};
use crate::exchange::Seat;
use crate::nn::{Record, Step};
use crate::partition::{Estimate, Importance, Round, Targets, WriteTargets};
use crate::posterior::Reading;
use crate::process::{Learner, Preparation, Prepared};
use crate::recipe::LatentLaw;
use crate::rng::Stream;
use crate::sampler::mean_of_means;
use crate::tape::{Array, Gaussian, Tape, Var};
use crate::tensor::Tensors;
use crate::{Error, Result};

/// A coordinate of θ with more nats on average is in use.
const ACTIVE: f32 = 0.01;

/// The latents of a step.
struct Latents {
    theta: Var,
    codes: Option<Var>,
    /// What the posterior read of the context; `None` where nothing is given.
    context: Option<Reading>,
    /// KL of every coordinate, `[sets, k]`.
    kl_terms: Var,
}

impl EnergyBasedProcess {
    /// Updates the process once and says what happened: named numbers, losses first.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] or [`Error::NonFiniteGradient`] if the step diverged,
    /// [`Error::Device`] if the device fails.
    pub fn learn(&mut self, batch: &Batch, step: &Step) -> Result<Record> {
        self.parameters.use_average(false);
        let mut tape = self.device.tape();
        tape.train(&self.parameters);
        let latents = self.latents(&mut tape, batch, step)?;
        let targets = self.targets(&mut tape, batch, &latents)?;
        let round = Round {
            energy: &self.parts.energy,
            model: &self.parameters,
            theta: latents.theta,
            targets,
            made: batch.made(),
            step,
        };
        let estimate = self.partition.loss(&mut tape, &round)?;

        let (sets, _) = tape.shape(latents.theta);
        let per_set = tape.row_sums(latents.kl_terms)?;
        let weights = tape.constant(batch.kl_weights.clone(), (sets, 1))?;
        let shares = tape.multiply(per_set, weights)?;
        let kl = tape.sum(shares)?;
        let kl = tape.affine(kl, self.kappa(step), 0.0)?;
        let mut loss = tape.add(estimate.loss, kl)?;
        if self.config.gradient_penalty > 0.0 {
            let penalty = self.slope_penalty(&mut tape, &round, &estimate)?;
            loss = tape.add(loss, penalty)?;
        }
        let unit_kl = tape.column_sums(latents.kl_terms)?;
        let report = Report::new(&mut tape, loss, &estimate, unit_kl)?;
        if estimate.waits {
            return report.read(self, sets, ("waited", 1.0));
        }
        let update = self.parameters.descend(tape, loss, self.learning_rate(step))?;
        report.read(self, sets, ("gradient_norm", update.gradient_norm))
    }

    /// q(θ | all), its prior, and draws of both levels.
    fn latents(&self, tape: &mut Tape, batch: &Batch, step: &Step) -> Result<Latents> {
        let all = self.parts.posterior.read(tape, &batch.all)?;
        let context = match &batch.context {
            Some(context) => Some(self.parts.posterior.read(tape, context)?),
            None => None,
        };
        let theta = tape.draw(all.law, step.stream.child(1))?;
        let mut kl_terms = match &context {
            Some(context) => tape.kl(all.law, context.law)?,
            None => self.kl_from_prior(tape, all.law)?,
        };
        let mut codes = None;
        if let Some(PictureParts { local: Some(local), .. }) = &self.parts.picture {
            let law = local.read(tape, theta, &all)?;
            let prior: Gaussian = if let Some(context) = &context {
                local.read(tape, theta, context)?
            } else {
                let shape = tape.shape(law.mean);
                tape.standard_gaussian(shape)?
            };
            let more = tape.kl(law, prior)?;
            kl_terms = tape.concat(&[kl_terms, more])?;
            codes = Some(tape.draw(law, step.stream.child(4))?);
        }
        Ok(Latents { theta, codes, context, kl_terms })
    }

    /// KL(q ‖ p(θ)) of every coordinate. For exp θ ~ Gamma(α), log p(θ) = α θ − e^θ − log Γ(α) and
    /// E_q e^θ = exp(μ + σ²/2).
    pub(super) fn kl_from_prior(&self, tape: &mut Tape, law: Gaussian) -> Result<Var> {
        let prior = tape.standard_gaussian(tape.shape(law.mean))?;
        let kl = tape.kl(law, prior)?;
        if self.config.latent_law == LatentLaw::Normal {
            return Ok(kl);
        }
        // −H(q) = KL from the normal law − E_q θ²/2 − log √2π
        let alpha = self.config.concentration;
        let doubled = tape.affine(law.log_std_dev, 2.0, 0.0)?;
        let variance = tape.exp(doubled)?;
        let half_variance = tape.affine(variance, 0.5, 0.0)?;
        let squares = tape.square(law.mean)?;
        let half_squares = tape.affine(squares, 0.5, 0.0)?;
        let exponent = tape.add(law.mean, half_variance)?;
        let expected = tape.exp(exponent)?;
        let rest = tape.subtract(kl, half_squares)?;
        let rest = tape.subtract(rest, half_variance)?;
        let rest = tape.add(rest, expected)?;
        let slope = tape.affine(law.mean, -alpha, libm::lgamma(alpha) - LOG_ROOT_TAU)?;
        tape.add(rest, slope)
    }

    /// The targets with everything they see.
    fn targets(&self, tape: &mut Tape, batch: &Batch, latents: &Latents) -> Result<Targets> {
        let mut targets = batch.targets.write(tape)?;
        let (Some(picture), Some(seen)) = (&self.parts.picture, &batch.targets.picture) else {
            return Ok(targets);
        };
        let mut parts: Vec<Var> = targets.features.into_iter().collect();
        if let (Some(attention), Some(looks)) = (&picture.attention, &seen.looks) {
            parts.push(attention.find(tape, looks)?);
        }
        let sets = tape.shape(latents.theta).0;
        let pooled = if let Some(context) = &latents.context {
            // Where the context is hidden from targets, the canvas does not show it either.
            let is_seen = tape.constant(seen.is_seen.clone(), (sets, 1))?;
            tape.multiply(context.pooled, is_seen)?
        } else {
            let width = self.parts.posterior.num_pooled();
            let zeros = tape.device().zeros(sets * width)?;
            tape.constant(zeros, (sets, width))?
        };
        if let (Some(view), Some((grids, shape))) = (&picture.view, &seen.grids) {
            let grids = tape.constant(grids.clone(), *shape)?;
            let context = view.see(tape, grids)?;
            parts.push(view.read(tape, (&context, latents.codes), &seen.rows)?);
        }
        let latents = (latents.theta, pooled, latents.codes);
        parts.extend(picture.canvas.read(tape, latents, &seen.rows)?);
        let features = tape.concat(&parts)?;
        targets.features = Some(features);
        if let Energy::Element(_) = &self.parts.energy {
            targets.elements = tape.concat(&[targets.values, features])?;
        }
        Ok(targets)
    }

    /// The weight of E‖∇ₓf‖² where the sampler draws, or at the data.
    fn slope_penalty(
        &self,
        tape: &mut Tape,
        round: &Round<'_>,
        estimate: &Estimate,
    ) -> Result<Var> {
        let energy = round.element_energy()?;
        let parameters = energy.parameters(tape, false)?;
        let (rows, offsets) = match &estimate.draws {
            Some(draws) => (element_rows(tape, draws.values, draws.features)?, &draws.offsets),
            None => (round.targets.elements, &round.targets.offsets),
        };
        let points = energy.points(parameters, rows, round.theta, offsets);
        let score = tape.point_score(&points)?;
        let squares = tape.square(score)?;
        let squares = tape.row_sums(squares)?;
        let mean = match &estimate.draws {
            Some(draws) => draws.expectation(tape, squares)?,
            None => mean_of_means(tape, squares, offsets)?,
        };
        let weight = self.config.gradient_penalty * round.step.cosine() / self.config.temperature;
        tape.affine(mean, weight, 0.0)
    }

    /// κ, growing from 0.
    fn kappa(&self, step: &Step) -> f64 {
        self.config.kl_weight * grown(step, self.config.kl_warm_up)
    }

    fn learning_rate(&self, step: &Step) -> f64 {
        let config = &self.config;
        config.learning_rate
            * grown(step, config.learning_rate_warm_up)
            * config.decay.left(step.progress(), config.final_learning_rate)
            * step.learning_rate_factor
    }

    /// Held-out sets of points, jittered as at the end of training: `nats` per point at θ = μ, `kl` per
    /// set, `plug_in_nats`, which is `nats` and the share of `kl` per point, and
    /// `effective_candidates`. `bound_nats` is the same sum for the points as they are and a few draws
    /// of θ: a bound of −log p(set) per point with θ ~ N(0, I), but for the error of log Z, which m
    /// effective candidates put too low by about 1/(2m).
    ///
    /// # Errors
    ///
    /// As [`learn`](Self::learn).
    pub fn evaluate(&self, sets: &SetBatch, stream: Stream) -> Result<Record> {
        let maker = self.batch_maker();
        let plan = Plan {
            jitter: self.config.final_jitter,
            is_training: false,
            num_candidates: 4 * self.config.num_proposals,
        };
        let Energy::Element(energy) = &self.parts.energy else {
            return Err(Error::invalid("estimator", "other than exact", "exact"));
        };
        let importance = Importance::new(&self.config, &self.space);
        let mut sums = [0.0; 5];
        let total = sets.num_sets();
        for first in (0..total).step_by(EVALUATED_AT_ONCE) {
            let count = EVALUATED_AT_ONCE.min(total - first);
            let mut part = SetBatch::new(sets.location_dim(), sets.value_dim());
            for set in first..first + count {
                part.push(sets.locations(set), sets.values(set))?;
            }
            let stream = stream.child((first / EVALUATED_AT_ONCE) as u64);
            let tasks = TaskBatch::whole(part);
            let batch = maker.make(&tasks, plan, stream)?;
            let mut tape = self.device.tape();
            tape.read(&self.parameters);
            let read = self.parts.posterior.read(&mut tape, &batch.all)?;
            let shape = tape.shape(read.law.mean);
            let prior = tape.standard_gaussian(shape)?;
            let kl_terms = tape.kl(read.law, prior)?;
            let kl = tape.row_sums(kl_terms)?;
            let weights = tape.constant(batch.kl_weights.clone(), (count, 1))?;
            let shares = tape.multiply(kl, weights)?;
            let targets = batch.targets.write(&mut tape)?;
            let parameters = energy.calibrated(&mut tape, false)?;
            let Some(candidates) = &batch.candidates else { continue };
            let vars = (read.law.mean, parameters);
            let found =
                importance.estimate(&mut tape, energy, &targets, vars, (candidates, None))?;
            let weight = count as f64 / total as f64;
            let mean = |numbers: &[f32]| {
                numbers.iter().map(|&x| f64::from(x)).sum::<f64>() / numbers.len().max(1) as f64
            };
            let nats = mean(&tape.download(found.nats)?);
            let share: f64 = tape.download(shares)?.iter().map(|&x| f64::from(x)).sum();
            sums[0] += weight * nats;
            sums[1] += weight * mean(&tape.download(kl)?);
            sums[2] += weight * (nats + share);
            if let Some((_, figures)) = found.figures.first() {
                sums[3] += weight * f64::from(tape.download(*figures)?[0]);
            }
            let batch = maker.make(&tasks, Plan { jitter: 0.0, ..plan }, stream.child(0))?;
            let Some(candidates) = &batch.candidates else { continue };
            for draw in 0..BOUND_DRAWS {
                let mut tape = self.device.tape();
                tape.read(&self.parameters);
                let read = self.parts.posterior.read(&mut tape, &batch.all)?;
                let theta = tape.draw(read.law, stream.child(1 + draw))?;
                let shape = tape.shape(read.law.mean);
                let prior = tape.standard_gaussian(shape)?;
                let kl_terms = tape.kl(read.law, prior)?;
                let kl = tape.row_sums(kl_terms)?;
                let weights = tape.constant(batch.kl_weights.clone(), (count, 1))?;
                let shares = tape.multiply(kl, weights)?;
                let targets = batch.targets.write(&mut tape)?;
                let parameters = energy.calibrated(&mut tape, false)?;
                let vars = (theta, parameters);
                let found =
                    importance.estimate(&mut tape, energy, &targets, vars, (candidates, None))?;
                let share: f64 = tape.download(shares)?.iter().map(|&x| f64::from(x)).sum();
                let nats = mean(&tape.download(found.nats)?);
                sums[4] += weight * (nats + share) / BOUND_DRAWS as f64;
            }
        }
        let names = ["nats", "kl", "plug_in_nats", "effective_candidates", "bound_nats"];
        Ok(names.into_iter().zip(sums).collect())
    }
}

/// Draws of θ of the bound.
const BOUND_DRAWS: u64 = 4;
/// Sets that are evaluated at once.
const EVALUATED_AT_ONCE: usize = 32;

fn grown(step: &Step, warm_up: u64) -> f64 {
    ((step.number + 1) as f64 / warm_up.max(1) as f64).min(1.0)
}

/// What is recorded of a step: one array, read at its end.
struct Report {
    numbers: Array,
    figures: Vec<&'static str>,
    num_latents: usize,
}

impl Report {
    fn new(tape: &mut Tape, loss: Var, estimate: &Estimate, unit_kl: Var) -> Result<Self> {
        let mut parts = vec![loss, estimate.nats];
        parts.extend(estimate.figures.iter().map(|(_, figures)| *figures));
        parts.push(unit_kl);
        let all = tape.concat(&parts)?;
        Ok(Self {
            numbers: tape.array(all).clone(),
            figures: estimate.figures.iter().flat_map(|(names, _)| names.iter().copied()).collect(),
            num_latents: tape.shape(unit_kl).1,
        })
    }

    fn read(
        self,
        process: &EnergyBasedProcess,
        sets: usize,
        last: (&'static str, f64),
    ) -> Result<Record> {
        let numbers = process.device.download(&self.numbers)?;
        let (known, unit_kl) = numbers.split_at(numbers.len() - self.num_latents);
        let (loss, nats) = (f64::from(known[0]), f64::from(known[1]));
        let kl: f64 = unit_kl.iter().map(|&x| f64::from(x)).sum();
        let per_set = |kl: &&f32| **kl / sets as f32 > ACTIVE;
        let mut record = vec![
            ("loss", loss),
            ("nats", nats),
            ("kl", kl / sets as f64),
            ("active_units", unit_kl.iter().filter(per_set).count() as f64),
        ];
        if let Energy::Levels(levels) = &process.parts.energy {
            let channels = levels.num_channels() as f64;
            let mass = nats / channels - levels.alphabet.log_cell();
            record.insert(1, ("bits", mass / std::f64::consts::LN_2));
        }
        record.extend(self.figures.into_iter().zip(known[2..].iter().map(|&x| f64::from(x))));
        record.push(last);
        Ok(record)
    }
}

impl Learner for EnergyBasedProcess {
    fn preparation(&self) -> Option<Preparation> {
        Some(Preparation::new(self.batch_maker()))
    }

    fn learn_prepared(&mut self, batch: Prepared, step: &Step) -> Result<Record> {
        EnergyBasedProcess::learn(self, &batch.take()?, step)
    }

    fn join(&mut self, seat: &Arc<Seat>) -> Result<()> {
        EnergyBasedProcess::join(self, seat);
        Ok(())
    }

    fn learns_on_gpu(&self) -> bool {
        self.device.is_gpu()
    }

    fn set_num_draws(&mut self, count: usize) {
        self.config.num_draws = count.max(1);
    }

    fn use_average(&mut self) -> Result<()> {
        EnergyBasedProcess::use_average(self);
        Ok(())
    }

    fn use_parameters(&mut self) -> Result<()> {
        EnergyBasedProcess::use_parameters(self);
        Ok(())
    }

    fn state(&self) -> Result<Tensors> {
        EnergyBasedProcess::state(self)
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        EnergyBasedProcess::restore(self, state)
    }
}
