//! Training on clouds: the unconditional energy-based process.
//!
//! The path: [`CloudSettings`] → [`CloudData`] → [`run_training`] → [`Outcome`], a table beside
//! the training sets and a contact sheet.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use ebp::process::{DrawSettings, UnconditionalProcess};
use ebp::rng::Stream;
use ebp::train::{CloudTraining, Evaluation, Existing, Step};
use serde::Serialize;

use super::{TrainArguments, directory};
use crate::command::cloud_model::{
    CloudData, CloudSettings, Generation, GenerationRow, TrainedCloud, chamfer, draw_rows,
    generation_table, standardised_sets,
};
use crate::device;
use crate::failure::Failure;
use crate::output;
use crate::run::{TrainingPlan, run_training};
use crate::threads::start_threads;
use ebp::config::Layers;

/// Clouds per row of the contact sheet, and points of those that are drawn for it: more than are
/// measured, so that a person sees surfaces.
const COLUMNS: usize = 8;
const DRAWN_POINTS: usize = 2048;

/// Trains and reports.
pub(super) fn run(
    arguments: &TrainArguments,
    name: &str,
    layers: &Layers<'_>,
) -> Result<(), Failure> {
    let resolved = layers.resolve::<CloudSettings>()?;
    if arguments.print_config {
        return output::print(&resolved.text);
    }
    let settings = resolved.config;
    let directory = directory(arguments, name)?;
    let threads = start_threads(arguments.threads)?;
    threads.install(|| {
        let data = CloudData::load(&settings)?;
        let started = Instant::now();
        let folder = TrainingFolder {
            directory: &directory,
            existing: arguments.existing(),
            config: resolved.text,
        };
        let trained = train_cloud(settings, &data, folder, arguments.quiet)?;
        let outcome = Outcome::new(&trained, &data, &directory, started.elapsed().as_secs_f64())?;
        if arguments.json { output::print_json(&outcome) } else { outcome.print_table() }
    })
}

/// Where a run is kept.
pub(crate) struct TrainingFolder<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) existing: Existing,
    /// The settings as text.
    pub(crate) config: String,
}

/// Trains a model of clouds and keeps the codes of its training sets.
pub(crate) fn train_cloud(
    settings: CloudSettings,
    data: &CloudData,
    folder: TrainingFolder<'_>,
    is_quiet: bool,
) -> Result<TrainedCloud, Failure> {
    let mut model = new_training(&settings, data)?;
    let plan = TrainingPlan {
        directory: folder.directory.to_owned(),
        existing: folder.existing,
        config: folder.config,
        changeable: vec!["train.num_steps".into()],
        trainer: settings.train.clone(),
        seed: settings.seed,
        device: device::open()?.name,
        threads: rayon::current_num_threads(),
        evaluations: vec![evaluation(&settings, data)?],
        numbers: data.scale.numbers(),
        shown: ["nats", "kl", "active_units", "effective_candidates", "held_out_nats"]
            .map(Into::into)
            .to_vec(),
        is_quiet,
    };
    let num_steps = run_training(&mut model, plan)?;
    let (process, scale) = (model.into_process(), data.scale.clone());
    let trained = TrainedCloud::new(settings, process, scale, num_steps, folder.directory)?;
    trained.keep_codes(data)?;
    Ok(trained)
}

/// The untrained model that the settings describe.
fn new_training(settings: &CloudSettings, data: &CloudData) -> Result<CloudTraining, Failure> {
    let config = data.scale.complete(settings.model.clone());
    let process = UnconditionalProcess::new(config, settings.seed, device::open()?.backend)?;
    Ok(CloudTraining::new(process, data.train.clone(), settings.batch_size, settings.seed)?)
}

/// What is held out, with the averages in the place of the parameters.
fn evaluation<'a>(
    settings: &CloudSettings,
    data: &'a CloudData,
) -> Result<Evaluation<'a, CloudTraining>, Failure> {
    let sets = data.held_out_sets(settings.evaluation.num_sets);
    let function = move |model: &mut CloudTraining, step: &Step| {
        let process = model.process_mut();
        process.use_average()?;
        let found = process.evaluate(&sets, step.stream);
        process.use_parameters()?;
        Ok(found?.into_iter().map(|(name, value)| (format!("held_out_{name}"), value)).collect())
    };
    Ok(Evaluation::new(settings.evaluation.every, function)?)
}

/// What a run has learned.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    estimator: &'static str,
    steps: u64,
    seconds: f64,
    /// Negative log-density of held-out points at θ = μ, in nats per standardised point.
    held_out_nats: f64,
    /// KL(q(θ | set) ‖ N(0, I)) of held-out sets.
    held_out_kl: f64,
    active_units: usize,
    /// Chamfer distance of held-out sets and clouds drawn from their own codes.
    reconstruction_cd: f64,
    /// Proposals per set for drawing, and how many they are worth.
    num_proposals: usize,
    effective_proposals: f64,
    prior: &'static str,
    rows: Vec<GenerationRow>,
    picture: String,
}

impl Outcome {
    pub(crate) fn new(
        trained: &TrainedCloud,
        data: &CloudData,
        directory: &Path,
        seconds: f64,
    ) -> Result<Self, Failure> {
        let evaluation = &trained.settings.evaluation;
        let stream = Stream::new(trained.settings.seed, "outcome");
        let held_out = data.held_out_sets(evaluation.num_sets);
        let found = trained.process.evaluate(&held_out, stream.child(0))?;
        let number = |name: &str| {
            found.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, value)| *value)
        };
        let dim = trained.dim();
        let raw = |sets: &[&[f32]]| -> Vec<Vec<f32>> {
            let affine = &trained.scale.affine;
            sets.iter().flat_map(|set| standardised_sets(set, set.len(), affine)).collect()
        };
        let references = raw(&held_out);
        let draw = DrawSettings::default();
        let num_points = evaluation.num_points;
        let codes = trained.process.encode(&held_out)?;
        let (rebuilt, _) = trained.draw_clouds(&codes.mean, num_points, &draw, stream.child(1))?;
        let count = held_out.len();
        let theta = trained.draw_latents(evaluation.prior, count, stream.child(2))?;
        let (samples, report) = trained.draw_clouds(&theta, num_points, &draw, stream.child(3))?;
        let order = stream.child(4).permutation(data.train.num_clouds());
        let oracle: Vec<&[f32]> =
            order.iter().take(count).map(|&set| data.train.cloud(set)).collect();
        let measure = |name: &str, clouds: &[Vec<f32>]| -> Result<GenerationRow, Failure> {
            let scores = Generation::measure(clouds, &references, dim, num_points, 0)?;
            Ok(GenerationRow { name: name.to_owned(), scores })
        };
        let rows = vec![measure("samples", &samples)?, measure("training sets", &raw(&oracle))?];
        let picture = directory.join("plots").join("clouds.png");
        let first = |codes: &[f32], count: usize| {
            let end = (count * trained.process.config().latent_dim).min(codes.len());
            trained.draw_clouds(&codes[..end], DRAWN_POINTS, &draw, stream.child(5))
        };
        let (shown_rebuilt, _) = first(&codes.mean, COLUMNS)?;
        let (shown_samples, _) = first(&theta, 2 * COLUMNS)?;
        let sheet: Vec<&[Vec<f32>]> =
            [&references[..references.len().min(COLUMNS)], &shown_rebuilt]
                .into_iter()
                .chain(shown_samples.chunks(COLUMNS))
                .collect();
        draw_rows(&picture, &sheet, dim)?;
        Ok(Self {
            estimator: trained.process.config().estimator.name(),
            steps: trained.step,
            seconds,
            held_out_nats: number("nats"),
            held_out_kl: number("kl"),
            active_units: codes.num_active(),
            reconstruction_cd: chamfer(&rebuilt, &references, dim)?,
            num_proposals: report.num_proposals,
            effective_proposals: report.effective_proposals,
            prior: evaluation.prior.name(),
            rows,
            picture: picture.display().to_string(),
        })
    }

    pub(crate) fn print_table(&self) -> Result<(), Failure> {
        let mut text = format!(
            "{} steps in {:.0} s, estimator {}, prior {}\n\n",
            self.steps, self.seconds, self.estimator, self.prior
        );
        text.push_str(&generation_table(&self.rows));
        let _ = write!(
            text,
            "\nheld out: {:.3} nats per point, KL {:.1} nats per set, {} active units\n\
             reconstruction: Chamfer {:.2} ×10⁻³\n\
             drawing: {:.0} of {} proposals effective\n\
             picture (held out, rebuilt, two rows of samples): {}\n",
            self.held_out_nats,
            self.held_out_kl,
            self.active_units,
            1e3 * self.reconstruction_cd,
            self.effective_proposals,
            self.num_proposals,
            self.picture
        );
        output::print(&text)
    }
}
