//! Adam on one flat array, with the moving average beside it.
//!
//! ```text
//! m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²
//! w ← w − η ω w − η (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + floor),    a ← a + (1 − decay)(w − a)
//! ```
//!
//! η is the learning rate and ω the decoupled weight decay (Kingma and Ba, 2015; Loshchilov and
//! Hutter, 2019). β₁ = 0 is allowed and is what adversarial training uses. g is shortened to
//! `max_gradient_norm` before.

use rayon::prelude::*;

use super::{Array, Device, cuda};
use crate::{Error, Result};

/// Entries that one thread works on at a time; sums of parts are added in their order.
const PART: usize = 1 << 15;

/// Settings of Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamConfig {
    /// β₁, in [0, 1).
    pub beta1: f64,
    /// β₂, in [0, 1).
    pub beta2: f64,
    /// Added to the denominator.
    pub denominator_floor: f64,
    /// ω.
    pub weight_decay: f64,
    /// A longer gradient, over all parameters, is shortened to this.
    pub max_gradient_norm: Option<f64>,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.999,
            denominator_floor: 1e-8,
            weight_decay: 0.0,
            max_gradient_norm: None,
        }
    }
}

impl AdamConfig {
    fn check(&self) -> Result<()> {
        for (field, beta) in [("beta1", self.beta1), ("beta2", self.beta2)] {
            if !(0.0..1.0).contains(&beta) {
                return Err(Error::invalid(field, "in [0, 1)", beta));
            }
        }
        let floor = ("denominator_floor", Some(self.denominator_floor));
        for (field, found) in [floor, ("max_gradient_norm", self.max_gradient_norm)] {
            if let Some(found) = found.filter(|found| !(*found > 0.0 && found.is_finite())) {
                return Err(Error::invalid(field, "positive and finite", found));
            }
        }
        if !(self.weight_decay >= 0.0 && self.weight_decay.is_finite()) {
            let found = self.weight_decay;
            return Err(Error::invalid("weight_decay", "at least 0 and finite", found));
        }
        Ok(())
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep {
    /// Length of the gradient over all parameters, before it was shortened.
    pub gradient_norm: f64,
}

/// What is the same for all entries of a step, computed once in f64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) beta1: f32,
    pub(super) gain1: f32,
    pub(super) beta2: f32,
    pub(super) gain2: f32,
    pub(super) keep: f32,
    pub(super) rate: f32,
    pub(super) root: f32,
    pub(super) floor: f32,
    pub(super) average_gain: f32,
    pub(super) limit: f32,
}

#[derive(Debug)]
pub(super) struct Moments {
    config: AdamConfig,
    pub(super) num_steps: u32,
    first: Array,
    second: Array,
}

impl Moments {
    pub(super) fn new(config: AdamConfig, device: &Device, length: usize) -> Result<Self> {
        config.check()?;
        let (first, second) = (device.zeros(length)?, device.zeros(length)?);
        Ok(Self { config, num_steps: 0, first, second })
    }

    pub(super) fn download(&self, device: &Device) -> Result<(Vec<f32>, Vec<f32>)> {
        Ok((device.download(&self.first)?, device.download(&self.second)?))
    }

    pub(super) fn upload(
        &mut self,
        device: &Device,
        first: Vec<f32>,
        second: Vec<f32>,
        num_steps: u32,
    ) -> Result<()> {
        (self.first, self.second) = (device.upload(first)?, device.upload(second)?);
        self.num_steps = num_steps;
        Ok(())
    }

    #[expect(clippy::cast_possible_truncation, reason = "parameters and state are f32")]
    fn numbers(&self, learning_rate: f64, average_decay: f32) -> Numbers {
        let config = &self.config;
        let steps = f64::from(self.num_steps) + 1.0;
        Numbers {
            beta1: config.beta1 as f32,
            gain1: (1.0 - config.beta1) as f32,
            beta2: config.beta2 as f32,
            gain2: (1.0 - config.beta2) as f32,
            keep: (1.0 - learning_rate * config.weight_decay) as f32,
            rate: (learning_rate / (1.0 - config.beta1.powf(steps))) as f32,
            root: (1.0 / (1.0 - config.beta2.powf(steps)).sqrt()) as f32,
            floor: config.denominator_floor as f32,
            average_gain: 1.0 - average_decay,
            limit: config.max_gradient_norm.map_or(f32::INFINITY, |limit| limit as f32),
        }
    }

    /// One step on `trained` and its average; `parts` are gradients and where they begin.
    pub(super) fn step(
        &mut self,
        device: &Device,
        (trained, average): (&mut Array, Option<(f32, &mut Array)>),
        parts: &[(usize, &Array)],
        learning_rate: f64,
    ) -> Result<AdamStep> {
        if !(learning_rate >= 0.0 && learning_rate.is_finite()) {
            return Err(Error::invalid("learning_rate", "at least 0 and finite", learning_rate));
        }
        if parts.is_empty() {
            let expected = "those of a loss that depends on the optimiser's parameters";
            return Err(Error::invalid("gradients", expected, "none of them"));
        }
        let decay = average.as_ref().map_or(0.0, |(decay, _)| *decay);
        let numbers = self.numbers(learning_rate, decay);
        let average = average.map(|(_, average)| average);
        let gradient_norm = match device {
            Device::Cpu(_) => {
                let gradient = flat(trained.len(), parts)?;
                let norm = checked_norm(&gradient)?;
                let moments = (self.first.host_mut()?, self.second.host_mut()?);
                let average = match average {
                    Some(average) => Some(average.host_mut()?),
                    None => None,
                };
                advance(trained.host_mut()?, moments, average, &gradient, numbers, norm);
                norm
            }
            Device::Cuda(gpu) => {
                let arrays = [&*trained, &self.first, &self.second];
                cuda::adam(gpu, arrays, average.as_deref(), parts, numbers)?
            }
        };
        self.num_steps = self.num_steps.saturating_add(1);
        Ok(AdamStep { gradient_norm })
    }
}

/// Gradients in their places; zero where nothing depends on a parameter.
fn flat(length: usize, parts: &[(usize, &Array)]) -> Result<Vec<f32>> {
    let mut gradient = vec![0.0; length];
    for (start, part) in parts {
        let part = part.host()?;
        for (sum, term) in gradient[*start..].iter_mut().zip(part.iter()) {
            *sum += term;
        }
    }
    Ok(gradient)
}

fn checked_norm(gradient: &[f32]) -> Result<f64> {
    // The square of every finite f32 is finite in f64, so the sum alone shows a bad entry.
    let part = |part: &[f32]| part.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>();
    let sums: Vec<f64> = gradient.par_chunks(PART).map(part).collect();
    let sum: f64 = sums.iter().sum();
    if sum.is_finite() {
        return Ok(sum.sqrt());
    }
    Err(non_finite(gradient))
}

/// Which entry of a gradient is not a number; the owner of the parameters knows its name.
pub(super) fn non_finite(gradient: &[f32]) -> Error {
    let index = gradient.iter().position(|g| !g.is_finite()).unwrap_or(0);
    Error::NonFiniteGradient { parameter: String::new(), index, value: gradient[index] }
}

fn advance(
    weights: &mut [f32],
    (first, second): (&mut [f32], &mut [f32]),
    average: Option<&mut [f32]>,
    gradient: &[f32],
    n: Numbers,
    norm: f64,
) {
    let limit = f64::from(n.limit);
    #[expect(clippy::cast_possible_truncation, reason = "gradients are f32")]
    let scale = if norm > limit { (limit / norm) as f32 } else { 1.0 };
    weights
        .par_chunks_mut(PART)
        .zip(first.par_chunks_mut(PART).zip(second.par_chunks_mut(PART)))
        .zip(gradient.par_chunks(PART))
        .for_each(|((weights, (first, second)), gradient)| {
            let moments = first.iter_mut().zip(second);
            for ((w, (m, v)), g) in weights.iter_mut().zip(moments).zip(gradient) {
                let g = scale * g;
                *m = n.beta1 * *m + n.gain1 * g;
                *v = n.beta2 * *v + n.gain2 * g * g;
                *w = n.keep * *w - n.rate * *m / (v.sqrt() * n.root + n.floor);
            }
        });
    if let Some(average) = average {
        average.par_chunks_mut(PART).zip(weights.par_chunks(PART)).for_each(
            |(average, weights)| {
                for (a, w) in average.iter_mut().zip(weights) {
                    // A value that stays the same is averaged exactly.
                    *a += n.average_gain * (w - *a);
                }
            },
        );
    }
}
