//! Gaussian and Student-t processes: functions of a description, of the numbers that a fit found and of
//! the elements that are known, so that whoever calls keeps all state.

use ebp::kernel::{
    Constant, Kernel, Linear, Matern, Periodic, Product, Rbf, RbfArd, Smoothness, Sum,
};
use ebp::process::{
    ExactProcess, ExactProcessConfig, FitConfig, GaussianProcess, Process, StudentTProcess,
};
use ebp::rng::Stream;
use ebp::{IndexedSet, Result};
use numpy::{PyArray2, PyArray3, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{blocks, indexed, numbers, rows};
use crate::errors::{OrRaise, raise};
use crate::work::run;

/// A process that is not fitted yet.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Description {
    /// Such as `rbf` or `matern52 + linear`.
    kernel: String,
    length_scale: f64,
    signal_variance: f64,
    period: f64,
    noise_variance: f64,
    /// ν of a Student-t process; none for a Gaussian one.
    degrees_of_freedom: Option<f64>,
}

/// One word of a kernel.
fn word(name: &str, of: &Description, dim: usize) -> Result<Option<Box<dyn Kernel>>> {
    let (v, l) = (of.signal_variance, of.length_scale);
    let matern = |smoothness| -> Result<Option<Box<dyn Kernel>>> {
        Ok(Some(Box::new(Matern::new(smoothness, v, l)?)))
    };
    Ok(Some(match name {
        "rbf" => Box::new(Rbf::new(v, l)?),
        "rbf-ard" => Box::new(RbfArd::new(v, &vec![l; dim])?),
        "matern12" => return matern(Smoothness::Half),
        "matern32" => return matern(Smoothness::ThreeHalves),
        "matern52" => return matern(Smoothness::FiveHalves),
        "periodic" => Box::new(Periodic::new(v, l, of.period)?),
        "linear" => Box::new(Linear::new(v)?),
        "constant" => Box::new(Constant::new(v)?),
        _ => return Ok(None),
    }))
}

/// Sums of products of words.
fn kernel(py: Python<'_>, of: &Description, dim: usize) -> PyResult<Box<dyn Kernel>> {
    let one = |name: &str| {
        word(name.trim(), of, dim).or_raise(py)?.ok_or_else(|| {
            let message = format!(
                "`kernel` must be rbf, rbf-ard, matern12, matern32, matern52, periodic, linear or constant, \
                 or sums and products of them, found `{}`",
                of.kernel
            );
            raise(py, "InvalidInputError", &message, Some("such as \"matern52 + linear\""))
        })
    };
    let mut sum: Option<Box<dyn Kernel>> = None;
    for term in of.kernel.split('+') {
        let mut product: Option<Box<dyn Kernel>> = None;
        for factor in term.split('*') {
            let factor = one(factor)?;
            product = Some(match product {
                None => factor,
                Some(before) => Box::new(Product::new(before, factor)),
            });
        }
        sum = match (sum, product) {
            (Some(before), Some(term)) => Some(Box::new(Sum::new(before, term))),
            (before, term) => term.or(before),
        };
    }
    sum.ok_or_else(|| raise(py, "InvalidInputError", "`kernel` must name one, found none", None))
}

/// Either process.
enum Exact {
    Gaussian(GaussianProcess),
    StudentT(StudentTProcess),
}

/// What both can.
macro_rules! of_both {
    ($exact:expr, $process:ident => $answer:expr) => {
        match $exact {
            Exact::Gaussian($process) => $answer,
            Exact::StudentT($process) => $answer,
        }
    };
}

impl Exact {
    fn new(py: Python<'_>, of: &Description, dims: (usize, usize)) -> PyResult<Self> {
        let (location_dim, value_dim) = dims;
        let noise_variance = of.noise_variance;
        let config = ExactProcessConfig { location_dim, value_dim, noise_variance };
        let kernel = kernel(py, of, location_dim)?;
        Ok(match of.degrees_of_freedom {
            None => Self::Gaussian(GaussianProcess::new(kernel, &config).or_raise(py)?),
            Some(degrees) => {
                Self::StudentT(StudentTProcess::new(kernel, &config, degrees).or_raise(py)?)
            }
        })
    }

    fn fitted(
        py: Python<'_>,
        of: &Description,
        dims: (usize, usize),
        found: &[f64],
    ) -> PyResult<Self> {
        let start = Self::new(py, of, dims)?;
        Ok(match start {
            Self::Gaussian(start) => Self::Gaussian(start.with_fitted_numbers(found).or_raise(py)?),
            Self::StudentT(start) => Self::StudentT(start.with_fitted_numbers(found).or_raise(py)?),
        })
    }

    fn process(&self) -> &dyn Process {
        of_both!(self, process => process)
    }
}

/// Hyperparameters by name.
type Named = Vec<(&'static str, f64)>;

/// Fits hyperparameters to one set by its likelihood. Gives the numbers that the other functions take,
/// the hyperparameters by name, log p of the set and why the search ended.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
pub(crate) fn exact_fit(
    py: Python<'_>,
    description: Description,
    t: PyReadonlyArray2<'_, f64>,
    x: PyReadonlyArray2<'_, f64>,
    num_restarts: usize,
    standardise: bool,
    max_evaluations: usize,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<(Vec<f64>, Named, f64, String)> {
    let start = Exact::new(py, &description, (t.shape()[1], x.shape()[1]))?;
    let set = [indexed(py, &t, &x)?];
    run(py, threads, None, move |_| {
        let stream = Stream::new(seed, "fit");
        let config = FitConfig {
            num_restarts,
            standardise,
            max_evaluations: max_evaluations.max(1),
            ..FitConfig::default()
        };
        of_both!(&start, start => {
            if max_evaluations == 0 {
                let log_marginal = start.log_marginal(&set[0])?;
                let numbers = start.fitted_numbers();
                return Ok((numbers, start.hyperparameters(), log_marginal, "not asked for".into()));
            }
            let (fitted, report) = start.fit(&set, &config, stream)?;
            let stop = format!("{:?}", report.stop);
            Ok((fitted.fitted_numbers(), fitted.hyperparameters(), report.log_marginal, stop))
        })
    })
}

/// A fitted process and what it is told.
fn told(
    py: Python<'_>,
    description: &Description,
    found: &[f64],
    t: &PyReadonlyArray2<'_, f64>,
    x: &PyReadonlyArray2<'_, f64>,
) -> PyResult<(Exact, IndexedSet)> {
    let process = Exact::fitted(py, description, (t.shape()[1], x.shape()[1]), found)?;
    Ok((process, indexed(py, t, x)?))
}

/// An array of two axes of numbers.
type Table<'py> = Bound<'py, PyArray2<f64>>;

/// Means and variances of values at `at`, `[m, d_x]` each.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
pub(crate) fn exact_predict<'py>(
    py: Python<'py>,
    description: Description,
    found: Vec<f64>,
    t: PyReadonlyArray2<'py, f64>,
    x: PyReadonlyArray2<'py, f64>,
    at: PyReadonlyArray2<'py, f64>,
    threads: Option<usize>,
) -> PyResult<(Table<'py>, Table<'py>)> {
    let (process, set) = told(py, &description, &found, &t, &x)?;
    let (at, dim) = (numbers(py, &at)?.to_vec(), set.value_dim());
    let prediction = run(
        py,
        threads,
        None,
        move |_| of_both!(&process, process => process.posterior(&set)?.predict(&at)),
    )?;
    Ok((rows(py, prediction.mean, dim)?, rows(py, prediction.variance, dim)?))
}

/// Joint draws of the values at `at`, `[count, m, d_x]`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
pub(crate) fn exact_sample<'py>(
    py: Python<'py>,
    description: Description,
    found: Vec<f64>,
    t: PyReadonlyArray2<'py, f64>,
    x: PyReadonlyArray2<'py, f64>,
    at: PyReadonlyArray2<'py, f64>,
    count: usize,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let (process, set) = told(py, &description, &found, &t, &x)?;
    let (m, dim) = (at.shape()[0], set.value_dim());
    let at = numbers(py, &at)?.to_vec();
    let drawn = run(py, threads, None, move |_| {
        process.process().condition(&set)?.sample(&at, count, Stream::new(seed, "predict"))
    })?;
    blocks(py, drawn, [count, m, dim])
}

/// log p of every value on its own, `[m]`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
pub(crate) fn exact_log_density(
    py: Python<'_>,
    description: Description,
    found: Vec<f64>,
    t: PyReadonlyArray2<'_, f64>,
    x: PyReadonlyArray2<'_, f64>,
    at: PyReadonlyArray2<'_, f64>,
    values: PyReadonlyArray2<'_, f64>,
    threads: Option<usize>,
) -> PyResult<Vec<f64>> {
    let (process, set) = told(py, &description, &found, &t, &x)?;
    let targets = indexed(py, &at, &values)?;
    run(py, threads, None, move |_| {
        let answers = process.process().condition(&set)?.log_density(&targets)?;
        Ok(answers.into_iter().map(|answer| answer.value).collect())
    })
}
