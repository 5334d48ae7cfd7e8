//! The tables of Figure 1.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use serde::Serialize;

use super::cell::{CONTEXTS, Figure1Cell, NUM_LOCATIONS, NUM_SETS, evaluation_stream};
use crate::Result;
use crate::data::CurveFamily;
use crate::experiment::text::{cells as words, table, with_interval};
use crate::metric::predictive::{Evaluation, best_gaussian, best_prediction};
use crate::process::BoundedPartition;

/// What was measured, by dataset.
#[derive(Clone, Debug, Serialize)]
pub struct Figure1Report {
    /// By name.
    pub datasets: BTreeMap<String, DatasetReport>,
    /// Where the picture belongs.
    #[serde(skip)]
    pub picture: String,
    /// Datasets and models in the order asked for.
    #[serde(skip)]
    order: (Vec<&'static str>, Vec<String>),
}

/// All models on one dataset.
#[derive(Clone, Debug, Serialize)]
pub struct DatasetReport {
    /// −E log p of the true density, by its own fresh elements.
    pub floor: f64,
    /// The best any model could do that knows the family but not the set, by context.
    pub best_excess: BTreeMap<usize, f64>,
    /// The best with one Gaussian at every location, by context: a bound for processes whose values are
    /// Gaussian, unless a latent mixes several.
    pub best_gaussian_excess: BTreeMap<usize, f64>,
    /// By name.
    pub models: BTreeMap<String, ModelReport>,
}

/// Means over contexts and seeds.
#[derive(Clone, Debug, Serialize)]
pub struct ModelReport {
    /// Nats per fresh element.
    pub nll: f64,
    /// Its standard error.
    pub stderr: f64,
    /// By integrating over the true density.
    pub quadrature: f64,
    /// Above the true density.
    pub excess: f64,
    /// The same by quadrature.
    pub quadrature_excess: f64,
    /// Seconds of training per seed.
    pub seconds: f64,
    /// Elements that the optimiser saw per seed, each as often as it was seen.
    pub elements: f64,
    /// What a fit found, by name, of each seed: hyperparameters in standardised units, among them
    /// `degrees_of_freedom` ν of the Student-t process.
    pub fitted: BTreeMap<String, Vec<f64>>,
    /// log Z(t; θ) given 30 elements, the mean over places and seeds, from both sides.
    pub log_partition: Option<BoundedPartition>,
    /// How many seeds.
    pub seeds: usize,
    /// The share of locations where each of two peaks carries 40 to 60 % of the mass.
    pub balanced_peaks: Option<f64>,
    /// Excess by context, its mean over seeds.
    pub excess_by_context: BTreeMap<usize, f64>,
    /// That of each seed.
    pub excess_by_seed: BTreeMap<usize, Vec<f64>>,
}

fn mean(numbers: impl Iterator<Item = f64> + Clone) -> f64 {
    numbers.clone().sum::<f64>() / numbers.count() as f64
}

impl Figure1Report {
    pub(super) fn new(
        families: &[CurveFamily],
        models: &[String],
        cells: &[Figure1Cell],
    ) -> Result<Self> {
        let mut datasets = BTreeMap::new();
        for family in families {
            let of_dataset: Vec<&Figure1Cell> =
                cells.iter().filter(|cell| cell.dataset == family.name()).collect();
            let mut by_model: BTreeMap<String, Vec<&Figure1Cell>> = BTreeMap::new();
            for cell in &of_dataset {
                by_model.entry(cell.model.clone()).or_default().push(cell);
            }
            let floors = of_dataset.iter().flat_map(|cell| &cell.scores).map(|score| score.floor);
            let (mut best_excess, mut best_gaussian_excess) = (BTreeMap::new(), BTreeMap::new());
            for num_context in CONTEXTS {
                let evaluation = Evaluation {
                    family: *family,
                    num_context,
                    num_sets: NUM_SETS,
                    num_locations: NUM_LOCATIONS,
                    stream: evaluation_stream(),
                };
                best_excess.insert(num_context, best_prediction(&evaluation)?.excess);
                best_gaussian_excess.insert(num_context, best_gaussian(&evaluation)?.excess);
            }
            let models =
                by_model.iter().map(|(name, cells)| (name.clone(), ModelReport::new(cells)));
            let report = DatasetReport {
                floor: mean(floors),
                best_excess,
                best_gaussian_excess,
                models: models.collect(),
            };
            datasets.insert(family.name().to_owned(), report);
        }
        let names = families.iter().map(|family| family.name()).collect();
        Ok(Self { datasets, picture: String::new(), order: (names, models.to_vec()) })
    }
}

impl ModelReport {
    fn new(cells: &[&Figure1Cell]) -> Self {
        let scores = || cells.iter().flat_map(|cell| &cell.scores);
        let count = scores().count() as f64;
        // Seeds and contexts share their sets, so errors are averaged, not divided by √count.
        let stderr = scores().map(|score| score.stderr).sum::<f64>() / count;
        let balanced: Vec<f64> = scores().filter_map(|score| score.balanced).collect();
        let by_seed = |context: usize| -> Vec<f64> {
            scores().filter(|score| score.context == context).map(|score| score.excess).collect()
        };
        let mut fitted: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, number) in cells.iter().flat_map(|cell| &cell.fitted) {
            fitted.entry(name.clone()).or_default().push(*number);
        }
        let bounded: Vec<_> = cells.iter().filter_map(|cell| cell.log_partition).collect();
        Self {
            nll: mean(scores().map(|score| score.nll)),
            stderr,
            quadrature: mean(scores().map(|score| score.quadrature)),
            excess: mean(scores().map(|score| score.excess)),
            quadrature_excess: mean(scores().map(|score| score.quadrature_excess)),
            seconds: mean(cells.iter().map(|cell| cell.seconds)),
            elements: mean(cells.iter().map(|cell| cell.elements as f64)),
            fitted,
            log_partition: BoundedPartition::mean(&bounded),
            seeds: cells.len(),
            balanced_peaks: (!balanced.is_empty()).then(|| mean(balanced.iter().copied())),
            excess_by_context: CONTEXTS
                .map(|context| (context, mean(by_seed(context).into_iter())))
                .into(),
            excess_by_seed: CONTEXTS.map(|context| (context, by_seed(context))).into(),
        }
    }
}

impl Display for Figure1Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.order.0 {
            let Some(dataset) = self.datasets.get(*name) else { continue };
            writeln!(f, "{name}: true density {:.4} nats per element", dataset.floor)?;
            let head = [
                "model",
                "nll",
                "excess: 5",
                "15",
                "30 context",
                "quadrature",
                "peaks 40–60 %",
                "elements",
                "s",
            ];
            let mut rows = vec![words(head)];
            for (name, excess) in [
                ("best possible", &dataset.best_excess),
                ("best Gaussian", &dataset.best_gaussian_excess),
            ] {
                let mut best = vec![name.to_owned(), String::new()];
                best.extend(excess.values().map(|excess| format!("{excess:.3}")));
                rows.push(best);
            }
            for model in &self.order.1 {
                let Some(found) = dataset.models.get(model) else { continue };
                let mut row = vec![model.clone(), with_interval(found.nll, found.stderr, 4)];
                row.extend(found.excess_by_context.values().map(|excess| format!("{excess:.3}")));
                row.push(format!("{:.3}", found.quadrature_excess));
                let percent = |share: f64| format!("{:.0} %", 100.0 * share);
                row.push(found.balanced_peaks.map_or_else(String::new, percent));
                row.push(format!("{:.0}", found.elements));
                row.push(format!("{:.1}", found.seconds));
                rows.push(row);
            }
            writeln!(f, "{}", table(&rows))?;
            for (name, found) in &dataset.models {
                if let Some(log_partition) = &found.log_partition {
                    writeln!(f, "log Z of {name}, mean (± standard error): {log_partition}")?;
                }
                if let Some(degrees) = found.fitted.get("degrees_of_freedom") {
                    let degrees: Vec<_> = degrees.iter().map(|nu| format!("{nu:.4}")).collect();
                    writeln!(f, "ν of {name}, by seed: {}", degrees.join(", "))?;
                }
            }
            writeln!(f)?;
        }
        writeln!(f, "picture  {}", self.picture)
    }
}
