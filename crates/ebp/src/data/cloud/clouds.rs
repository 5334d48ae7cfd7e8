//! Point clouds of different sizes in one array.

use crate::{Error, Result, SetOffsets};

/// One cloud: n points of `dim` numbers each.
#[derive(Clone, Debug, PartialEq)]
pub struct Cloud {
    /// Numbers of a point.
    pub dim: usize,
    /// All points, row-major `[n, dim]`.
    pub points: Vec<f32>,
}

impl Cloud {
    /// n.
    pub fn len(&self) -> usize {
        self.points.len() / self.dim.max(1)
    }

    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}

/// Clouds of one dimension, with their names. No cloud is empty; points may be NaN where a file
/// said so, see [`check_finite`](Self::check_finite).
#[derive(Clone, Debug, PartialEq)]
pub struct Clouds {
    dim: usize,
    points: Vec<f32>,
    offsets: SetOffsets,
    names: Vec<String>,
}

impl Clouds {
    /// From all points `[total, dim]`, the offsets of the clouds and a name for each.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless `dim` is positive and the lengths fit each other.
    pub fn new(
        dim: usize,
        points: Vec<f32>,
        offsets: SetOffsets,
        names: Vec<String>,
    ) -> Result<Self> {
        if dim == 0 {
            return Err(Error::invalid("dim", "at least 1", dim));
        }
        if offsets.num_elements().checked_mul(dim) != Some(points.len()) {
            let expected = format!("{} rows of {dim} numbers", offsets.num_elements());
            return Err(Error::invalid("points", expected, format!("{} numbers", points.len())));
        }
        if names.len() != offsets.num_sets() {
            let expected = format!("one for each of {} clouds", offsets.num_sets());
            return Err(Error::invalid("names", expected, names.len()));
        }
        Ok(Self { dim, points, offsets, names })
    }

    /// One cloud.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if it is empty or its rows are not whole.
    pub fn one(cloud: Cloud, name: String) -> Result<Self> {
        let offsets = SetOffsets::from_sizes([cloud.len()])?;
        Self::new(cloud.dim, cloud.points, offsets, vec![name])
    }

    /// All clouds of several collections, in their order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is none or their dimensions differ.
    pub fn concatenate(parts: impl IntoIterator<Item = Self>) -> Result<Self> {
        let mut parts = parts.into_iter();
        let Some(mut all) = parts.next() else {
            return Err(Error::invalid("clouds", "at least one", "none"));
        };
        let sizes = |part: &Self| (0..part.num_clouds()).map(|i| part.offsets.size(i)).collect();
        let mut all_sizes: Vec<usize> = sizes(&all);
        for part in parts {
            if part.dim != all.dim {
                let expected = format!("of {} numbers a point, as {}", all.dim, all.names[0]);
                let found = format!("{} in {}", part.dim, part.names[0]);
                return Err(Error::invalid("clouds", expected, found));
            }
            all_sizes.extend::<Vec<usize>>(sizes(&part));
            all.points.extend_from_slice(&part.points);
            all.names.extend(part.names);
        }
        all.offsets = SetOffsets::from_sizes(all_sizes)?;
        Ok(all)
    }

    /// Numbers of a point.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many clouds.
    pub fn num_clouds(&self) -> usize {
        self.offsets.num_sets()
    }

    /// All points, row-major `[total, dim]`.
    pub fn points(&self) -> &[f32] {
        &self.points
    }

    /// Where each cloud begins and ends.
    pub fn offsets(&self) -> &SetOffsets {
        &self.offsets
    }

    /// What each cloud is called: its file without the ending, a number where a file holds many.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The points of cloud `index`, row-major `[n, dim]`.
    ///
    /// # Panics
    ///
    /// If there is no such cloud, as slice indexing does.
    pub fn cloud(&self, index: usize) -> &[f32] {
        let rows = self.offsets.range(index);
        &self.points[rows.start * self.dim..rows.end * self.dim]
    }

    /// Puts a path in front of every name; a cloud without a name is called as the path.
    pub(crate) fn prefix_names(&mut self, path: &str) {
        for name in &mut self.names {
            *name = if name.is_empty() { path.to_owned() } else { format!("{path}/{name}") };
        }
    }

    /// That every number is finite.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] with the name of the cloud and the number of the point otherwise.
    pub fn check_finite(&self) -> Result<()> {
        let Some(index) = self.points.iter().position(|number| !number.is_finite()) else {
            return Ok(());
        };
        let row = index / self.dim;
        let cloud = self.offsets.set_of(row);
        let point = row - self.offsets.range(cloud).start;
        let field = format!("point {point} of `{}`", self.names[cloud]);
        Err(Error::invalid(field, "finite", self.points[index]))
    }
}
