//! Distances of clouds and comparisons of collections.

use ebp::metric::collection::{CollectionOptions, Estimate, NeighbourMetrics, evaluate};
use ebp::metric::distance::{
    ArrangedCloud, ChamferConvention, EmdMethod, NearestNeighbours, emd as earth_mover,
};
use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::arrays::{PointSlice, Points, rows};
use crate::errors::{OrRaise, raise};
use crate::work::{Link, run};

fn convention(py: Python<'_>, name: &str) -> PyResult<ChamferConvention> {
    let known = [ChamferConvention::MeanOfSquares, ChamferConvention::SumOfDistances];
    known.into_iter().find(|known| known.name() == name).ok_or_else(|| {
        let message =
            format!("`convention` must be mean-of-squares or sum-of-distances, found `{name}`");
        raise(py, "InvalidInputError", &message, None)
    })
}

/// A method of the earth mover's distance; `field` is how the caller calls it.
fn method(py: Python<'_>, field: &str, name: &str, regularisation: f64) -> PyResult<EmdMethod> {
    Ok(match name {
        "exact" => EmdMethod::Exact,
        "approxmatch" => EmdMethod::Approxmatch,
        "squared" => EmdMethod::Squared,
        "sinkhorn" => EmdMethod::Sinkhorn { regularisation },
        other => {
            let chamfer = if field == "distance" { "chamfer, " } else { "" };
            let message = format!(
                "`{field}` must be {chamfer}exact, approxmatch, squared or sinkhorn, found `{other}`"
            );
            return Err(raise(py, "InvalidInputError", &message, None));
        }
    })
}

/// Clouds that were read where they lie.
fn arranged(py: Python<'_>, clouds: &[Points<'_>]) -> PyResult<Vec<ArrangedCloud>> {
    let slices = clouds.iter().map(|cloud| cloud.slice(py)).collect::<PyResult<Vec<_>>>()?;
    py.detach(|| slices.into_iter().map(PointSlice::arranged).collect::<ebp::Result<_>>())
        .or_raise(py)
}

/// Two clouds.
fn pair(py: Python<'_>, a: Points<'_>, b: Points<'_>) -> PyResult<[ArrangedCloud; 2]> {
    let (a, b) = (a.slice(py)?, b.slice(py)?);
    py.detach(|| Ok([a.arranged()?, b.arranged()?])).or_raise(py)
}

#[pyfunction]
pub(crate) fn chamfer(
    py: Python<'_>,
    a: Points<'_>,
    b: Points<'_>,
    convention: &str,
    threads: Option<usize>,
) -> PyResult<f64> {
    let convention = self::convention(py, convention)?;
    let [a, b] = pair(py, a, b)?;
    run(py, threads, None, move |_| Ok(NearestNeighbours::between(&a, &b)?.chamfer(convention)))
}

#[pyfunction]
pub(crate) fn emd(
    py: Python<'_>,
    a: Points<'_>,
    b: Points<'_>,
    method: &str,
    regularisation: f64,
    threads: Option<usize>,
) -> PyResult<(f64, Option<f64>)> {
    let method = self::method(py, "method", method, regularisation)?;
    let [a, b] = pair(py, a, b)?;
    let found = run(py, threads, None, move |_| earth_mover(&a, &b, method))?;
    Ok((found.value, found.gap))
}

/// All distances between two collections, `[a, b]`, and the largest gap.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
pub(crate) fn pairs<'py>(
    py: Python<'py>,
    a: Vec<Points<'py>>,
    b: Vec<Points<'py>>,
    distance: &str,
    convention: &str,
    regularisation: f64,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyArray2<f64>>, Option<f64>)> {
    let convention = self::convention(py, convention)?;
    let method = match distance {
        "chamfer" => None,
        other => Some(self::method(py, "distance", other, regularisation)?),
    };
    let (a, b) = (arranged(py, &a)?, arranged(py, &b)?);
    let columns = b.len();
    let work = move |link: &Link| {
        let (num_done, num_pairs) = (AtomicUsize::new(0), a.len() * b.len());
        let one = |place: usize| -> ebp::Result<(f64, Option<f64>)> {
            link.check();
            let (a, b) = (&a[place / columns], &b[place % columns]);
            let found = match method {
                None => (NearestNeighbours::between(a, b)?.chamfer(convention), None),
                Some(method) => {
                    let found = earth_mover(a, b, method)?;
                    (found.value, found.gap)
                }
            };
            link.report("pairs", num_done.fetch_add(1, Ordering::Relaxed) + 1, num_pairs);
            Ok(found)
        };
        (0..num_pairs).into_par_iter().map(one).collect::<ebp::Result<Vec<_>>>()
    };
    let found = run(py, threads, callback.as_ref(), work)?;
    let gap = found.iter().filter_map(|(_, gap)| *gap).reduce(f64::max);
    Ok((rows(py, found.into_iter().map(|(value, _)| value).collect(), columns)?, gap))
}

fn estimate(found: Estimate) -> (f64, f64, f64) {
    (found.value, found.low, found.high)
}

fn neighbours<'py>(py: Python<'py>, found: &NeighbourMetrics) -> PyResult<Bound<'py, PyDict>> {
    let numbers = PyDict::new(py);
    for (name, found) in [
        ("matching_distance", found.matching_distance),
        ("coverage", found.coverage),
        ("one_nn_accuracy", found.one_nn_accuracy),
        ("sample_accuracy", found.sample_accuracy),
        ("reference_accuracy", found.reference_accuracy),
    ] {
        numbers.set_item(name, estimate(found))?;
    }
    Ok(numbers)
}

/// All metrics of two collections.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    samples: Vec<Points<'py>>,
    references: Vec<Points<'py>>,
    emd: Option<&str>,
    regularisation: f64,
    seed: u64,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let emd = emd.map(|name| method(py, "emd", name, regularisation)).transpose()?;
    let (samples, references) = (arranged(py, &samples)?, arranged(py, &references)?);
    let found = run(py, threads, callback.as_ref(), move |link| {
        let options = CollectionOptions { emd, cache: None, seed };
        evaluate(&samples, &references, &options, &mut |progress| {
            link.report(progress.distance, progress.num_done, progress.num_pairs);
        })
    })?;
    let all = PyDict::new(py);
    all.set_item("chamfer", neighbours(py, &found.chamfer)?)?;
    if let Some(emd) = &found.emd {
        all.set_item("emd", neighbours(py, &emd.metrics)?)?;
        all.set_item("largest_gap", emd.largest_gap)?;
    }
    if let Some(divergence) = &found.divergence {
        all.set_item("divergence", estimate(divergence.divergence))?;
        all.set_item("outside", divergence.outside)?;
    }
    Ok(all)
}
