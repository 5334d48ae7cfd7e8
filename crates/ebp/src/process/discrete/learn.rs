//! One step of neural collapsed inference with exact log Z.
//!
//! ```text
//! loss = mean over sets of  −E_q(θ | all) mean_i log p(xᵢ | tᵢ, θ) + κ KL(q(θ | all) ‖ prior) / n
//! ```
//!
//! A second level z adds KL(q(z | θ, all) ‖ q(z | θ, context)) / n, at the θ that was drawn.
//! n counts the targets of a set; the mean over them is estimated by a random part.

use candle_core::{Device, Tensor};
use rayon::prelude::*;

use super::DiscreteProcess;
use super::energy::Targets;
use super::observed::{Elements, Observed};
use super::posterior::has_elements;
use crate::nn::{Record, Step};
use crate::process::task::check_tasks;
use crate::process::{Learner, Task, TrainingMode};
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Result, SetOffsets};

/// A latent coordinate whose KL exceeds this many nats on average is active.
const ACTIVE: f32 = 0.01;

/// A task as networks read it.
struct Prepared {
    context: Observed,
    /// What targets see of the context beside θ: all or nothing.
    seen: Observed,
    all: Observed,
    /// Places and rows of the targets that are scored, and their symbols.
    places: Vec<usize>,
    rows: Vec<f32>,
    symbols: Vec<u32>,
    num_scored: usize,
    /// How many there are in all.
    num_targets: usize,
}

impl DiscreteProcess {
    fn prepare(&self, task: &Task, stream: Stream) -> Result<Prepared> {
        let config = &self.config;
        let mut all = Observed::new(config, &task.context)?;
        let (context, targets) = match config.mode {
            TrainingMode::Predictive => (all.clone(), Elements::new(config, &task.target)?),
            // Nothing is given beforehand: the whole set is what is to be explained.
            TrainingMode::FullSet => {
                (Observed::nothing(config), Elements::new(config, &task.union()?)?)
            }
        };
        all.add(config, &task.target)?;
        let mut uniform = [0.0];
        stream.child(0).fill_uniform(0, 0, &mut uniform);
        let is_blind = f64::from(uniform[0]) < config.blind;
        let seen = if is_blind { Observed::nothing(config) } else { context.clone() };
        let num_targets = targets.places.len();
        let mut order = stream.permutation(num_targets);
        order.truncate(config.num_scored);
        let places: Vec<usize> = order.iter().map(|&index| targets.places[index]).collect();
        let channels = config.channels;
        let symbols =
            order.iter().flat_map(|&i| &targets.symbols[i * channels..][..channels]).copied();
        Ok(Prepared {
            rows: self.surroundings.rows(&seen, &places),
            symbols: symbols.collect(),
            num_scored: places.len(),
            places,
            num_targets,
            context,
            seen,
            all,
        })
    }
}

impl Learner for DiscreteProcess {
    /// The record: `loss` and `bits`, the negative log-probability, per target and channel, in
    /// bits; `kl` in nats per set; `active_units`, latent coordinates that carry information (0: a
    /// collapsed posterior); `gradient_norm` before clipping.
    fn learn(&mut self, tasks: &[Task], step: &Step) -> Result<Record> {
        check_tasks(tasks, 2, self.config.channels)?;
        self.use_parameters()?;
        let num_sets = tasks.len();
        let choice = step.stream.child(1);
        let prepared = tasks
            .par_iter()
            .enumerate()
            .map(|(number, task)| self.prepare(task, choice.child(number as u64)))
            .collect::<Result<Vec<_>>>()?;

        let all: Vec<&Observed> = prepared.iter().map(|task| &task.all).collect();
        let contexts: Vec<&Observed> = prepared.iter().map(|task| &task.context).collect();
        let posterior = self.posterior.read(&all)?;
        // Without a context this is N(0, I).
        let prior = self.posterior.read(&contexts)?;
        let theta = posterior.law.draw(step.stream.child(0))?;
        let mut kl_terms = posterior.law.kl_terms(&prior.law)?;
        let codes = match &self.local {
            Some(local) => {
                let law = local.encode(&theta, &posterior.pooled)?;
                let prior = local.encode(&theta, &prior.pooled)?;
                kl_terms = Tensor::cat(&[&kl_terms, &law.kl_terms(&prior)?], 1)?;
                Some(law.draw(step.stream.child(2))?)
            }
            None => None,
        };
        let offsets = SetOffsets::from_sizes(prepared.iter().map(|task| task.num_scored))?;
        let rows = concat(&prepared, |task| &task.rows);
        let symbols = concat(&prepared, |task| &task.symbols);
        let num_features = self.surroundings.num_features();
        let seen: Vec<&Observed> = prepared.iter().map(|task| &task.seen).collect();
        let places: Vec<&[usize]> = prepared.iter().map(|task| &task.places[..]).collect();
        let seen_pooled = prior.pooled.broadcast_mul(&has_elements(&seen)?)?;
        let painted = self.canvas.read(&theta, &seen_pooled, codes.as_ref(), &places)?;
        let attended = match &self.attention {
            Some(attention) => Some(attention.look(&seen, &places)?),
            None => None,
        };
        let attended = match (attended, painted) {
            (Some(attended), Some(painted)) => Some(Tensor::cat(&[attended, painted], 1)?),
            (attended, painted) => attended.or(painted),
        };
        let targets =
            Targets { rows: &rows, num_features, attended: attended.as_ref(), offsets: &offsets };
        let masses = self.energy.log_mass(&targets, &symbols, &theta)?;

        // Every set counts the same, whatever the size of its context.
        let per_set = |weight: &dyn Fn(&Prepared) -> f64| -> Vec<f32> {
            #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
            prepared.iter().map(|task| (weight(task) / num_sets as f64) as f32).collect()
        };
        let weights: Vec<f32> = per_set(&|task| 1.0 / task.num_scored as f64)
            .iter()
            .zip(&prepared)
            .flat_map(|(&weight, task)| std::iter::repeat_n(weight, task.num_scored))
            .collect();
        let weights = Tensor::new(weights, &Device::Cpu)?;
        let nats = (masses * weights)?.sum_all()?.neg()?;
        let kl_weights = per_set(&|task| 1.0 / task.num_targets as f64);
        let kl = (kl_terms.sum(1)? * Tensor::new(kl_weights, &Device::Cpu)?)?.sum_all()?;
        let loss = (&nats + (kl * self.kappa(step))?)?;
        let rate = step.learning_rate(self.config.learning_rate) * self.rate_factor(step);
        let update = self.adam.step(&loss.backward()?, rate)?;
        self.average.update()?;

        let bits = 1.0 / (std::f64::consts::LN_2 * self.config.channels as f64);
        let scalar = |tensor: &Tensor| Ok::<_, crate::Error>(f64::from(tensor.to_scalar::<f32>()?));
        let unit_kl = kl_terms.mean(0)?.to_vec1::<f32>()?;
        Ok(vec![
            ("loss", scalar(&loss)? * bits),
            ("bits", scalar(&nats)? * bits),
            ("kl", unit_kl.iter().map(|&kl| f64::from(kl)).sum()),
            ("active_units", unit_kl.iter().filter(|kl| **kl > ACTIVE).count() as f64),
            ("gradient_norm", update.gradient_norm),
        ])
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

impl DiscreteProcess {
    /// κ, which grows from 0 during the warm-up.
    fn kappa(&self, step: &Step) -> f64 {
        self.config.kl_weight * grown(step, self.config.kl_warm_up)
    }

    fn rate_factor(&self, step: &Step) -> f64 {
        grown(step, self.config.rate_warm_up)
    }
}

/// From nothing to 1 over `warm_up` steps.
fn grown(step: &Step, warm_up: u64) -> f64 {
    ((step.number + 1) as f64 / warm_up.max(1) as f64).min(1.0)
}

fn concat<T: Clone>(prepared: &[Prepared], part: impl Fn(&Prepared) -> &Vec<T>) -> Vec<T> {
    let mut all = Vec::with_capacity(prepared.iter().map(|task| part(task).len()).sum());
    for task in prepared {
        all.extend_from_slice(part(task));
    }
    all
}
