//! Bringing data to mean 0 and standard deviation 1, column by column, and back.
//!
//! With means m and standard deviations s of the training data,
//!
//! ```text
//! z = (x − m)/s,    x = m + s z,    log p(x) = log p(z) − Σ_j log s_j
//! ```
//!
//! where the sum runs over the columns of the values: locations are not random and change no
//! density.

use crate::error::check_length;
use crate::{Error, IndexedSet, Result};

/// A standard deviation below this share of the largest magnitude is rounding: the column is
/// constant.
const RELATIVE_ROUNDING: f64 = 1e-13;

/// Means and standard deviations of locations and values over a training collection.
///
/// ```
/// use ebp::IndexedSet;
/// use ebp::data::Standardiser;
///
/// let training = [IndexedSet::new(1, 1, vec![0.0, 10.0], vec![3.0, 7.0])?];
/// let standardiser = Standardiser::fit(&training)?;
/// let scaled = standardiser.apply(&training[0])?;
/// assert_eq!(scaled.values(), [-1.0, 1.0]);
/// assert_eq!(standardiser.invert(&scaled)?, training[0]);
/// // A density in the scaled units, in the units of the data: s = 2.
/// assert_eq!(standardiser.log_density_correction(), -2_f64.ln());
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Standardiser {
    locations: Vec<Column>,
    values: Vec<Column>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    mean: f64,
    std_dev: f64,
}

impl Standardiser {
    /// Of all elements of all `sets`, each counting once. A constant column keeps its scale: its
    /// standard deviation is taken to be 1.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no element, the sets' dimensions differ, or a column's
    /// spread does not fit into an f64.
    pub fn fit<'a>(sets: impl IntoIterator<Item = &'a IndexedSet>) -> Result<Self> {
        let mut moments: Option<[Vec<Moments>; 2]> = None;
        for set in sets {
            let dims = [set.location_dim(), set.value_dim()];
            let columns =
                moments.get_or_insert_with(|| dims.map(|dim| vec![Moments::default(); dim]));
            check_dims(set, columns[0].len(), columns[1].len())?;
            for (columns, numbers) in columns.iter_mut().zip([set.locations(), set.values()]) {
                let dim = columns.len();
                for row in numbers.chunks_exact(dim) {
                    columns.iter_mut().zip(row).for_each(|(column, &x)| column.add(x));
                }
            }
        }
        match moments {
            Some([locations, values]) if locations[0].count > 0.0 => Ok(Self {
                locations: finish("locations", &locations)?,
                values: finish("values", &values)?,
            }),
            _ => Err(Error::invalid("sets", "at least one element", "none")),
        }
    }

    /// That changes nothing, for data whose scale is known.
    pub fn identity(location_dim: usize, value_dim: usize) -> Self {
        let column = Column { mean: 0.0, std_dev: 1.0 };
        Self { locations: vec![column; location_dim], values: vec![column; value_dim] }
    }

    /// d_t.
    pub fn location_dim(&self) -> usize {
        self.locations.len()
    }

    /// d_x.
    pub fn value_dim(&self) -> usize {
        self.values.len()
    }

    /// The set in standardised units.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the dimensions are not those of the training data, or a number
    /// overflows.
    pub fn apply(&self, set: &IndexedSet) -> Result<IndexedSet> {
        check_dims(set, self.location_dim(), self.value_dim())?;
        let locations = forward(&self.locations, set.locations());
        IndexedSet::new(
            self.location_dim(),
            self.value_dim(),
            locations,
            forward(&self.values, set.values()),
        )
    }

    /// The set in the units of the data, up to rounding what [`apply`](Self::apply) was given.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply).
    pub fn invert(&self, set: &IndexedSet) -> Result<IndexedSet> {
        check_dims(set, self.location_dim(), self.value_dim())?;
        let locations = backward(&self.locations, set.locations());
        IndexedSet::new(
            self.location_dim(),
            self.value_dim(),
            locations,
            backward(&self.values, set.values()),
        )
    }

    /// Locations `[m, d_t]` in standardised units, for questions to a model.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] unless the rows are whole.
    pub fn apply_locations(&self, locations: &[f64]) -> Result<Vec<f64>> {
        check_rows("locations", locations, self.location_dim())?;
        Ok(forward(&self.locations, locations))
    }

    /// Values `[m, d_x]` in the units of the data, for answers of a model.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] unless the rows are whole.
    pub fn invert_values(&self, values: &[f64]) -> Result<Vec<f64>> {
        check_rows("values", values, self.value_dim())?;
        Ok(backward(&self.values, values))
    }

    /// −Σ_j log s_j: what to add to the log density of one element in standardised units to get
    /// the one in the units of the data.
    pub fn log_density_correction(&self) -> f64 {
        -self.values.iter().map(|column| column.std_dev.ln()).sum::<f64>()
    }

    /// All numbers with their names, to be stored with a model.
    pub fn to_numbers(&self) -> Vec<(String, f64)> {
        let named = |kind: &'static str, columns: &[Column]| -> Vec<(String, f64)> {
            let pairs = |(j, column): (usize, &Column)| {
                [
                    (format!("{kind}.{j}.mean"), column.mean),
                    (format!("{kind}.{j}.std_dev"), column.std_dev),
                ]
            };
            columns.iter().enumerate().flat_map(pairs).collect()
        };
        [named("location", &self.locations), named("value", &self.values)].concat()
    }

    /// From the numbers of [`to_numbers`](Self::to_numbers), in any order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a number is missing, left over, given twice or out of range.
    pub fn from_numbers(numbers: &[(String, f64)]) -> Result<Self> {
        let find = |name: String| -> Result<Option<f64>> {
            let mut found = numbers.iter().filter(|(other, _)| *other == name);
            match (found.next(), found.next()) {
                (None, _) => Ok(None),
                (Some((_, number)), None) if number.is_finite() => Ok(Some(*number)),
                (Some((_, number)), None) => Err(Error::invalid(name, "finite", number)),
                _ => Err(Error::invalid(name, "given once", "twice")),
            }
        };
        let columns = |kind: &str| -> Result<Vec<Column>> {
            let mut columns = Vec::new();
            while let Some(mean) = find(format!("{kind}.{}.mean", columns.len()))? {
                let name = format!("{kind}.{}.std_dev", columns.len());
                let std_dev = find(name.clone())?.unwrap_or(f64::NAN);
                if std_dev.is_nan() || std_dev <= 0.0 {
                    return Err(Error::invalid(name, "positive", std_dev));
                }
                columns.push(Column { mean, std_dev });
            }
            if columns.is_empty() {
                return Err(Error::invalid(format!("{kind}.0.mean"), "given", "nothing"));
            }
            Ok(columns)
        };
        let found = Self { locations: columns("location")?, values: columns("value")? };
        let expected = 2 * (found.location_dim() + found.value_dim());
        check_length("numbers", numbers.len(), expected, || {
            format!("2 x {} columns", found.location_dim() + found.value_dim())
        })?;
        Ok(found)
    }
}

/// Mean and spread of a column, updated one number at a time (Welford).
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    mean: f64,
    /// Σ (x − mean)²
    spread: f64,
    largest: f64,
}

impl Moments {
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        let before = x - self.mean;
        self.mean += before / self.count;
        self.spread += before * (x - self.mean);
        self.largest = self.largest.max(x.abs());
    }
}

fn finish(field: &str, moments: &[Moments]) -> Result<Vec<Column>> {
    let column = |(j, column): (usize, &Moments)| {
        // s = √(Σ (x − m)² / n)
        let std_dev = (column.spread / column.count).sqrt();
        if !column.mean.is_finite() || !std_dev.is_finite() {
            return Err(Error::invalid(
                format!("column {j} of the {field}"),
                "of a spread that fits into 64-bit numbers",
                format!("numbers up to {:e}", column.largest),
            ));
        }
        let is_constant = std_dev <= RELATIVE_ROUNDING * column.largest;
        Ok(Column { mean: column.mean, std_dev: if is_constant { 1.0 } else { std_dev } })
    };
    moments.iter().enumerate().map(column).collect()
}

/// (x − m)/s
fn forward(columns: &[Column], numbers: &[f64]) -> Vec<f64> {
    let repeated = columns.iter().cycle();
    numbers.iter().zip(repeated).map(|(x, c)| (x - c.mean) / c.std_dev).collect()
}

/// m + s z
fn backward(columns: &[Column], numbers: &[f64]) -> Vec<f64> {
    let repeated = columns.iter().cycle();
    numbers.iter().zip(repeated).map(|(z, c)| c.mean + c.std_dev * z).collect()
}

fn check_dims(set: &IndexedSet, location_dim: usize, value_dim: usize) -> Result<()> {
    let pairs = [
        ("location_dim", set.location_dim(), location_dim),
        ("value_dim", set.value_dim(), value_dim),
    ];
    for (field, found, expected) in pairs {
        if found != expected {
            return Err(Error::invalid(field, format!("{expected} as before"), found));
        }
    }
    Ok(())
}

fn check_rows(field: &'static str, numbers: &[f64], dim: usize) -> Result<()> {
    let rows = numbers.len() / dim;
    check_length(field, numbers.len(), rows * dim, || format!("rows of {dim}"))
}
