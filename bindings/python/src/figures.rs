//! Figures as the bytes of PNG files. Drawn by the pools of [`work`](crate::work), as a child of a fork has no
//! other threads.

use ebp::figure::contact_sheet::{Tile, draw};
use ebp::figure::png;
use numpy::{PyReadonlyArray2, PyReadonlyArray4, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::numbers;
use crate::work::run;

/// Clouds side by side.
#[pyfunction]
pub(crate) fn contact_sheet<'py>(
    py: Python<'py>,
    clouds: Vec<PyReadonlyArray2<'py, f32>>,
    columns: u32,
) -> PyResult<Bound<'py, PyBytes>> {
    let copy =
        |cloud: &PyReadonlyArray2<'py, f32>| Ok((numbers(py, cloud)?.to_vec(), cloud.shape()[1]));
    let clouds = clouds.iter().map(copy).collect::<PyResult<Vec<_>>>()?;
    let bytes = run(py, None, None, move |_| {
        let tiles = clouds.iter().map(|(points, dim)| Tile::Cloud { points, dim: *dim });
        png(&draw(&tiles.collect::<Vec<_>>(), columns))
    })?;
    Ok(PyBytes::new(py, &bytes))
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
    let pixels = numbers(py, &pictures)?.to_vec();
    let bytes = run(py, None, None, move |_| {
        let pictures = pixels.chunks_exact(size);
        let tiles = pictures.map(|pixels| Tile::Picture { pixels, width, channels });
        png(&draw(&tiles.collect::<Vec<_>>(), columns))
    })?;
    Ok(PyBytes::new(py, &bytes))
}
