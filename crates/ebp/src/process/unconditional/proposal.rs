//! Proposals for log Z of a set's law: a mixture of grids, with its exact density.
//!
//! At every scale space is cut into cubes of one width h, and a cube's density is the share of the
//! set's own points in it. Beside the grids stands the uniform law on the domain:
//!
//! ```text
//! r(y) = Σ_h w_h · count_h(cell of y) / (n h³)  +  w_u / (2b)³
//! ```
//!
//! A proposal picks a point of the set, a scale, and a place in that point's cell. Its density is
//! one look-up per scale, where a kernel density would be a sum over all points. Every data point
//! has its own cell at every scale: f cannot grow a spike that no proposal sees. The grids are
//! shifted at random for every set and step, so that no cell's border stays where it is.
//!
//! Each part of the mixture makes a fixed number of the proposals, and picks points in strata;
//! both only lower the variance (the balance heuristic of Veach and Guibas, 1995).

use crate::rng::Stream;

/// The parts of the mixture.
#[derive(Clone, Debug)]
pub(super) struct GridMixture {
    dim: usize,
    half_width: f32,
    grids: Vec<Grid>,
    /// The share of the uniform law.
    uniform_weight: f64,
}

/// Proposals of one set.
#[derive(Clone, Debug, Default)]
pub(super) struct Proposals {
    /// `[K, d]`.
    pub(super) values: Vec<f32>,
    /// log r of each; +∞ outside of the domain, where a proposal must not count.
    pub(super) log_density: Vec<f32>,
    /// Whether it shares a cell of the first scale with a point of the set.
    pub(super) is_near: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Grid {
    width: f32,
    /// Where cell 0 begins, per axis.
    origin: Vec<f32>,
    /// w_h / (n hᵈ): what a count of one adds to the density.
    unit: f64,
    /// How many proposals come from here.
    share: usize,
    counts: CellCounts,
}

impl GridMixture {
    /// Grids of `points` `[n, d]`; `num_proposals` of which `num_uniform` are uniform.
    pub(super) fn new(
        points: &[f32],
        dim: usize,
        half_width: f32,
        widths: &[f32],
        (num_proposals, num_uniform): (usize, usize),
        stream: Stream,
    ) -> Self {
        let n = points.len() / dim;
        let num_local = num_proposals - num_uniform;
        let mut shifts = vec![0.0; widths.len() * dim];
        stream.fill_uniform(0, 0, &mut shifts);
        let grids = widths
            .iter()
            .enumerate()
            .map(|(number, &width)| {
                // Whole numbers that add up: the first few scales get one more.
                let share =
                    num_local / widths.len() + usize::from(number < num_local % widths.len());
                let origin: Vec<f32> = shifts[number * dim..(number + 1) * dim]
                    .iter()
                    .map(|shift| (shift - 1.0) * width - half_width)
                    .collect();
                let mut counts = CellCounts::with_room_for(n);
                for point in points.chunks_exact(dim) {
                    counts.add(cell_key(point, &origin, width));
                }
                let weight = share as f64 / num_proposals as f64;
                let volume = n as f64 * f64::from(width).powi(i32::try_from(dim).unwrap_or(3));
                Grid { width, origin, unit: weight / volume, share, counts }
            })
            .collect();
        let uniform_weight = num_uniform as f64 / num_proposals as f64;
        Self { dim, half_width, grids, uniform_weight }
    }

    /// log r(y), +∞ outside of the domain; and whether a point of the set is near.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn log_density(&self, y: &[f32]) -> (f32, bool) {
        if y.iter().any(|x| x.abs() > self.half_width) {
            return (f32::INFINITY, false);
        }
        let volume = (2.0 * f64::from(self.half_width)).powi(i32::try_from(self.dim).unwrap_or(3));
        let mut density = self.uniform_weight / volume;
        let mut is_near = false;
        for (number, grid) in self.grids.iter().enumerate() {
            let count = grid.counts.get(cell_key(y, &grid.origin, grid.width));
            is_near |= number == 0 && count > 0;
            density += f64::from(count) * grid.unit;
        }
        (density.ln() as f32, is_near)
    }

    /// The proposals, those of each scale and then the uniform ones.
    pub(super) fn draw(&self, points: &[f32], num_uniform: usize, stream: Stream) -> Proposals {
        let dim = self.dim;
        let n = points.len() / dim;
        let num_local: usize = self.grids.iter().map(|grid| grid.share).sum();
        let mut uniforms = vec![0.0; (num_local + num_uniform) * (dim + 1)];
        stream.fill_uniform(0, 0, &mut uniforms);
        let mut values = Vec::with_capacity((num_local + num_uniform) * dim);
        let mut rows = uniforms.chunks_exact(dim + 1);
        for grid in &self.grids {
            for (number, row) in rows.by_ref().take(grid.share).enumerate() {
                // Stratum `number` of `share` of the set's points.
                let place = (number as f64 + f64::from(row[dim])) / grid.share as f64;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a place in [0, 1) times n is a point's number"
                )]
                let index = ((place * n as f64) as usize).min(n - 1);
                let point = &points[index * dim..(index + 1) * dim];
                for ((x, origin), u) in point.iter().zip(&grid.origin).zip(row) {
                    let cell = cell(*x, *origin, grid.width) as f32;
                    values.push(origin + (cell + u) * grid.width);
                }
            }
        }
        for row in rows {
            values.extend(row[..dim].iter().map(|u| (2.0 * u - 1.0) * self.half_width));
        }
        let (log_density, is_near) = values.chunks_exact(dim).map(|y| self.log_density(y)).unzip();
        Proposals { values, log_density, is_near }
    }
}

/// ⌊(x − origin)/width⌋, without a call of the mathematical library.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "cells that matter are few")]
fn cell(x: f32, origin: f32, width: f32) -> i32 {
    let place = (x - origin) / width;
    let towards_zero = place as i32;
    towards_zero - i32::from(towards_zero as f32 > place)
}

/// The cell of a point, as one number: cells far away share theirs with none near the data.
#[expect(clippy::cast_sign_loss, reason = "21 bits hold any cell that matters")]
fn cell_key(point: &[f32], origin: &[f32], width: f32) -> u64 {
    const BITS: u32 = 21;
    const OFFSET: i32 = 1 << 20;
    point.iter().zip(origin).fold(0_u64, |key, (x, origin)| {
        let cell = cell(*x, *origin, width).wrapping_add(OFFSET);
        key.wrapping_shl(BITS) ^ u64::from(cell as u32)
    })
}

/// How many points lie in a cell: a table by open addressing.
#[derive(Clone, Debug)]
struct CellCounts {
    mask: usize,
    /// 64 less the number of the table's bits: slots are the upper bits of a product, where all
    /// axes of a cell meet.
    shift: u32,
    keys: Vec<u64>,
    counts: Vec<u32>,
}

impl CellCounts {
    /// At most half full with `num_points` different cells.
    fn with_room_for(num_points: usize) -> Self {
        let size = (2 * num_points.max(1)).next_power_of_two();
        let shift = 64 - size.trailing_zeros();
        Self { mask: size - 1, shift, keys: vec![0; size], counts: vec![0; size] }
    }

    /// Where the key is, or where it would go.
    fn slot(&self, key: u64) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "as many bits as the table has")]
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize & self.mask;
        while self.counts[slot] > 0 && self.keys[slot] != key {
            slot = (slot + 1) & self.mask;
        }
        slot
    }

    fn add(&mut self, key: u64) {
        let slot = self.slot(key);
        self.keys[slot] = key;
        self.counts[slot] += 1;
    }

    fn get(&self, key: u64) -> u32 {
        self.counts[self.slot(key)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(n: usize) -> Vec<f32> {
        let mut points = vec![0.0; 3 * n];
        Stream::new(4, "points").fill_normal(0, 0, &mut points);
        for x in &mut points {
            *x *= 0.4;
        }
        points
    }

    /// The mean of 1/r over proposals inside is the volume of the domain (up to what the grids
    /// put outside), and the mean of g/r the integral of g.
    #[test]
    fn weights_average_to_integrals() {
        let points = points(200);
        let widths = [0.1, 0.3, 0.8];
        let (count, num_uniform) = (30_000, 6_000);
        let stream = Stream::new(1, "mixture");
        let mixture =
            GridMixture::new(&points, 3, 2.0, &widths, (count, num_uniform), stream.child(0));
        let drawn = mixture.draw(&points, num_uniform, stream.child(1));
        assert_eq!(drawn.log_density.len(), count);
        // ∫ exp(−‖y‖²/(2·0.5²)) = (2π·0.25)^{3/2}, nearly all of it inside [−2, 2]³.
        let weights: Vec<f64> = drawn
            .values
            .chunks_exact(3)
            .zip(&drawn.log_density)
            .map(|(y, log_r)| {
                let square: f32 = y.iter().map(|x| x * x).sum();
                (f64::from(-2.0 * square) - f64::from(*log_r)).exp()
            })
            .collect();
        let n = f64::from(u32::try_from(count).unwrap());
        let mean = weights.iter().sum::<f64>() / n;
        let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / n;
        let exact = (std::f64::consts::TAU * 0.25).powf(1.5) * 0.9998;
        let error = (variance / n).sqrt();
        assert!((mean - exact).abs() < 4.0 * error, "{mean} ± {error}, {exact}");
        assert!(error < 0.01 * exact, "{error}");
    }

    #[test]
    fn every_point_of_the_set_is_covered_at_every_scale() {
        let points = points(50);
        let mixture =
            GridMixture::new(&points, 3, 3.0, &[0.01], (100, 1), Stream::new(1, "mixture"));
        for point in points.chunks_exact(3) {
            // 99 of 100 proposals, 50 points, cells of 10⁻⁶.
            assert!(mixture.log_density(point).0 > (0.99_f32 / 50.0 * 1e6).ln() - 1e-3);
        }
        assert!(mixture.log_density(&[3.1, 0.0, 0.0]).0.is_infinite());
        assert!(mixture.log_density(&[2.9, 2.9, -2.9]).0.is_finite());
    }

    #[test]
    fn cells_below_and_above_the_origin_are_different() {
        let origin = [0.0; 3];
        let key = |x: f32, y: f32, z: f32| cell_key(&[x, y, z], &origin, 1.0);
        let mut keys = Vec::new();
        for x in [-1.5, -0.5, 0.5] {
            for y in [-1.5, -0.5, 0.5] {
                for z in [-1.5, -0.5, 0.5] {
                    keys.push(key(x, y, z));
                }
            }
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 27);
    }
}
