//! Changes of sets of points in training: of whole sets, and of what the posterior alone reads.
//!
//! A change of the whole set changes the law of θ, not what p(x | θ) can say: a prior that is fitted to
//! the codes of the sets as they are ([`crate::latent`]) draws sets as they are. A change of what the
//! posterior reads changes no law at all, as q may depend on anything:
//!
//! ```text
//! log p(set) ≥ E_q(θ | T set) Σᵢ log p(xᵢ | θ) − KL(q(θ | T set) ‖ p(θ))    for any random T
//! ```
//!
//! The bound is lower where T takes away what θ should say, and then q has learned to do without.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Turns about an axis of space, or of the plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// None.
    #[default]
    None,
    /// By 0, 90, 180 or 270 degrees.
    Quarter,
    /// By any angle.
    Any,
}

/// Changes of whole sets of points that leave them sets of the same kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentationConfig {
    /// Axes along which half of all sets are mirrored.
    pub mirror_axes: Vec<usize>,
    /// Axes are stretched by a factor of e^u, u normal with this standard deviation.
    pub stretch: f32,
    /// The same with a u that grows along each of the other axes, by this much from the middle of the
    /// domain to its wall: a back becomes wider than the seat.
    pub taper: f32,
    /// Turns about `turn_axis`.
    pub turns: Turns,
    /// The share of sets that are turned.
    pub turn_share: f64,
    /// What stays where it is; ignored in the plane.
    pub turn_axis: usize,
}

/// Noise on the elements that the posterior reads, so that it sees through the noise of its users.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PerturbationConfig {
    /// The share of sets with noise.
    pub share: f64,
    /// The largest standard deviation of noise on every point.
    pub everywhere: f32,
    /// The largest standard deviation of noise on the points of a ball.
    pub in_ball: f32,
    /// Its radius.
    pub radius: f32,
}

/// What the posterior reads in the place of a set, so that it knows sets by less, of another density
/// and from other sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ViewConfig {
    /// The share of sets that are seen so; others are seen as they are.
    pub share: f64,
    /// The largest share of points that is left out; every set has its own.
    pub dropout: f64,
    /// Points favour a side: x stays with probability 1/(1 + exp(−t ⟨x, v⟩)), v a random direction, t up
    /// to this.
    pub tilt: f32,
    /// Points within a ball around a random point are left out, of a radius up to this.
    pub hole: f32,
    /// Turns about `turn_axis`, of what the posterior reads alone.
    pub turns: Turns,
    /// What stays where it is; ignored in the plane.
    pub turn_axis: usize,
}

impl Default for AugmentationConfig {
    fn default() -> Self {
        Self {
            mirror_axes: Vec::new(),
            stretch: 0.0,
            taper: 0.0,
            turns: Turns::None,
            turn_share: 1.0,
            turn_axis: UP,
        }
    }
}

impl Default for PerturbationConfig {
    fn default() -> Self {
        Self { share: 0.0, everywhere: 0.2, in_ball: 0.4, radius: 0.6 }
    }
}

impl Default for ViewConfig {
    fn default() -> Self {
        Self { share: 0.0, dropout: 0.9, tilt: 1.0, hole: 0.0, turns: Turns::None, turn_axis: UP }
    }
}

impl AugmentationConfig {
    pub(super) fn check(&self, dim: usize) -> Result<()> {
        if let Some(axis) = self.mirror_axes.iter().find(|&&axis| axis >= dim) {
            return Err(Error::invalid("augmentation.mirror_axes", format!("below {dim}"), axis));
        }
        at_least_0("augmentation.stretch", self.stretch)?;
        at_least_0("augmentation.taper", self.taper)?;
        share("augmentation.turn_share", self.turn_share)?;
        self.turns.check(("augmentation.turns", "augmentation.turn_axis"), self.turn_axis, dim)
    }
}

impl PerturbationConfig {
    pub(super) fn check(&self) -> Result<()> {
        share("perturbation.share", self.share)?;
        at_least_0("perturbation.everywhere", self.everywhere)?;
        at_least_0("perturbation.in_ball", self.in_ball)?;
        at_least_0("perturbation.radius", self.radius)
    }
}

impl ViewConfig {
    pub(super) fn check(&self, dim: usize) -> Result<()> {
        share("view.share", self.share)?;
        share("view.dropout", self.dropout)?;
        at_least_0("view.tilt", self.tilt)?;
        at_least_0("view.hole", self.hole)?;
        self.turns.check(("view.turns", "view.turn_axis"), self.turn_axis, dim)
    }
}

impl Turns {
    fn check(self, (name, of_axis): (&str, &str), axis: usize, dim: usize) -> Result<()> {
        if self == Self::None {
            return Ok(());
        }
        if !(2..=3).contains(&dim) {
            let expected = "none but for points of 2 or 3 numbers";
            return Err(Error::invalid(name, expected, format!("points of {dim}")));
        }
        if axis >= 3 {
            return Err(Error::invalid(of_axis, "below 3", axis));
        }
        Ok(())
    }
}

fn share(field: &str, found: f64) -> Result<()> {
    if (0.0..=1.0).contains(&found) {
        return Ok(());
    }
    Err(Error::invalid(field, "in [0, 1]", found))
}

fn at_least_0(field: &str, found: f32) -> Result<()> {
    if found >= 0.0 && found.is_finite() {
        return Ok(());
    }
    Err(Error::invalid(field, "at least 0 and finite", found))
}

/// z, as most collections of shapes stand.
const UP: usize = 2;
