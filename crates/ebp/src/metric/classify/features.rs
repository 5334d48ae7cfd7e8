//! Rows of numbers with the class of each, in the form the classifier reads them.

use std::sync::OnceLock;

use crate::error::{check_finite, check_length};
use crate::linalg::Matrix;
use crate::{Error, Result};

/// Numbers that a vector instruction takes at once; rows are padded to multiples of it.
pub(super) const LANES: usize = 8;
/// Products of all pairs of rows are kept for at most so many rows (half a gigabyte) …
const MOST_ROWS: usize = 8192;
/// … and at least so many features: below that, systems of features are always the smaller ones.
const FEWEST_FEATURES: usize = 128;

/// One row of features per item, `[n, dim]`.
///
/// A row is stored with a 1 after its last feature, whose weight is the intercept, and with zeros up
/// to a whole number of vectors.
#[derive(Clone, Debug)]
pub struct Features {
    rows: Vec<[f32; LANES]>,
    dim: usize,
    blocks_per_row: usize,
    /// xᵢ·xⱼ of all rows, in the lower triangle, once somebody asked.
    products: OnceLock<Option<Matrix>>,
}

impl Features {
    /// From `values` `[n, dim]`, row-major.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `dim` is 0 or the rows are not whole, [`Error::NonFinite`] if a
    /// feature is NaN or infinite.
    pub fn new(dim: usize, values: &[f32]) -> Result<Self> {
        if dim == 0 || values.is_empty() || !values.len().is_multiple_of(dim) {
            let expected = format!("one or more whole rows of dim {dim} ≥ 1 numbers");
            return Err(Error::invalid("features", expected, format!("{} numbers", values.len())));
        }
        check_finite("features", values, "remove the row or repair the model that made it")?;
        let blocks_per_row = (dim + 1).div_ceil(LANES);
        let mut rows = Vec::with_capacity(values.len() / dim * blocks_per_row);
        for row in values.chunks_exact(dim) {
            let at = |column: usize| row.get(column).copied().unwrap_or(f32::from(column == dim));
            rows.extend((0..blocks_per_row).map(|block| -> [f32; LANES] {
                std::array::from_fn(|lane| at(block * LANES + lane))
            }));
        }
        Ok(Self { rows, dim, blocks_per_row, products: OnceLock::new() })
    }

    /// n.
    #[expect(clippy::len_without_is_empty, reason = "there is always a row")]
    pub fn len(&self) -> usize {
        self.rows.len() / self.blocks_per_row
    }

    /// Features of an item.
    pub fn dim(&self) -> usize {
        self.dim
    }

    pub(super) fn blocks_per_row(&self) -> usize {
        self.blocks_per_row
    }

    /// Whether products of rows are worth their memory.
    pub(super) fn has_products(&self) -> bool {
        self.len() <= MOST_ROWS && self.dim >= FEWEST_FEATURES
    }

    /// xᵢ·xⱼ of all rows, intercepts included, in the lower triangle: n² d operations the first time,
    /// for all machines that are ever fitted. One thread makes them: others may wait here, and would
    /// wait for ever if this one waited for them.
    pub(super) fn products(&self) -> Option<&Matrix> {
        let make = || {
            let width = self.blocks_per_row * LANES;
            let values = self.rows.as_flattened();
            let mut wide = Matrix::zeros(self.len(), width);
            for column in 0..width {
                let of_rows = values.iter().skip(column).step_by(width);
                wide.column_mut(column).iter_mut().zip(of_rows).for_each(|(w, x)| *w = (*x).into());
            }
            wide.products_of_rows()
        };
        self.products.get_or_init(|| self.has_products().then(make)).as_ref()
    }

    #[inline]
    pub(super) fn row(&self, index: usize) -> &[[f32; LANES]] {
        &self.rows[index * self.blocks_per_row..][..self.blocks_per_row]
    }
}

/// Features with the class of every row.
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a> {
    features: &'a Features,
    labels: &'a [usize],
    num_classes: usize,
}

impl<'a> Labelled<'a> {
    /// `labels` `[n]`, each below `num_classes`.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] unless there is one label per row, [`Error::InvalidValue`] if there
    /// are fewer than two classes or a label is not one of them.
    pub fn new(features: &'a Features, labels: &'a [usize], num_classes: usize) -> Result<Self> {
        check_length("labels", labels.len(), features.len(), || {
            format!("rows {}", features.len())
        })?;
        if num_classes < 2 {
            return Err(Error::invalid("num_classes", "at least 2", num_classes));
        }
        if let Some(row) = labels.iter().position(|&label| label >= num_classes) {
            let expected = format!("below num_classes {num_classes}");
            let found = format!("{} in row {row}", labels[row]);
            return Err(Error::invalid("labels", expected, found));
        }
        Ok(Self { features, labels, num_classes })
    }

    /// The rows.
    pub fn features(&self) -> &'a Features {
        self.features
    }

    /// The class of every row.
    pub fn labels(&self) -> &'a [usize] {
        self.labels
    }

    /// How many classes there are.
    pub fn num_classes(&self) -> usize {
        self.num_classes
    }
}
