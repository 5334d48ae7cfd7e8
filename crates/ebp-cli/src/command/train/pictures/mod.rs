//! Training on pictures: sets of pixels, some of which are given.
//!
//! The path: [`Settings`] → [`PictureData`] → [`run_training`] → [`Outcome`] (scores and pictures
//! of completions that it has not seen).

mod data;
mod figure;
mod model;
mod outcome;
mod settings;

use std::time::Instant;

use ebp::data::image::KnownPart;
use ebp::metric::completion::{CompletionTask, judge_completions};
use ebp::rng::Stream;
use ebp::train::{Evaluation, Pictures, Step};

pub(crate) use self::data::PictureData;
pub(crate) use self::figure::{completion_mosaic, filled, shaded};
pub(crate) use self::model::{PictureProcess, Size, TrainedPictures, TrainedProcess, new_model};
pub(crate) use self::outcome::{Jury, Outcome, Training, score_table};
pub(crate) use self::settings::{ProcessName, Settings, preset_settings};
use super::{TrainArguments, directory};
use crate::device;
use crate::failure::Failure;
use crate::run::{TrainingPlan, run_training};
use crate::threads::start_threads;
use ebp::config::Layers;

/// Pictures and draws of a quick look on the way.
const LOOK_PICTURES: usize = 16;
const LOOK_DRAWS: usize = 8;

/// Trains and reports.
pub(super) fn run(
    arguments: &TrainArguments,
    name: &str,
    layers: &Layers<'_>,
) -> Result<(), Failure> {
    let resolved = layers.resolve::<Settings>()?;
    if arguments.print_config {
        crate::output::print(&resolved.text)?;
        return Ok(());
    }
    let settings = resolved.config;
    let threads = start_threads(arguments.threads)?;
    threads.install(|| {
        let data = PictureData::load(&settings.data)?;
        let directory = directory(arguments, name)?;
        let started = Instant::now();
        let mut model = new_model(&settings, &data)?;
        let plan = TrainingPlan {
            directory: directory.clone(),
            existing: arguments.existing(),
            config: resolved.text,
            changeable: vec!["train.num_steps".into()],
            trainer: settings.train.clone(),
            seed: settings.seed,
            device: device::open()?.name,
            threads: rayon::current_num_threads(),
            evaluations: vec![evaluation(&settings, &data)?],
            numbers: Size::of(&data.training).numbers(),
            shown: ["bits", "kl", "active_units", "held_out_bits"].map(Into::into).to_vec(),
            is_quiet: arguments.quiet,
        };
        let steps = run_training(&mut model, plan)?;
        let training = Training { steps, seconds: started.elapsed().as_secs_f64() };
        let mut process = model.into_process();
        process.use_average()?;
        let jury = Jury::train(&settings.evaluation, &data)?;
        let outcome = Outcome::new(process.as_ref(), &settings, &data, jury.as_ref(), training)?;
        let path = figure::draw(process.as_ref(), &settings.evaluation, &data.test, &directory)?;
        outcome.print(&directory, &path, arguments.json)
    })
}

/// What is measured on the way, with the averages in the place of the parameters.
fn evaluation<'a>(
    settings: &Settings,
    data: &'a PictureData,
) -> Result<Evaluation<'a, Pictures<dyn PictureProcess>>, Failure> {
    let every = settings.evaluation.every;
    let count = data.training.width * data.training.height / 8;
    let function = move |model: &mut Pictures<dyn PictureProcess>, _: &Step| {
        let process = model.process_mut();
        process.use_average()?;
        let task = CompletionTask {
            images: &data.validation,
            num_pictures: LOOK_PICTURES,
            part: KnownPart::Random(count),
            num_draws: LOOK_DRAWS,
            stream: Stream::new(0, "evaluation on the way"),
        };
        let found = judge_completions(&*process, &task, None);
        process.use_parameters()?;
        Ok(vec![("held_out_bits".to_owned(), found?.bits.mean)])
    };
    Ok(Evaluation::new(every, function)?)
}
