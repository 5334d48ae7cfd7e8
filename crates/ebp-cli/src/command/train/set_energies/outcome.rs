//! What a run has learned: generated sets beside held-out ones.

use std::path::Path;
use std::time::Duration;

use ebp::SetOffsets;
use ebp::metric::collection::{CollectionOptions, Estimate, NeighbourMetrics, evaluate};
use ebp::metric::distance::ArrangedCloud;
use ebp::metric::overlap::{Overlap, overlap};
use ebp::process::{Interaction, SetEnergyProcess};
use ebp::rng::Stream;
use ebp::train::SetTraining;
use image::RgbImage;
use serde::Serialize;

use super::data::Data;
use super::settings::Settings;
use crate::failure::Failure;
use crate::output;
use ebp::figure::contact_sheet::{self, Tile};
use ebp::figure::histogram::{HistogramPlot, Sample};
use ebp::figure::planar_sets::{self, SetRow};
use ebp::figure::save;

/// Sets on each half of the contact sheet, in rows of `COLUMNS`.
const SHOWN: usize = 16;
const COLUMNS: u32 = 8;

/// Collections of sets, their energies and how they compare.
pub(super) struct Outcome {
    report: Report,
    dim: usize,
    size: usize,
    held_out: Vec<f32>,
    generated: Vec<f32>,
    independent: Vec<f32>,
    energies: [Vec<f64>; 3],
}

#[derive(Debug, Serialize)]
struct Report {
    model: &'static str,
    data: String,
    set_size: usize,
    sets: usize,
    steps: u64,
    seconds: f64,
    rows: Vec<Row>,
    /// Of the energies of held-out and generated sets.
    overlap: Number,
    /// What samples of these sizes from one law would have.
    overlap_of_one_law: f64,
    /// Of the energies of held-out sets and of sets with independent elements.
    overlap_independent: Number,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    one_nn_accuracy: Number,
    coverage: Number,
    matching_distance: Number,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Number {
    value: f64,
    low: f64,
    high: f64,
}

impl From<Estimate> for Number {
    fn from(estimate: Estimate) -> Self {
        Self { value: estimate.value, low: estimate.low, high: estimate.high }
    }
}

/// Metrics of two collections of sets by Chamfer distance.
pub(super) fn compare(
    samples: &[f32],
    references: &[f32],
    size: usize,
    dim: usize,
) -> ebp::Result<NeighbourMetrics> {
    let clouds = |flat: &[f32]| -> ebp::Result<Vec<ArrangedCloud>> {
        let wide: Vec<f64> = flat.iter().map(|&x| f64::from(x)).collect();
        wide.chunks_exact(size * dim).map(|set| ArrangedCloud::new(dim, set)).collect()
    };
    let options = CollectionOptions { emd: None, cache: None, seed: 0 };
    Ok(evaluate(&clouds(samples)?, &clouds(references)?, &options, &mut |_| ())?.chamfer)
}

/// −u per element of every set.
fn energies(model: &SetEnergyProcess, sets: &[f32], size: usize) -> Result<Vec<f64>, Failure> {
    let rows = size * model.config().element_dim;
    let offsets = SetOffsets::uniform(sets.len() / rows, size)?;
    let u = model.log_potentials(sets, &offsets)?;
    Ok(u.into_iter().map(|u| -f64::from(u) / size as f64).collect())
}

impl Outcome {
    pub(super) fn new(
        mut training: SetTraining,
        data: &Data,
        settings: &Settings,
        steps: u64,
        elapsed: Duration,
    ) -> Result<Self, Failure> {
        training.model_mut().use_average()?;
        let model = training.model();
        let (dim, size, count) = (data.dim, settings.data.set_size, settings.evaluation.num_sets);
        let stream = Stream::new(settings.seed, "generated");
        let generated = model.sample(count, size, settings.evaluation.num_refining, stream)?;
        let held_out = data.held_out(count);
        let independent = data.independent(count);
        let row = |name, sets: &[f32]| -> Result<Row, Failure> {
            let found = compare(sets, &held_out, size, dim)?;
            Ok(Row {
                name,
                one_nn_accuracy: found.one_nn_accuracy.into(),
                coverage: found.coverage.into(),
                matching_distance: found.matching_distance.into(),
            })
        };
        let rows = vec![
            row("generated", &generated)?,
            row("independent elements", &independent)?,
            row("training sets", &data.training(count))?,
        ];
        let energies = [
            energies(model, &held_out, size)?,
            energies(model, &generated, size)?,
            energies(model, &independent, size)?,
        ];
        let measure = |first: &[f64], second: &[f64]| -> Result<Overlap, Failure> {
            Ok(overlap(first, second, Stream::new(settings.seed, "overlap"))?)
        };
        let found = measure(&energies[0], &energies[1])?;
        let report = Report {
            model: match settings.model.interaction {
                Interaction::DeepSets => "set energy, Deep Sets",
                Interaction::Attention => "set energy, attention",
            },
            data: settings.data.source.clone(),
            set_size: size,
            sets: count,
            steps,
            seconds: elapsed.as_secs_f64(),
            rows,
            overlap: found.coefficient.into(),
            overlap_of_one_law: found.same_law,
            overlap_independent: measure(&energies[0], &energies[2])?.coefficient.into(),
        };
        Ok(Self { report, dim, size, held_out, generated, independent, energies })
    }

    /// `plots/sets.png`, held-out sets above and generated ones below, and `plots/energies.png`.
    pub(super) fn draw(&self, directory: &Path) -> Result<(), Failure> {
        let folder = directory.join("plots");
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::cannot("create", &folder, &error))?;
        save(&self.sets(), &folder.join("sets.png"))?;
        let names = ["held-out sets", "generated sets", "independent elements"];
        let sample = |(name, values): (&str, &Vec<f64>)| Sample {
            name: name.to_owned(),
            values: values.clone(),
        };
        let Number { value, low, high } = self.report.overlap;
        let plot = HistogramPlot {
            title: format!("{}: {}", self.report.data, self.report.model),
            samples: names.into_iter().zip(&self.energies).map(sample).collect(),
            x_label: "energy per element, -u / n".to_owned(),
            note: format!("overlap {value:.2} ({low:.2} to {high:.2})"),
            scale: 2,
        };
        Ok(save(&plot.draw()?, &folder.join("energies.png"))?)
    }

    fn sets(&self) -> RgbImage {
        if self.dim != 2 {
            let tiles = |flat| tiles(flat, self.size, self.dim);
            let all: Vec<Tile> = tiles(&self.held_out).chain(tiles(&self.generated)).collect();
            return contact_sheet::draw(&all, COLUMNS);
        }
        let named = ["held-out", "generated", "independent"].into_iter();
        let rows: Vec<SetRow> = named
            .zip([&self.held_out, &self.generated, &self.independent])
            .map(|(name, flat)| SetRow {
                name: name.to_owned(),
                sets: flat
                    .chunks_exact(2 * self.size)
                    .take(SHOWN / 2)
                    .map(<[f32]>::to_vec)
                    .collect(),
            })
            .collect();
        planar_sets::draw(&rows, 2)
    }

    pub(super) fn print_json(&self) -> Result<(), Failure> {
        output::print_json(&self.report)
    }

    pub(super) fn print_table(&self, directory: &Path) -> Result<(), Failure> {
        let Report { model, data, steps, seconds, set_size, sets, .. } = &self.report;
        let percent = |n: Number| {
            format!("{:.1} ({:.1} to {:.1})", 100.0 * n.value, 100.0 * n.low, 100.0 * n.high)
        };
        let scaled =
            |n: Number| format!("{:.2} ({:.2} to {:.2})", 1e3 * n.value, 1e3 * n.low, 1e3 * n.high);
        let head = format!("{sets} sets of {set_size} against as many held-out ones");
        let mut rows = vec![vec![
            head,
            "1-NN accuracy %".into(),
            "coverage %".into(),
            "matching 10^-3".into(),
        ]];
        for row in &self.report.rows {
            rows.push(vec![
                row.name.to_owned(),
                percent(row.one_nn_accuracy),
                percent(row.coverage),
                scaled(row.matching_distance),
            ]);
        }
        let Number { value, low, high } = self.report.overlap;
        let text = format!(
            "{data}, {model}, {steps} steps, {seconds:.1} s\n\n{}\n\
             overlap of energies, held-out and generated  {value:.2} ({low:.2} to {high:.2}); of one law {:.2}\n\
             overlap of energies, held-out and independent  {:.2}\n\n\
             pictures  {}\nmodel     {}\n",
            output::table(&rows),
            self.report.overlap_of_one_law,
            self.report.overlap_independent.value,
            directory.join("plots").display(),
            directory.display()
        );
        output::print(&text)
    }
}

fn tiles(flat: &[f32], size: usize, dim: usize) -> impl Iterator<Item = Tile<'_>> {
    let set = move |points| Tile::Cloud { points, dim };
    flat.chunks_exact(size * dim).take(SHOWN).map(set)
}
