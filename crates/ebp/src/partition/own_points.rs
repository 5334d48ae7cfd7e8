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

mod cells;
mod columns;
mod hashed;
mod loops;

use self::cells::{CellCounter, Grid};
use self::columns::Columns;
use self::loops::{AddDensity, MoveInCell, PickPoints};
use crate::point::cpu::vectorise::Vectoriser;
use crate::rng::Stream;

/// The parts of the mixture.
#[derive(Debug)]
pub(crate) struct GridMixture {
    dim: usize,
    half_width: f32,
    parts: Vec<Part>,
    /// The share of the uniform law, and how many proposals come from it.
    uniform_weight: f64,
    num_uniform: usize,
}

/// Memory that is kept from set to set: what the allocator gives back to the system must be paged in
/// again.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    points: Columns,
    /// `[K, d + 1]`, and the same by columns.
    uniforms: Vec<f32>,
    draws: Columns,
    indices: Vec<u32>,
    places: Columns,
    density: Vec<f64>,
    counts: Vec<u32>,
    counter: CellCounter,
}

/// Where the proposals of one set are written.
#[derive(Debug)]
pub(crate) struct Proposals<'a> {
    /// `[K, d]`.
    pub(crate) values: &'a mut [f32],
    /// log r of each; +∞ outside of the domain, where a proposal must not count.
    pub(crate) log_density: &'a mut [f32],
    /// Whether it shares a cell of the first scale with a point of the set.
    pub(crate) is_near: &'a mut [bool],
}

#[derive(Debug)]
struct Part {
    grid: Grid,
    /// w_h / (n hᵈ): what a count of one adds to the density.
    unit: f64,
    /// How many proposals come from here.
    share: usize,
}

impl GridMixture {
    /// Grids of `num_points` points; `num_proposals` of which `num_uniform` are uniform.
    pub(crate) fn new(
        num_points: usize,
        dim: usize,
        half_width: f32,
        widths: &[f32],
        (num_proposals, num_uniform): (usize, usize),
        stream: Stream,
    ) -> Self {
        let num_local = num_proposals - num_uniform;
        let mut shifts = vec![0.0; widths.len() * dim];
        stream.fill_uniform(0, 0, &mut shifts);
        let parts = widths
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
                let weight = share as f64 / num_proposals as f64;
                let volume = num_points as f64 * power(f64::from(width), dim);
                Part { grid: Grid { width, origin }, unit: weight / volume, share }
            })
            .collect();
        let uniform_weight = num_uniform as f64 / num_proposals as f64;
        Self { dim, half_width, parts, uniform_weight, num_uniform }
    }

    /// The proposals around `points` `[n, d]`, those of each scale and then the uniform ones.
    pub(crate) fn draw(
        &self,
        points: &[f32],
        stream: Stream,
        out: &mut Proposals<'_>,
        workspace: &mut Workspace,
    ) {
        workspace.points.read_rows(points, self.dim);
        self.draw_places(stream, workspace);
        workspace.places.write_rows(out.values);
        self.log_density(workspace, out.log_density, out.is_near);
    }

    /// Where the proposals are.
    fn draw_places(&self, stream: Stream, workspace: &mut Workspace) {
        let Workspace { points, uniforms, draws, indices, places, .. } = workspace;
        let dim = self.dim;
        let num_local: usize = self.parts.iter().map(|part| part.share).sum();
        let num_places = num_local + self.num_uniform;
        let vectoriser = Vectoriser::new();
        uniforms.resize(num_places * (dim + 1), 0.0);
        vectoriser.fill_uniform(stream, uniforms);
        draws.read_rows(uniforms, dim + 1);
        places.resize(dim, num_places);
        let mut start = 0;
        for part in &self.parts {
            let range = start..start + part.share;
            let strata = &draws.axis(dim)[range.clone()];
            indices.resize(part.share, 0);
            vectoriser.run(PickPoints { strata, num_points: points.num_rows(), indices });
            for axis in 0..dim {
                let column = points.axis(axis);
                let places = &mut places.axis_mut(axis)[range.clone()];
                for (place, &index) in places.iter_mut().zip(indices.iter()) {
                    *place = column[index as usize];
                }
                let uniforms = &draws.axis(axis)[range.clone()];
                let (origin, width) = (part.grid.origin[axis], part.grid.width);
                vectoriser.run(MoveInCell { uniforms, origin, width, places });
            }
            start = range.end;
        }
        for axis in 0..dim {
            let uniforms = &draws.axis(axis)[start..];
            for (place, u) in places.axis_mut(axis)[start..].iter_mut().zip(uniforms) {
                *place = (2.0 * u - 1.0) * self.half_width;
            }
        }
    }

    /// log r of every place, +∞ outside of the domain; and whether a point of the set is near.
    fn log_density(
        &self,
        workspace: &mut Workspace,
        log_density: &mut [f32],
        is_near: &mut [bool],
    ) {
        let Workspace { points, places, density, counts, counter, .. } = workspace;
        let vectoriser = Vectoriser::new();
        let volume = power(2.0 * f64::from(self.half_width), self.dim);
        density.clear();
        density.resize(places.num_rows(), self.uniform_weight / volume);
        counts.resize(places.num_rows(), 0);
        for (number, Part { grid, unit, .. }) in self.parts.iter().enumerate() {
            counter.count(grid, self.half_width, points, places, counts);
            vectoriser.run(AddDensity { counts, unit: *unit, density });
            if number == 0 {
                for (is_near, &count) in is_near.iter_mut().zip(counts.iter()) {
                    *is_near = count > 0;
                }
            }
        }
        for (log, density) in log_density.iter_mut().zip(density) {
            #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
            let rounded = density.ln() as f32;
            *log = rounded;
        }
        for axis in 0..self.dim {
            let rest = log_density.iter_mut().zip(is_near.iter_mut());
            for ((log, is_near), x) in rest.zip(places.axis(axis)) {
                if x.abs() > self.half_width {
                    (*log, *is_near) = (f32::INFINITY, false);
                }
            }
        }
    }
}

fn power(x: f64, dim: usize) -> f64 {
    x.powi(i32::try_from(dim).unwrap_or(3))
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
        let mixture = GridMixture::new(200, 3, 2.0, &widths, (count, num_uniform), stream.child(0));
        let (mut values, mut log_density) = (vec![0.0; 3 * count], vec![0.0; count]);
        let mut is_near = vec![false; count];
        let mut drawn =
            Proposals { values: &mut values, log_density: &mut log_density, is_near: &mut is_near };
        mixture.draw(&points, stream.child(1), &mut drawn, &mut Workspace::default());
        // ∫ exp(−‖y‖²/(2·0.5²)) = (2π·0.25)^{3/2}, nearly all of it inside [−2, 2]³.
        let weights: Vec<f64> = values
            .chunks_exact(3)
            .zip(&log_density)
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
        let mixture = GridMixture::new(50, 3, 3.0, &[0.01], (100, 1), Stream::new(1, "mixture"));
        let log_density = |places: &[f32]| {
            let mut workspace = Workspace::default();
            workspace.points.read_rows(&points, 3);
            workspace.places.read_rows(places, 3);
            let (mut log_density, mut is_near) = (vec![0.0; 50], vec![false; 50]);
            mixture.log_density(&mut workspace, &mut log_density, &mut is_near);
            log_density
        };
        // 99 of 100 proposals, 50 points, cells of 10⁻⁶.
        let least = (0.99_f32 / 50.0 * 1e6).ln() - 1e-3;
        assert!(log_density(&points).iter().all(|&log| log > least));
        let places = [3.1, 0.0, 0.0, 2.9, 2.9, -2.9];
        assert!(log_density(&places)[0].is_infinite() && log_density(&places)[1].is_finite());
    }
}
