//! Which sphere every sample of a picture sees: a z-buffer in bands of rows, with exact spheres.
//!
//! The ray through the sample at (u, v) passes the depth z of a centre at δ = ((u − u₀) z, (v − v₀) z, 0)
//! from it and meets the sphere where |δ + s d| = r with d = (u, v, 1):
//! s = (−δ·d − √((δ·d)² − |d|² (|δ|² − r²))) / |d|². All terms are of the size of r, so single
//! precision is enough, which it is not for distances from the eye.

use std::ops::Range;

use rayon::prelude::*;

use super::camera::{Camera, Lens, tangents};
use super::scene::Scene;
use super::space::Vector;

/// No sphere.
pub(super) const NOTHING: u32 = u32::MAX;

/// What a sample sees first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hit {
    /// Forward of the eye.
    pub(super) depth: f32,
    pub(super) sphere: u32,
}

/// A sphere as seen: the middle on the image plane, its depth, and the samples it can touch.
#[derive(Clone, Copy, Debug)]
struct Seen {
    middle: [f32; 2],
    depth: f32,
    columns: [u32; 2],
    rows: [u32; 2],
}

/// The spheres of a scene, sorted into bands of rows.
pub(super) struct Bands {
    lens: Lens,
    width: u32,
    height: u32,
    rows_per_band: u32,
    radius: f32,
    seen: Vec<Seen>,
    /// Spheres of each band, in their order.
    members: Vec<u32>,
    starts: Vec<usize>,
}

impl Bands {
    /// `width` and `height` are in samples.
    pub(super) fn new(
        scene: &Scene,
        camera: &Camera,
        lens: Lens,
        [width, height]: [u32; 2],
        rows_per_band: u32,
    ) -> Self {
        let radius = scene.radius;
        let look = |centre: &Vector| {
            let [x, y, z] = camera.seen(*centre);
            let range = |axis: usize, place: f32, end: u32| {
                let Range { start, end: far } = tangents(place, z, radius);
                // A sample counts where its middle does.
                let bound = |place: f32| (lens.sample(axis, place) - 0.5).clamp(-1.0, end as f32);
                [
                    (bound(start).ceil().max(0.0)) as u32,
                    ((bound(far).floor() + 1.0) as u32).min(end),
                ]
            };
            let columns = range(0, x, width);
            Seen { middle: [x / z, y / z], depth: z, columns, rows: range(1, y, height) }
        };
        let seen: Vec<Seen> = scene.centres.par_iter().map(look).collect();
        let num_bands = height.div_ceil(rows_per_band) as usize;
        let bands_of = |seen: &Seen| {
            if seen.rows[0] >= seen.rows[1] || seen.columns[0] >= seen.columns[1] {
                return 0..0;
            }
            (seen.rows[0] / rows_per_band) as usize
                ..((seen.rows[1] - 1) / rows_per_band) as usize + 1
        };
        let mut starts = vec![0; num_bands + 1];
        for sphere in &seen {
            for band in bands_of(sphere) {
                starts[band + 1] += 1;
            }
        }
        for band in 0..num_bands {
            starts[band + 1] += starts[band];
        }
        let mut next = starts.clone();
        let mut members = vec![0; starts[num_bands]];
        for (index, sphere) in seen.iter().enumerate() {
            for band in bands_of(sphere) {
                members[next[band]] = index as u32;
                next[band] += 1;
            }
        }
        Self { lens, width, height, rows_per_band, radius, seen, members, starts }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The first and the end of a band's rows.
    pub(super) fn rows(&self, band: usize) -> Range<u32> {
        let first = band as u32 * self.rows_per_band;
        first..(first + self.rows_per_band).min(self.height)
    }

    /// What every sample of a band sees, row by row.
    pub(super) fn draw(&self, band: usize) -> Vec<Hit> {
        let rows = self.rows(band);
        let nothing = Hit { depth: f32::INFINITY, sphere: NOTHING };
        let mut hits = vec![nothing; rows.len() * self.width as usize];
        let across: Vec<f32> = (0..self.width).map(|column| self.lens.at(0, column)).collect();
        let squared = self.radius * self.radius;
        for &sphere in &self.members[self.starts[band]..self.starts[band + 1]] {
            let seen = &self.seen[sphere as usize];
            let [left, right] = seen.columns.map(|column| column as usize);
            for row in seen.rows[0].max(rows.start)..seen.rows[1].min(rows.end) {
                let v = self.lens.at(1, row);
                let y = (v - seen.middle[1]) * seen.depth;
                let start = (row - rows.start) as usize * self.width as usize;
                let line = &mut hits[start + left..start + right];
                for (hit, &u) in line.iter_mut().zip(&across[left..right]) {
                    let x = (u - seen.middle[0]) * seen.depth;
                    let (along, size) = (x * u + y * v, u * u + v * v + 1.0);
                    let root = along * along - size * (x * x + y * y - squared);
                    if root > 0.0 {
                        let depth = seen.depth - (along + root.sqrt()) / size;
                        if depth < hit.depth {
                            *hit = Hit { depth, sphere };
                        }
                    }
                }
            }
        }
        hits
    }

    /// From the middle of a sphere to where a sample sees it, as right, down and forward.
    pub(super) fn outwards(&self, hit: Hit, column: u32, row: u32) -> Vector {
        let seen = &self.seen[hit.sphere as usize];
        let [u, v] = [self.lens.at(0, column), self.lens.at(1, row)];
        let beyond = hit.depth - seen.depth;
        let x = (u - seen.middle[0]) * seen.depth + beyond * u;
        let y = (v - seen.middle[1]) * seen.depth + beyond * v;
        [x, y, beyond]
    }
}
