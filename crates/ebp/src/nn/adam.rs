//! Adam, with its state in the open.
//!
//! ```text
//! m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²
//! w ← w − η ω w − η (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + floor)
//! ```
//!
//! η is the learning rate and ω the decoupled weight decay (Kingma and Ba, 2015; Loshchilov and
//! Hutter, 2019). β₁ = 0 is allowed and is what adversarial training uses.

use candle_core::backprop::GradStore;
use candle_core::{Tensor, Var};
use rayon::prelude::*;

use super::Parameters;
use super::host::{HostView, update};
use crate::tensor::{self, Tensors};
use crate::{Error, Result};

/// Entries that one thread takes at a time.
const PART: usize = 1 << 15;

/// Settings of [`Adam`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamConfig {
    /// β₁, the decay of the mean of gradients, in [0, 1).
    pub beta1: f64,
    /// β₂, the decay of the mean of squared gradients, in [0, 1).
    pub beta2: f64,
    /// Added to the denominator, positive.
    pub denominator_floor: f64,
    /// ω, the decoupled weight decay, at least 0.
    pub weight_decay: f64,
    /// The gradient of the whole group is shortened to this Euclidean length if it is longer.
    pub max_gradient_norm: Option<f64>,
}

impl Default for AdamConfig {
    /// β = (0.9, 0.999), floor 1e-8, no weight decay, no clipping.
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
        let Self { beta1, beta2, denominator_floor, weight_decay, max_gradient_norm } = *self;
        for (field, beta) in [("beta1", beta1), ("beta2", beta2)] {
            if !(0.0..1.0).contains(&beta) {
                return Err(Error::invalid(field, "in [0, 1)", beta));
            }
        }
        let is_positive = |x: f64| x > 0.0 && x.is_finite();
        if !is_positive(denominator_floor) {
            return Err(Error::invalid(
                "denominator_floor",
                "positive and finite",
                denominator_floor,
            ));
        }
        if !(weight_decay >= 0.0 && weight_decay.is_finite()) {
            return Err(Error::invalid("weight_decay", "at least 0 and finite", weight_decay));
        }
        match max_gradient_norm {
            Some(norm) if !is_positive(norm) => {
                Err(Error::invalid("max_gradient_norm", "positive and finite", norm))
            }
            _ => Ok(()),
        }
    }
}

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep {
    /// Euclidean length of the group's gradient before clipping.
    pub gradient_norm: f64,
    /// How many variables had a gradient and were moved.
    pub num_updated: usize,
}

/// The optimiser of a group of [`Parameters`].
///
/// ```
/// use candle_core::{Device, Tensor};
/// use ebp::nn::{Adam, AdamConfig, Initialiser, Parameters};
///
/// let parameters = Parameters::new(7);
/// let w = parameters.trained("w", &[2], Initialiser::Ones)?;
/// let mut adam = Adam::new(&parameters, AdamConfig::default())?;
/// let loss = w.sqr()?.sum_all()?;
/// let step = adam.step(&loss.backward()?, 0.1)?;
/// assert!((step.gradient_norm - 8_f64.sqrt()).abs() < 1e-6);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Adam {
    config: AdamConfig,
    slots: Vec<Slot>,
}

#[derive(Clone, Debug)]
struct Slot {
    name: String,
    variable: Var,
    /// t of this variable: how often it was moved.
    num_steps: u32,
    /// m.
    first: Vec<f32>,
    /// v.
    second: Vec<f32>,
}

impl Adam {
    /// Owns the variables that `group` trains at this moment.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming a setting outside its range, or if the group trains nothing.
    pub fn new(group: &Parameters, config: AdamConfig) -> Result<Self> {
        config.check()?;
        let slots: Vec<_> = group
            .trained_variables()
            .into_iter()
            .map(|(name, variable)| {
                let zeros = vec![0.0; variable.elem_count()];
                Slot { name, variable, num_steps: 0, first: zeros.clone(), second: zeros }
            })
            .collect();
        if slots.is_empty() {
            return Err(Error::invalid("parameters", "a group with trained variables", "none"));
        }
        Ok(Self { config, slots })
    }

    /// The settings.
    pub fn config(&self) -> &AdamConfig {
        &self.config
    }

    /// Moves every variable that has a gradient. A variable without one did not take part in the
    /// loss: it and its state stay as they are.
    ///
    /// # Errors
    ///
    /// [`Error::NonFiniteGradient`] naming the parameter, [`Error::InvalidValue`] for a learning
    /// rate that is negative or not finite, or if no variable has a gradient. Nothing changes
    /// then.
    pub fn step(&mut self, gradients: &GradStore, learning_rate: f64) -> Result<AdamStep> {
        if !(learning_rate >= 0.0 && learning_rate.is_finite()) {
            return Err(Error::invalid("learning_rate", "at least 0 and finite", learning_rate));
        }
        let mut found = Vec::with_capacity(self.slots.len());
        for slot in &mut self.slots {
            if let Some(gradient) = gradients.get(&slot.variable) {
                found.push((slot, gradient.contiguous()?));
            }
        }
        if found.is_empty() {
            return Err(Error::invalid(
                "gradients",
                "those of a loss that depends on the optimiser's parameters",
                "none of them",
            ));
        }
        let mut sum_of_squares = 0.0;
        for (slot, gradient) in &found {
            sum_of_squares += checked_sum_of_squares(&slot.name, gradient)?;
        }
        let gradient_norm = sum_of_squares.sqrt();
        let scale = match self.config.max_gradient_norm {
            Some(limit) if gradient_norm > limit => limit / gradient_norm,
            _ => 1.0,
        };
        let num_updated = found.len();
        for (slot, gradient) in found {
            slot.advance(&gradient, &self.config, learning_rate, scale)?;
        }
        Ok(AdamStep { gradient_norm, num_updated })
    }

    /// How often every variable was moved, if it is the same for all.
    pub(crate) fn common_steps(&self) -> Option<u32> {
        let first = self.slots.first()?.num_steps;
        self.slots.iter().all(|slot| slot.num_steps == first).then_some(first)
    }

    /// m and v of every variable, in the order of their names.
    pub(crate) fn moments(&self) -> impl Iterator<Item = (&[f32], &[f32])> {
        self.slots.iter().map(|slot| (slot.first.as_slice(), slot.second.as_slice()))
    }

    /// m and v of every variable after `num_steps` steps, to be overwritten.
    pub(crate) fn moments_mut(
        &mut self,
        num_steps: u32,
    ) -> impl Iterator<Item = (&mut [f32], &mut [f32])> {
        self.slots.iter_mut().map(move |slot| {
            slot.num_steps = num_steps;
            (slot.first.as_mut_slice(), slot.second.as_mut_slice())
        })
    }

    /// A copy of the state: for each parameter `name` the tensors `name.first_moment` and
    /// `name.second_moment`, shaped as the parameter, and the i64 scalar `name.num_steps`.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] if a copy fails.
    pub fn export(&self) -> Result<Tensors> {
        let mut tensors = Tensors::new();
        for slot in &self.slots {
            let dims = slot.variable.dims();
            for (part, values) in [(FIRST_MOMENT, &slot.first), (SECOND_MOMENT, &slot.second)] {
                let tensor = tensor::Tensor::new(dims.to_vec(), values.clone())?;
                tensors.insert(format!("{}.{part}", slot.name), tensor);
            }
            let num_steps = tensor::Tensor::integer(i64::from(slot.num_steps));
            tensors.insert(format!("{}.{NUM_STEPS}", slot.name), num_steps);
        }
        Ok(tensors)
    }

    /// Takes over an exported state; the next step is then bit for bit what it would have been.
    ///
    /// Either all is taken over or, on an error, nothing.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming a tensor that is missing, unknown or of another shape.
    pub fn import(&mut self, tensors: &Tensors) -> Result<()> {
        let mut slots = self.slots.clone();
        for slot in &mut slots {
            slot.first =
                saved(tensors, &format!("{}.{FIRST_MOMENT}", slot.name), slot.variable.dims())?;
            slot.second =
                saved(tensors, &format!("{}.{SECOND_MOMENT}", slot.name), slot.variable.dims())?;
            let name = format!("{}.{NUM_STEPS}", slot.name);
            let found = tensors.get(&name).and_then(tensor::Tensor::as_integer);
            let num_steps = found.and_then(|steps| u32::try_from(steps).ok());
            slot.num_steps = num_steps.ok_or_else(|| {
                Error::invalid(name, "a saved number of steps", format!("{num_steps:?}"))
            })?;
        }
        if tensors.len() != 3 * slots.len() {
            return Err(Error::invalid(
                "optimiser state",
                format!("of {} parameters", slots.len()),
                format!("{} tensors, three per parameter", tensors.len()),
            ));
        }
        self.slots = slots;
        Ok(())
    }
}

/// Ends the name of m in an exported state.
pub(crate) const FIRST_MOMENT: &str = "first_moment";
/// Ends the name of v.
pub(crate) const SECOND_MOMENT: &str = "second_moment";
/// Ends the name of the number of steps.
pub(crate) const NUM_STEPS: &str = "num_steps";

fn saved(tensors: &Tensors, name: &str, dims: &[usize]) -> Result<Vec<f32>> {
    match tensors.get(name) {
        Some(tensor) if tensor.dims() == dims && tensor.as_f32().is_some() => {
            Ok(tensor.as_f32().unwrap_or_default().to_vec())
        }
        found => Err(Error::invalid(
            name,
            format!("a saved f32 tensor of shape {dims:?}"),
            found.map_or("none".into(), |tensor| format!("{tensor:?}")),
        )),
    }
}

fn checked_sum_of_squares(name: &str, gradient: &Tensor) -> Result<f64> {
    let gradient = HostView::new("gradient", gradient)?;
    // The square of every finite f32 is finite in f64, so the sum alone shows a bad entry.
    // Parts of one size, added in their order, so that threads do not change the sum.
    let part = |part: &[f32]| part.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>();
    let sums: Vec<f64> = gradient.par_chunks(PART).map(part).collect();
    let sum: f64 = sums.iter().sum();
    if sum.is_finite() {
        return Ok(sum);
    }
    let index = gradient.iter().position(|g| !g.is_finite()).unwrap_or(0);
    Err(Error::NonFiniteGradient { parameter: name.to_owned(), index, value: gradient[index] })
}

impl Slot {
    #[expect(clippy::cast_possible_truncation, reason = "parameters and state are f32")]
    fn advance(
        &mut self,
        gradient: &Tensor,
        config: &AdamConfig,
        learning_rate: f64,
        scale: f64,
    ) -> Result<()> {
        self.num_steps = self.num_steps.saturating_add(1);
        let steps = f64::from(self.num_steps);
        // Everything that is the same for all entries is computed once, in f64.
        let (beta1, beta2) = (config.beta1 as f32, config.beta2 as f32);
        let (gain1, gain2) = ((1.0 - config.beta1) as f32, (1.0 - config.beta2) as f32);
        let rate = (learning_rate / (1.0 - config.beta1.powf(steps))) as f32;
        let root_correction = (1.0 / (1.0 - config.beta2.powf(steps)).sqrt()) as f32;
        let floor = config.denominator_floor as f32;
        let keep = (1.0 - learning_rate * config.weight_decay) as f32;
        let scale = scale as f32;
        let gradient = HostView::new("gradient", gradient)?;
        let (first, second) = (&mut self.first, &mut self.second);
        update(&self.variable, |weights| {
            let parts = weights
                .par_chunks_mut(PART)
                .zip(first.par_chunks_mut(PART).zip(second.par_chunks_mut(PART)))
                .zip(gradient.par_chunks(PART));
            parts.for_each(|((weights, (first, second)), gradient)| {
                let moments = first.iter_mut().zip(second);
                for ((w, (m, v)), g) in weights.iter_mut().zip(moments).zip(gradient) {
                    let g = scale * g;
                    *m = beta1 * *m + gain1 * g;
                    *v = beta2 * *v + gain2 * g * g;
                    *w = keep * *w - rate * *m / (v.sqrt() * root_correction + floor);
                }
            });
        })
    }
}
