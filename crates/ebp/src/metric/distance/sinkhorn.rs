//! The earth mover's distance with an entropy term (Cuturi, 2013), in the log domain.
//!
//! ```text
//! P_ij = exp((f_i + g_j − c_ij)/ρ) / (n m)
//! f_i ← −ρ log mean_j exp((g_j − c_ij)/ρ),    g_j ← −ρ log mean_i exp((f_i − c_ij)/ρ)
//! ```
//!
//! ρ falls to its target by fours, because the updates converge slowly from far away. The plan is
//! then made to fit both sides exactly (Altschuler, Weed and Rigollet, 2017), so that its cost is an
//! upper bound of the exact distance, and −g are prices that bound it from below: the gap between
//! the two is the certificate, and says how much the entropy term costs.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]
#![allow(clippy::needless_range_loop, reason = "lanes run through several arrays at once")]

use crate::point::cpu::vectorise::VectorLoop;

use super::arranged::{ArrangedCloud, LANES};
use super::exact;
use super::exponential::exponential;
use super::search::{Searcher, squared_distances};

/// What ρ is divided by.
const FACTOR: f64 = 4.0;
/// Updates at each ρ before the last.
const NUM_ON_THE_WAY: usize = 5;
/// The updates end when the rows' masses are off by this share on average …
const TOLERANCE: f64 = 1e-6;
/// … or after this many.
const MOST_UPDATES: usize = 100;

/// A plan in numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smoothed {
    /// The mean distance of the plan.
    pub(super) value: f64,
    /// What no plan can undercut.
    pub(super) lower_bound: f64,
}

/// The distance with ρ = `share` times the mean distance of all pairs.
pub(super) fn sinkhorn(x: &ArrangedCloud, y: &ArrangedCloud, share: f64) -> Smoothed {
    let searcher = Searcher::new();
    let mean = searcher.run(MeanDistance { x, y });
    if mean == 0.0 {
        return Smoothed { value: 0.0, lower_bound: 0.0 };
    }
    let target = share * mean;
    let mut regularisation = mean.max(target);
    let (mut f, mut g) = (vec![0.0; x.len()], vec![0.0; y.len()]);
    loop {
        let is_last = regularisation <= target;
        let num_updates = if is_last { MOST_UPDATES } else { NUM_ON_THE_WAY };
        for _ in 0..num_updates {
            let error = searcher.run(Update { x, y, g: &g, f: &mut f, regularisation });
            if is_last && error < TOLERANCE {
                break;
            }
            searcher.run(Update { x: y, y: x, g: &f, f: &mut g, regularisation });
        }
        if is_last {
            break;
        }
        regularisation = (regularisation / FACTOR).max(target);
    }
    let value = round(searcher, x, y, &Potentials { f: &f, g: &g, regularisation });
    let prices: Vec<f64> = g.iter().map(|g| -g).collect();
    Smoothed { value, lower_bound: exact::lower_bound(x, y, &prices) }
}

#[derive(Clone, Copy)]
struct Potentials<'a> {
    f: &'a [f64],
    g: &'a [f64],
    regularisation: f64,
}

/// The cost of the plan after it was made to fit: rows that give and columns that receive too much
/// are scaled down, and what they then lack is spread over all pairs of those that lack it.
fn round(searcher: Searcher, x: &ArrangedCloud, y: &ArrangedCloud, plan: &Potentials<'_>) -> f64 {
    let (row_mass, column_mass) = (1.0 / x.len() as f64, 1.0 / y.len() as f64);
    let fit = |mass: f64| move |&sum: &f64| if sum > mass { mass / sum } else { 1.0 };
    let (row_ones, column_ones) = (vec![1.0; x.len()], vec![1.0; y.len()]);
    let sums =
        |row_scale, column_scale| searcher.run(Sums { x, y, plan: *plan, row_scale, column_scale });
    let row_scale: Vec<f64> =
        sums(&row_ones, &column_ones).rows.iter().map(fit(row_mass)).collect();
    let column_scale: Vec<f64> =
        sums(&row_scale, &column_ones).columns.iter().map(fit(column_mass)).collect();
    let second = sums(&row_scale, &column_scale);
    let row_lack: Vec<f64> = second.rows.iter().map(|&sum| (row_mass - sum).max(0.0)).collect();
    let column_lack: Vec<f64> =
        second.columns.iter().map(|&sum| (column_mass - sum).max(0.0)).collect();
    let lack: f64 = row_lack.iter().sum();
    if lack == 0.0 {
        return second.cost;
    }
    let spread = searcher.run(Spread { x, y, row_lack: &row_lack, column_lack: &column_lack });
    second.cost + spread / lack
}

/// ‖x − y‖ of a block's points.
#[inline(always)]
fn distances(x: &[f64], y: &ArrangedCloud, block: usize) -> [f64; LANES] {
    let mut out = squared_distances(y.dim(), x, y.block(block));
    for value in &mut out {
        *value = value.sqrt();
    }
    out
}

/// The numbers of a block; `pad` after the last point.
#[inline(always)]
fn lanes_of(values: &[f64], block: usize, pad: f64) -> [f64; LANES] {
    let rest = &values[block * LANES..];
    match rest.first_chunk() {
        Some(whole) => *whole,
        None => std::array::from_fn(|lane| rest.get(lane).copied().unwrap_or(pad)),
    }
}

#[inline(always)]
fn total(lanes: &[f64; LANES]) -> f64 {
    lanes.iter().sum()
}

struct MeanDistance<'a> {
    x: &'a ArrangedCloud,
    y: &'a ArrangedCloud,
}

impl VectorLoop for MeanDistance<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut sum = 0.0;
        for index in 0..self.x.len() {
            for block in 0..self.y.num_blocks() {
                let lengths = distances(self.x.point(index), self.y, block);
                let count = (self.y.len() - block * LANES).min(LANES);
                sum += lengths[..count].iter().sum::<f64>();
            }
        }
        sum / (self.x.len() as f64 * self.y.len() as f64)
    }
}

/// f_i ← −ρ log mean_j exp((g_j − c_ij)/ρ); returns how far the rows' masses were off.
struct Update<'a> {
    x: &'a ArrangedCloud,
    y: &'a ArrangedCloud,
    g: &'a [f64],
    f: &'a mut [f64],
    regularisation: f64,
}

impl VectorLoop for Update<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut row = vec![[0.0; LANES]; self.y.num_blocks()];
        let mut error = 0.0;
        for (index, f) in self.f.iter_mut().enumerate() {
            let mut most = [f64::NEG_INFINITY; LANES];
            for (block, row) in row.iter_mut().enumerate() {
                let lengths = distances(self.x.point(index), self.y, block);
                let g = lanes_of(self.g, block, f64::NEG_INFINITY);
                for lane in 0..LANES {
                    row[lane] = (g[lane] - lengths[lane]) / self.regularisation;
                    most[lane] = if row[lane] > most[lane] { row[lane] } else { most[lane] };
                }
            }
            let most = most.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut sums = [0.0; LANES];
            for row in &mut row {
                for lane in 0..LANES {
                    row[lane] -= most;
                }
                let terms = exponential(row);
                for lane in 0..LANES {
                    sums[lane] += terms[lane];
                }
            }
            let mean = total(&sums) / self.y.len() as f64;
            let new = -self.regularisation * (most + mean.ln());
            error += (((*f - new) / self.regularisation).exp() - 1.0).abs();
            *f = new;
        }
        error / self.x.len() as f64
    }
}

/// Sums of the plan whose rows and columns are scaled.
struct Sums<'a> {
    x: &'a ArrangedCloud,
    y: &'a ArrangedCloud,
    plan: Potentials<'a>,
    row_scale: &'a [f64],
    column_scale: &'a [f64],
}

struct PlanSums {
    rows: Vec<f64>,
    columns: Vec<f64>,
    cost: f64,
}

impl VectorLoop for Sums<'_> {
    type Output = PlanSums;

    #[inline(always)]
    fn run(self) -> PlanSums {
        let Potentials { f, g, regularisation } = self.plan;
        let pairs = self.x.len() as f64 * self.y.len() as f64;
        let mut columns = vec![[0.0; LANES]; self.y.num_blocks()];
        let (mut rows, mut cost) = (Vec::with_capacity(self.x.len()), 0.0);
        for (index, f) in f.iter().enumerate() {
            let row_scale = self.row_scale[index] / pairs;
            let (mut mass, mut paid) = ([0.0; LANES], [0.0; LANES]);
            for (block, column) in columns.iter_mut().enumerate() {
                let lengths = distances(self.x.point(index), self.y, block);
                let g = lanes_of(g, block, f64::NEG_INFINITY);
                let scale = lanes_of(self.column_scale, block, 0.0);
                let mut exponents = [0.0; LANES];
                for lane in 0..LANES {
                    exponents[lane] = (f + g[lane] - lengths[lane]) / regularisation;
                }
                let plan = exponential(&exponents);
                for lane in 0..LANES {
                    let amount = plan[lane] * scale[lane] * row_scale;
                    mass[lane] += amount;
                    paid[lane] += amount * lengths[lane];
                    column[lane] += amount;
                }
            }
            rows.push(total(&mass));
            cost += total(&paid);
        }
        let mut columns = columns.into_flattened();
        columns.truncate(self.y.len());
        PlanSums { rows, columns, cost }
    }
}

/// Σ_ij a_i b_j c_ij.
struct Spread<'a> {
    x: &'a ArrangedCloud,
    y: &'a ArrangedCloud,
    row_lack: &'a [f64],
    column_lack: &'a [f64],
}

impl VectorLoop for Spread<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut sum = 0.0;
        for (index, lack) in self.row_lack.iter().enumerate() {
            let mut paid = [0.0; LANES];
            for block in 0..self.y.num_blocks() {
                let lengths = distances(self.x.point(index), self.y, block);
                let columns = lanes_of(self.column_lack, block, 0.0);
                for lane in 0..LANES {
                    paid[lane] += columns[lane] * lengths[lane];
                }
            }
            sum += lack * total(&paid);
        }
        sum
    }
}
