//! The Jensen–Shannon divergence between two collections of clouds, on the grid of Achlioptas et al.
//!
//! All points of a collection fall into 28³ cells with centres on [−½, ½]³, of which those with
//! norm ≤ ½ are kept; a point counts for the nearest kept cell. With the shares p and q of the two
//! collections and m = (p + q)/2,
//!
//! ```text
//! JSD = ½ Σ p log₂(p/m) + ½ Σ q log₂(q/m)    between 0 and 1
//! ```
//!
//! The grid has a place and a size: clouds outside of it pile up on its surface, and the result
//! says which share of points did.

use rayon::prelude::*;

use crate::rng::Stream;

use super::super::distance::ArrangedCloud;
use super::bootstrap::{Estimate, NUM_RESAMPLES, draw, estimate};

/// Cells along an axis.
const SIDE: usize = 28;
/// The clouds must have this many coordinates.
pub(super) const DIM: usize = 3;

/// The divergence of two collections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridDivergence {
    /// The divergence in bits, its interval over clouds of both collections.
    pub divergence: Estimate,
    /// The share of all points outside of the ball of radius ½.
    pub outside: f64,
}

/// The cells that are kept.
#[derive(Debug)]
struct Grid {
    /// The number of a kept cell by its place in the cube, `None` for the others.
    numbers: Vec<Option<u16>>,
    /// How many are kept.
    num_kept: u16,
    /// Those of them beside a cell that is not kept, with their numbers.
    surface: Vec<([usize; DIM], u16)>,
}

impl Grid {
    fn new() -> Self {
        let mut numbers = vec![None; SIDE * SIDE * SIDE];
        let mut num_kept = 0;
        for (place, number) in numbers.iter_mut().enumerate() {
            let norm = cell_of(place).iter().map(|&i| centre(i) * centre(i)).sum::<f64>().sqrt();
            if norm <= 0.5 {
                *number = Some(num_kept);
                num_kept += 1;
            }
        }
        let is_kept = |cell: [usize; DIM]| {
            cell.iter().all(|&i| i < SIDE) && numbers[place_of(cell)].is_some()
        };
        let is_surface = |cell: [usize; DIM]| {
            (0..DIM).any(|axis| {
                let beside = |step: usize| {
                    let mut beside = cell;
                    beside[axis] = beside[axis].wrapping_add(step);
                    beside
                };
                !is_kept(beside(1)) || !is_kept(beside(usize::MAX))
            })
        };
        let kept = numbers
            .iter()
            .enumerate()
            .filter_map(|(place, number)| Some((cell_of(place), (*number)?)));
        let surface = kept.filter(|(cell, _)| is_surface(*cell)).collect();
        Self { numbers, num_kept, surface }
    }

    /// The nearest kept cell. If the nearest of all cells is kept, it is that one. Otherwise it lies
    /// on the surface: from any other kept cell a step towards the point leads to a nearer one.
    fn cell(&self, point: &[f64]) -> u16 {
        let nearest = place_of(std::array::from_fn(|axis| nearest_place(point[axis])));
        if let Some(number) = self.numbers[nearest] {
            return number;
        }
        let distance = |(cell, _): &([usize; DIM], u16)| -> f64 {
            cell.iter().zip(point).map(|(&i, x)| (centre(i) - x) * (centre(i) - x)).sum()
        };
        let best = self.surface.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        best.map_or(0, |(_, number)| *number)
    }
}

fn cell_of(place: usize) -> [usize; DIM] {
    [place / (SIDE * SIDE), place / SIDE % SIDE, place % SIDE]
}

fn place_of(cell: [usize; DIM]) -> usize {
    (cell[0] * SIDE + cell[1]) * SIDE + cell[2]
}

fn centre(place: usize) -> f64 {
    place as f64 / (SIDE - 1) as f64 - 0.5
}

/// The place of the nearest centre on an axis; the lower one in the middle between two.
fn nearest_place(x: f64) -> usize {
    (0..SIDE).rev().fold(SIDE - 1, |best, place| {
        if (centre(place) - x).abs() <= (centre(best) - x).abs() { place } else { best }
    })
}

/// The divergence of `samples` and `references`; `None` unless points have three coordinates.
pub(super) fn jensen_shannon(
    samples: &[ArrangedCloud],
    references: &[ArrangedCloud],
    stream: Stream,
) -> Option<GridDivergence> {
    if samples.iter().chain(references).any(|cloud| cloud.dim() != DIM) {
        return None;
    }
    let grid = Grid::new();
    let cells = |clouds: &[ArrangedCloud]| -> Vec<Vec<u16>> {
        clouds
            .par_iter()
            .map(|cloud| cloud.points().chunks_exact(DIM).map(|point| grid.cell(point)).collect())
            .collect()
    };
    let (sample_cells, reference_cells) = (cells(samples), cells(references));
    let num_cells = usize::from(grid.num_kept);
    let whole = |cells: &[Vec<u16>]| histogram(num_cells, cells.iter());
    let value = divergence(&whole(&sample_cells), &whole(&reference_cells));
    let resampled: Vec<f64> = (0..NUM_RESAMPLES)
        .into_par_iter()
        .map(|number| {
            let pick = |cells: &[Vec<u16>], side: u64| {
                let chosen = draw(stream.child(side), number, cells.len());
                histogram(num_cells, chosen.into_iter().map(|index| &cells[index]))
            };
            divergence(&pick(&sample_cells, 0), &pick(&reference_cells, 1))
        })
        .collect();
    let points = || samples.iter().chain(references).flat_map(|c| c.points().chunks_exact(DIM));
    let num_outside = points().filter(|p| p.iter().map(|x| x * x).sum::<f64>() > 0.25).count();
    Some(GridDivergence {
        divergence: estimate(value, resampled, (0.0, 1.0)),
        outside: num_outside as f64 / points().count() as f64,
    })
}

/// The share of points in each cell.
fn histogram<'a>(num_cells: usize, clouds: impl Iterator<Item = &'a Vec<u16>>) -> Vec<f64> {
    let mut counts = vec![0_u32; num_cells];
    let mut total = 0_usize;
    for cells in clouds {
        total += cells.len();
        for &cell in cells {
            counts[usize::from(cell)] += 1;
        }
    }
    counts.into_iter().map(|count| f64::from(count) / total as f64).collect()
}

fn divergence(p: &[f64], q: &[f64]) -> f64 {
    let term = |p: f64, m: f64| if p > 0.0 { p * (p / m).log2() } else { 0.0 };
    let sum: f64 =
        p.iter().zip(q).map(|(&p, &q)| term(p, 0.5 * (p + q)) + term(q, 0.5 * (p + q))).sum();
    0.5 * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_kept_cell_is_found_by_trying_all() {
        let grid = Grid::new();
        let kept: Vec<_> = (0..SIDE * SIDE * SIDE)
            .filter_map(|place| Some((cell_of(place), grid.numbers[place]?)))
            .collect();
        assert_eq!(kept.len(), usize::from(grid.num_kept));
        for i in 0..200 {
            let t = f64::from(i);
            let point = [0.6 * (1.3 * t).sin(), 0.6 * (0.7 * t).cos(), 0.55 * (2.1 * t).sin()];
            let distance = |cell: &[usize; 3]| -> f64 {
                cell.iter().zip(&point).map(|(&i, x)| (centre(i) - x).powi(2)).sum()
            };
            let (found, _) = kept[usize::from(grid.cell(&point))];
            let least = kept.iter().map(|(cell, _)| distance(cell)).fold(f64::INFINITY, f64::min);
            assert!(distance(&found) <= least + 1e-15);
        }
    }

    #[test]
    fn divergence_is_one_without_overlap_and_zero_on_equal_histograms() {
        assert!((divergence(&[1.0, 0.0], &[0.0, 1.0]) - 1.0).abs() < 1e-15);
        assert!(divergence(&[0.3, 0.7], &[0.3, 0.7]).abs() < 1e-15);
        // p = (1, 0), q = (½, ½), m = (¾, ¼)
        let expected = 0.5 * (4.0_f64 / 3.0).log2() + 0.5 * (0.5 * (2.0_f64 / 3.0).log2() + 0.5);
        assert!((divergence(&[1.0, 0.0], &[0.5, 0.5]) - expected).abs() < 1e-15);
    }
}
