//! How points act on each other: statistics t(u, X) of the conditional intensity
//! log λ(u | X) = α · z(u) + θ · t(u, X).
//!
//! ```text
//! Strauss         t = number of points within r
//! hard core       λ = 0 if a point is within h
//! Geyer           t = min(s, c(u)) + Σ_{x ~ u} (min(s, c(x) + 1) − min(s, c(x))),  c counts within r
//! area            t = share of the disc of radius r around u that discs around the points cover
//! pairwise        t_k = Σ_x hat_k(‖u − x‖): the pair potential is linear between its knots
//! ```
//!
//! The definitions are spatstat's. Areas are exact (spatstat counts a grid in every disc), and of the
//! plane, not of the window. X is what was seen in the window: nothing acts from outside.

use super::discs::covered_share;
use super::near::Near;
use super::window::{Pattern, Window};
use crate::{Error, Result};

/// Which points act on each other, and how far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interaction {
    /// Not at all: a Poisson process.
    None,
    /// Pairs within `radius` count.
    Strauss {
        /// r.
        radius: f64,
    },
    /// No pair within `radius`.
    HardCore {
        /// h.
        radius: f64,
    },
    /// Both.
    StraussHardCore {
        /// r.
        radius: f64,
        /// h < r.
        hard_core: f64,
    },
    /// Neighbours within `radius` count, at most `saturation` of a point.
    Geyer {
        /// r.
        radius: f64,
        /// s.
        saturation: f64,
    },
    /// The area that discs cover counts.
    Area {
        /// r, of the discs.
        radius: f64,
    },
    /// A potential of the distance, linear between knots, 0 from `reach` on.
    Pairwise {
        /// Where it ends.
        reach: f64,
        /// At (k + ½)/K of the reach; constant before the first and after the last.
        num_knots: usize,
    },
}

impl Interaction {
    /// Refuses radii that are not positive, and what else means nothing.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the number.
    pub fn check(&self) -> Result<()> {
        let positive = |name: &str, value: f64| {
            let is_right = value > 0.0 && value.is_finite();
            is_right.then_some(()).ok_or_else(|| Error::invalid(name, "positive and finite", value))
        };
        match *self {
            Self::None => Ok(()),
            Self::Strauss { radius } | Self::HardCore { radius } | Self::Area { radius } => {
                positive("radius", radius)
            }
            Self::StraussHardCore { radius, hard_core } => {
                positive("hard_core", hard_core)?;
                let is_right = radius > hard_core && radius.is_finite();
                let expected = format!("above the hard core {hard_core}");
                is_right.then_some(()).ok_or_else(|| Error::invalid("radius", expected, radius))
            }
            Self::Geyer { radius, saturation } => {
                positive("radius", radius)?;
                positive("saturation", saturation)
            }
            Self::Pairwise { reach, num_knots } => {
                positive("reach", reach)?;
                let is_right = (1..=1000).contains(&num_knots);
                is_right
                    .then_some(())
                    .ok_or_else(|| Error::invalid("knots", "1 to 1000", num_knots))
            }
        }
    }

    /// The farthest that a point changes the intensity: what lies nearer to the edge has unseen neighbours.
    pub fn reach(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Strauss { radius }
            | Self::HardCore { radius }
            | Self::StraussHardCore { radius, .. } => radius,
            Self::Geyer { radius, .. } | Self::Area { radius } => 2.0 * radius,
            Self::Pairwise { reach, .. } => reach,
        }
    }

    /// How far [`statistics`](Self::statistics) asks for points.
    fn question(&self) -> f64 {
        match *self {
            Self::Geyer { radius, .. } => radius,
            _ => self.reach(),
        }
    }

    /// Names of the statistics.
    pub fn names(&self) -> Vec<String> {
        match *self {
            Self::None | Self::HardCore { .. } => Vec::new(),
            Self::Pairwise { num_knots, .. } => {
                (0..num_knots).map(|knot| format!("potential {knot}")).collect()
            }
            _ => vec!["interaction".to_owned()],
        }
    }

    /// How many statistics there are.
    pub fn num_statistics(&self) -> usize {
        match *self {
            Self::None | Self::HardCore { .. } => 0,
            Self::Pairwise { num_knots, .. } => num_knots,
            _ => 1,
        }
    }

    /// Points in cells for the questions of this interaction, and others up to `reach`.
    pub(crate) fn near(&self, window: Window, points: &[[f64; 2]], reach: f64) -> Near {
        let [width, height] = window.lengths();
        let question = self.question().max(reach);
        let reach = if question > 0.0 { question } else { width.max(height) };
        Near::new(window, reach, points)
    }

    /// Writes t(u, X without the point `skip`); `false` if λ is 0.
    pub(crate) fn statistics(
        &self,
        place: [f64; 2],
        near: &Near,
        skip: Option<usize>,
        out: &mut [f64],
    ) -> bool {
        out.fill(0.0);
        match *self {
            Self::None => {}
            Self::Strauss { radius } => out[0] = near.count(place, radius, skip) as f64,
            Self::HardCore { radius } => return near.count(place, radius, skip) == 0,
            Self::StraussHardCore { radius, hard_core } => {
                let mut is_free = true;
                near.visit(place, radius, skip, |_, square| {
                    out[0] += 1.0;
                    is_free &= square > hard_core * hard_core;
                });
                return is_free;
            }
            Self::Geyer { radius, saturation } => {
                let mut neighbours = 0;
                near.visit(place, radius, skip, |number, _| {
                    neighbours += 1;
                    // c(x) among the others: neither x itself nor the point that is left out.
                    let point = near.points()[number];
                    let mut count = 0;
                    near.visit(point, radius, Some(number), |other, _| {
                        count += usize::from(Some(other) != skip);
                    });
                    let count = count as f64;
                    out[0] += saturation.min(count + 1.0) - saturation.min(count);
                });
                out[0] += saturation.min(f64::from(neighbours));
            }
            Self::Area { radius } => {
                let mut others = Vec::new();
                near.visit(place, 2.0 * radius, skip, |number, _| {
                    let [x, y] = near.points()[number];
                    others.push([x - place[0], y - place[1]]);
                });
                out[0] = covered_share(radius, &others);
            }
            Self::Pairwise { reach, num_knots } => {
                near.visit(place, reach, skip, |_, square| {
                    let (knot, share) = between_knots(square.sqrt(), reach, num_knots);
                    out[knot] += 1.0 - share;
                    if share > 0.0 {
                        out[knot + 1] += share;
                    }
                });
            }
        }
        true
    }

    /// Adds the gradient of θ · T(X) by the points, where it is one: of a potential of the distance.
    pub(crate) fn add_forces(
        &self,
        theta: &[f64],
        window: Window,
        points: &[[f64; 2]],
        forces: &mut [[f64; 2]],
    ) {
        let Self::Pairwise { reach, num_knots } = *self else { return };
        let near = self.near(window, points, 0.0);
        for (number, (&place, force)) in points.iter().zip(forces).enumerate() {
            near.visit(place, reach, Some(number), |other, square| {
                let distance = square.sqrt();
                let (knot, share) = between_knots(distance, reach, num_knots);
                if share > 0.0 {
                    let slope = (theta[knot + 1] - theta[knot]) * num_knots as f64 / reach;
                    let other = near.points()[other];
                    force[0] += slope * (place[0] - other[0]) / distance;
                    force[1] += slope * (place[1] - other[1]) / distance;
                }
            });
        }
    }

    /// T(X) = Σᵢ t(xᵢ, {x₁, …, xᵢ₋₁}): log density up to trend and constant is θ · T. The order of the points
    /// does not matter. `None` if a hard core is broken.
    pub fn totals(&self, pattern: &Pattern) -> Option<Vec<f64>> {
        let mut near = self.near(pattern.window(), &[], 0.0);
        let mut totals = vec![0.0; self.num_statistics()];
        let mut one = totals.clone();
        for &point in pattern.points() {
            if !self.statistics(point, &near, None, &mut one) {
                return None;
            }
            totals.iter_mut().zip(&one).for_each(|(sum, t)| *sum += t);
            near.insert(point);
        }
        Some(totals)
    }
}

/// The knot before a distance, and the share of the way to the next; knots at (k + ½)/K of the reach.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub(crate) fn between_knots(distance: f64, reach: f64, num_knots: usize) -> (usize, f64) {
    let place = (distance / reach * num_knots as f64 - 0.5).clamp(0.0, (num_knots - 1) as f64);
    let knot = place as usize;
    (knot, place - knot as f64)
}
