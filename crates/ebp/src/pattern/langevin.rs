//! Langevin steps of all points of a pattern at once along ∇f, as the energies of whole sets are drawn, with
//! Metropolis's test and walls.
//!
//! ```text
//! p ~ N(0, I),   p ← p + (ε/2) ∇f(x),   x′ = x + ε p,   p ← p + (ε/2) ∇f(x′)
//! accepted with min(1, exp(f(x′) − f(x) + ½‖p‖² − ½‖p′‖²))
//! ```
//!
//! A point that meets an edge is reflected and its momentum with it: that keeps volumes and can be turned
//! around, so that the test is exact. Where f is a step function ∇f is taken as 0, and the step is a
//! random walk of all points.

use super::draws::Draws;
use super::gibbs::Gibbs;
use super::window::{Pattern, Window};
use crate::Result;

/// The share of accepted steps that ε is tuned to (Roberts and Rosenthal, 1998).
const ACCEPTED: f64 = 0.574;
/// ε at the start, as a share of the distance between neighbours.
const FIRST: f64 = 0.1;

/// The size of steps, tuned while a chain settles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Langevin {
    /// Nothing before the first step.
    step_size: Option<f64>,
    num_tuned: u32,
}

impl Langevin {
    pub(super) fn new() -> Self {
        Self { step_size: None, num_tuned: 0 }
    }

    /// The points after a step, which are the same ones if it was rejected.
    pub(super) fn step(
        &mut self,
        model: &Gibbs,
        points: &[[f64; 2]],
        is_tuned: bool,
        draws: &mut Draws,
    ) -> Result<Vec<[f64; 2]>> {
        if points.is_empty() {
            return Ok(Vec::new());
        }
        let window = model.window();
        let spacing = (window.area() / points.len() as f64).sqrt();
        let step = *self.step_size.get_or_insert(FIRST * spacing);
        let energy = |points: &[[f64; 2]], momenta: &[[f64; 2]]| -> Result<f64> {
            let pattern = Pattern::new(window, points.to_vec())?;
            let kinetic: f64 = momenta.iter().flatten().map(|p| 0.5 * p * p).sum();
            Ok(model.log_density_up_to_constant(&pattern) - kinetic)
        };
        let mut momenta: Vec<[f64; 2]> =
            points.iter().map(|_| [draws.normal(), draws.normal()]).collect();
        let before = energy(points, &momenta)?;
        let moved = leapfrog(model, points, &mut momenta, step);
        let gain = energy(&moved, &momenta)? - before;
        let is_accepted = draws.uniform().ln() <= gain;
        if is_tuned {
            // Robbins and Monro, with gains that fall slowly.
            self.num_tuned += 1;
            let share = gain.exp().min(1.0) - ACCEPTED;
            self.step_size = Some(step * (share / f64::from(self.num_tuned).powf(0.6)).exp());
        }
        Ok(if is_accepted { moved } else { points.to_vec() })
    }
}

/// Where points are one step later; momenta are those at the end.
fn leapfrog(
    model: &Gibbs,
    points: &[[f64; 2]],
    momenta: &mut [[f64; 2]],
    step: f64,
) -> Vec<[f64; 2]> {
    let push = |points: &[[f64; 2]], momenta: &mut [[f64; 2]]| {
        for (momentum, force) in momenta.iter_mut().zip(model.forces(points)) {
            (0..2).for_each(|axis| momentum[axis] += 0.5 * step * force[axis]);
        }
    };
    push(points, momenta);
    let moved: Vec<[f64; 2]> = points
        .iter()
        .zip(momenta.iter_mut())
        .map(|(place, momentum)| reflected(model.window(), *place, momentum, step))
        .collect();
    push(&moved, momenta);
    moved
}

/// x + ε p between walls; p turns with every wall that is met.
fn reflected(window: Window, place: [f64; 2], momentum: &mut [f64; 2], step: f64) -> [f64; 2] {
    let (sides, lengths) = (window.sides(), window.lengths());
    [0, 1].map(|axis| {
        let ([from, to], length) = (sides[axis], lengths[axis]);
        let along = (place[axis] + step * momentum[axis] - from).rem_euclid(2.0 * length);
        if along > length {
            momentum[axis] = -momentum[axis];
        }
        (from + along.min(2.0 * length - along)).clamp(from, to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Family, Interaction, Trend};
    use crate::rng::Stream;

    /// With momenta turned a step leads back to where it began, walls or not, to rounding.
    #[test]
    fn steps_can_be_turned_around() {
        let interaction = Interaction::Pairwise { reach: 0.4, num_knots: 5 };
        let family = Family { trend: Trend::LogLinear, interaction };
        let theta = vec![2.0, 0.5, -1.0, -3.0, -1.0, 0.5, 0.2, 0.0];
        let model = Gibbs::new(family, Window::unit(), theta).unwrap();
        let mut draws = Draws::new(Stream::new(1, "there and back"));
        let points: Vec<[f64; 2]> = (0..12).map(|_| [draws.uniform(), draws.uniform()]).collect();
        let mut momenta: Vec<[f64; 2]> =
            points.iter().map(|_| [draws.normal(), draws.normal()]).collect();
        let moved = leapfrog(&model, &points, &mut momenta, 0.15);
        assert!(points.iter().zip(&moved).all(|(a, b)| (a[0] - b[0]).hypot(a[1] - b[1]) > 0.0));
        momenta.iter_mut().flatten().for_each(|p| *p = -*p);
        let back = leapfrog(&model, &moved, &mut momenta, 0.15);
        for (a, b) in points.iter().zip(&back) {
            assert!((a[0] - b[0]).abs() < 1e-12 && (a[1] - b[1]).abs() < 1e-12, "{a:?} {b:?}");
        }
    }
}
