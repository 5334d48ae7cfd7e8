//! The exact earth mover's distance, with a proof.
//!
//! Every point of X holds the mass 1/n and every point of Y has room for 1/m. Moving all of it at
//! the least mean distance is a linear programme, and its dual bounds it from below for every
//! choice of prices p:
//!
//! ```text
//! min_P Σ_ij P_ij ‖x_i − y_j‖  =  max_p  mean_i min_j (‖x_i − y_j‖ + p_j) − mean_j p_j
//! ```
//!
//! An auction with falling ε ([`auction`]) finds nearly optimal plan and prices, [`polish`] makes
//! both optimal, and at the end the two sides are computed from the plan and the prices alone: their
//! difference is the certificate. Sizes n ≠ m are the same problem with m/g units per x and n/g per y,
//! where g is their greatest common divisor; nothing is copied. Memory is O(n + m): distances are
//! computed where they are needed, and the boxes of the clouds say where they are not.

mod auction;
mod polish;

use super::arranged::ArrangedCloud;
use super::search::{Prices, Searcher, TwoCheapest};
use super::tree::TreeSearch;
use auction::Auction;
use polish::Polish;

/// The first ε, over the mean distance to the nearest neighbour. Clouds that are copies of each
/// other but for noise are then settled in one round.
const FIRST_EPSILON: f64 = 0.3;
/// The first round may find ε too small: after this many bids per row it grows …
const PATIENCE: u64 = 4;
/// What ε is divided by from round to round (4, 7 and 12 were tried: 7 was best overall).
const EPSILON_FACTOR: f64 = 7.0;
/// Polishing begins when ε is below this share of the mean cost …
const POLISH_BELOW: f64 = 1e-2;
/// … with this many searches per row, before the auction gets another round …
const POLISH_PATIENCE: u64 = 20;
/// … and after the first round with this many, enough for copies with noise.
const FIRST_PATIENCE: u64 = 2;
/// Below this share of the mean cost the auction has no more to give, and polishing is not limited.
const LAST_EPSILON: f64 = 1e-7;
/// Polishing stops at inequalities violated by less than this share of the mean cost: a thousand
/// times the rounding of the prices.
const TOLERANCE: f64 = 1e-13;

/// Two clouds and how much each point has or takes, in whole units.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    rows: &'a ArrangedCloud,
    columns: &'a ArrangedCloud,
    /// Units of every row, m/g.
    supply: u64,
    /// Units of every column, n/g.
    demand: u64,
    searcher: Searcher,
}

/// An optimal plan in numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solution {
    /// The mean distance of the plan.
    pub(super) value: f64,
    /// What no plan can undercut.
    pub(super) lower_bound: f64,
}

/// What [`solve`] found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// The distance.
    Solved(Solution),
    /// The distance is larger than the limit: at least this.
    Above(f64),
}

/// Solves the problem, or stops as soon as a bound shows that the value is above `limit`.
pub(super) fn solve(x: &ArrangedCloud, y: &ArrangedCloud, limit: f64) -> Outcome {
    let mut nobody_asks = None;
    solve_watched(x, y, limit, &mut nobody_asks)
}

/// [`solve`], which also keeps the highest bound that it looked at, where one is asked for: with any
/// lower limit it would have stopped, with any other it takes the same way to the same end.
pub(super) fn solve_watched(
    x: &ArrangedCloud,
    y: &ArrangedCloud,
    limit: f64,
    highest: &mut Option<f64>,
) -> Outcome {
    let problem = Problem::new(x, y);
    let looks = limit < f64::INFINITY || highest.is_some();
    if x.len() == 1 || y.len() == 1 {
        return Outcome::Solved(problem.only_plan());
    }
    let extent = extent(x, y);
    if extent == 0.0 {
        return Outcome::Solved(Solution { value: 0.0, lower_bound: 0.0 });
    }
    // Prices of similar pairs were tried as a start: on pairs of chairs they cost a fifth more time.
    let mut auction = Auction::new(&problem, &vec![0.0; y.len()]);
    // ε must not vanish where every x has a copy among the y.
    let mut epsilon = (FIRST_EPSILON * problem.mean_nearest()).max(1e-6 * extent);
    let mut is_first = true;
    loop {
        let patience = if is_first { PATIENCE * x.len() as u64 } else { u64::MAX };
        let mut bound = f64::NEG_INFINITY;
        epsilon = auction.round(epsilon, patience, |prices| {
            if looks {
                bound = problem.dual(prices);
                raise(highest, bound);
            }
            bound > limit
        });
        if bound <= limit && looks {
            bound = problem.dual(auction.prices());
            raise(highest, bound);
        }
        if bound > limit {
            return Outcome::Above(bound);
        }
        let mean = problem.cost(auction.plan());
        if is_first || epsilon < POLISH_BELOW * mean {
            let most_searches = if epsilon < LAST_EPSILON * mean {
                u64::MAX
            } else if is_first {
                FIRST_PATIENCE * x.len() as u64
            } else {
                POLISH_PATIENCE * x.len() as u64
            };
            let mut polish = Polish::new(&problem, auction.prices(), auction.plan());
            // The mean is 0 for equal sets, whose distances have no rounding either.
            if polish.run(TOLERANCE * mean, most_searches) {
                return Outcome::Solved(Solution {
                    value: problem.cost(polish.plan()),
                    lower_bound: problem.dual(polish.prices()),
                });
            }
        }
        epsilon /= EPSILON_FACTOR;
        is_first = false;
    }
}

fn raise(highest: &mut Option<f64>, bound: f64) {
    if let Some(highest) = highest {
        *highest = highest.max(bound);
    }
}

/// The bound of the dual at any prices.
pub(super) fn lower_bound(x: &ArrangedCloud, y: &ArrangedCloud, prices: &[f64]) -> f64 {
    Problem::new(x, y).dual(&Prices::new(y, prices))
}

impl<'a> Problem<'a> {
    fn new(rows: &'a ArrangedCloud, columns: &'a ArrangedCloud) -> Self {
        let (n, m) = (rows.len() as u64, columns.len() as u64);
        let divisor = greatest_common_divisor(n, m);
        let searcher = Searcher::new();
        Self { rows, columns, supply: m / divisor, demand: n / divisor, searcher }
    }
    /// Everything from or to a single point.
    fn only_plan(&self) -> Solution {
        let (single, many) = if self.rows.len() == 1 {
            (self.rows, self.columns)
        } else {
            (self.columns, self.rows)
        };
        let sum: f64 =
            (0..many.len()).map(|slot| distance(single.point(0), many.point(slot))).sum();
        let value = sum / many.len() as f64;
        Solution { value, lower_bound: value }
    }

    /// The mean distance from an x to its nearest y.
    fn mean_nearest(&self) -> f64 {
        let mut squared = vec![0.0; self.rows.len()];
        self.searcher.run(TreeSearch { from: self.rows, to: self.columns, squared: &mut squared });
        squared.iter().map(|squared| squared.sqrt()).sum::<f64>() / squared.len() as f64
    }

    /// Σ P_ij ‖x_i − y_j‖ of (column, row, amount), added row by row whatever order they come in.
    fn cost(&self, plan: impl Iterator<Item = (usize, usize, u64)>) -> f64 {
        let mut sums = vec![0.0; self.rows.len()];
        for (column, row, amount) in plan {
            sums[row] += amount as f64 * distance(self.rows.point(row), self.columns.point(column));
        }
        sums.iter().sum::<f64>() / (self.supply as f64 * self.rows.len() as f64)
    }

    /// mean_i min_j (c_ij + p_j) − mean_j p_j.
    fn dual(&self, prices: &Prices) -> f64 {
        let mut hints = [0, 0];
        let mut sum = 0.0;
        for row in 0..self.rows.len() {
            let x = self.rows.point(row);
            let cheapest = self.searcher.run(TwoCheapest { x, cloud: self.columns, prices, hints });
            hints = cheapest.blocks();
            sum += cheapest.value;
        }
        let prices = prices.as_slice(self.columns.len());
        sum / self.rows.len() as f64 - prices.iter().sum::<f64>() / prices.len() as f64
    }
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
}

/// The diagonal of the box around both clouds.
fn extent(x: &ArrangedCloud, y: &ArrangedCloud) -> f64 {
    let side = |axis: usize| {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for cloud in [x, y] {
            for point in cloud.points().chunks_exact(cloud.dim()) {
                low = low.min(point[axis]);
                high = high.max(point[axis]);
            }
        }
        high - low
    };
    (0..x.dim()).map(|axis| side(axis) * side(axis)).sum::<f64>().sqrt()
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
