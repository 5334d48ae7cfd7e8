//! Settings by the words of the command line: a preset or a file, and `key=value` on top.

use std::path::Path;

use ebp::config::Layers;
use ebp::model::PRESETS;
use pyo3::prelude::*;

use crate::errors::OrRaise;

/// Everything that decides a model.
#[pyclass(frozen, module = "ebp._core")]
pub(crate) struct Settings(pub(crate) ebp::model::Settings);

#[pymethods]
impl Settings {
    /// All of them as TOML.
    #[getter]
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        self.0.text().or_raise(py)
    }

    /// The kind of data.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed()
    }

    /// Where the data come from.
    #[getter]
    fn source(&self) -> &str {
        self.0.source()
    }

    /// The columns of tables that were chosen: of sets, of locations, of values.
    #[getter]
    fn columns(&self) -> (Option<&str>, &[String], &[String]) {
        match &self.0 {
            ebp::model::Settings::Curves(settings) => {
                let data = &settings.data;
                (data.set_column.as_deref(), &data.location_columns, &data.value_columns)
            }
            _ => (None, &[], &[]),
        }
    }

    /// The process of points, where it is one.
    #[getter]
    fn process(&self) -> Option<&'static str> {
        match &self.0 {
            ebp::model::Settings::Patterns(settings) => Some(settings.process.name()),
            _ => None,
        }
    }

    #[getter]
    fn num_steps(&self) -> u64 {
        self.0.trainer().num_steps
    }
}

/// A preset, or a file ending in `.toml`, with changes on top.
#[pyfunction]
pub(crate) fn resolve(py: Python<'_>, name: &str, changes: Vec<String>) -> PyResult<Settings> {
    let mut layers = Layers { presets: PRESETS, assignments: changes, ..Layers::default() };
    if Path::new(name).extension().is_some_and(|ending| ending == "toml") {
        layers.file = Some(name.into());
    } else {
        layers.preset = Some(name.to_owned());
    }
    Ok(Settings(ebp::model::Settings::resolve(&layers).or_raise(py)?))
}

/// Names of all presets, each with its kind of data.
#[pyfunction]
pub(crate) fn presets(py: Python<'_>) -> PyResult<Vec<(&'static str, &'static str)>> {
    let kind = |(name, _): &(&'static str, &'static str)| {
        let settings = ebp::model::Settings::preset(name, &[] as &[&str]).or_raise(py)?;
        Ok((*name, settings.kind()))
    };
    PRESETS.iter().map(kind).collect()
}
