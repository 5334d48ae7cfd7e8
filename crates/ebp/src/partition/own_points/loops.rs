//! The loops over proposals, compiled for the machine's instruction set.
#![allow(clippy::inline_always, reason = "that is how a loop reaches its instruction set")]

use super::cells::cell_start;
use crate::point::cpu::vectorise::VectorLoop;

/// The number of a point for each stratum, u in [0, 1) of the way through it.
pub(super) struct PickPoints<'a> {
    pub(super) strata: &'a [f32],
    pub(super) num_points: usize,
    pub(super) indices: &'a mut [u32],
}

impl VectorLoop for PickPoints<'_> {
    type Output = ();
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "numbers of points fit into u32")]
    fn run(self) {
        // A whole number n < 2³² stands in the last bits of the float 2⁵² + n: a conversion that
        // vectors have.
        const SHIFT: f64 = 4_503_599_627_370_496.0;
        let (count, n) = (self.strata.len() as f64, self.num_points as f64);
        let last = self.num_points as u32 - 1;
        for (number, (index, &u)) in (0_u32..).zip(self.indices.iter_mut().zip(self.strata)) {
            let place = (f64::from(number) + f64::from(u)) / count;
            *index = (((place * n).floor() + SHIFT).to_bits() as u32).min(last);
        }
    }
}

/// From a point to a place in its cell, u in [0, 1) of the way through it.
pub(super) struct MoveInCell<'a> {
    pub(super) uniforms: &'a [f32],
    pub(super) origin: f32,
    pub(super) width: f32,
    pub(super) places: &'a mut [f32],
}

impl VectorLoop for MoveInCell<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, u) in self.places.iter_mut().zip(self.uniforms) {
            *x = self.origin + (cell_start(*x, self.origin, self.width) + u) * self.width;
        }
    }
}

/// r += count · w_h / (n hᵈ).
pub(super) struct AddDensity<'a> {
    pub(super) counts: &'a [u32],
    pub(super) unit: f64,
    pub(super) density: &'a mut [f64],
}

impl VectorLoop for AddDensity<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (density, &count) in self.density.iter_mut().zip(self.counts) {
            *density += f64::from(count) * self.unit;
        }
    }
}
