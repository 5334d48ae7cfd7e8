//! What was measured, as JSON for machines and as a table for people.

use std::path::Path;

use ebp::metric::collection::{Collection, CollectionMetrics, Estimate};
use ebp::metric::distance::EmdMethod;
use serde::Serialize;

use super::paper;
use crate::args::PaperClass;

/// The result of `ebp metrics`. Numbers are not scaled.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) samples: CollectionReport,
    pub(super) references: CollectionReport,
    /// How many samples, and how many references.
    pub(super) n: usize,
    pub(super) m: usize,
    pub(super) dim: usize,
    pub(super) normalisation: &'static str,
    /// How many points were drawn of each set, `null` for all.
    pub(super) points: Option<usize>,
    /// How many sets were drawn of each collection, `null` for all.
    pub(super) subset: Option<usize>,
    /// Printed with the head of the object.
    #[serde(skip)]
    pub(super) seed: u64,
    pub(super) chamfer_convention: &'static str,
    #[serde(flatten)]
    pub(super) rows: Rows,
    /// The same for a subset of the training sets in the place of samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) oracle: Option<Rows>,
}

/// Where sets came from, and how many there are.
#[derive(Debug, Serialize)]
pub(super) struct CollectionReport {
    path: String,
    sets: usize,
    fewest_points: usize,
    most_points: usize,
}

impl CollectionReport {
    pub(super) fn new(path: &Path, collection: &Collection) -> Self {
        let (fewest_points, most_points) = collection.sizes();
        let sets = collection.clouds.len();
        Self { path: path.display().to_string(), sets, fewest_points, most_points }
    }
}

/// A number and its 95 % interval.
#[derive(Clone, Copy, Debug, Serialize)]
struct Interval {
    value: f64,
    low: f64,
    high: f64,
}

impl From<Estimate> for Interval {
    fn from(Estimate { value, low, high }: Estimate) -> Self {
        Self { value, low, high }
    }
}

/// The metrics by name.
#[derive(Debug, Serialize)]
pub(super) struct Rows {
    jsd: Option<Interval>,
    /// The share of points outside of the ball of the grid.
    jsd_outside: Option<f64>,
    mmd_cd: Interval,
    cov_cd: Interval,
    nna_cd: Interval,
    nna_cd_samples: Interval,
    nna_cd_references: Interval,
    #[serde(flatten)]
    emd: Option<EmdRows>,
}

#[derive(Debug, Serialize)]
struct EmdRows {
    mmd_emd: Interval,
    cov_emd: Interval,
    nna_emd: Interval,
    nna_emd_samples: Interval,
    nna_emd_references: Interval,
    emd_method: &'static str,
    emd_convention: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    emd_regularisation: Option<f64>,
    emd_gap: Option<f64>,
    emd_pairs: PairRows,
}

#[derive(Debug, Serialize)]
struct PairRows {
    all: usize,
    solved: usize,
    stopped: usize,
    skipped: usize,
}

impl Rows {
    pub(super) fn new(metrics: &CollectionMetrics) -> Self {
        Self {
            jsd: metrics.divergence.map(|found| found.divergence.into()),
            jsd_outside: metrics.divergence.map(|found| found.outside),
            mmd_cd: metrics.chamfer.matching_distance.into(),
            cov_cd: metrics.chamfer.coverage.into(),
            nna_cd: metrics.chamfer.one_nn_accuracy.into(),
            nna_cd_samples: metrics.chamfer.sample_accuracy.into(),
            nna_cd_references: metrics.chamfer.reference_accuracy.into(),
            emd: metrics.emd.map(|emd| EmdRows {
                mmd_emd: emd.metrics.matching_distance.into(),
                cov_emd: emd.metrics.coverage.into(),
                nna_emd: emd.metrics.one_nn_accuracy.into(),
                nna_emd_samples: emd.metrics.sample_accuracy.into(),
                nna_emd_references: emd.metrics.reference_accuracy.into(),
                emd_method: emd.method.name(),
                emd_convention: emd.method.convention(),
                emd_regularisation: match emd.method {
                    EmdMethod::Sinkhorn { regularisation } => Some(regularisation),
                    _ => None,
                },
                emd_gap: emd.largest_gap,
                emd_pairs: PairRows {
                    all: emd.pairs.all,
                    solved: emd.pairs.solved,
                    stopped: emd.pairs.stopped,
                    skipped: emd.pairs.skipped,
                },
            }),
        }
    }

    /// The columns of the table, scaled by [`FACTORS`].
    fn columns(&self) -> [Option<Interval>; 7] {
        let emd = self.emd.as_ref();
        let columns = [
            self.jsd,
            Some(self.mmd_cd),
            emd.map(|emd| emd.mmd_emd),
            Some(self.cov_cd),
            emd.map(|emd| emd.cov_emd),
            Some(self.nna_cd),
            emd.map(|emd| emd.nna_emd),
        ];
        let mut factors = FACTORS.into_iter();
        columns.map(|column| {
            let factor = factors.next().unwrap_or(1.0);
            column.map(|Interval { value, low, high }| Interval {
                value: factor * value,
                low: factor * low,
                high: factor * high,
            })
        })
    }
}

const NAMES: [&str; 7] = [
    "JSD ×10²",
    "MMD-CD ×10³",
    "MMD-EMD ×10²",
    "COV-CD %",
    "COV-EMD %",
    "1-NNA-CD %",
    "1-NNA-EMD %",
];
/// The paper's.
const FACTORS: [f64; 7] = [1e2, 1e3, 1e2, 1e2, 1e2, 1e2, 1e2];

impl Report {
    /// A table for people.
    pub(super) fn table(&self, paper: Option<PaperClass>) -> String {
        let mut lines = self.heading();
        lines.push(String::new());
        lines.push(line("", &NAMES.map(str::to_owned)));
        for (name, rows) in std::iter::once(("samples", &self.rows))
            .chain(self.oracle.iter().map(|rows| ("training subset", rows)))
        {
            let columns = rows.columns();
            lines.push(line(
                name,
                &columns.map(|column| column.map_or_else(dash, |c| number(c.value))),
            ));
            let interval = |c: Interval| format!("{}–{}", number(c.low), number(c.high));
            lines.push(line(
                "  95 % interval",
                &columns.map(|column| column.map_or_else(dash, interval)),
            ));
            let of = |samples: Interval, references: Interval| {
                format!("{} / {}", number(1e2 * samples.value), number(1e2 * references.value))
            };
            let mut kinds = NAMES.map(|_| String::new());
            kinds[5] = of(rows.nna_cd_samples, rows.nna_cd_references);
            if let Some(emd) = &rows.emd {
                kinds[6] = of(emd.nna_emd_samples, emd.nna_emd_references);
            }
            lines.push(line("  samples / real", &kinds));
        }
        if let Some(class) = paper {
            lines.push(String::new());
            lines.push("The paper's table (ShapeNet, 2048 points, EMD by approxmatch):".to_owned());
            for row in paper::rows(class) {
                let mut values = row.values.into_iter().map(number);
                lines.push(line(
                    row.model,
                    &std::array::from_fn(|_| values.next().unwrap_or_else(dash)),
                ));
            }
        }
        lines.extend(self.notes());
        lines.join("\n") + "\n"
    }

    fn heading(&self) -> Vec<String> {
        let size = |c: &CollectionReport| match (c.fewest_points, c.most_points) {
            (few, most) if few == most => format!("{} sets of {few} points", c.sets),
            (few, most) => format!("{} sets of {few} to {most} points", c.sets),
        };
        let mut lines = vec![
            format!(
                "ebp {} metrics, {} coordinates, normalisation {}, seed {}",
                env!("CARGO_PKG_VERSION"),
                self.dim,
                self.normalisation,
                self.seed
            ),
            format!("samples     {}: {}", self.samples.path, size(&self.samples)),
            format!("references  {}: {}", self.references.path, size(&self.references)),
            format!("CD   {}", self.chamfer_convention),
        ];
        if let Some(emd) = &self.rows.emd {
            let gap = emd.emd_gap.map_or_else(
                || "no bound on its error".to_owned(),
                |gap| format!("largest gap {gap:.1e}"),
            );
            let PairRows { all, solved, stopped, skipped } = emd.emd_pairs;
            lines.push(format!(
                "EMD  {}, {gap}; of {all} pairs {solved} computed, {stopped} stopped and {skipped} skipped by bounds",
                emd.emd_method
            ));
        }
        lines
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(outside) = self.rows.jsd_outside.filter(|&outside| outside > 0.01) {
            notes.push(format!(
                "\nNote: {:.0} % of the points lie outside of the ball of JSD's grid (radius 1/2); \
                 `--normalise unit-ball` brings them in.",
                100.0 * outside
            ));
        }
        if self.samples.sets != self.references.sets {
            notes.push(format!(
                "\nNote: {} samples and {} references: COV and 1-NNA are comparable with published \
                 numbers only at equal counts (`--subset`).",
                self.samples.sets, self.references.sets
            ));
        }
        notes
    }
}

fn line(name: &str, cells: &[String; 7]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>13}")).collect();
    format!("{name:<17}{}", cells.concat()).trim_end().to_owned()
}

fn dash() -> String {
    "–".to_owned()
}

/// Three or four digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size < 0.9995 => format!("{value:.3}"),
        size if size < 99.995 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}
