//! An energy of whole sets: generated sets beside held-out ones.

use std::fmt::{self, Display};
use std::path::Path;

use serde::Serialize;

use super::{Picture, folder_of};
use crate::Result;
use crate::experiment::table;
use crate::figure::Figure;
use crate::figure::contact_sheet::{self, Tile};
use crate::figure::histogram::{HistogramPlot, Sample};
use crate::figure::planar_sets::{self, SetRow};
use crate::metric::collection::Estimate;
use crate::metric::overlap::{Overlap, overlap};
use crate::model::{Model, SetEnergyData, compare_sets};
use crate::process::{Interaction, Refining};
use crate::rng::Stream;

/// Sets on each half of the contact sheet, in rows of `COLUMNS`.
const SHOWN: usize = 16;
const COLUMNS: u32 = 8;

/// What an energy of whole sets has learned.
#[derive(Clone, Debug, Serialize)]
pub struct SetEnergyOutcome {
    /// Its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Its name.
    pub model: &'static str,
    /// What the energy learned from.
    pub estimator: &'static str,
    /// Where the sets come from.
    pub data: String,
    /// Elements of a set.
    pub set_size: usize,
    /// How many sets were compared.
    pub sets: usize,
    /// After how many steps.
    pub steps: u64,
    /// Of training.
    pub seconds: f64,
    /// Sets beside held-out ones.
    pub rows: Vec<SetEnergyRow>,
    /// Of the energies of held-out and generated sets.
    pub overlap: Interval,
    /// What samples of these sizes from one law would have.
    pub overlap_of_one_law: f64,
    /// Of the energies of held-out sets and of sets with independent elements.
    pub overlap_independent: Interval,
    /// Where the pictures belong.
    #[serde(skip)]
    pub plots: String,
}

/// A collection of sets beside held-out ones.
#[derive(Clone, Debug, Serialize)]
pub struct SetEnergyRow {
    /// Which.
    pub name: &'static str,
    /// ½ is ideal.
    pub one_nn_accuracy: Interval,
    /// The share of held-out sets that are nearest to one of them.
    pub coverage: Interval,
    /// Chamfer distance from held-out sets to the nearest of them.
    pub matching_distance: Interval,
}

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Interval {
    /// The number.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<Estimate> for Interval {
    fn from(estimate: Estimate) -> Self {
        Self { value: estimate.value, low: estimate.low, high: estimate.high }
    }
}

pub(super) fn judge(
    model: &Model,
    data: &SetEnergyData,
    plots: &Path,
) -> Result<(SetEnergyOutcome, Vec<Picture>)> {
    let process = model.set_energies()?;
    let settings = process.settings();
    let (dim, size, count) = (data.dim, settings.data.set_size, settings.evaluation.num_sets);
    let refining = settings.evaluation.refining();
    let sample = |refining| {
        process.sample_by(count, size, refining, Stream::new(settings.seed, "generated"))
    };
    let generated = sample(refining)?;
    let weighed = sample(Refining { num_steps: 0, ..refining })?;
    let guessed = sample(Refining::NONE)?;
    let (held_out, independent) = (data.held_out(count), data.independent(count));
    let row = |name, sets: &[f32]| -> Result<SetEnergyRow> {
        let found = compare_sets(sets, &held_out, size, dim)?;
        Ok(SetEnergyRow {
            name,
            one_nn_accuracy: found.one_nn_accuracy.into(),
            coverage: found.coverage.into(),
            matching_distance: found.matching_distance.into(),
        })
    };
    let rows = vec![
        row("generated", &generated)?,
        row("its guesses, weighed", &weighed)?,
        row("its first guess", &guessed)?,
        row("independent elements", &independent)?,
        row("training sets", &data.training(count))?,
    ];
    let energies = [&held_out, &generated, &independent].map(|sets| process.energies(sets, size));
    let [of_held_out, of_generated, of_independent] = energies;
    let energies = [of_held_out?, of_generated?, of_independent?];
    let measure = |first: &[f64], second: &[f64]| -> Result<Overlap> {
        overlap(first, second, Stream::new(settings.seed, "overlap"))
    };
    let found = measure(&energies[0], &energies[1])?;
    let outcome = SetEnergyOutcome {
        run: folder_of(model),
        model: match settings.model.interaction {
            Interaction::DeepSets => "set energy, Deep Sets",
            Interaction::Attention => "set energy, attention",
        },
        estimator: settings.model.estimator.name(),
        data: settings.data.source.clone(),
        set_size: size,
        sets: count,
        steps: model.step(),
        seconds: model.seconds().unwrap_or(0.0),
        rows,
        overlap: found.coefficient.into(),
        overlap_of_one_law: found.same_law,
        overlap_independent: measure(&energies[0], &energies[2])?.coefficient.into(),
        plots: plots.display().to_string(),
    };
    let sets = draw_sets([&held_out, &generated, &independent], size, dim);
    let pictures = vec![
        (plots.join("sets.png"), sets),
        (plots.join("energies.png"), outcome.histogram(&energies).draw()?.into()),
    ];
    Ok((outcome, pictures))
}

/// Held-out sets above, generated ones below; sets of the plane with independent ones too.
fn draw_sets(kinds: [&[f32]; 3], size: usize, dim: usize) -> Figure {
    if dim != 2 {
        let tile = |points| Tile::Cloud { points, dim };
        let tiles: Vec<Tile> = kinds[..2]
            .iter()
            .flat_map(|flat| flat.chunks_exact(size * dim).take(SHOWN).map(tile))
            .collect();
        return contact_sheet::draw(&tiles, COLUMNS).into();
    }
    let row = |(name, flat): (&str, &[f32])| SetRow {
        name: name.to_owned(),
        sets: flat.chunks_exact(2 * size).take(SHOWN / 2).map(<[f32]>::to_vec).collect(),
    };
    let rows: Vec<SetRow> =
        ["held-out", "generated", "independent"].into_iter().zip(kinds).map(row).collect();
    planar_sets::draw(&rows).into()
}

impl SetEnergyOutcome {
    fn histogram(&self, energies: &[Vec<f64>; 3]) -> HistogramPlot {
        let names = ["held-out sets", "generated sets", "independent elements"];
        let sample = |(name, values): (&str, &Vec<f64>)| Sample {
            name: name.to_owned(),
            values: values.clone(),
        };
        let Interval { value, low, high } = self.overlap;
        HistogramPlot {
            title: format!("{}: {}", self.data, self.model),
            samples: names.into_iter().zip(energies).map(sample).collect(),
            x_label: "energy per element, -u / n".to_owned(),
            note: format!("overlap {value:.2} ({low:.2} to {high:.2})"),
        }
    }
}

impl Display for SetEnergyOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, estimator, data, steps, seconds, set_size, sets, .. } = self;
        let scaled = |factor: f64, digits: usize, n: Interval| {
            let [value, low, high] = [n.value, n.low, n.high].map(|number| factor * number);
            format!("{value:.digits$} ({low:.digits$} to {high:.digits$})")
        };
        let head = format!("{sets} sets of {set_size} against as many held-out ones");
        let mut rows = vec![vec![
            head,
            "1-NN accuracy %".into(),
            "coverage %".into(),
            "matching 10^-3".into(),
        ]];
        for row in &self.rows {
            rows.push(vec![
                row.name.to_owned(),
                scaled(100.0, 1, row.one_nn_accuracy),
                scaled(100.0, 1, row.coverage),
                scaled(1e3, 2, row.matching_distance),
            ]);
        }
        writeln!(
            f,
            "{data}, {model} ({estimator}), {steps} steps, {seconds:.1} s\n\n{}\n\
             overlap of energies, held-out and generated  {}; of one law {:.2}\n\
             overlap of energies, held-out and independent  {:.2}\n\n\
             pictures  {}",
            table(&rows),
            scaled(1.0, 2, self.overlap),
            self.overlap_of_one_law,
            self.overlap_independent.value,
            self.plots
        )?;
        self.run.as_ref().map_or(Ok(()), |run| writeln!(f, "model     {run}"))
    }
}
