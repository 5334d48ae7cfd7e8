//! A trained model and its questions, in the words of the command line and with its streams of random
//! numbers: the same seed gives the same bytes.

use std::path::PathBuf;
use std::sync::Arc;

use ebp::IndexedSet;
use ebp::data::table::Locations;
use ebp::model::{
    CompleteOptions, Device, Forecast, GivenPicture, PictureSize, PixelDraw, PredictOptions,
    PriorKind, SampleOptions, ScoreOptions,
};
use ebp::process::{
    DenoiseSettings, DrawSettings, PointMethod, PointStart, PredictionRule, ScoreSettings, SetScore,
};
use ebp::rng::Stream;
use ebp::topic::held_out::{completion_perplexity, document_stream};
use numpy::{PyArray1, PyArray2, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;

use crate::arrays::{Counts, blocks, clouds, corpus, indexed, numbers, rows};
use crate::device;
use crate::errors::{OrRaise, raise};
use crate::settings::Settings;
use crate::work::{run, wait_until_saved};

/// Clouds, and what is told of their drawing.
type Sampled<'py> = (Vec<Bound<'py, PyArray2<f32>>>, Bound<'py, PyDict>);

/// A trained model of any kind.
#[pyclass(frozen, module = "ebp._core")]
pub(crate) struct Model {
    model: Arc<ebp::model::Model>,
    device: Device,
    /// The process that opened the device.
    process: u32,
}

/// The model in a folder.
#[pyfunction]
pub(crate) fn load(
    py: Python<'_>,
    folder: PathBuf,
    device: &str,
    precision: &str,
    threads: Option<usize>,
) -> PyResult<Model> {
    wait_until_saved(py, Some(folder.clone()))?;
    let device = device::open(py, device, precision)?;
    let opened = device.clone();
    let model = run(py, threads, None, move |_| ebp::model::Model::load_on(folder, &opened))?;
    Ok(Model::new(model, device))
}

/// One of the values by its name in settings.
fn choice<T: Copy>(py: Python<'_>, field: &str, known: &[(&str, T)], found: &str) -> PyResult<T> {
    if let Some((_, value)) = known.iter().find(|(name, _)| *name == found) {
        return Ok(*value);
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let message = format!("`{field}` must be one of {}, found `{found}`", names.join(", "));
    Err(raise(py, "InvalidInputError", &message, None))
}

fn prior(py: Python<'_>, name: &str) -> PyResult<PriorKind> {
    choice(py, "prior", &PriorKind::ALL.map(|kind| (kind.name(), kind)), name)
}

const STARTS: [(&str, PointStart); 4] = [
    ("grid", PointStart::Grid),
    ("sampler", PointStart::Sampler),
    ("sampler-resampled", PointStart::SamplerResampled),
    ("sampler-rejected", PointStart::SamplerRejected),
];
const METHODS: [(&str, PointMethod); 3] = [
    ("annealed", PointMethod::Annealed),
    ("langevin", PointMethod::Langevin),
    ("mala", PointMethod::Mala),
];
const RULES: [(&str, PredictionRule); 2] =
    [("mixture", PredictionRule::Mixture), ("geometric", PredictionRule::Geometric)];

impl Model {
    pub(crate) fn new(model: ebp::model::Model, device: Device) -> Self {
        Self { model: Arc::new(model), device, process: std::process::id() }
    }

    /// The model, for another thread.
    fn ask(&self, py: Python<'_>) -> PyResult<Arc<ebp::model::Model>> {
        if self.device.gpu().is_some() && self.process != std::process::id() {
            let message =
                "a model on a GPU must be asked by the process that loaded it, found its fork";
            let help = "load it in the new process, or start processes by `spawn`";
            return Err(raise(py, "DeviceError", message, Some(help)));
        }
        Ok(Arc::clone(&self.model))
    }
}

#[pymethods]
impl Model {
    #[getter]
    fn settings(&self) -> Settings {
        Settings(self.model.settings().clone())
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.model.settings().kind()
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.model.name()
    }

    #[getter]
    fn step(&self) -> u64 {
        self.model.step()
    }

    #[getter]
    fn is_finished(&self) -> bool {
        self.model.is_finished()
    }

    #[getter]
    fn is_resumable(&self) -> bool {
        self.model.is_resumable()
    }

    #[getter]
    fn seconds(&self) -> Option<f64> {
        self.model.seconds()
    }

    #[getter]
    fn directory(&self) -> Option<PathBuf> {
        self.model.directory().map(Into::into)
    }

    #[getter]
    fn device(&self) -> &str {
        self.device.name()
    }

    /// Sizes by name: of locations, values, points, codes and pictures, as far as the model has them.
    #[getter]
    fn sizes(&self) -> Vec<(&'static str, usize)> {
        let model = &self.model;
        if let Ok(curves) = model.curves() {
            return vec![
                ("location_dim", curves.location_dim()),
                ("value_dim", curves.value_dim()),
            ];
        }
        if let Ok(clouds) = model.clouds() {
            return vec![("dim", clouds.dim()), ("latent_dim", clouds.latent_dim())];
        }
        if let Ok(sets) = model.set_energies() {
            return vec![("dim", sets.dim())];
        }
        if let Ok(pictures) = model.pictures() {
            let PictureSize { width, height, channels } = pictures.size();
            return vec![("height", height), ("width", width), ("channels", channels)];
        }
        if let Ok(topics) = model.topics() {
            return vec![("num_words", topics.model().num_words())];
        }
        model.latents().map_or_else(|_| Vec::new(), |latents| vec![("dim", latents.dim())])
    }

    /// Numbers that describe a model by themselves: coefficients of patterns, hyperparameters of fits.
    #[getter]
    fn fitted(&self) -> Vec<(String, f64)> {
        if let Ok(patterns) = self.model.patterns() {
            let names = patterns.names().into_iter();
            return names.zip(patterns.coefficients().iter().copied()).collect();
        }
        let fitted = self.model.curves().map_or_else(|_| Vec::new(), |curves| curves.fitted());
        fitted.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Writes the model without what only training needs. Gives the files, their bytes and why there are
    /// no codes.
    fn save(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        threads: Option<usize>,
    ) -> PyResult<(Vec<String>, u64, Option<String>)> {
        let model = self.ask(py)?;
        let saved = run(py, threads, None, move |_| model.save(folder))?;
        Ok((saved.files, saved.bytes, saved.no_codes))
    }

    /// New sets, one array each, and how well points were drawn.
    #[pyo3(signature = (
        count, points, codes, *, prior, start, method, steps, step_size, proposals, seed, threads, callback
    ))]
    #[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        points: Option<usize>,
        codes: Option<PyReadonlyArray2<'py, f32>>,
        prior: &str,
        start: &str,
        method: &str,
        steps: Option<usize>,
        step_size: Option<f32>,
        proposals: Option<usize>,
        seed: u64,
        threads: Option<usize>,
        callback: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Sampled<'py>> {
        let default = DrawSettings::default();
        let draw = DrawSettings {
            start: choice(py, "start", &STARTS, start)?,
            method: choice(py, "method", &METHODS, method)?,
            num_steps: steps.unwrap_or(default.num_steps),
            step_size: step_size.unwrap_or(default.step_size),
            proposals_per_point: proposals.unwrap_or(default.proposals_per_point),
            ..default
        };
        let theta = match &codes {
            Some(codes) => Some(numbers(py, codes)?.to_vec()),
            None => None,
        };
        let count = codes.as_ref().map_or(count, |codes| codes.shape()[0]);
        let options = SampleOptions {
            count,
            num_points: points,
            prior: self::prior(py, prior)?,
            theta,
            draw,
            stream: Stream::new(seed, "sample"),
        };
        let model = self.ask(py)?;
        let drawn = run(py, threads, callback.as_ref(), move |link| {
            model.sample_watched(&options, &mut |done| link.report("clouds", done, count))
        })?;
        let report = PyDict::new(py);
        report.set_item("prior", drawn.prior)?;
        report.set_item("num_proposals", drawn.report.num_proposals)?;
        report.set_item("effective_proposals", drawn.report.effective_proposals)?;
        report.set_item("acceptance", drawn.report.acceptance)?;
        report.set_item("kept", drawn.report.kept)?;
        let sets = drawn.sets.into_iter().map(|set| rows(py, set, drawn.dim));
        Ok((sets.collect::<PyResult<_>>()?, report))
    }

    /// How likely clouds and their points are, one record each.
    #[pyo3(signature = (sets, *, prior, draws, most_draws, proposals, seed, threads, callback))]
    #[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
    fn score<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<PyReadonlyArray2<'py, f32>>,
        prior: &str,
        draws: usize,
        most_draws: usize,
        proposals: usize,
        seed: u64,
        threads: Option<usize>,
        callback: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let settings = ScoreSettings { num_draws: draws, most_draws, num_proposals: proposals };
        let (prior, stream) = (self::prior(py, prior)?, Stream::new(seed, "score"));
        let options = ScoreOptions { prior, settings, stream };
        let source = clouds(py, &sets, None)?.into();
        let (model, count) = (self.ask(py)?, sets.len());
        let scores = run(py, threads, callback.as_ref(), move |link| {
            let mut scores = Vec::new();
            model.clouds()?.score(&source, &options, &mut |set, score| {
                scores.push(score);
                link.report("sets", set + 1, count);
            })?;
            Ok(scores)
        })?;
        scores.into_iter().map(|score| score_record(py, score)).collect()
    }

    /// What the encoder alone says of clouds: log p(μ) under the law of θ, the share of training sets
    /// for which it is as small, if known, and the KL from N(0, I).
    #[pyo3(signature = (sets, *, prior, threads))]
    fn score_codes<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<PyReadonlyArray2<'py, f32>>,
        prior: &str,
        threads: Option<usize>,
    ) -> PyResult<Vec<(f64, Option<f64>, f64)>> {
        let (prior, model) = (self::prior(py, prior)?, self.ask(py)?);
        let source = clouds(py, &sets, None)?.into();
        let scores = run(py, threads, None, move |_| model.clouds()?.score_codes(&source, prior))?;
        Ok(scores.into_iter().map(|score| (score.log_law, score.rank, score.kl)).collect())
    }

    /// μ, log σ and the pooled features of clouds, `[sets, …]`.
    #[pyo3(signature = (sets, *, threads, callback))]
    #[allow(clippy::type_complexity, reason = "three arrays")]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<PyReadonlyArray2<'py, f32>>,
        threads: Option<usize>,
        callback: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<f32>>)>
    {
        /// As `ebp encode`, so that sums are added alike.
        const AT_ONCE: usize = 256;
        let source: ebp::data::CloudSource = clouds(py, &sets, None)?.into();
        let (model, count) = (self.ask(py)?, sets.len());
        let [mean, log_std_dev, pooled] = run(py, threads, callback.as_ref(), move |link| {
            let mut all = [Vec::new(), Vec::new(), Vec::new()];
            for start in (0..count).step_by(AT_ONCE) {
                let members: Vec<usize> = (start..(start + AT_ONCE).min(count)).collect();
                let codes = model.encode(&source.select(&members)?)?;
                all[0].extend(codes.mean);
                all[1].extend(codes.log_std_dev);
                all[2].extend(codes.pooled);
                link.report("clouds", start + members.len(), count);
            }
            Ok(all)
        })?;
        let (k, width) = (mean.len() / count, pooled.len() / count);
        Ok((rows(py, mean, k)?, rows(py, log_std_dev, k)?, rows(py, pooled, width)?))
    }

    /// Noisy clouds, cleaned.
    #[pyo3(signature = (sets, *, noise, steps, step_size, threads, callback))]
    #[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
    fn denoise<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<PyReadonlyArray2<'py, f32>>,
        noise: Option<f32>,
        steps: Option<usize>,
        step_size: Option<f32>,
        threads: Option<usize>,
        callback: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyArray2<f32>>>> {
        let default = DenoiseSettings::default();
        let settings = DenoiseSettings {
            num_steps: steps.unwrap_or(default.num_steps),
            step_size: step_size.unwrap_or(default.step_size),
            noise,
            ..default
        };
        let source = clouds(py, &sets, None)?;
        let dim = source.dim();
        let model = self.ask(py)?;
        let cleaned = run(py, threads, callback.as_ref(), move |link| {
            let expected = model.clouds()?.dim();
            if dim != expected {
                let field = "columns of a cloud".to_owned();
                let (expected, found) = (format!("{expected}, as the model's"), dim.to_string());
                return Err(ebp::Error::InvalidValue { field, expected, found });
            }
            source.check_finite()?;
            let count = source.num_clouds();
            let clean = |set: usize| {
                let clean = model.denoise(source.cloud(set), &settings)?;
                link.report("clouds", set + 1, count);
                Ok(clean)
            };
            (0..count).map(clean).collect::<ebp::Result<Vec<_>>>()
        })?;
        cleaned.into_iter().map(|cloud| rows(py, cloud, dim)).collect()
    }

    /// What is said about the locations `at` given each context; with `values` also about those.
    #[pyo3(signature = (contexts, at, values, *, grid, samples, rule, seed, threads, callback))]
    #[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        contexts: Vec<(String, PyReadonlyArray2<'py, f64>, PyReadonlyArray2<'py, f64>)>,
        at: PyReadonlyArray2<'py, f64>,
        values: Option<PyReadonlyArray2<'py, f64>>,
        grid: usize,
        samples: usize,
        rule: &str,
        seed: u64,
        threads: Option<usize>,
        callback: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rule = choice(py, "rule", &RULES, rule)?;
        let targets = values.as_ref().map(|values| indexed(py, &at, values)).transpose()?;
        let sets = contexts
            .iter()
            .map(|(name, t, x)| Ok((name.clone(), indexed(py, t, x)?)))
            .collect::<PyResult<Vec<(String, IndexedSet)>>>()?;
        let location_dim = at.shape()[1];
        let names = (1..=location_dim).map(|axis| format!("t{axis}")).collect();
        let locations = numbers(py, &at)?.to_vec();
        let at = Locations { names, location_dim, locations, targets };
        let model = self.ask(py)?;
        let forecasts = run(py, threads, callback.as_ref(), move |link| {
            let curves = model.curves()?;
            let one = |(number, (name, context)): (usize, &(String, IndexedSet))| {
                let options = PredictOptions {
                    num_values: grid,
                    num_samples: samples,
                    rule,
                    stream: Stream::new(seed, "predict").child(number as u64),
                };
                let forecast = curves.predict(name, context, &at, &options)?;
                link.report("sets", number + 1, sets.len());
                Ok(forecast)
            };
            sets.iter().enumerate().map(one).collect::<ebp::Result<Vec<_>>>()
        })?;
        forecasts.iter().map(|forecast| forecast_record(py, forecast)).collect()
    }

    /// Pictures that `picture` `[height, width, channels]` could be where `known` says no.
    #[pyo3(signature = (picture, known, *, count, grain, rounds, langevin, tile, seed, threads, callback))]
    #[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
    fn complete<'py>(
        &self,
        py: Python<'py>,
        picture: PyReadonlyArray3<'py, u8>,
        known: PyReadonlyArray2<'py, bool>,
        count: usize,
        grain: bool,
        rounds: usize,
        langevin: Option<usize>,
        tile: Option<usize>,
        seed: u64,
        threads: Option<usize>,
        callback: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let &[height, width, channels] = picture.shape() else { unreachable!() };
        let (levels, mask) = (numbers(py, &picture)?.to_vec(), numbers(py, &known)?.to_vec());
        let given = GivenPicture { width, channels, levels, mask, notes: Vec::new() };
        let draw = match (langevin, grain, rounds) {
            (Some(steps), ..) => PixelDraw::Langevin(steps),
            (None, has_grain, rounds) if rounds > 1 => PixelDraw::Rounds { rounds, has_grain },
            (None, true, _) => PixelDraw::Grain,
            (None, false, _) => PixelDraw::Mean,
        };
        let stream = Stream::new(seed, "complete");
        let options = CompleteOptions { count, draw, stream, tile };
        let model = self.ask(py)?;
        let found = run(py, threads, callback.as_ref(), move |link| {
            let watch = &mut |done, total| link.report("pixels", done, total);
            model.pictures()?.complete_watched(&given, &options, watch)
        })?;
        let answer = PyDict::new(py);
        answer
            .set_item("pictures", rows(py, found.pictures.concat(), height * width * channels)?)?;
        answer.set_item("variances", PyArray1::from_vec(py, found.variances))?;
        answer.set_item("energies", PyArray1::from_vec(py, found.energies))?;
        Ok(answer)
    }

    /// How typical each word is of each topic, `[K, V]`.
    fn topics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let model = self.ask(py)?;
        let topics = model.topics().or_raise(py)?.model().topics();
        let width = topics.first().map_or(0, Vec::len);
        rows(py, topics.concat(), width)
    }

    /// How much of each topic is in each document, `[documents, K]`.
    fn shares<'py>(
        &self,
        py: Python<'py>,
        counts: Counts<'py>,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let model = self.ask(py)?;
        let corpus = corpus(py, model.topics().or_raise(py)?.model().num_words(), &counts)?;
        let shares = run(py, threads, None, move |_| {
            let model = model.topics()?.model();
            let one =
                |index: usize| model.shares(corpus.document(index), document_stream(seed, index));
            (0..corpus.len()).into_par_iter().map(one).collect::<ebp::Result<Vec<_>>>()
        })?;
        let width = shares.first().map_or(0, Vec::len);
        rows(py, shares.concat(), width)
    }

    /// A lower bound of log p of each document in nats, or an estimate of one.
    fn document_bounds(
        &self,
        py: Python<'_>,
        counts: Counts<'_>,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Vec<f64>> {
        let model = self.ask(py)?;
        let corpus = corpus(py, model.topics().or_raise(py)?.model().num_words(), &counts)?;
        run(py, threads, None, move |_| {
            let model = model.topics()?.model();
            let one = |index: usize| {
                let stream = document_stream(seed, index).child(2);
                Ok(model.bound(corpus.document(index), stream)?.value)
            };
            (0..corpus.len()).into_par_iter().map(one).collect::<ebp::Result<Vec<_>>>()
        })
    }

    /// Perplexity of the hidden halves of documents, and its standard error.
    fn perplexity(
        &self,
        py: Python<'_>,
        counts: Counts<'_>,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<(f64, f64)> {
        let model = self.ask(py)?;
        let corpus = corpus(py, model.topics().or_raise(py)?.model().num_words(), &counts)?;
        let found = run(py, threads, None, move |_| {
            completion_perplexity(model.topics()?.model(), &corpus, seed)
        })?;
        Ok((found.value, found.std_error))
    }

    /// New patterns `[n, 2]`, or series of events `[n, 1]`.
    fn patterns<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyArray2<f64>>>> {
        let model = self.ask(py)?;
        let is_time = self.model.name() == "hawkes";
        let drawn = run(py, threads, None, move |_| {
            let (patterns, stream) = (model.patterns()?, Stream::new(seed, "sample"));
            if is_time {
                let drawn = patterns.sample_events(count, stream)?;
                return Ok(drawn.iter().map(|events| events.times().to_vec()).collect());
            }
            let drawn = patterns.sample(count, stream)?;
            Ok(drawn.iter().map(|pattern| pattern.points().concat()).collect::<Vec<_>>())
        })?;
        drawn.into_iter().map(|set| rows(py, set, if is_time { 1 } else { 2 })).collect()
    }
}

fn score_record<'py>(py: Python<'py>, score: SetScore) -> PyResult<Bound<'py, PyDict>> {
    let record = PyDict::new(py);
    record.set_item("log_likelihood", score.log_likelihood.value)?;
    record.set_item("std_error", score.log_likelihood.std_error)?;
    record.set_item("log_likelihood_inside", score.inside.value)?;
    record.set_item("outside", score.outside)?;
    record.set_item("holds", score.holds)?;
    record.set_item("is_possible", score.is_possible)?;
    record.set_item("neighbours", score.neighbours.map(|allowed| allowed.value))?;
    record.set_item("pareto_k", score.pareto_k)?;
    record.set_item("draws", score.num_draws)?;
    record.set_item("effective_draws", score.effective_draws)?;
    record.set_item("evaluations", score.num_evaluations)?;
    record.set_item("log_law", score.log_law)?;
    record.set_item("rank", score.rank)?;
    record.set_item("kl", score.kl)?;
    record.set_item("log_partition", score.log_partition.value)?;
    record.set_item("log_partition_error", score.log_partition.std_error)?;
    let sides = score.partition_bounds.map(|bounds| [bounds.lower, bounds.upper]);
    let sides = sides.map(|sides| sides.map(|side| (side.value, side.std_error)));
    record.set_item("log_partition_bounds", sides)?;
    record.set_item("energies", PyArray1::from_vec(py, score.energies))?;
    record.set_item("log_densities", PyArray1::from_vec(py, score.log_densities))?;
    Ok(record)
}

fn forecast_record<'py>(py: Python<'py>, forecast: &Forecast) -> PyResult<Bound<'py, PyDict>> {
    let record = PyDict::new(py);
    let table = |number: fn(&ebp::model::ForecastLocation) -> &Vec<f64>| {
        let width = forecast.locations.first().map_or(0, |location| number(location).len());
        rows(py, forecast.locations.iter().flat_map(number).copied().collect(), width)
    };
    record.set_item("set", &forecast.set)?;
    record.set_item("values", PyArray1::from_slice(py, &forecast.values))?;
    record.set_item("locations", table(|location| &location.place)?)?;
    record.set_item("mean", table(|location| &location.mean)?)?;
    record.set_item("quantiles", table(|location| &location.quantiles)?)?;
    record.set_item("density", table(|location| &location.density)?)?;
    let modes: Vec<Vec<(f64, f64, f64)>> = forecast
        .locations
        .iter()
        .map(|location| location.modes.iter().map(|m| (m.value, m.density, m.mass)).collect())
        .collect();
    record.set_item("modes", modes)?;
    let m = forecast.locations.len();
    let dim = forecast.locations.first().map_or(1, |location| location.mean.len());
    let samples: Vec<f64> = forecast.samples.iter().flatten().flatten().copied().collect();
    record.set_item("samples", blocks(py, samples, [forecast.samples.len(), m, dim])?)?;
    let targets = &forecast.targets;
    let log_density: Vec<f64> = targets.iter().map(|target| target.log_density).collect();
    let stderr: Vec<f64> = targets.iter().map(|target| target.stderr).collect();
    record.set_item("log_density", PyArray1::from_vec(py, log_density))?;
    record.set_item("std_error", PyArray1::from_vec(py, stderr))?;
    Ok(record)
}
