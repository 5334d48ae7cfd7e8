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
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

use rayon::prelude::*;

use super::{Array, Device, cuda, loops};
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};
use crate::{Error, Result};

/// Entries that one thread works on at a time.
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
        // Σ_t dᵀ⁻ᵗ w_t / Σ_t dᵀ⁻ᵗ: what parameters were before the first step has no weight.
        let kept = 1.0 - f64::from(average_decay);
        Numbers {
            beta1: config.beta1 as f32,
            gain1: (1.0 - config.beta1) as f32,
            beta2: config.beta2 as f32,
            gain2: (1.0 - config.beta2) as f32,
            keep: (1.0 - learning_rate * config.weight_decay) as f32,
            rate: (learning_rate / (1.0 - config.beta1.powf(steps))) as f32,
            root: (1.0 / (1.0 - config.beta2.powf(steps)).sqrt()) as f32,
            floor: config.denominator_floor as f32,
            average_gain: (kept / (1.0 - f64::from(average_decay).powf(steps))) as f32,
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
                let runs = runs(trained.len(), parts)?;
                let norm = checked_norm(&runs)?;
                let moments = (self.first.host_mut()?, self.second.host_mut()?);
                let average = match average {
                    Some(average) => Some(average.host_mut()?),
                    None => None,
                };
                advance(trained.host_mut()?, moments, average, &runs, numbers, norm);
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

/// Runs of entries from first to last: the gradient of each, or how many have none.
enum Run<'a> {
    Gradient(&'a [f32]),
    Nothing(usize),
}

/// All entries as runs, so that gradients need not be copied to one place.
fn runs<'a>(length: usize, parts: &[(usize, &'a Array)]) -> Result<Vec<Run<'a>>> {
    let mut sorted = parts.to_vec();
    sorted.sort_by_key(|(start, _)| *start);
    let mut runs = Vec::with_capacity(2 * sorted.len() + 1);
    let mut end = 0;
    for (start, part) in sorted {
        let part = &part.host()?[..];
        if start < end || start + part.len() > length {
            let expected = format!("one for each of {length} parameters");
            return Err(Error::invalid("gradients", expected, format!("another at {start}")));
        }
        if start > end {
            runs.push(Run::Nothing(start - end));
        }
        runs.push(Run::Gradient(part));
        end = start + part.len();
    }
    runs.push(Run::Nothing(length - end));
    Ok(runs)
}

fn checked_norm(runs: &[Run<'_>]) -> Result<f64> {
    // The square of every finite f32 is finite in f64, so the sum alone shows a bad entry.
    let square = |run: &Run<'_>| match run {
        Run::Gradient(gradient) => loops::sum_of_squares(gradient),
        Run::Nothing(_) => 0.0,
    };
    let sum: f64 = runs.iter().map(square).sum();
    if sum.is_finite() {
        return Ok(sum.sqrt());
    }
    let all = runs.iter().flat_map(|run| match run {
        Run::Gradient(gradient) => gradient.to_vec(),
        Run::Nothing(count) => vec![0.0; *count],
    });
    Err(non_finite(&all.collect::<Vec<f32>>()))
}

/// Which entry of a gradient is not a number; the owner of the parameters knows its name.
pub(super) fn non_finite(gradient: &[f32]) -> Error {
    let index = gradient.iter().position(|g| !g.is_finite()).unwrap_or(0);
    Error::NonFiniteGradient { parameter: String::new(), index, value: gradient[index] }
}

/// One step of every entry, in parts that are cut by the runs' lengths alone.
fn advance(
    mut weights: &mut [f32],
    (mut first, mut second): (&mut [f32], &mut [f32]),
    mut average: Option<&mut [f32]>,
    runs: &[Run<'_>],
    numbers: Numbers,
    norm: f64,
) {
    let limit = f64::from(numbers.limit);
    #[expect(clippy::cast_possible_truncation, reason = "gradients are f32")]
    let scale = if norm > limit { (limit / norm) as f32 } else { 1.0 };
    let zeros = vec![0.0; PART];
    let mut parts = Vec::with_capacity(weights.len() / PART + runs.len());
    for run in runs {
        let length = match run {
            Run::Gradient(gradient) => gradient.len(),
            Run::Nothing(count) => *count,
        };
        for start in (0..length).step_by(PART) {
            let count = PART.min(length - start);
            parts.push(Part {
                weights: weights.split_off_mut(..count).unwrap_or_default(),
                first: first.split_off_mut(..count).unwrap_or_default(),
                second: second.split_off_mut(..count).unwrap_or_default(),
                average: average.as_mut().and_then(|average| average.split_off_mut(..count)),
                gradient: match run {
                    Run::Gradient(gradient) => &gradient[start..start + count],
                    Run::Nothing(_) => &zeros[..count],
                },
                scale,
                numbers,
            });
        }
    }
    parts.into_par_iter().for_each(|part| Vectoriser::new().run(part));
}

struct Part<'a> {
    weights: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    average: Option<&'a mut [f32]>,
    gradient: &'a [f32],
    scale: f32,
    numbers: Numbers,
}

impl VectorLoop for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (n, scale) = (self.numbers, self.scale);
        let moments = self.first.iter_mut().zip(self.second);
        for ((w, (m, v)), g) in self.weights.iter_mut().zip(moments).zip(self.gradient) {
            let g = scale * g;
            *m = n.beta1 * *m + n.gain1 * g;
            *v = n.beta2 * *v + n.gain2 * g * g;
            *w = n.keep * *w - n.rate * *m / (v.sqrt() * n.root + n.floor);
        }
        // While the part is still in the cache.
        for (a, w) in self.average.into_iter().flatten().zip(self.weights) {
            // A value that stays the same is averaged exactly.
            *a += n.average_gain * (*w - *a);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts with gaps and longer than one thread's work, against the formula entry by entry.
    #[test]
    fn entries_with_and_without_gradients_follow_the_formula() {
        let length = 2 * PART + 100;
        let device = Device::default();
        let config = AdamConfig { max_gradient_norm: Some(1.0), ..AdamConfig::default() };
        let mut moments = Moments::new(config, &device, length).unwrap();
        let mut weights = Array::from(vec![0.5; length]);
        let mut average = Array::from(vec![0.5; length]);
        // 4 n entries of ½ have norm √n.
        let (early, late) = (Array::from(vec![0.5; 4]), Array::from(vec![0.5; PART + 10]));
        let parts = [(PART, &late), (3, &early)];
        let norm = (0.25 * (PART + 14) as f64).sqrt();
        // Σ 0.9ᵀ⁻ᵗ w_t and Σ 0.9ᵀ⁻ᵗ.
        let (mut m, mut v, mut w, mut weighted, mut weight) = (0.0, 0.0, 0.5, 0.0, 0.0);
        for step in 1..=2 {
            let found = moments
                .step(&device, (&mut weights, Some((0.9, &mut average))), &parts, 0.01)
                .unwrap();
            assert!((found.gradient_norm - norm).abs() < 1e-9 * norm);
            let g = 0.5 / norm;
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            let (first, second) =
                (m / (1.0 - 0.9_f64.powi(step)), v / (1.0 - 0.999_f64.powi(step)));
            w -= 0.01 * first / (second.sqrt() + 1e-8);
            (weighted, weight) = (0.9 * weighted + w, 0.9 * weight + 1.0);
        }
        let (weights, average) = (weights.host().unwrap(), average.host().unwrap());
        for index in 0..length {
            let has_gradient = (3..7).contains(&index) || (PART..2 * PART + 10).contains(&index);
            let (w, a) = if has_gradient { (w, weighted / weight) } else { (0.5, 0.5) };
            assert!((f64::from(weights[index]) - w).abs() < 1e-6, "{index}");
            assert!((f64::from(average[index]) - a).abs() < 1e-6, "{index}");
        }
    }

    #[test]
    fn two_gradients_of_one_parameter_are_refused() {
        let device = Device::default();
        let mut moments = Moments::new(AdamConfig::default(), &device, 4).unwrap();
        let (mut weights, part) = (Array::from(vec![0.0; 4]), Array::from(vec![1.0; 3]));
        let parts = [(0, &part), (1, &part)];
        let error = moments.step(&device, (&mut weights, None), &parts, 0.1).unwrap_err();
        assert!(error.to_string().contains("another at 1"), "{error}");
    }
}
