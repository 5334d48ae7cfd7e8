//! Distances between many pairs of point sets: see `distances.cu`.
//!
//! Every pair of points is looked at, one pair of sets to a block or two. Kernels are compiled for
//! the number of coordinates, once each.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::buffer::Buffer;
use super::device::Device;
use super::launch::{Grid, blocks, kernels};
use crate::{Error, Result};

/// `THREADS` and `OWN` of the source.
const THREADS: u32 = 256;
const OWN: usize = 4;
/// Coordinates of a point that stay in registers.
const MOST_COORDINATES: usize = 16;
/// Pairs of sets whose numbers are on the GPU together.
const AT_ONCE: usize = 1024;

kernels! {
    /// Kernels for one number of coordinates.
    pub(super) struct Compiled from [include_str!("distances.cu")];
    fn nearest(points: &Buffer<f64>, jobs: &Buffer<u64>, out: &Buffer<f64>);
    fn soft_match(
        points: &Buffer, jobs: &Buffer<u64>, wide: &Buffer<f64>, narrow: &Buffer, out: &Buffer<f64>,
        is_squared: i32,
    );
}

/// Kernels by number of coordinates.
pub(super) type Cache = BTreeMap<usize, Arc<Compiled>>;

/// Sets of points in one array, and which of them to compare.
#[derive(Clone, Debug)]
pub struct SetPairs<'a> {
    /// Coordinates of a point.
    pub dim: usize,
    /// The points of each set, `[n, dim]`.
    pub sets: &'a [&'a [f64]],
    /// (x, y) by number.
    pub pairs: &'a [(usize, usize)],
}

impl SetPairs<'_> {
    /// Whether the GPU can do it.
    pub fn fits(dim: usize) -> bool {
        (1..=MOST_COORDINATES).contains(&dim)
    }

    fn check(&self) -> Result<()> {
        if !Self::fits(self.dim) {
            let expected = format!("1 to {MOST_COORDINATES} coordinates on a GPU");
            return Err(Error::invalid("dim", expected, self.dim));
        }
        for (number, set) in self.sets.iter().enumerate() {
            let is_whole = !set.is_empty() && set.len() % self.dim == 0;
            if !is_whole || u32::try_from(set.len()).is_err() {
                let expected = format!("at least one point of {} numbers, below 2^32", self.dim);
                return Err(Error::invalid(format!("sets[{number}]"), expected, set.len()));
            }
        }
        match self.pairs.iter().find(|(x, y)| (*x).max(*y) >= self.sets.len()) {
            None => Ok(()),
            Some(pair) => {
                let expected = format!("of sets below {}", self.sets.len());
                Err(Error::invalid("pairs", expected, format!("{pair:?}")))
            }
        }
    }

    /// Points of a set.
    fn size(&self, set: usize) -> u64 {
        (self.sets[set].len() / self.dim) as u64
    }

    /// Where each set begins, in points.
    fn starts(&self) -> Vec<u64> {
        let mut next = 0;
        let step = |set: usize| {
            let start = next;
            next += self.size(set);
            start
        };
        (0..self.sets.len()).map(step).collect()
    }
}

fn compiled(device: &Device, dim: usize) -> Result<Arc<Compiled>> {
    if let Some(found) = device.distances.borrow().get(&dim) {
        return Ok(Arc::clone(found));
    }
    let found = Arc::new(Compiled::load(&device.context, &[format!("DIM={dim}")])?);
    device.distances.borrow_mut().insert(dim, Arc::clone(&found));
    Ok(found)
}

/// For every pair min_y ‖x − y‖² of each x, then min_x ‖x − y‖² of each y.
pub(super) fn nearest(device: &Device, work: &SetPairs<'_>) -> Result<Vec<Vec<f64>>> {
    work.check()?;
    let kernels = compiled(device, work.dim)?;
    let points: Buffer<f64> = device.upload(&work.sets.concat())?;
    let starts = work.starts();
    let mut found = Vec::with_capacity(work.pairs.len());
    for pairs in work.pairs.chunks(AT_ONCE) {
        let (mut jobs, mut length, mut largest) = (Vec::new(), 0, 0);
        for &(x, y) in pairs {
            for (from, to) in [(x, y), (y, x)] {
                let (n, m) = (work.size(from), work.size(to));
                jobs.extend([starts[from], n, starts[to], m, length]);
                length += n;
                largest = largest.max(n as usize);
            }
        }
        let out = device.buffer::<f64>(length as usize)?;
        let jobs = device.upload(&jobs)?;
        let grid = Grid {
            grid_dim: (2 * pairs.len() as u32, largest.div_ceil(THREADS as usize * OWN) as u32, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        kernels.nearest(device, grid, &points, &jobs, &out)?;
        let mut rest = &device.download(&out)?[..];
        for &(x, y) in pairs {
            let (of_pair, others) = rest.split_at((work.size(x) + work.size(y)) as usize);
            found.push(of_pair.to_vec());
            rest = others;
        }
    }
    Ok(found)
}

/// The mean cost of the annealed soft matching of every pair: of distances, or of their squares.
pub(super) fn soft_match(
    device: &Device,
    work: &SetPairs<'_>,
    is_squared: bool,
) -> Result<Vec<f64>> {
    work.check()?;
    let kernels = compiled(device, work.dim)?;
    let rounded: Vec<f32> = work.sets.concat().iter().map(|&x| x as f32).collect();
    let points = device.upload(&rounded)?;
    let starts = work.starts();
    let mut found = Vec::with_capacity(work.pairs.len());
    for pairs in work.pairs.chunks(AT_ONCE) {
        let (mut jobs, mut wide, mut narrow) = (Vec::new(), 0, 0);
        for &(x, y) in pairs {
            let (n, m) = (work.size(x), work.size(y));
            jobs.extend([starts[x], n, starts[y], m, wide, narrow]);
            wide += n + m;
            narrow += n + 2 * m;
        }
        let wide = device.buffer::<f64>(wide as usize)?;
        let narrow = device.buffer::<f32>(narrow as usize)?;
        let out = device.buffer::<f64>(pairs.len())?;
        let jobs = device.upload(&jobs)?;
        let (grid, is_squared) = (blocks(pairs.len(), THREADS), i32::from(is_squared));
        kernels.soft_match(device, grid, &points, &jobs, &wide, &narrow, &out, is_squared)?;
        found.extend(device.download(&out)?);
    }
    Ok(found)
}
