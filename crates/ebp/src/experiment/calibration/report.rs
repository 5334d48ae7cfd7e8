//! What was found, as numbers and as text.

use std::fmt::{self, Display};

use serde::Serialize;

use super::{LACK, LatentReport};
use crate::Result;
use crate::experiment::text::{cells, table};
use crate::metric::predictive::Standing;
use crate::metric::uniformity::{Uniformity, positions_of_ranks};
use crate::model::Recalibration;
use crate::rng::Stream;

/// Cells of histograms.
const CELLS: usize = 20;
/// Levels of central intervals that the text shows, in percent.
const SHOWN: [usize; 4] = [50, 80, 90, 95];
/// Half of a 95 % interval in standard errors.
const HALF_WIDTH: f64 = 1.96;

/// How calibrated a model is.
#[derive(Clone, Debug, Serialize)]
pub struct CalibrationReport {
    /// Its name.
    pub model: String,
    /// Of training.
    pub steps: u64,
    /// What was asked.
    pub source: String,
    /// The model, the model at the fitted temperature, the true law.
    pub rows: Vec<CalibrationRow>,
    /// The temperature that the choosing split asks for.
    pub recalibration: Option<Recalibration>,
    /// The temperature that was kept with the model before; rows are without it.
    pub kept: Option<f64>,
    /// Calibration of q(θ | set) within the model.
    pub latent: Option<LatentReport>,
    /// Where the picture belongs.
    pub picture: String,
}

/// One law on the split that is reported.
#[derive(Clone, Debug, Serialize)]
pub struct CalibrationRow {
    /// Whose.
    pub name: String,
    /// Elements that were asked for.
    pub count: usize,
    /// Mean −log p per element (per pixel: −log of its mass); absent where values have several numbers.
    pub nats: Option<f64>,
    /// Half of its 95 % interval, over sets.
    pub nats_half_width: Option<f64>,
    /// u = F(x | context).
    pub positions: Option<Uniformity>,
    /// |2u − 1|: the smallest central interval that holds x.
    pub intervals: Option<Uniformity>,
    /// Central intervals of levels 50, 80, 90 and 95 %.
    pub coverage: Vec<Covered>,
    /// Ranks among draws, all numbers of a value together where it has several.
    pub ranks: Option<Uniformity>,
    /// The largest |1 − ∫ p| on the grid of a question.
    pub largest_lack_of_mass: f64,
}

/// How often central intervals of a level hold the truth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Covered {
    /// The level.
    pub nominal: f64,
    /// The share inside.
    pub actual: f64,
    /// The band of that share, simultaneous over all levels 1 to 99 %.
    pub band: (f64, f64),
}

impl CalibrationRow {
    pub(super) fn new(name: &str, standings: &[Standing], sets: &[usize]) -> Result<Self> {
        let positions: Vec<f64> = standings.iter().map(|s| s.position).collect();
        let within: Vec<f64> = positions.iter().map(|u| (2.0 * u - 1.0).abs()).collect();
        let intervals = Uniformity::of(&within, CELLS)?;
        let coverage = SHOWN.map(|percent| Covered {
            nominal: percent as f64 / 100.0,
            actual: intervals.shares[percent - 1],
            band: intervals.band[percent - 1],
        });
        let (nats, nats_half_width) = mean_over_sets(standings, sets);
        Ok(Self {
            name: name.to_owned(),
            count: standings.len(),
            nats: Some(nats),
            nats_half_width: Some(nats_half_width),
            positions: Some(Uniformity::of(&positions, CELLS)?),
            intervals: Some(intervals),
            coverage: coverage.to_vec(),
            ranks: None,
            largest_lack_of_mass: standings
                .iter()
                .map(|s| (s.mass - 1.0).abs())
                .fold(0.0, f64::max),
        })
    }

    /// Of values with several numbers, which have ranks only.
    pub(super) fn of_ranks(name: &str, count: usize) -> Self {
        Self {
            name: name.to_owned(),
            count,
            nats: None,
            nats_half_width: None,
            positions: None,
            intervals: None,
            coverage: Vec::new(),
            ranks: None,
            largest_lack_of_mass: 0.0,
        }
    }

    pub(super) fn with_ranks(
        mut self,
        ranks: &[Vec<usize>],
        num_draws: usize,
        stream: Stream,
    ) -> Result<Self> {
        let positions = positions_of_ranks(&ranks.concat(), num_draws, stream);
        self.ranks = Some(Uniformity::of(&positions, CELLS)?);
        Ok(self)
    }
}

/// The mean of −log p over elements, and half of its 95 % interval from the sums of sets.
fn mean_over_sets(standings: &[Standing], sets: &[usize]) -> (f64, f64) {
    let count = standings.len() as f64;
    let mean = -standings.iter().map(|s| s.log_density).sum::<f64>() / count;
    let num_sets = sets.iter().max().map_or(0, |last| last + 1);
    let mut deviations = vec![0.0; num_sets];
    for (standing, &set) in standings.iter().zip(sets) {
        deviations[set] += -standing.log_density - mean;
    }
    let squares: f64 = deviations.iter().map(|d| d * d).sum();
    let correction = num_sets as f64 / (num_sets as f64 - 1.0).max(1.0);
    (mean, HALF_WIDTH * (squares * correction).sqrt() / count)
}

fn verdict(found: &Uniformity) -> String {
    format!("{} ({:.3})", if found.is_within { "within" } else { "OUTSIDE" }, found.largest_gap)
}

fn p_value(found: &Uniformity) -> String {
    if found.p_value < 1e-4 { "< 0.0001".into() } else { format!("{:.4}", found.p_value) }
}

impl Display for CalibrationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = self.rows.first().map_or(0, |row| row.count);
        writeln!(f, "{}, {} steps: {asked} elements, {}\n", self.model, self.steps, self.source)?;
        let head = ["95 % bands, simultaneous", "nats", "PIT", "chi2 p", "intervals", "ranks"];
        let mut rows = vec![cells(head)];
        rows[0].extend(SHOWN.map(|percent| format!("{percent} %")));
        for row in &self.rows {
            let nats = match (row.nats, row.nats_half_width) {
                (Some(nats), Some(half)) => format!("{nats:.4} ± {half:.4}"),
                _ => String::new(),
            };
            let of = |found: &Option<Uniformity>, say: &dyn Fn(&Uniformity) -> String| {
                found.as_ref().map_or_else(String::new, say)
            };
            let mut line = vec![row.name.clone(), nats];
            line.push(of(&row.positions, &verdict));
            line.push(of(&row.positions, &p_value));
            line.push(of(&row.intervals, &verdict));
            line.push(of(&row.ranks, &verdict));
            line.extend(row.coverage.iter().map(|c| format!("{:.1}", 100.0 * c.actual)));
            rows.push(line);
        }
        writeln!(f, "{}", table(&rows))?;
        writeln!(
            f,
            "in brackets the largest distance from the diagonal; ± is half of a 95 % interval"
        )?;
        for row in self.rows.iter().filter(|row| row.largest_lack_of_mass > LACK) {
            let lack = row.largest_lack_of_mass;
            writeln!(f, "{}: a density integrates to 1 ± {lack:.3} on its grid", row.name)?;
        }
        if let Some(fit) = &self.recalibration {
            writeln!(
                f,
                "temperature {:.4}, fitted to {} other elements: {:.4} nats there before, {:.4} after",
                fit.temperature, fit.count, fit.nats_before, fit.nats_after
            )?;
        }
        if let Some(kept) = self.kept {
            writeln!(
                f,
                "a temperature of {kept:.4} is kept with the model; the first row is without it"
            )?;
        }
        if let Some(latent) = &self.latent {
            writeln!(f, "\n{latent}")?;
        }
        writeln!(f, "picture  {}", self.picture)
    }
}
