//! Models of pictures: sets of pixels, some of which are given.
//!
//! The path: [`PictureSettings`] → [`PictureData`] → `learn` → [`PictureModel`], which fills in what
//! is missing.

mod complete;
mod data;
mod element;
mod exact;
mod given;
mod settings;
mod tiles;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use self::complete::filled;
pub use self::complete::{CompleteOptions, Completions, PixelDraw};
pub use self::data::PictureData;
pub(in crate::model) use self::data::read_mnist;
pub use self::given::{GivenPicture, MaskOptions};
pub use self::settings::{
    FigureColumns, PictureDataSettings, PictureEvaluation, PictureProcessName, PictureSettings,
};
use super::{Device, Lesson};
use crate::checkpoint::Checkpoint;
use crate::data::Grid;
use crate::data::image::{Images, KnownPart};
use crate::exchange::Shard;
use crate::metric::completion::{CompletionTask, judge_completions};
use crate::process::EnergyBasedProcess;
use crate::process::neural::{NeuralProcess, NeuralProcessConfig};
use crate::process::{LatentProcess, Learner};
use crate::recipe::{
    EnergyBasedConfig, Estimator, NegativePhase, PosteriorForm, SamplerKind, Space,
};
use crate::rng::Stream;
use crate::tape;
use crate::tensor::Tensors;
use crate::train::{Evaluation, Finished, PictureTaskConfig, Pictures, Step, Trainable};
use crate::{Error, Result};

/// Pictures and draws of a quick look on the way.
const LOOK_PICTURES: usize = 16;
const LOOK_DRAWS: usize = 8;

/// A process that learns pictures and can be asked about them.
trait PictureProcess: Learner + LatentProcess {}

impl<P: Learner + LatentProcess> PictureProcess for P {}

/// The size of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureSize {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 or 3.
    pub channels: usize,
}

impl PictureSize {
    fn of(images: &Images) -> Self {
        Self { width: images.width, height: images.height, channels: images.channels }
    }

    /// For the checkpoints.
    fn numbers(self) -> BTreeMap<String, Vec<f64>> {
        let numbers = [self.width, self.height, self.channels].map(|number| number as f64);
        BTreeMap::from([("picture_size".to_owned(), numbers.to_vec())])
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they were counts")]
    fn from_numbers(numbers: &BTreeMap<String, Vec<f64>>) -> Result<Self> {
        match numbers.get("picture_size").map(Vec::as_slice) {
            Some(&[width, height, channels]) => Ok(Self {
                width: width as usize,
                height: height as usize,
                channels: channels as usize,
            }),
            _ => Err(Error::failed("the model lacks the size of its pictures")),
        }
    }
}

/// A trained model of pictures.
#[derive(Debug)]
pub struct PictureModel {
    settings: PictureSettings,
    process: Trained,
    size: PictureSize,
}

/// The process, predicting with its averages.
#[derive(Debug)]
enum Trained {
    EnergyBased(Box<EnergyBasedProcess>),
    Rival(Box<NeuralProcess>),
}

impl Trained {
    /// The untrained process that the settings describe.
    fn new(settings: &PictureSettings, size: PictureSize, device: &tape::Device) -> Result<Self> {
        let seed = settings.seed;
        let grid = Grid::new(size.width, size.height)?;
        let space = Space::picture(grid, size.channels);
        let energy_based = |config: EnergyBasedConfig| -> Result<Self> {
            let process = EnergyBasedProcess::new(config, space, seed, device)?;
            Ok(Self::EnergyBased(Box::new(process)))
        };
        let element = |estimator: Estimator| {
            let mut config = EnergyBasedConfig { estimator, ..settings.element_model.clone() };
            let is_plain = config.sampler.negative_phase == NegativePhase::Plain;
            if estimator == Estimator::Ade && is_plain {
                // Against a moving opponent momentum overshoots.
                config.beta1 = 0.0;
            }
            energy_based(config)
        };
        let on_grid = || settings.neural.on_grid(grid);
        let kind = match settings.process {
            PictureProcessName::Exact => return energy_based(settings.model.clone()),
            PictureProcessName::Importance => return element(Estimator::Importance),
            PictureProcessName::Ade => return element(Estimator::Ade),
            PictureProcessName::Cnp => NeuralProcessConfig::conditional(),
            PictureProcessName::Np => NeuralProcessConfig::latent(),
            PictureProcessName::Anp => NeuralProcessConfig::attentive(),
            PictureProcessName::Convcnp => NeuralProcessConfig::convolutional(on_grid()),
            PictureProcessName::Convnp => NeuralProcessConfig::convolutional_latent(on_grid()),
        };
        let config = settings.neural.config(kind, 2, size.channels);
        Ok(Self::Rival(Box::new(NeuralProcess::new(config, seed, device)?)))
    }

    fn into_process(self) -> Box<dyn PictureProcess> {
        match self {
            Self::EnergyBased(process) => process,
            Self::Rival(process) => process,
        }
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        match self {
            Self::EnergyBased(process) => process.as_mut(),
            Self::Rival(process) => process.as_mut(),
        }
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let learner = self.learner_mut();
        learner.restore(state)?;
        learner.use_average()
    }
}

/// The untrained process with its pictures.
fn training(
    settings: &PictureSettings,
    images: &Arc<Images>,
    device: &Device,
    shard: Shard,
) -> Result<Pictures<dyn PictureProcess>> {
    let size = PictureSize::of(images);
    let process = Trained::new(settings, size, device.tape())?.into_process();
    // Blocks of an LSTM are rows where all unknown pixels are asked for, in their order.
    let draws_rows = settings.process == PictureProcessName::Ade
        && settings.element_model.sampler.kind == SamplerKind::Block;
    let max_target = match settings.process {
        PictureProcessName::Exact => settings.tasks.max_target,
        _ if draws_rows => settings.tasks.max_target,
        _ => settings.max_target,
    };
    let num_pictures = shard.part_of("tasks.num_pictures", settings.tasks.num_pictures)?;
    let tasks = PictureTaskConfig { num_pictures, max_target, ..settings.tasks };
    Pictures::new(process, Arc::clone(images), tasks)
}

/// The same for those who take its steps themselves.
pub(crate) fn picture_training(
    settings: &PictureSettings,
    images: &Arc<Images>,
    device: &Device,
) -> Result<impl Trainable + use<>> {
    training(settings, images, device, Shard::WHOLE)
}

/// Trains the process that the settings describe.
pub(super) fn learn(
    settings: &PictureSettings,
    data: &PictureData,
    lesson: Lesson<'_>,
) -> Result<Finished> {
    let mut model =
        lesson.replicas(|shard, device| training(settings, &data.training, device, shard))?;
    let count = data.training.width * data.training.height / 8;
    let look = move |model: &mut Pictures<dyn PictureProcess>, _: &Step| {
        let process = model.process_mut();
        process.use_average()?;
        let task = CompletionTask {
            images: &data.validation,
            num_pictures: LOOK_PICTURES,
            part: KnownPart::Random(count),
            num_draws: LOOK_DRAWS,
            rounds: None,
            stream: Stream::new(0, "evaluation on the way"),
        };
        let found = judge_completions(&*process, &task, None);
        process.use_parameters()?;
        Ok(vec![("held_out_bits".to_owned(), found?.bits.mean)])
    };
    let evaluation = Evaluation::of_first(Evaluation::new(settings.evaluation.every, look)?);
    lesson.run(&mut model, evaluation, PictureSize::of(&data.training).numbers())
}

/// Takes `count` steps of an untrained process and calls `lap` after each, to know how long they take.
pub(crate) fn rehearse(
    settings: &PictureSettings,
    data: &PictureData,
    device: &Device,
    count: u64,
    mut lap: impl FnMut(),
) -> Result<()> {
    let mut model = training(settings, &data.training, device, Shard::WHOLE)?;
    let step = |number: u64| Step {
        number,
        num_steps: count,
        stream: Stream::new(settings.seed, "timing").child(number),
        learning_rate_factor: 1.0,
    };
    for number in 0..count {
        // As in training, the next batch is made meanwhile.
        model.foresee(&step(number + 1));
        model.step(&step(number))?;
        lap();
    }
    Ok(())
}

impl PictureModel {
    /// The model that a checkpoint holds.
    pub(super) fn restore(
        settings: &PictureSettings,
        checkpoint: &Checkpoint,
        device: &Device,
    ) -> Result<Self> {
        let size = PictureSize::from_numbers(&checkpoint.meta.numbers)?;
        let mut process = Trained::new(settings, size, device.tape())?;
        process.restore(&checkpoint.model_state()?)?;
        Ok(Self { settings: settings.clone(), process, size })
    }

    pub(super) fn learner_mut(&mut self) -> &mut dyn Learner {
        self.process.learner_mut()
    }

    /// The settings it was trained with.
    pub fn settings(&self) -> &PictureSettings {
        &self.settings
    }

    /// The size of the pictures it knows.
    pub fn size(&self) -> PictureSize {
        self.size
    }

    /// Whether no parameter belongs to a place, so that pictures of any size can be read.
    pub fn reads_any_size(&self) -> bool {
        match &self.process {
            Trained::EnergyBased(process) => {
                let config = process.config();
                config.posterior != PosteriorForm::Table && config.canvas_dim == 0
            }
            Trained::Rival(_) => true,
        }
    }

    /// The same parameters for pictures of another size.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if some parameters belong to places.
    pub fn resized(&self, size: PictureSize) -> Result<Self> {
        if !self.reads_any_size() || size.channels != self.size.channels {
            let PictureSize { width, height, channels } = self.size;
            let message = format!("this model knows pictures of {width} x {height} x {channels}");
            let help = "`model.posterior = \"grid\"` with a `model.grid_widths` and without a canvas \
                        reads pictures of any size; pictures larger than a model are completed in tiles";
            return Err(Error::refused(message).with_help(help));
        }
        let (device, state) = match &self.process {
            Trained::EnergyBased(process) => (process.device().clone(), process.state()?),
            Trained::Rival(process) => {
                (process.device().clone(), Learner::state(process.as_ref())?)
            }
        };
        let mut process = Trained::new(&self.settings, size, &device)?;
        process.restore(&state)?;
        Ok(Self { settings: self.settings.clone(), process, size })
    }

    /// The process by itself.
    pub fn process(&self) -> &dyn LatentProcess {
        match &self.process {
            Trained::EnergyBased(process) => process.as_ref(),
            Trained::Rival(process) => process.as_ref(),
        }
    }
}
