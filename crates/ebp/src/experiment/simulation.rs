//! Patterns drawn from known Gibbs processes beside those of spatstat: number of points and Ripley's K.
//!
//! Stored means and standard errors of 1,000 patterns in the unit square with nothing outside it are of
//! R 4.2.2 with spatstat.random 3.1-3 and spatstat.explore 3.0-6 (Debian 12), by
//! `Rscript tools/reference/point_patterns.R FOLDER LAW`. `rStrauss` and `rHardcore` draw exactly, `rmh` has
//! 200,000 proposals; `rmh` counts the discs of an area interaction on a grid, which we do not.

use std::fmt::{self, Display};

use serde::Serialize;

use super::table;
use crate::Result;
use crate::pattern::{
    ChainSettings, Family, Gibbs, Interaction, Moves, Pattern, Summary, Trend, Window,
    simulate_watched,
};
use crate::rng::Stream;

/// Distances at which K is read.
const DISTANCES: [f64; 2] = [0.05, 0.1];
/// What is compared.
const QUANTITIES: [&str; 3] = ["points", "K(0.05)", "K(0.1)"];
/// Points that proposals are counted by: about the mean of the laws.
const POINTS: usize = 60;

/// A law, and what spatstat found: mean and standard error of each quantity.
struct Law {
    name: &'static str,
    interaction: Interaction,
    /// β and γ (κ and η of the area interaction); a hard core has β alone.
    parameters: &'static [f64],
    references: &'static [(&'static str, [(f64, f64); 3])],
}

const LAWS: [Law; 4] = [
    Law {
        name: "Strauss, beta 100, gamma 0.3, r 0.07",
        interaction: Interaction::Strauss { radius: 0.07 },
        parameters: &[100.0, 0.3],
        references: &[
            ("rStrauss", [(54.693, 0.188_144), (0.003_069, 0.000_043), (0.023_030, 0.000_114)]),
            ("rmh", [(54.734, 0.182), (0.003_057, 0.000_043), (0.022_914, 0.000_115)]),
        ],
    },
    Law {
        name: "hard core, beta 100, h 0.05",
        interaction: Interaction::HardCore { radius: 0.05 },
        parameters: &[100.0],
        references: &[("rHardcore", [(60.109, 0.209), (0.0, 0.0), (0.024_747, 0.000_096)])],
    },
    Law {
        name: "Geyer, beta 40, gamma 1.5, r 0.05, s 2",
        interaction: Interaction::Geyer { radius: 0.05, saturation: 2.0 },
        parameters: &[40.0, 1.5],
        references: &[("rmh", [(64.164, 0.307), (0.015_288, 0.000_095), (0.039_138, 0.000_188)])],
    },
    Law {
        name: "area, kappa 40, eta 5, r 0.05",
        interaction: Interaction::Area { radius: 0.05 },
        parameters: &[40.0, 5.0],
        references: &[("rmh", [(94.149, 0.419), (0.013_032, 0.000_065), (0.041_208, 0.000_153)])],
    },
];

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct SimulationExperiment {
    /// Patterns of each law.
    pub num_patterns: usize,
    /// Proposals before a pattern is read, per point of 60.
    pub steps_per_point: usize,
    /// How chains move points.
    pub moves: Moves,
    /// Of all of them.
    pub seed: u64,
}

/// All laws beside spatstat.
#[derive(Clone, Debug, Serialize)]
pub struct SimulationReport {
    /// Patterns of each law.
    pub patterns: usize,
    /// Proposals of a chain.
    pub proposals: usize,
    /// A row for every law, reference and quantity.
    pub rows: Vec<SimulationRow>,
    /// The largest difference, in standard errors of both together.
    pub largest: f64,
    /// Whether that is within 3.
    pub is_within_three: bool,
}

/// One quantity of one law.
#[derive(Clone, Debug, Serialize)]
pub struct SimulationRow {
    /// The law.
    pub law: &'static str,
    /// What is compared.
    pub quantity: &'static str,
    /// Our mean.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// By which function of spatstat.
    pub reference: &'static str,
    /// Its mean.
    pub reference_mean: f64,
    /// The standard error of that.
    pub reference_error: f64,
    /// The difference in standard errors of both together.
    pub errors_away: f64,
}

impl SimulationExperiment {
    /// Draws and compares.
    ///
    /// # Errors
    ///
    /// As [`simulate`](crate::pattern::simulate()).
    pub fn run(&self) -> Result<SimulationReport> {
        self.run_watched(&|| {})
    }

    /// How many patterns are drawn in all.
    pub fn num_drawn(&self) -> usize {
        LAWS.len() * self.num_patterns
    }

    /// The same; `watch` is called once for every pattern that is drawn, by any thread.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_watched(&self, watch: &(dyn Fn() + Sync)) -> Result<SimulationReport> {
        let num_steps = self.steps_per_point.max(1) * POINTS;
        let chain =
            ChainSettings { num_steps, moves: self.moves, ..ChainSettings::for_points(POINTS) };
        let mut rows = Vec::new();
        for (number, law) in (0_u64..).zip(&LAWS) {
            let stream = Stream::new(self.seed, "simulation").child(number);
            let all = 0..self.num_patterns;
            let drawn = simulate_watched(&law.model()?, all, &chain, stream, watch)?;
            let found = measure(&drawn)?;
            for &(reference, expected) in law.references {
                for (q, quantity) in QUANTITIES.into_iter().enumerate() {
                    let ((mean, standard_error), (reference_mean, reference_error)) =
                        (found[q], expected[q]);
                    let error = standard_error.hypot(reference_error);
                    let away = (mean - reference_mean).abs();
                    rows.push(SimulationRow {
                        law: law.name,
                        quantity,
                        mean,
                        standard_error,
                        reference,
                        reference_mean,
                        reference_error,
                        // Nothing within a hard core: equal without any error.
                        errors_away: if away == 0.0 { 0.0 } else { away / error },
                    });
                }
            }
        }
        let largest = rows.iter().map(|row| row.errors_away).fold(0.0, f64::max);
        Ok(SimulationReport {
            patterns: self.num_patterns,
            proposals: num_steps,
            is_within_three: largest <= 3.0,
            largest,
            rows,
        })
    }
}

impl Law {
    fn model(&self) -> Result<Gibbs> {
        let family = Family { trend: Trend::Constant, interaction: self.interaction };
        let coefficients = self.parameters.iter().map(|parameter| parameter.ln()).collect();
        Gibbs::new(family, Window::unit(), coefficients)
    }
}

/// Means and standard errors of the quantities.
fn measure(patterns: &[Pattern]) -> Result<[(f64, f64); 3]> {
    let row = |pattern: &Pattern| -> Result<[f64; 3]> {
        let k = Summary::K.of(pattern, &DISTANCES)?;
        Ok([pattern.points().len() as f64, k[0], k[1]])
    };
    let rows = patterns.iter().map(row).collect::<Result<Vec<_>>>()?;
    let count = rows.len() as f64;
    Ok([0, 1, 2].map(|q| {
        let mean = rows.iter().map(|row| row[q]).sum::<f64>() / count;
        let square: f64 = rows.iter().map(|row| (row[q] - mean).powi(2)).sum();
        (mean, (square / (count * (count - 1.0).max(1.0))).sqrt())
    }))
}

impl Display for SimulationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { patterns, proposals, largest, .. } = self;
        writeln!(f, "{patterns} patterns of each law, {proposals} proposals before each\n")?;
        let header = ["law", "", "ours", "spatstat", "by", "errors away"];
        let mut lines = vec![header.map(str::to_owned).to_vec()];
        for row in &self.rows {
            let digits = if row.quantity == QUANTITIES[0] { 3 } else { 6 };
            let number = |mean: f64, error: f64| format!("{mean:.digits$} ({error:.digits$})");
            lines.push(vec![
                row.law.to_owned(),
                row.quantity.to_owned(),
                number(row.mean, row.standard_error),
                number(row.reference_mean, row.reference_error),
                row.reference.to_owned(),
                format!("{:.2}", row.errors_away),
            ]);
        }
        let verdict = if self.is_within_three { "within 3" } else { "MORE THAN 3" };
        writeln!(f, "{}\nlargest difference {largest:.2} standard errors: {verdict}", table(&lines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenth of the patterns: our errors are three times as large as the stored ones, and the largest of 15
    /// differences is within 4.
    #[test]
    fn patterns_are_those_of_spatstat() {
        for moves in [Moves::Points, Moves::Langevin] {
            let experiment =
                SimulationExperiment { num_patterns: 60, steps_per_point: 150, moves, seed: 2 };
            let report = experiment.run().unwrap();
            assert_eq!(report.rows.len(), 15);
            assert!(report.largest < 4.0, "{report}");
            assert!(report.to_string().contains("rHardcore"));
        }
    }
}
