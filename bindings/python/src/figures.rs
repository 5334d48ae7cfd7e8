//! Figures as the bytes of PNG files.

use ebp::figure::contact_sheet::{Tile, draw};
use ebp::figure::png;
use numpy::{PyReadonlyArray2, PyReadonlyArray4, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::numbers;
use crate::errors::OrRaise;

fn sheet<'py>(py: Python<'py>, tiles: &[Tile<'_>], columns: u32) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = py.detach(|| png(&draw(tiles, columns))).or_raise(py)?;
    Ok(PyBytes::new(py, &bytes))
}

/// Clouds side by side.
#[pyfunction]
pub(crate) fn contact_sheet<'py>(
    py: Python<'py>,
    clouds: Vec<PyReadonlyArray2<'py, f32>>,
    columns: u32,
) -> PyResult<Bound<'py, PyBytes>> {
    let tile = |cloud| Ok(Tile::Cloud { points: numbers(py, cloud)?, dim: cloud.shape()[1] });
    sheet(py, &clouds.iter().map(tile).collect::<PyResult<Vec<_>>>()?, columns)
}

/// Pictures side by side.
#[pyfunction]
pub(crate) fn picture_sheet<'py>(
    py: Python<'py>,
    pictures: PyReadonlyArray4<'py, u8>,
    columns: u32,
) -> PyResult<Bound<'py, PyBytes>> {
    let (width, channels) = (pictures.shape()[2], pictures.shape()[3]);
    let size = (pictures.shape()[1] * width * channels).max(1);
    let pixels = numbers(py, &pictures)?.chunks_exact(size);
    let tiles: Vec<_> = pixels.map(|pixels| Tile::Picture { pixels, width, channels }).collect();
    sheet(py, &tiles, columns)
}
