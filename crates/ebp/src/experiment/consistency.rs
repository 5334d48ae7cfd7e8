//! How far a process is from having one law of sets: violations of the rules of probability, in nats.
//!
//! Of two elements a and b given a context C, with every density asked of the process itself:
//!
//! ```text
//! order      log p(a | C) p(b | C, a) − log p(b | C) p(a | C, b)      the chain rule, both ways
//! joint      log p(a, b | C) − log p(a | C) p(b | C, a)               Bayes' rule for what is conditioned on
//! marginal   log ∫ p(a | C) p(b | C, a) da − log p(b | C)             marginalisation
//! ```
//!
//! All are 0 where conditioning is exact. Where it is a network that reads a larger context, they say by
//! how many nats two ways to ask the same question differ. The integral is the midpoint rule, for pixels
//! the sum over their levels. Draws of a latent have an error of their own, which is reported beside.

use std::fmt::{self, Display};

use rayon::prelude::*;
use serde::Serialize;

use super::text::{cells, table};
use super::{Findings, Laboratory};
use crate::data::{CurveFamily, Grid};
use crate::linalg::log_sum_exp;
use crate::model::{Data, LatentData, Model, Settings};
use crate::process::{LEVEL_CELL, LogDensity, Predictive, Process, Task, picture_task};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// What can be measured: models of curves, sets without locations (`bruno`, `statistician`, `arcs`) by
/// their presets, pictures (`digits`, `digits-latent`).
pub const MODELS: [&str; 13] = [
    "gp",
    "tp",
    "vip",
    "ebp-importance",
    "ebp-ade",
    "np",
    "anp",
    "cnp",
    "bruno",
    "statistician",
    "arcs",
    "digits",
    "digits-latent",
];
/// Sets without locations.
const SETS: [&str; 3] = ["bruno", "statistician", "arcs"];
/// Their values in standard deviations, and nodes along an axis, for one and for two numbers.
const SET_NODES: [(f64, usize); 2] = [(8.0, 128), (4.0, 40)];
/// Context elements of curves and sets, in turn.
const CONTEXTS: [usize; 2] = [5, 15];
/// Given pixels.
const PIXELS: usize = 50;
/// Training steps of pictures: windows are in use long before.
const PICTURE_STEPS: usize = 1200;
/// Nodes of the integral over a, on the range of values.
const NODES: usize = 128;
/// Nodes with less of the largest mass are left out: together below 10⁻⁶ of the integral.
const LOG_NEGLIGIBLE: f64 = -18.0;
/// Half of a 95 % interval in standard errors.
const HALF_WIDTH: f64 = 1.96;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ConsistencyExperiment {
    /// Built-in curves by name.
    pub dataset: String,
    /// Names among [`MODELS`].
    pub models: Vec<String>,
    /// Pairs of elements.
    pub num_pairs: usize,
    /// Of these, pairs that the integral is computed for.
    pub num_integrals: usize,
    /// Draws of a latent that densities average over.
    pub num_draws: usize,
}

/// Violations of all models.
#[derive(Clone, Debug, Serialize)]
pub struct ConsistencyReport {
    /// The curves.
    pub dataset: String,
    /// Draws of a latent.
    pub num_draws: usize,
    /// One for each model and kind of pairs.
    pub rows: Vec<ConsistencyRow>,
}

/// Mean absolute violations of one process, in nats.
#[derive(Clone, Debug, Serialize)]
pub struct ConsistencyRow {
    /// Whose, and of which pairs.
    pub name: String,
    /// Pairs with finite densities.
    pub count: usize,
    /// Pairs that a density rules out, which are left out.
    pub num_ruled_out: usize,
    /// Of the chain rule.
    pub order: Violation,
    /// Of Bayes' rule; absent where there is no joint density.
    pub joint: Option<Violation>,
    /// Of marginalisation.
    pub marginal: Option<Violation>,
    /// Mean standard error of one such difference by draws of the latent; 0 where there are none.
    pub draw_error: f64,
}

/// A mean absolute difference.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Violation {
    /// In nats.
    pub mean: f64,
    /// Half of its 95 % interval, over pairs.
    pub half_width: f64,
    /// The largest.
    pub largest: f64,
}

impl Violation {
    fn of(differences: &[f64]) -> Option<Self> {
        let count = differences.len() as f64;
        if differences.is_empty() {
            return None;
        }
        let mean = differences.iter().map(|d| d.abs()).sum::<f64>() / count;
        let squares: f64 = differences.iter().map(|d| (d.abs() - mean).powi(2)).sum();
        let half_width = HALF_WIDTH * (squares / (count - 1.0).max(1.0) / count).sqrt();
        let largest = differences.iter().map(|d| d.abs()).fold(0.0, f64::max);
        Some(Self { mean, half_width, largest })
    }
}

/// A context and two further elements.
#[derive(Clone, Debug)]
pub struct Pair {
    /// C.
    pub context: IndexedSet,
    /// One element.
    pub a: IndexedSet,
    /// Another one.
    pub b: IndexedSet,
}

/// Values of a over which an integral goes, and the log of a cell's volume.
#[derive(Clone, Debug)]
pub struct Values {
    /// Middles of cells, `[cells, d]`.
    pub middles: Vec<f64>,
    /// d.
    pub dim: usize,
    /// log of a cell's volume.
    pub log_volume: f64,
}

impl Values {
    /// `count` cells along each of `dim` axes on a range.
    pub fn new((low, high): (f64, f64), count: usize, dim: usize) -> Self {
        let width = (high - low) / count as f64;
        let middle = |k: usize| low + width * (k as f64 + 0.5);
        // How many cells away the next one along each axis is, and how many there are.
        let strides: Vec<usize> =
            std::iter::successors(Some(1), |n| Some(n * count)).take(dim + 1).collect();
        let cell = |place: usize| strides[..dim].iter().map(move |n| middle(place / n % count));
        let middles = (0..strides[dim]).flat_map(cell).collect();
        Self { middles, dim, log_volume: dim as f64 * width.ln() }
    }
}

/// The differences of one pair.
#[derive(Clone, Copy, Debug)]
pub struct Differences {
    /// Of the two orders.
    pub order: f64,
    /// Of joint density and chain rule, where there is a joint density.
    pub joint: Option<f64>,
    /// Standard error by draws of a latent.
    pub error: f64,
}

/// What a process says about one pair.
///
/// # Errors
///
/// What the process says.
pub fn differences(process: &dyn Process, pair: &Pair) -> Result<Differences> {
    let Pair { context, a, b } = pair;
    let given = process.condition(context)?;
    let given_a = process.condition(&union(context, a)?)?;
    let given_b = process.condition(&union(context, b)?)?;
    let [pa, pb] = [single(given.as_ref(), a)?, single(given.as_ref(), b)?];
    let [pba, pab] = [single(given_a.as_ref(), b)?, single(given_b.as_ref(), a)?];
    let joint = given.log_joint(&union(a, b)?)?;
    let errors = [pa, pb, pba, pab].map(|found| found.std_error);
    Ok(Differences {
        order: pa.value + pba.value - pb.value - pab.value,
        joint: joint.map(|joint| joint.value - pa.value - pba.value),
        error: errors.iter().map(|error| error * error).sum::<f64>().sqrt(),
    })
}

/// log ∫ p(a | C) p(b | C, a) da − log p(b | C).
///
/// # Errors
///
/// What the process says.
pub fn marginal_difference(process: &dyn Process, pair: &Pair, values: &Values) -> Result<f64> {
    let Pair { context, a, b } = pair;
    let given = process.condition(context)?;
    let (count, dim) = (values.middles.len() / values.dim, values.dim);
    let locations = a.locations().repeat(count);
    let line = IndexedSet::new(a.location_dim(), dim, locations, values.middles.clone())?;
    let masses: Vec<f64> = given.log_density(&line)?.iter().map(|p| p.value).collect();
    let largest = masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut terms = Vec::new();
    for (k, mass) in masses.iter().enumerate().filter(|(_, m)| **m > largest + LOG_NEGLIGIBLE) {
        let larger = union(context, &line.select(&[k]))?;
        let further = process.condition(&larger)?;
        terms.push(mass + values.log_volume + single(further.as_ref(), b)?.value);
    }
    Ok(log_sum_exp(&terms) - single(given.as_ref(), b)?.value)
}

fn single(predictive: &dyn Predictive, element: &IndexedSet) -> Result<LogDensity> {
    let found = predictive.log_density(element)?;
    found.first().copied().ok_or_else(|| Error::failed("a law did not answer"))
}

fn union(first: &IndexedSet, second: &IndexedSet) -> Result<IndexedSet> {
    Task { context: first.clone(), target: second.clone() }.union()
}

impl ConsistencyRow {
    fn measure(
        name: &str,
        process: &dyn Process,
        pairs: &[Pair],
        (num_integrals, values): (usize, &Values),
    ) -> Result<Self> {
        let found: Vec<Differences> =
            pairs.par_iter().map(|pair| differences(process, pair)).collect::<Result<_>>()?;
        let finite: Vec<Differences> =
            found.iter().copied().filter(|found| found.order.is_finite()).collect();
        let joint: Option<Vec<f64>> = finite.iter().map(|found| found.joint).collect();
        let asked: Vec<&Pair> = pairs
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.order.is_finite())
            .map(|(pair, _)| pair)
            .take(num_integrals)
            .collect();
        let marginal: Vec<f64> = asked
            .par_iter()
            .map(|pair| marginal_difference(process, pair, values))
            .collect::<Result<_>>()?;
        let order: Vec<f64> = finite.iter().map(|found| found.order).collect();
        let Some(order) = Violation::of(&order) else {
            return Err(Error::failed(format!("{name} rules out every pair of elements")));
        };
        Ok(Self {
            name: name.to_owned(),
            count: finite.len(),
            num_ruled_out: found.len() - finite.len(),
            order,
            joint: joint.and_then(|joint| Violation::of(&joint)),
            marginal: Violation::of(&marginal),
            draw_error: finite.iter().map(|found| found.error).sum::<f64>() / finite.len() as f64,
        })
    }
}

impl ConsistencyExperiment {
    /// Trains what is missing, and measures.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`]; [`Error::Refused`] if there is no such model.
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<ConsistencyReport>> {
        if let Some(unknown) = self.models.iter().find(|name| !MODELS.contains(&name.as_str())) {
            return Err(Error::refused(format!("there is no model `{unknown}`"))
                .with_help(format!("known are: {}", MODELS.join(", "))));
        }
        let family = CurveFamily::parse(&self.dataset)?;
        let mut rows = Vec::new();
        for name in &self.models {
            laboratory.watch.begin(name);
            if SETS.contains(&name.as_str()) {
                let settings = Settings::preset(name, &[] as &[&str])?;
                let (model, data) = laboratory.model(&format!("models/{name}"), settings)?;
                rows.push(self.sets(name, &model, &data)?);
            } else if name.starts_with("digits") {
                let mut changes = vec![format!("train.num_steps={PICTURE_STEPS}")];
                if name == "digits-latent" {
                    changes.push("model.mode=full-set".to_owned());
                }
                let settings = Settings::preset("digits", &changes)?;
                let (mut model, data) = laboratory.model(&format!("models/{name}"), settings)?;
                model.set_num_draws(self.num_draws);
                rows.extend(self.pictures(name, &model, &data)?);
            } else {
                let settings = match name.as_str() {
                    "ebp-importance" => Settings::preset(family.name(), &[] as &[&str])?,
                    "ebp-ade" => {
                        Settings::preset(family.name(), &["model.estimator=ade".to_owned()])?
                    }
                    rival => {
                        let source = format!("data.source={}", family.name());
                        Settings::preset(&format!("rival/{rival}"), &[source])?
                    }
                };
                let folder = format!("models/{}-{name}", family.name());
                let (mut model, _) = laboratory.model(&folder, settings)?;
                model.set_num_draws(self.num_draws);
                let process = model.curves()?;
                let pairs = self.curve_pairs(family)?;
                let values = Values::new(process.value_range()?, NODES, 1);
                rows.push(ConsistencyRow::measure(
                    name,
                    process,
                    &pairs,
                    (self.num_integrals, &values),
                )?);
            }
            if let Some(row) = rows.last() {
                laboratory.watch.note(&format!("{}: order {:.2e} nats", row.name, row.order.mean));
            }
        }
        let report =
            ConsistencyReport { dataset: self.dataset.clone(), num_draws: self.num_draws, rows };
        Ok(Findings { report, pictures: Vec::new() })
    }

    fn curve_pairs(&self, family: CurveFamily) -> Result<Vec<Pair>> {
        let stream = Stream::new(0, "consistency");
        let pair = |number: usize| {
            let size = CONTEXTS[number % CONTEXTS.len()];
            let set = family.draw(stream, number as u64, size + 2)?.set;
            Ok(Pair {
                context: set.select(&(0..size).collect::<Vec<_>>()),
                a: set.select(&[size]),
                b: set.select(&[size + 1]),
            })
        };
        (0..self.num_pairs).map(pair).collect()
    }

    /// Sets without locations, in standard deviations.
    fn sets(&self, name: &str, model: &Model, data: &Data) -> Result<ConsistencyRow> {
        let (Data::Latents(LatentData::Sets(sets)), latents) = (data, model.latents()?) else {
            return Err(Error::failed("the data of sets are of another kind"));
        };
        let (dim, size) = (sets.dim(), latents.settings().data.set_size);
        let drawn = sets.held_out(self.num_pairs).values;
        let pair = |(number, set): (usize, &[f32])| {
            let known = CONTEXTS[number % CONTEXTS.len()].min(size - 2);
            let values = set.iter().map(|&x| f64::from(x)).collect();
            let set = IndexedSet::new(0, dim, Vec::new(), values)?;
            Ok(Pair {
                context: set.select(&(0..known).collect::<Vec<_>>()),
                a: set.select(&[known]),
                b: set.select(&[known + 1]),
            })
        };
        let pairs: Vec<Pair> =
            drawn.chunks_exact(size * dim).enumerate().map(pair).collect::<Result<_>>()?;
        let Some((reach, count)) = dim.checked_sub(1).and_then(|at| SET_NODES.get(at)) else {
            let message = format!("integrals over elements of {dim} numbers are too many sums");
            return Err(Error::refused(message));
        };
        let values = Values::new((-reach, *reach), *count, dim);
        ConsistencyRow::measure(name, latents.process()?, &pairs, (self.num_integrals, &values))
    }

    /// Neighbours, one of which lies in the other's window, and pixels far from each other.
    fn pictures(&self, name: &str, model: &Model, data: &Data) -> Result<Vec<ConsistencyRow>> {
        let Data::Pictures(data) = data else {
            return Err(Error::failed("the data of digits are of another kind"));
        };
        let images = &data.test;
        let grid = Grid::new(images.width, images.height)?;
        let stream = Stream::new(0, "consistency");
        let pairs = |is_near: bool| -> Result<Vec<Pair>> {
            let pair = |number: usize| {
                let stream = stream.child(number as u64);
                let order = stream.permutation(grid.num_places());
                // In the middle of the picture, where there is ink.
                let middle = |place: &usize| {
                    let (x, y) = (place % images.width, place / images.width);
                    let inside = |at: usize, size: usize| (size / 4..3 * size / 4).contains(&at);
                    inside(x, images.width - 1) && inside(y, images.height)
                };
                let first = order.iter().copied().find(middle).unwrap_or(0);
                let second = if is_near {
                    first + 1
                } else {
                    (first + grid.num_places() / 2 + 7) % grid.num_places()
                };
                let mut mask = vec![false; grid.num_places()];
                let others = order.iter().filter(|&&place| place != first && place != second);
                others.take(PIXELS).for_each(|&place| mask[place] = true);
                let index = number % images.len();
                let task = picture_task(images, index, &mask, stream.child(1))?;
                let target = |place: usize| {
                    let row = (0..place).filter(|&before| !mask[before]).count();
                    task.target.select(&[row])
                };
                Ok(Pair { context: task.context.clone(), a: target(first), b: target(second) })
            };
            (0..self.num_pairs).map(pair).collect()
        };
        let levels = Values::new((-1.0, 1.0), 256, 1);
        debug_assert!((levels.log_volume - LEVEL_CELL.ln()).abs() < 1e-12);
        let process: &dyn Process = model.pictures()?.process();
        let integrals = (self.num_integrals, &levels);
        let row = |words: &str, is_near: bool| {
            let name = format!("{name}, {words}");
            ConsistencyRow::measure(&name, process, &pairs(is_near)?, integrals)
        };
        Ok(vec![row("neighbours", true)?, row("far apart", false)?])
    }
}

impl Display for ConsistencyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["nats, mean |difference|", "order", "joint", "marginal", "error of draws"];
        let mut rows = vec![cells(head)];
        let show = |found: &Violation| {
            let Violation { mean, half_width, .. } = found;
            if *mean < 1e-3 {
                format!("{mean:.0e}")
            } else {
                format!("{mean:.3} ± {half_width:.3}")
            }
        };
        for row in &self.rows {
            let optional =
                |found: &Option<Violation>| found.as_ref().map_or_else(|| "none".to_owned(), show);
            rows.push(vec![
                row.name.clone(),
                show(&row.order),
                optional(&row.joint),
                optional(&row.marginal),
                format!("{:.3}", row.draw_error),
            ]);
        }
        writeln!(f, "{}", table(&rows))?;
        let ruled_out: usize = self.rows.iter().map(|row| row.num_ruled_out).sum();
        writeln!(
            f,
            "curves {}, {} draws of latents, ± is half of a 95 % interval over pairs; {ruled_out} pairs \
             lie where a density is zero",
            self.dataset, self.num_draws
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rbf;
    use crate::process::neural::{NeuralProcess, NeuralProcessConfig};
    use crate::process::{ExactProcessConfig, GaussianProcess, StudentTProcess};
    use crate::tape::Device;

    fn pairs() -> Vec<Pair> {
        let experiment = ConsistencyExperiment {
            dataset: "gp".into(),
            models: Vec::new(),
            num_pairs: 6,
            num_integrals: 0,
            num_draws: 8,
        };
        experiment.curve_pairs(CurveFamily::Gp).unwrap()
    }

    #[test]
    fn exact_processes_have_one_law_and_networks_do_not() {
        let kernel = || Box::new(Rbf::new(1.0, 0.5).unwrap());
        let config = ExactProcessConfig { noise_variance: 0.01, ..ExactProcessConfig::default() };
        let gaussian = GaussianProcess::new(kernel(), &config).unwrap();
        let student = StudentTProcess::new(kernel(), &config, 4.0).unwrap();
        let exact: [&dyn Process; 2] = [&gaussian, &student];
        // Fifteen elements at once have condition numbers near 10³: rounding stays below 10⁻¹⁰ nats.
        for process in exact {
            for pair in pairs() {
                let found = differences(process, &pair).unwrap();
                assert!(found.order.abs() < 1e-10, "{}: {found:?}", process.name());
                assert!(found.joint.unwrap().abs() < 1e-10, "{}: {found:?}", process.name());
            }
        }
        // The midpoint rule on cells of 0.16 σ of the narrowest law, N(·, 0.01), is exact to rounding;
        // tails of the Student law beyond ±8 are below 10⁻⁵ with 4 + 5 degrees of freedom.
        let values = Values::new((-8.0, 8.0), 1000, 1);
        for (process, tolerance) in exact.into_iter().zip([1e-6, 1e-4]) {
            let found = marginal_difference(process, &pairs()[0], &values).unwrap();
            assert!(found.abs() < tolerance, "{}: {found}", process.name());
        }
        let config = NeuralProcessConfig::conditional();
        let network = NeuralProcess::new(config, 3, &Device::default()).unwrap();
        let found = differences(&network, &pairs()[0]).unwrap();
        assert!(found.order.abs() > 1e-6 && found.joint.unwrap().abs() > 1e-6, "{found:?}");
    }
}
