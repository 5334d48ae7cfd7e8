//! Distances of many pairs of clouds on a GPU.
//!
//! Nearest neighbours are found in f64 by looking at every pair of points, and are those of the CPU
//! to the last bit. The soft matching sums in another order than the CPU does: it agrees to about
//! 10⁻⁶, as the CPU does with f64. The exact earth mover's distance stays on the CPU, where boxes
//! and bounds leave most of its work undone; a GPU helps it by the bounds that come with Chamfer.

use super::{ArrangedCloud, EmdMethod, NearestNeighbours};
use crate::Result;
use crate::point::CudaBackend;
use crate::point::cuda::SetPairs;

/// What the soft matching is paid by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// [`EmdMethod::Approxmatch`].
    Distances,
    /// [`EmdMethod::Squared`].
    Squares,
}

impl Matching {
    /// The matching of a method, if it is one.
    pub fn of(method: EmdMethod) -> Option<Self> {
        match method {
            EmdMethod::Approxmatch => Some(Self::Distances),
            EmdMethod::Squared => Some(Self::Squares),
            EmdMethod::Exact | EmdMethod::Sinkhorn { .. } => None,
        }
    }
}

/// A GPU that compares clouds.
#[derive(Clone, Copy, Debug)]
pub struct GpuDistances<'a> {
    gpu: &'a CudaBackend,
}

impl<'a> GpuDistances<'a> {
    /// Compares on `gpu`.
    pub fn new(gpu: &'a CudaBackend) -> Self {
        Self { gpu }
    }

    /// Whether it takes clouds of this dimension.
    pub fn takes(self, dim: usize) -> bool {
        SetPairs::fits(dim)
    }

    /// Nearest neighbours between the clouds of every pair (x, y).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if dimensions differ or a pair is of no
    /// cloud, [`Error::Device`](crate::Error::Device) if the GPU fails.
    pub fn nearest(
        self,
        clouds: &[&ArrangedCloud],
        pairs: &[(usize, usize)],
    ) -> Result<Vec<NearestNeighbours>> {
        let found = with(clouds, pairs, |work| self.gpu.nearest_squared(work))?;
        Ok(found
            .into_iter()
            .zip(pairs)
            .map(|(mut from_x, &(x, _))| {
                let from_y = from_x.split_off(clouds[x].len());
                NearestNeighbours::from_squared(from_x, from_y)
            })
            .collect())
    }

    /// The soft matching of every pair (x, y).
    ///
    /// # Errors
    ///
    /// As [`nearest`](Self::nearest).
    pub fn matchings(
        self,
        clouds: &[&ArrangedCloud],
        pairs: &[(usize, usize)],
        matching: Matching,
    ) -> Result<Vec<f64>> {
        let is_squared = matching == Matching::Squares;
        with(clouds, pairs, |work| self.gpu.soft_match(work, is_squared))
    }
}

/// Runs on all points of clouds of one dimension.
fn with<T>(
    clouds: &[&ArrangedCloud],
    pairs: &[(usize, usize)],
    run: impl FnOnce(&SetPairs<'_>) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let Some(first) = clouds.first() else { return Ok(Vec::new()) };
    for cloud in clouds {
        first.check_same_dim(cloud)?;
    }
    let sets: Vec<&[f64]> = clouds.iter().map(|cloud| cloud.points()).collect();
    run(&SetPairs { dim: first.dim(), sets: &sets, pairs })
}
