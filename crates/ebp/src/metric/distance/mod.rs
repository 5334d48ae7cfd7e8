//! Distances between two sets of points, each with the name of what it is.
//!
//! ```text
//! Chamfer    mean_x min_y ‖x − y‖² + mean_y min_x ‖x − y‖²        (or the paper's sums)
//! Hausdorff  max over all points of the distance to the nearest point of the other set
//! EMD        the least mean distance by which one set's mass is moved onto the other's
//! ```
//!
//! Sets may have any sizes and any dimension. The earth mover's distance has four methods that give
//! four different numbers; [`Emd`] says which one was used and how far from the truth it can be:
//!
//! | method | what it is | error |
//! |---|---|---|
//! | [`Exact`](EmdMethod::Exact) | the definition, by an auction with certificate | `gap`, about 10⁻¹⁴ |
//! | [`Approxmatch`](EmdMethod::Approxmatch) | the soft matching of most papers | 20–50 % above |
//! | [`Squared`](EmdMethod::Squared) | the same matching, squared distances | another quantity |
//! | [`Sinkhorn`](EmdMethod::Sinkhorn) | with an entropy term, feasible plan | `gap` |
//!
//! All of them are the same to the last bit when the points of a set are shuffled.

mod approxmatch;
mod arranged;
mod brute_force;
mod exact;
mod exponential;
mod gpu;
mod nearest;
mod search;
mod sinkhorn;
mod tree;

use crate::{Error, Result};

pub use self::arranged::ArrangedCloud;
pub use self::gpu::{GpuDistances, Matching};
pub use self::nearest::{ChamferConvention, NearestNeighbours, NearestSearch};

/// How the earth mover's distance is computed; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EmdMethod {
    /// The optimal plan, mean distance.
    Exact,
    /// The annealed soft matching, mean distance.
    Approxmatch,
    /// The annealed soft matching, mean squared distance.
    Squared,
    /// The plan with an entropy term, mean distance.
    Sinkhorn {
        /// The weight of the entropy, as a share of the mean distance of all pairs.
        regularisation: f64,
    },
}

impl EmdMethod {
    /// Sinkhorn with a weight that is a compromise between time and gap.
    pub const SINKHORN: Self = Self::Sinkhorn { regularisation: 0.01 };

    /// `exact`, `approxmatch`, `squared` or `sinkhorn`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Approxmatch => "approxmatch",
            Self::Squared => "squared",
            Self::Sinkhorn { .. } => "sinkhorn",
        }
    }

    /// What is averaged: distances, or their squares.
    pub fn convention(self) -> &'static str {
        match self {
            Self::Squared => "mean of squared distances",
            _ => "mean of distances",
        }
    }

    /// Whether values are bounded from below by what bounds the exact distance.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Self::Exact)
    }
}

/// An earth mover's distance, and what is known about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Emd {
    /// The number.
    pub value: f64,
    /// How it was computed.
    pub method: EmdMethod,
    /// How much smaller the exact distance can be at most, as a share of `value`: the difference
    /// between the plan's cost and a bound on every plan's cost. `None` where the method has no
    /// such bound.
    pub gap: Option<f64>,
}

/// The earth mover's distance by `method`.
///
/// ```
/// use ebp::metric::distance::{ArrangedCloud, EmdMethod, emd};
///
/// // Two points, three points: each x sends half to the middle.
/// let x = ArrangedCloud::new(1, &[0.0, 1.0])?;
/// let y = ArrangedCloud::new(1, &[0.0, 0.5, 1.0])?;
/// let distance = emd(&x, &y, EmdMethod::Exact)?;
/// assert!((distance.value - 0.5 / 3.0).abs() < 1e-15);
/// assert!(distance.gap.is_some_and(|gap| gap < 1e-12));
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidValue`] if the dimensions differ or the regularisation is not positive.
pub fn emd(x: &ArrangedCloud, y: &ArrangedCloud, method: EmdMethod) -> Result<Emd> {
    x.check_same_dim(y)?;
    let (value, gap) = match method {
        EmdMethod::Exact => match exact::solve(x, y, f64::INFINITY) {
            exact::Outcome::Solved(solution) => {
                (solution.value, Some(relative_gap(solution.value, solution.lower_bound)))
            }
            // No bound is above infinity.
            exact::Outcome::Above(bound) => (bound, None),
        },
        EmdMethod::Approxmatch => (approxmatch::mean(x, y, approxmatch::Cost::Distance), None),
        EmdMethod::Squared => (approxmatch::mean(x, y, approxmatch::Cost::Squared), None),
        EmdMethod::Sinkhorn { regularisation } => {
            if !(regularisation > 0.0 && regularisation.is_finite()) {
                let expected = "a positive share of the mean distance";
                return Err(Error::invalid("regularisation", expected, regularisation));
            }
            let found = sinkhorn::sinkhorn(x, y, regularisation);
            (found.value, Some(relative_gap(found.value, found.lower_bound)))
        }
    };
    Ok(Emd { value, method, gap })
}

/// What [`exact_emd_within`] found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bounded {
    /// The exact distance and its relative gap.
    Exact { value: f64, gap: f64 },
    /// The distance is above the limit: at least this.
    Above(f64),
}

/// The exact distance, or a bound above `limit` if that comes first.
pub(crate) fn exact_emd_within(
    x: &ArrangedCloud,
    y: &ArrangedCloud,
    limit: f64,
) -> Result<Bounded> {
    x.check_same_dim(y)?;
    Ok(Bounded::of(exact::solve(x, y, limit)))
}

/// [`exact_emd_within`] with the highest bound that was looked at on the way, −∞ if none was: within
/// a limit below it the answer is that the distance is above, within any other it is this one.
pub(crate) fn exact_emd_watched(
    x: &ArrangedCloud,
    y: &ArrangedCloud,
    limit: f64,
) -> Result<(Bounded, f64)> {
    x.check_same_dim(y)?;
    let mut highest = Some(f64::NEG_INFINITY);
    let found = Bounded::of(exact::solve_watched(x, y, limit, &mut highest));
    Ok((found, highest.unwrap_or(f64::NEG_INFINITY)))
}

impl Bounded {
    fn of(outcome: exact::Outcome) -> Self {
        match outcome {
            exact::Outcome::Above(bound) => Self::Above(bound),
            exact::Outcome::Solved(exact::Solution { value, lower_bound }) => {
                Self::Exact { value, gap: relative_gap(value, lower_bound) }
            }
        }
    }
}

/// (value − bound)/value. Rounding may put the bound above the value by a few units in the last
/// place, which is no gap.
fn relative_gap(value: f64, lower_bound: f64) -> f64 {
    if value > 0.0 { ((value - lower_bound) / value).max(0.0) } else { 0.0 }
}
