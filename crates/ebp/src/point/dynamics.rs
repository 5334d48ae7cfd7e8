//! What a run of Langevin or leapfrog steps needs to know, and what it gives back.
//!
//! Both move the values x of every element along ∇u, where u is the network's log potential f
//! plus an optional Gaussian base measure:
//!
//! ```text
//! u(x) = f(x, t; c) − ‖x‖² / (2 s₀²),     g = clip(∇ₓ u)
//! ```
//!
//! Locations t never move, nor do elements marked as fixed; a fixed element keeps its momentum.

use crate::error::{check_finite, check_length};
use crate::rng::Stream;
use crate::{Error, Result};

/// How long a gradient may be.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Clip {
    /// As long as it is.
    #[default]
    Off,
    /// Each coordinate is clamped to ±limit (the paper's reading).
    Elementwise(f32),
    /// An element's gradient is shortened to this Euclidean length if it is longer.
    Norm(f32),
}

/// A box that values stay inside, by reflection at its walls.
///
/// Reflection keeps the uniform law on the box, which clamping does not: clamping piles
/// elements up on the walls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The lower wall of every coordinate.
    pub low: f32,
    /// The upper wall of every coordinate.
    pub high: f32,
}

/// What is common to all dynamics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Motion<'a> {
    /// Limit on the gradient of u.
    pub clip: Clip,
    /// s₀ of the Gaussian base measure; `None` for none.
    pub base_std_dev: Option<f32>,
    /// The box that values live in; `None` for all of space.
    pub bounds: Option<Bounds>,
    /// `[total]`, true where an element must not move; `None` if all move.
    pub is_fixed: Option<&'a [bool]>,
}

/// T Langevin steps: v = s_t ξ + (η_t/2) g(x),  x ← x + v.
///
/// They target exp(u / τ) with temperature τ = s²/η; so s = √η for τ = 1.
#[derive(Clone, Copy, Debug)]
pub struct Langevin<'a> {
    /// η_t, one per step; also the number of steps.
    pub step_sizes: &'a [f32],
    /// s_t, the standard deviation of the noise, one per step; 0 switches it off.
    pub noise_scales: &'a [f32],
    /// Where ξ comes from: coordinate k of element i at step t is index i·d_x + k of step t.
    pub noise: Stream,
    /// Clip, base measure, walls, fixed elements.
    pub motion: Motion<'a>,
}

/// T leapfrog steps: v ← v + (η_t/2) g(x),  x ← x + η_t v,  v ← v + (η_t/2) g(x).
///
/// A wall met on the way reflects the value and turns the sign of that momentum coordinate.
#[derive(Clone, Copy, Debug)]
pub struct Leapfrog<'a> {
    /// η_t, one per step; also the number of steps.
    pub step_sizes: &'a [f32],
    /// Clip, base measure, walls, fixed elements.
    pub motion: Motion<'a>,
}

/// Where Langevin steps ended, and what the learned sampler's objective needs.
#[derive(Clone, Debug)]
pub struct LangevinRun<Array = Vec<f32>> {
    /// The elements after T steps, `[total, d_x + d_t]`, locations unchanged.
    pub elements: Array,
    /// f at the end, `[total]` (without the base measure).
    pub values: Array,
    /// ∇ₓu at the end, `[total, d_x]`, not clipped.
    pub score: Array,
    /// Σᵢ ‖v_t‖² over the moving elements of a set, `[sets, T]`.
    pub kinetic: Array,
    /// Σ_t ‖v_t‖² of every element, `[total]`; 0 where it is fixed.
    pub element_kinetic: Array,
    /// Σ_t s_t² ‖ξ_t‖² of every element, `[total]`; 0 where it is fixed.
    pub element_noise: Array,
    /// Σᵢ ⟨∇u(x_T), g(x_t)⟩ over the moving elements of a set, `[sets, T]`.
    ///
    /// For piecewise linear σ without base measure and walls, x_T moves one to one with x₀ and
    /// half of this is ∂ Σ f(x_T) / ∂η_t exactly (almost everywhere). In every other case use
    /// [`PointBackend::langevin_backward`](super::PointBackend::langevin_backward).
    pub final_alignment: Array,
    /// Σᵢ ⟨v_t, g(x_t)⟩ over the moving elements of a set, `[sets, T]`: equals
    /// ∂ (Σᵢ ‖v_t‖²) / ∂η_t under the same conditions.
    pub kinetic_alignment: Array,
}

/// Where leapfrog steps ended.
#[derive(Clone, Debug)]
pub struct LeapfrogRun<Array = Vec<f32>> {
    /// The elements after T steps, `[total, d_x + d_t]`, locations unchanged.
    pub elements: Array,
    /// The momenta after T steps, `[total, d_x]`.
    pub momentum: Array,
    /// f at the end, `[total]` (without the base measure).
    pub values: Array,
    /// ∇ₓu at the end, `[total, d_x]`, not clipped.
    pub score: Array,
    /// Σᵢ ‖v_T‖² over the moving elements of a set, `[sets]`.
    pub kinetic: Array,
}

/// Cotangents of a run's results, for its backward pass.
#[derive(Clone, Copy, Debug)]
pub struct DynamicsCotangent<'a> {
    /// ∂L/∂x_T, `[total, d_x]`.
    pub values: &'a [f32],
    /// Leapfrog: ∂L/∂v_T, `[total, d_x]`, or `None` for zero. Langevin: must be `None`.
    pub momentum: Option<&'a [f32]>,
    /// Langevin: ∂L/∂(Σ_t ‖v_t‖²) per element, `[total]`, or `None` for zero. Leapfrog: must be
    /// `None`, since ‖v_T‖² can be expressed through `momentum`.
    pub kinetic: Option<&'a [f32]>,
}

/// Gradients of a loss through a whole run, the network's parameters held fixed.
#[derive(Clone, Debug)]
pub struct DynamicsGradients<Array = Vec<f32>> {
    /// ∂L/∂x₀, `[total, d_x]`.
    pub values: Array,
    /// Leapfrog: ∂L/∂v₀, `[total, d_x]`; empty for Langevin.
    pub momentum: Array,
    /// ∂L/∂η_t, `[T]`.
    pub step_sizes: Array,
    /// ∂L/∂c through the drift, `[sets, context_dim]`; zero for piecewise linear σ.
    pub context: Array,
}

impl Motion<'_> {
    pub(crate) fn check(&self, num_elements: usize) -> Result<()> {
        let limit = match self.clip {
            Clip::Off => 1.0,
            Clip::Elementwise(limit) | Clip::Norm(limit) => limit,
        };
        check_positive("clip", limit)?;
        check_positive("base_std_dev", self.base_std_dev.unwrap_or(1.0))?;
        if let Some(Bounds { low, high }) = self.bounds
            && !(low < high && (high - low).is_finite())
        {
            return Err(Error::invalid(
                "bounds",
                "finite with low < high",
                format!("[{low}, {high}]"),
            ));
        }
        match self.is_fixed {
            Some(mask) => check_length("is_fixed", mask.len(), num_elements, || {
                format!("elements {num_elements}")
            }),
            None => Ok(()),
        }
    }
}

impl Langevin<'_> {
    pub(crate) fn check(&self, num_elements: usize) -> Result<()> {
        check_finite("step_sizes", self.step_sizes, "choose a finite step size")?;
        check_finite("noise_scales", self.noise_scales, "choose a finite noise scale")?;
        let steps = self.step_sizes.len();
        check_length("noise_scales", self.noise_scales.len(), steps, || {
            format!("one per step, steps {steps}")
        })?;
        self.motion.check(num_elements)
    }
}

impl Leapfrog<'_> {
    pub(crate) fn check(&self, num_elements: usize) -> Result<()> {
        check_finite("step_sizes", self.step_sizes, "choose a finite step size")?;
        self.motion.check(num_elements)
    }
}

fn check_positive(field: &'static str, found: f32) -> Result<()> {
    if found > 0.0 && found.is_finite() {
        return Ok(());
    }
    Err(Error::invalid(field, "positive and finite", found))
}
