//! Arrays of NumPy as the library takes them. The front hands over contiguous arrays of the right type,
//! which are read where they lie.

use ebp::data::Clouds;
use ebp::data::image::Images;
use ebp::data::table::NamedSet;
use ebp::metric::distance::ArrangedCloud;
use ebp::model::Given;
use ebp::pattern::{Events, Pattern, Window};
use ebp::topic::Corpus;
use ebp::{IndexedSet, SetOffsets};
use numpy::{
    Element, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray, PyReadonlyArray1,
    PyReadonlyArray2, PyReadonlyArray4, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use crate::errors::{OrRaise, raise};

/// The numbers of an array in the order of its rows.
pub(crate) fn numbers<'a, T: Element, D: numpy::ndarray::Dimension>(
    py: Python<'_>,
    array: &'a PyReadonlyArray<'_, T, D>,
) -> PyResult<&'a [T]> {
    let help = Some("numpy.ascontiguousarray makes it so");
    array.as_slice().map_err(|_| {
        raise(py, "InvalidInputError", "an array must be contiguous, found one with gaps", help)
    })
}

/// Points of single or double precision.
#[derive(FromPyObject)]
pub(crate) enum Points<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

/// The numbers of [`Points`], which another thread may read.
#[derive(Clone, Copy)]
pub(crate) enum PointSlice<'a> {
    Single(usize, &'a [f32]),
    Double(usize, &'a [f64]),
}

impl Points<'_> {
    pub(crate) fn slice(&self, py: Python<'_>) -> PyResult<PointSlice<'_>> {
        Ok(match self {
            Self::Single(array) => PointSlice::Single(array.shape()[1], numbers(py, array)?),
            Self::Double(array) => PointSlice::Double(array.shape()[1], numbers(py, array)?),
        })
    }
}

impl PointSlice<'_> {
    /// Ready to be measured. Single precision is widened, as files of it are.
    pub(crate) fn arranged(self) -> ebp::Result<ArrangedCloud> {
        match self {
            Self::Single(dim, points) => {
                let wide: Vec<f64> = points.iter().map(|&x| f64::from(x)).collect();
                ArrangedCloud::new(dim, &wide)
            }
            Self::Double(dim, points) => ArrangedCloud::new(dim, points),
        }
    }
}

/// Clouds `[n, d]`, one array each; named by their numbers unless they have names.
pub(crate) fn clouds(
    py: Python<'_>,
    arrays: &[PyReadonlyArray2<'_, f32>],
    names: Option<Vec<String>>,
) -> PyResult<Clouds> {
    let dim = arrays.first().map_or(0, |array| array.shape()[1]);
    if let Some(place) = arrays.iter().position(|array| array.shape()[1] != dim) {
        let found = arrays[place].shape()[1];
        let message =
            format!("all sets must have {dim} columns as set 0, found {found} in set {place}");
        return Err(raise(py, "InvalidInputError", &message, None));
    }
    let offsets =
        SetOffsets::from_sizes(arrays.iter().map(|array| array.shape()[0])).or_raise(py)?;
    let slices = arrays.iter().map(|array| numbers(py, array)).collect::<PyResult<Vec<_>>>()?;
    let names = names.unwrap_or_else(|| (0..arrays.len()).map(|set| set.to_string()).collect());
    py.detach(|| Clouds::new(dim, slices.concat(), offsets, names)).or_raise(py)
}

/// Values at locations, `[n, d_t]` and `[n, d_x]`.
pub(crate) fn indexed(
    py: Python<'_>,
    locations: &PyReadonlyArray2<'_, f64>,
    values: &PyReadonlyArray2<'_, f64>,
) -> PyResult<IndexedSet> {
    let (t, x) = (numbers(py, locations)?.to_vec(), numbers(py, values)?.to_vec());
    IndexedSet::new(locations.shape()[1], values.shape()[1], t, x).or_raise(py)
}

/// Sparse counts: where each document begins, its words and how often each occurs.
pub(crate) type Counts<'py> =
    (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>);

/// Words and counts, document by document.
pub(crate) fn documents(
    py: Python<'_>,
    (starts, words, counts): &Counts<'_>,
) -> PyResult<Vec<Vec<(u32, u32)>>> {
    let (starts, words, counts) = (numbers(py, starts)?, numbers(py, words)?, numbers(py, counts)?);
    let pairs: Vec<(u32, u32)> = words.iter().copied().zip(counts.iter().copied()).collect();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "get checks them")]
    let document = |ends: &[i64]| pairs.get(ends[0] as usize..ends[1] as usize).map(<[_]>::to_vec);
    let documents: Option<Vec<_>> = starts.windows(2).map(document).collect();
    documents.ok_or_else(|| {
        raise(py, "InvalidInputError", "the rows of the counts must lie inside of them", None)
    })
}

/// Documents over a vocabulary of `num_words`.
pub(crate) fn corpus(py: Python<'_>, num_words: usize, counts: &Counts<'_>) -> PyResult<Corpus> {
    Corpus::new(num_words, documents(py, counts)?).or_raise(py)
}

/// What is learned from, by its kind.
pub(crate) fn given(py: Python<'_>, kind: &str, value: &Bound<'_, PyAny>) -> PyResult<Given> {
    Ok(match kind {
        "clouds" => {
            let (arrays, names): (Vec<PyReadonlyArray2<'_, f32>>, Option<Vec<String>>) =
                value.extract()?;
            Given::Clouds(clouds(py, &arrays, names)?)
        }
        "curves" => {
            type Row<'py> = (String, PyReadonlyArray2<'py, f64>, PyReadonlyArray2<'py, f64>);
            let rows: Vec<Row<'_>> = value.extract()?;
            let set = |(name, t, x): &Row<'_>| {
                Ok(NamedSet { name: name.clone(), set: indexed(py, t, x)? })
            };
            Given::Curves(rows.iter().map(set).collect::<PyResult<_>>()?)
        }
        "pictures" => {
            let array: PyReadonlyArray4<'_, u8> = value.extract()?;
            let &[count, height, width, channels] = array.shape() else { unreachable!() };
            let names = (0..count).map(|number| number.to_string()).collect();
            let pixels = numbers(py, &array)?.to_vec();
            Given::Pictures(Images { width, height, channels, pixels, names })
        }
        "documents" => {
            type Rows<'py> = (Counts<'py>, Option<Vec<String>>, Vec<String>);
            let (counts, vocabulary, labels): Rows<'_> = value.extract()?;
            Given::Documents { documents: documents(py, &counts)?, vocabulary, labels }
        }
        "patterns" => {
            let (arrays, sides): (Vec<PyReadonlyArray2<'_, f64>>, [[f64; 2]; 2]) =
                value.extract()?;
            let window = Window::new(sides).or_raise(py)?;
            let pattern = |array: &PyReadonlyArray2<'_, f64>| {
                let rows = numbers(py, array)?.chunks_exact(2);
                let points = rows.map(|row| [row[0], row[1]]).collect();
                Pattern::new(window, points).or_raise(py)
            };
            Given::Patterns(arrays.iter().map(pattern).collect::<PyResult<_>>()?)
        }
        "events" => {
            let (times, end): (PyReadonlyArray1<'_, f64>, f64) = value.extract()?;
            Given::Events(Events::new(numbers(py, &times)?.to_vec(), end).or_raise(py)?)
        }
        other => {
            let message = format!("there are no sets in memory of the kind `{other}`");
            return Err(raise(py, "InvalidInputError", &message, None));
        }
    })
}

/// Rows of `columns` numbers as an array.
pub(crate) fn rows<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    columns: usize,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    let count = values.len() / columns.max(1);
    PyArray1::from_vec(py, values).reshape([count, columns])
}

/// Blocks of rows as an array.
pub(crate) fn blocks<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    shape: [usize; 3],
) -> PyResult<Bound<'_, PyArray3<T>>> {
    PyArray1::from_vec(py, values).reshape(shape)
}
