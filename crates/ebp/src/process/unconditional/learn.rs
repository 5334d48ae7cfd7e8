//! One step of neural collapsed inference, per point:
//!
//! ```text
//! loss = −mean_i u(xᵢ; θ) + log Ẑ(θ) + κ KL(q(θ | x) ‖ N(0, I)) / n,   θ ~ q(θ | x)
//! Ẑ(θ) = mean_k exp(u(y_k; θ)) / r(y_k)
//! ```

use std::borrow::Cow;

use candle_core::{Device, Tensor};
use rayon::prelude::*;

use super::UnconditionalProcess;
use super::batch::{Batch, BatchMaker, BatchPlan, CloudBatch};
use super::config::{CloudEstimator, Decay};
use super::sampler::CloudDraws;
use crate::data::SetView;
use crate::nn::{LikelihoodSets, Mode, Record, Step, TensorBatch};
use crate::process::energy_based::latent::Gaussians;
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// A latent coordinate whose KL exceeds this many nats on average is active.
pub(super) const ACTIVE: f32 = 0.01;

/// What importance sampling says about a batch.
struct Likelihood {
    /// Negative log-density per point, the mean over sets; in the graph.
    nats: Tensor,
    /// Mean over sets of (Σ w)²/Σ w².
    effective_candidates: f64,
    /// Share of Z within the finest cells of the set's own points.
    near_share: f64,
    /// Largest share of Z that one candidate has, the mean over sets.
    largest_share: f64,
}

/// Places for log Z, as many for each set.
struct Candidates<'a> {
    values: Cow<'a, [f32]>,
    log_weights: Cow<'a, [f32]>,
    is_near: Cow<'a, [bool]>,
}

impl UnconditionalProcess {
    /// Updates the process once on `sets` of standardised points and says what happened: `loss`
    /// per point; `nats`, the negative log-density per point; `kl` in nats per set;
    /// `active_units`, latent coordinates that carry information (0: a collapsed posterior);
    /// `effective_candidates`, `near_share` and `largest_share` of the estimate of log Z, and
    /// `gradient_norm` before clipping.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a set is empty or not of the right
    /// dimension, [`Error::NonFinite`](crate::Error::NonFinite) or
    /// [`Error::NonFiniteGradient`](crate::Error::NonFiniteGradient) if the step diverged.
    pub fn learn(&mut self, sets: &[&[f32]], step: &Step) -> Result<Record> {
        let batch = self.batch_maker().prepare(&views(sets), step)?;
        self.learn_from(batch, step)
    }

    /// What makes batches for [`learn_from`](Self::learn_from).
    pub fn batch_maker(&self) -> BatchMaker {
        BatchMaker::new(&self.config, self.networks.learner())
    }

    /// [`learn`](Self::learn) on a batch that was prepared for this step.
    ///
    /// # Errors
    ///
    /// As [`learn`](Self::learn).
    pub fn learn_from(&mut self, batch: CloudBatch, step: &Step) -> Result<Record> {
        self.use_parameters()?;
        let CloudBatch { mut batch, sent } = batch;
        if let Some(sent) = sent
            && self.networks.go_there()?
        {
            return self.learn_there(&batch, sent, step);
        }
        let points = std::mem::take(&mut batch.encoder_points);
        let posterior = self.networks.encoder()?.encode(points, &batch.encoder_offsets)?.posterior;
        let theta = posterior.draw(step.stream.child(1))?;
        let prior = Gaussians::standard(batch.whole.num_sets(), self.config.latent_dim)?;
        let kl_terms = posterior.kl_terms(&prior)?;
        let kl = kl_terms.sum(1)?;

        let parameters = self.networks.energy()?.parameters(Mode::Train)?;
        let calibrated = self.networks.energy()?.calibrated(&parameters)?;
        let sampler_loss = match self.sampler {
            Some(_) => Some(self.train_sampler(&theta, step)?),
            None => None,
        };
        let (part, likelihood) = self.estimate(&batch, &theta, &calibrated, step)?;
        // Each set's KL is shared by all of its points, those that were not drawn included.
        let shares = inverse_sizes(&batch.whole)?;
        let kl_share = (&kl * shares)?.mean_all()?;
        let loss = (part + (kl_share * self.kappa(step))?)?;
        let update = self.networks.update(&loss.backward()?, self.learning_rate(step))?;

        let scalar = |tensor: &Tensor| Ok::<_, crate::Error>(f64::from(tensor.to_scalar::<f32>()?));
        let unit_kl = kl_terms.mean(0)?.to_vec1::<f32>()?;
        let mut record = vec![
            ("loss", scalar(&loss)?),
            ("nats", scalar(&likelihood.nats)?),
            ("kl", scalar(&kl.mean_all()?)?),
            ("active_units", unit_kl.iter().filter(|kl| **kl > ACTIVE).count() as f64),
            ("effective_candidates", likelihood.effective_candidates),
            ("near_share", likelihood.near_share),
            ("largest_share", likelihood.largest_share),
            ("gradient_norm", update.gradient_norm),
        ];
        record.extend(sampler_loss.map(|loss| ("sampler_loss", loss)));
        Ok(record)
    }

    /// The likelihood part of the loss by the estimator of the settings, and what importance
    /// sampling says, which is the same for `importance`.
    fn estimate(
        &self,
        batch: &Batch,
        theta: &Tensor,
        calibrated: &Tensor,
        step: &Step,
    ) -> Result<(Tensor, Likelihood)> {
        if self.config.estimator == CloudEstimator::Importance {
            let sampled = match self.config.num_sampled() {
                0 => None,
                count => Some(self.sampler_draws(theta, calibrated, count, step)?),
            };
            let found = self.likelihood(batch, sampled.as_ref(), theta, calibrated)?;
            return Ok((found.nats.clone(), found));
        }
        let part = if self.config.estimator == CloudEstimator::Ade {
            self.adversarial_gap(batch, theta, calibrated, step)?
        } else {
            self.denoising_loss(batch, theta, calibrated, step.stream.child(3))?
        };
        let found = self.likelihood(batch, None, &theta.detach(), &calibrated.detach())?;
        Ok((part, found))
    }

    /// Negative log-density and KL of sets that are not learned from, with θ = μ: `nats` per
    /// point, `kl` per set, and their sum per point `elbo_nats`.
    ///
    /// # Errors
    ///
    /// As [`learn`](Self::learn).
    pub fn evaluate(&self, sets: &[&[f32]], stream: Stream) -> Result<Record> {
        let plan = BatchPlan {
            jitter: self.config.final_jitter,
            is_perturbed: false,
            is_augmented: false,
            num_candidates: 4 * self.config.num_proposals,
            num_sampled: 0,
        };
        let (mut nats, mut kls, mut bound, mut effective) = (0.0, 0.0, 0.0, 0.0);
        for (number, part) in sets.chunks(EVALUATED_AT_ONCE).enumerate() {
            let stream = stream.child(number as u64);
            let mut batch = Batch::new(&views(part), &self.config, plan, stream)?;
            let points = std::mem::take(&mut batch.encoder_points);
            let encoded = self.networks.encoder()?.encode(points, &batch.encoder_offsets)?;
            let prior = Gaussians::standard(part.len(), self.config.latent_dim)?;
            let kl = encoded.posterior.kl_terms(&prior)?.sum(1)?;
            let parameters = self.networks.energy()?.parameters(Mode::Evaluate)?.detach();
            let calibrated = self.networks.energy()?.calibrated(&parameters)?;
            let found =
                self.likelihood(&batch, None, &encoded.posterior.mean.detach(), &calibrated)?;
            let weight = part.len() as f64 / sets.len() as f64;
            let here = f64::from(found.nats.to_scalar::<f32>()?);
            let shares = inverse_sizes(&batch.whole)?;
            let share = f64::from((&kl * shares)?.mean_all()?.to_scalar::<f32>()?);
            nats += weight * here;
            bound += weight * (here + share);
            kls += weight * f64::from(kl.mean_all()?.to_scalar::<f32>()?);
            effective += weight * found.effective_candidates;
        }
        Ok(vec![
            ("nats", nats),
            ("kl", kls),
            ("elbo_nats", bound),
            ("effective_candidates", effective),
        ])
    }

    /// The first two terms of the loss. `parameters` are those of f/τ, `sampled` further
    /// candidates of the learned sampler.
    fn likelihood(
        &self,
        batch: &Batch,
        sampled: Option<&CloudDraws>,
        theta: &Tensor,
        parameters: &Tensor,
    ) -> Result<Likelihood> {
        let num_sets = batch.offsets.num_sets();
        let Candidates { values, log_weights, is_near } = self.candidates(batch, sampled)?;
        let run = self.networks.energy()?.module.likelihood(&LikelihoodSets {
            elements: &batch.points,
            offsets: &batch.offsets,
            candidates: &values,
            log_weights: &log_weights,
            context: theta,
            parameters,
        })?;
        let base: f64 = batch.bases.iter().sum();
        let nats = (run.nats - base / num_sets as f64)?;

        let (values, count) = (run.candidate_values, log_weights.len() / num_sets);
        let mut found =
            Likelihood { nats, effective_candidates: 0.0, near_share: 0.0, largest_share: 0.0 };
        let shares = |set: usize| {
            let range = set * count..(set + 1) * count;
            let logs = values[range.clone()].iter().zip(&log_weights[range.clone()]);
            let logs: Vec<f32> = logs.map(|(f, weight)| f + weight).collect();
            let largest = logs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let (mut sum, mut squares, mut near) = (0.0, 0.0, 0.0);
            for (log, is_near) in logs.iter().zip(&is_near[range]) {
                let weight = f64::from((log - largest).exp());
                sum += weight;
                squares += weight * weight;
                near += if *is_near { weight } else { 0.0 };
            }
            [sum * sum / squares, near / sum, 1.0 / sum]
        };
        let all: Vec<[f64; 3]> = (0..num_sets).into_par_iter().map(shares).collect();
        for [effective, near, largest] in all {
            found.effective_candidates += effective / num_sets as f64;
            found.near_share += near / num_sets as f64;
            found.largest_share += largest / num_sets as f64;
        }
        Ok(found)
    }

    /// Candidates of the grids and, if there are any, of the sampler. Each kind is an estimate of
    /// Z, and so is their mean, weighted by their numbers.
    fn candidates<'a>(
        &self,
        batch: &'a Batch,
        sampled: Option<&CloudDraws>,
    ) -> Result<Candidates<'a>> {
        let Some(draws) = sampled else {
            return Ok(Candidates {
                values: Cow::Borrowed(&batch.candidates),
                log_weights: Cow::Borrowed(&batch.log_weights),
                is_near: Cow::Borrowed(&batch.is_near),
            });
        };
        let dim = self.config.value_dim;
        let num_sets = batch.offsets.num_sets();
        let of_grids = batch.log_weights.len() / num_sets;
        let of_sampler = draws.offsets.size(0);
        let drawn = draws.values.detach().flatten_all()?.to_vec1::<f32>()?;
        let log_densities = draws.log_density.detach().to_vec1::<f32>()?;
        let (mut values, mut log_weights, mut is_near) = (Vec::new(), Vec::new(), Vec::new());
        for set in 0..num_sets {
            let grids = set * of_grids..(set + 1) * of_grids;
            let sampler = set * of_sampler..(set + 1) * of_sampler;
            is_near.extend(&batch.is_near[grids.clone()]);
            is_near.extend(std::iter::repeat_n(false, of_sampler));
            values.extend_from_slice(&batch.candidates[grids.start * dim..grids.end * dim]);
            log_weights.extend(&batch.log_weights[grids]);
            let own = &drawn[sampler.start * dim..sampler.end * dim];
            values.extend_from_slice(own);
            let rows = own.chunks_exact(dim).zip(&log_densities[sampler]);
            let log_count = ((of_grids + of_sampler) as f32).ln();
            log_weights.extend(rows.map(|(y, r)| self.config.log_weight(y, *r, log_count)));
        }
        Ok(Candidates {
            values: Cow::Owned(values),
            log_weights: Cow::Owned(log_weights),
            is_near: Cow::Owned(is_near),
        })
    }

    /// The mean of f/τ over the points of each set, `[sets]`.
    pub(super) fn mean_values(
        &self,
        points: &[f32],
        offsets: &SetOffsets,
        theta: &Tensor,
        parameters: &Tensor,
    ) -> Result<Tensor> {
        let shape = (offsets.num_elements(), self.config.value_dim);
        let sums = self.networks.energy()?.module.set_sums(&TensorBatch {
            elements: &Tensor::from_slice(points, shape, &Device::Cpu)?,
            context: Some(theta),
            parameters,
            offsets,
        })?;
        Ok((sums.flatten_all()? * inverse_sizes(offsets)?)?)
    }

    /// κ, which grows from 0 during the warm-up.
    pub(super) fn kappa(&self, step: &Step) -> f64 {
        let grown = (step.number + 1) as f64 / self.config.kl_warm_up.max(1) as f64;
        self.config.kl_weight * grown.min(1.0)
    }

    pub(super) fn learning_rate(&self, step: &Step) -> f64 {
        let config = &self.config;
        let grown = (step.number + 1) as f64 / config.learning_rate_warm_up.max(1) as f64;
        config.learning_rate
            * grown.min(1.0)
            * decayed(config.decay, step, config.final_learning_rate)
            * step.learning_rate_factor
    }
}

/// Sets whose log Z is estimated together when nothing is learned.
const EVALUATED_AT_ONCE: usize = 32;

/// From 1 down to `end`.
pub(super) fn decayed(decay: Decay, step: &Step, end: f64) -> f64 {
    let progress = (step.number as f64 / step.num_steps.max(1) as f64).min(1.0);
    match decay {
        Decay::Constant => 1.0,
        Decay::Linear => end + (1.0 - end) * (1.0 - progress),
        Decay::Cosine => end + (1.0 - end) * step.cosine(),
    }
}

fn views<'a>(sets: &[&'a [f32]]) -> Vec<SetView<'a>> {
    sets.iter().copied().map(SetView::from).collect()
}

/// 1/n of every set, `[sets]`.
pub(super) fn inverse_sizes(offsets: &SetOffsets) -> Result<Tensor> {
    let shares: Vec<f32> =
        (0..offsets.num_sets()).map(|set| 1.0 / offsets.size(set) as f32).collect();
    let count = shares.len();
    Ok(Tensor::from_vec(shares, count, &Device::Cpu)?)
}
