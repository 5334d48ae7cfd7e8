//! Distances made of nearest neighbours: Chamfer and Hausdorff.

use crate::Result;

use super::arranged::ArrangedCloud;
use super::search::{Nearest, Searcher};

/// Which of the published Chamfer distances is meant. They differ by factors of ten to a thousand,
/// so that a value without its convention says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChamferConvention {
    /// mean_x min_y ‖x − y‖² + mean_y min_x ‖x − y‖²: what PointFlow computes and the numbers of
    /// the paper's table are.
    MeanOfSquares,
    /// Σ_x min_y ‖x − y‖ + Σ_y min_x ‖x − y‖: what the paper prints.
    SumOfDistances,
}

impl ChamferConvention {
    /// `mean-of-squares` or `sum-of-distances`.
    pub fn name(self) -> &'static str {
        match self {
            Self::MeanOfSquares => "mean-of-squares",
            Self::SumOfDistances => "sum-of-distances",
        }
    }
}

/// What nearest neighbours say about two clouds, from one pass over both.
///
/// ```
/// use ebp::metric::distance::{ArrangedCloud, ChamferConvention, NearestNeighbours};
///
/// let x = ArrangedCloud::new(1, &[0.0, 1.0])?;
/// let y = ArrangedCloud::new(1, &[0.0, 3.0])?;
/// let nearest = NearestNeighbours::between(&x, &y)?;
/// // From x: 0 and 1. From y: 0 and 2.
/// assert_eq!(nearest.chamfer(ChamferConvention::MeanOfSquares), 0.5 * 1.0 + 0.5 * 4.0);
/// assert_eq!(nearest.chamfer(ChamferConvention::SumOfDistances), 1.0 + 2.0);
/// assert_eq!(nearest.hausdorff(), 2.0);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NearestNeighbours {
    /// min_y ‖x − y‖² of every x.
    from_x: Vec<f64>,
    /// min_x ‖x − y‖² of every y.
    from_y: Vec<f64>,
}

impl NearestNeighbours {
    /// Finds the nearest neighbour of every point in the other cloud.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the dimensions differ.
    pub fn between(x: &ArrangedCloud, y: &ArrangedCloud) -> Result<Self> {
        x.check_same_dim(y)?;
        let searcher = Searcher::new();
        let (mut from_x, mut from_y) = (vec![0.0; x.len()], vec![0.0; y.len()]);
        searcher.run(Nearest { from: x, to: y, squared: &mut from_x });
        searcher.run(Nearest { from: y, to: x, squared: &mut from_y });
        Ok(Self { from_x, from_y })
    }

    /// The Chamfer distance. Not a metric: the triangle inequality does not hold.
    pub fn chamfer(&self, convention: ChamferConvention) -> f64 {
        match convention {
            ChamferConvention::MeanOfSquares => mean(&self.from_x) + mean(&self.from_y),
            ChamferConvention::SumOfDistances => {
                sum_of_roots(&self.from_x) + sum_of_roots(&self.from_y)
            }
        }
    }

    /// The Hausdorff distance: the largest distance from any point to its nearest one.
    pub fn hausdorff(&self) -> f64 {
        self.from_x.iter().chain(&self.from_y).copied().fold(0.0, f64::max).sqrt()
    }

    /// max(mean_x min_y ‖x − y‖, mean_y min_x ‖x − y‖): no plan moves the mass by less, so that
    /// this bounds the exact earth mover's distance from below.
    pub fn emd_bound(&self) -> f64 {
        let mean_root = |squared: &[f64]| sum_of_roots(squared) / squared.len() as f64;
        mean_root(&self.from_x).max(mean_root(&self.from_y))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn sum_of_roots(squared: &[f64]) -> f64 {
    squared.iter().map(|squared| squared.sqrt()).sum()
}
