//! A set of points, arranged so that neighbours in space are neighbours in memory.
//!
//! Points lie in blocks of [`LANES`], cut by halving the widest side of their box again and again:
//! the leaves of a k-d tree. Inside a block the coordinates stand axis by axis, so that one vector
//! instruction serves all its points, and every block knows its box, so that a search skips it when
//!
//! ```text
//! distance to the box + smallest price in the block  ≥  what is already found
//! ```
//!
//! The arrangement depends on the set alone, not on the order in which its points were given:
//! every distance between two clouds is the same to the last bit when their points are shuffled.

#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

mod boxes;

use crate::{Error, Result};

pub(super) use self::boxes::{BOXES, BoxEnds, Boxes};

/// Points per block: two vectors of AVX-512, four of AVX2.
pub(super) const LANES: usize = 16;

/// A non-empty set of points with finite coordinates.
///
/// ```
/// use ebp::metric::distance::ArrangedCloud;
///
/// let corners = ArrangedCloud::new(2, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0])?;
/// assert_eq!((corners.len(), corners.dim()), (3, 2));
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArrangedCloud {
    dim: usize,
    num_points: usize,
    /// `[block][axis][lane]`; lanes after the last point repeat it.
    lanes: Vec<f64>,
    /// `[slot][axis]`: the same points one by one, without the repetitions.
    points: Vec<f64>,
    /// The boxes of the blocks, then the boxes around groups of those, until one group is left.
    levels: Vec<Boxes>,
    /// Mean of the points.
    centroid: Vec<f64>,
}

impl ArrangedCloud {
    /// The rows of `points`, `dim` numbers each.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no point, if `points` is not made of rows of `dim`
    /// numbers, or if one of them is NaN or infinite.
    pub fn new(dim: usize, points: &[f64]) -> Result<Self> {
        if dim == 0 || !points.len().is_multiple_of(dim) {
            let expected = format!("rows of {dim} numbers, at least one each");
            return Err(Error::invalid("points", expected, format!("{} numbers", points.len())));
        }
        if points.is_empty() {
            return Err(Error::invalid("points", "at least one point", "none"));
        }
        if let Some(place) = points.iter().position(|x| !x.is_finite()) {
            let (point, axis) = (place / dim, place % dim);
            let field = format!("points, point {point}, coordinate {axis}");
            return Err(Error::invalid(field, "a finite number", points[place]));
        }
        let num_points = points.len() / dim;
        if u32::try_from(num_points).is_err() {
            return Err(Error::invalid("number of points", "below 2^32", num_points));
        }
        let mut rows: Vec<&[f64]> = points.chunks_exact(dim).collect();
        arrange(&mut rows);
        Ok(Self::from_arranged(dim, &rows))
    }

    fn from_arranged(dim: usize, rows: &[&[f64]]) -> Self {
        let mut lanes = Vec::with_capacity(rows.len().next_multiple_of(LANES) * dim);
        let mut boxes = Boxes::absent(dim, rows.len().div_ceil(LANES));
        for (block, members) in rows.chunks(LANES).enumerate() {
            for axis in 0..dim {
                let lane = |lane: usize| members[lane.min(members.len() - 1)][axis];
                lanes.extend((0..LANES).map(lane));
                let column = members.iter().map(|row| row[axis]);
                let low = column.clone().fold(f64::INFINITY, f64::min);
                boxes.set(block, axis, low, column.fold(f64::NEG_INFINITY, f64::max));
            }
        }
        let mut levels = vec![boxes];
        while let Some(above) = levels.last().and_then(Boxes::above) {
            levels.push(above);
        }
        let mut centroid = vec![0.0; dim];
        for row in rows {
            for (sum, x) in centroid.iter_mut().zip(*row) {
                *sum += x;
            }
        }
        for sum in &mut centroid {
            *sum /= rows.len() as f64;
        }
        let points = rows.iter().flat_map(|row| row.iter().copied()).collect();
        Self { dim, num_points: rows.len(), lanes, points, levels, centroid }
    }

    /// How many points.
    pub fn len(&self) -> usize {
        self.num_points
    }

    /// Never: a cloud has at least one point.
    pub fn is_empty(&self) -> bool {
        self.num_points == 0
    }

    /// How many coordinates a point has.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Mean of the points.
    pub fn centroid(&self) -> &[f64] {
        &self.centroid
    }

    /// The points in their arrangement, `[len, dim]`.
    pub fn points(&self) -> &[f64] {
        &self.points
    }

    pub(super) fn num_blocks(&self) -> usize {
        self.num_points.div_ceil(LANES)
    }

    /// Point `slot` of the arrangement.
    pub(super) fn point(&self, slot: usize) -> &[f64] {
        &self.points[slot * self.dim..(slot + 1) * self.dim]
    }

    /// Coordinates `[axis][lane]` of a block.
    #[inline(always)]
    pub(super) fn block(&self, block: usize) -> &[[f64; LANES]] {
        let width = self.dim * LANES;
        self.lanes[block * width..(block + 1) * width].as_chunks().0
    }

    /// The ends of a group of blocks' boxes.
    #[inline(always)]
    pub(super) fn boxes(&self, group: usize) -> BoxEnds<'_> {
        self.levels[0].group(group)
    }

    /// Boxes of blocks first, the one group around everything last.
    #[inline(always)]
    pub(super) fn levels(&self) -> &[Boxes] {
        &self.levels
    }

    /// An error unless both clouds have points of the same dimension.
    pub(super) fn check_same_dim(&self, other: &Self) -> Result<()> {
        if self.dim == other.dim {
            return Ok(());
        }
        Err(Error::invalid(
            "the second cloud",
            format!("points of {} coordinates, as the first has", self.dim),
            format!("{} coordinates", other.dim),
        ))
    }
}

/// Halves the rows across their widest side until a block is left. The first half is always whole
/// blocks, so that only the last block of all may have room to spare.
fn arrange(rows: &mut [&[f64]]) {
    if rows.len() <= LANES {
        rows.sort_unstable_by(|a, b| lexicographic(a, b));
        return;
    }
    let axis = widest_axis(rows);
    let middle = rows.len().div_ceil(LANES).div_ceil(2) * LANES;
    // Equal coordinates are told apart by all others: only equal points are interchangeable.
    rows.select_nth_unstable_by(middle, |a, b| {
        a[axis].total_cmp(&b[axis]).then_with(|| lexicographic(a, b))
    });
    let (left, right) = rows.split_at_mut(middle);
    arrange(left);
    arrange(right);
}

fn widest_axis(rows: &[&[f64]]) -> usize {
    let side = |axis: usize| {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for row in rows {
            low = low.min(row[axis]);
            high = high.max(row[axis]);
        }
        high - low
    };
    let sides: Vec<f64> = (0..rows[0].len()).map(side).collect();
    (0..sides.len()).fold(0, |best, axis| if sides[axis] > sides[best] { axis } else { best })
}

fn lexicographic(a: &[f64], b: &[f64]) -> std::cmp::Ordering {
    let different = a.iter().zip(b).map(|(x, y)| x.total_cmp(y)).find(|order| order.is_ne());
    different.unwrap_or(std::cmp::Ordering::Equal)
}
