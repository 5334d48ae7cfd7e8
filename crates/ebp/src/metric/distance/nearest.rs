//! Distances made of nearest neighbours: Chamfer and Hausdorff.

use crate::Result;

use super::arranged::ArrangedCloud;
use super::brute_force::BruteForce;
use super::search::Searcher;
use super::tree::TreeSearch;

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

/// How nearest neighbours are found. All ways give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearestSearch {
    /// Every pair once, for both clouds at the same time.
    BruteForce,
    /// Each cloud's points go down the tree of the other's boxes.
    Tree,
}

impl NearestSearch {
    /// The faster one.
    pub fn for_clouds(x: &ArrangedCloud, y: &ArrangedCloud) -> Self {
        // With n ≤ m points brute force costs n m pairs, the tree about m descents: the smaller
        // cloud decides.
        let is_small = x.len().min(y.len()) <= largest_for_brute_force(x.dim());
        if is_small { Self::BruteForce } else { Self::Tree }
    }
}

/// The most points of the smaller cloud for which brute force is the faster search. Boxes rule out
/// less the more dimensions there are. Time of brute force by that of the tree, two clouds of n points
/// uniform in the cube, one core of an AMD EPYC (Zen 4, AVX-512), `cargo run --release --example
/// nearest_search`:
///
/// | n | 8 | 64 | 128 | 256 | 512 | 1,024 | 2,048 | 4,096 | 8,192 | 16,384 | 100,000 |
/// |---|---|---|---|---|---|---|---|---|---|---|---|
/// | 2 dimensions | 0.37 | 0.45 | 0.69 | 0.86 | 1.6 | 3.2 | 4.6 | 5.4 | 12 | 22 | 65 |
/// | 3 dimensions | 0.33 | 0.36 | 0.59 | 0.78 | 1.4 | 2.7 | 2.1 | 3.5 | 9.5 | 12 | 46 |
/// | 4 dimensions | 0.33 | 0.38 | 0.59 | 0.74 | 1.3 | 1.2 | 1.5 | | | | |
/// | 5 dimensions | | | 0.50 | 0.62 | 1.1 | 0.88 | 1.1 | | | | |
/// | 6 dimensions | | | 0.46 | 0.53 | 0.84 | 0.69 | 0.97 | | | | |
/// | 8 dimensions | 0.29 | 0.30 | 0.39 | 0.40 | 0.54 | 0.46 | 0.63 | 1.0 | 1.5 | 2.4 | 6.2 |
///
/// All beside other work on the machine, the least of 4 to 200 rounds up to 8,192 points and of one
/// above; with 4, 5 and 6 dimensions that work spoilt the longer times.
fn largest_for_brute_force(dim: usize) -> usize {
    match dim {
        0..=4 => 256,
        5 => 1_024,
        6 => 2_048,
        _ => 4_096,
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
    /// Finds the nearest neighbour of every point in the other cloud, by the search that is faster
    /// for clouds of these sizes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the dimensions differ.
    pub fn between(x: &ArrangedCloud, y: &ArrangedCloud) -> Result<Self> {
        Self::by(NearestSearch::for_clouds(x, y), x, y)
    }

    /// The same by a search of one's choice: the numbers are equal to the last bit.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the dimensions differ.
    pub fn by(search: NearestSearch, x: &ArrangedCloud, y: &ArrangedCloud) -> Result<Self> {
        x.check_same_dim(y)?;
        let searcher = Searcher::new();
        let (mut from_x, mut from_y) = (vec![0.0; x.len()], vec![0.0; y.len()]);
        match search {
            NearestSearch::BruteForce => {
                let (from_x, from_y) = (&mut from_x[..], &mut from_y[..]);
                searcher.run(BruteForce { x, y, from_x, from_y });
            }
            NearestSearch::Tree => {
                searcher.run(TreeSearch { from: x, to: y, squared: &mut from_x });
                searcher.run(TreeSearch { from: y, to: x, squared: &mut from_y });
            }
        }
        Ok(Self { from_x, from_y })
    }

    /// From the squares of both clouds, found elsewhere.
    pub(super) fn from_squared(from_x: Vec<f64>, from_y: Vec<f64>) -> Self {
        Self { from_x, from_y }
    }

    /// min_y ‖x − y‖² of every point of x, in the order of its arrangement.
    pub fn squared_from_x(&self) -> &[f64] {
        &self.from_x
    }

    /// min_x ‖x − y‖² of every point of y, in the order of its arrangement.
    pub fn squared_from_y(&self) -> &[f64] {
        &self.from_y
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
