//! From settings to a model: one way for every kind and for the rivals.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{
    CHECKPOINTS, CloudData, CurveData, Device, Kind, LatentData, Model, PatternData, PictureData,
    SetEnergyData, Settings, TopicData, clouds, curves, latents, patterns, pictures, set_energies,
    topics,
};
use crate::checkpoint::{Checkpoint, CheckpointStore, Holds};
use crate::config::{differing_keys, leaf};
use crate::exchange::{Ranks, Shard};
use crate::tensor::Tensors;
use crate::train::{
    Evaluation, Existing, Finished, Observer, Plan, Program, Replicas, Shardable, Silent,
    Surroundings, Trainable, TrainerConfig, run_training,
};
use crate::{Error, Result};

/// What a model learns from and what is held out.
#[derive(Clone, Debug)]
pub enum Data {
    /// Curves or a table.
    Curves(CurveData),
    /// Standardised clouds.
    Clouds(CloudData),
    /// Pictures.
    Pictures(PictureData),
    /// Sets for energies of whole sets.
    SetEnergies(SetEnergyData),
    /// Rows or sets with latents.
    Latents(LatentData),
    /// Point patterns.
    Patterns(PatternData),
    /// Documents.
    Topics(TopicData),
}

impl Data {
    /// Reads or draws what the settings say.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are no such data or too few; otherwise what a file is wrong about.
    pub fn load(settings: &Settings) -> Result<Self> {
        Ok(match settings {
            Settings::Curves(settings) => Self::Curves(CurveData::load(settings)?),
            Settings::Clouds(settings) => Self::Clouds(CloudData::load(settings)?),
            Settings::Pictures(settings) => Self::Pictures(PictureData::load(&settings.data)?),
            Settings::SetEnergies(settings) => Self::SetEnergies(SetEnergyData::load(settings)?),
            Settings::Latents(settings) => Self::Latents(LatentData::load(settings)?),
            Settings::Patterns(settings) => Self::Patterns(PatternData::load(settings)?),
            Settings::Topics(settings) => Self::Topics(TopicData::load(settings)?),
        })
    }
}

/// What surrounds the training of a model. The default keeps nothing and watches nothing.
#[derive(Debug, Default)]
pub struct TrainOptions<'a> {
    /// Folder of the run; without one nothing is kept.
    pub directory: Option<PathBuf>,
    /// What to do if it holds a run.
    pub existing: Option<Existing>,
    /// Where to compute.
    pub device: Device,
    /// Devices to which the shards of a step (`train.shards`) are dealt, `device` the first of them; empty for
    /// `device` alone. One may stand there several times.
    pub replicas: Vec<Device>,
    /// The processes among which the shards of a step are dealt, if there are several: the first keeps the run,
    /// and all end with the same model.
    pub ranks: Option<Arc<Ranks>>,
    /// Folder of a model whose weights are the start, to learn from other data.
    pub from: Option<PathBuf>,
    /// Who is told.
    pub observer: Option<&'a mut dyn Observer>,
    /// Once it is true, the run saves its state and ends with [`Error::Interrupted`].
    pub stop: Option<&'a AtomicBool>,
    /// The program, for `run.json`.
    pub program: Program,
}

impl Model {
    /// Trains a model as the settings say.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] if it was asked to stop, [`Error::Refused`], [`Error::Occupied`] or
    /// [`Error::InvalidValue`] if settings, data, folder or start do not allow it; otherwise what went
    /// wrong.
    pub fn train(settings: Settings, options: TrainOptions<'_>) -> Result<Self> {
        // Before the data are read, which whoever has weights only may not have.
        if options.existing == Some(Existing::Resume)
            && let Some(directory) = &options.directory
        {
            Self::check_resumable(directory)?;
        }
        let data = Data::load(&settings)?;
        Self::train_on(settings, &data, options)
    }

    /// That the folder does not hold weights only, from which no run can go on.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if it does.
    pub fn check_resumable(directory: &Path) -> Result<()> {
        match CheckpointStore::read_newest(directory.join(CHECKPOINTS)) {
            Ok(Some(loaded)) => loaded.checkpoint.check_resumable(),
            // What is damaged is told when it is opened.
            _ => Ok(()),
        }
    }

    /// The same, with the data that the settings name.
    ///
    /// # Errors
    ///
    /// As [`train`](Self::train); [`Error::InvalidValue`] if the data are of another kind.
    pub fn train_on(settings: Settings, data: &Data, options: TrainOptions<'_>) -> Result<Self> {
        let config = settings.text()?;
        let start = match &options.from {
            Some(folder) => Some(weights_of(folder, &settings, &config)?),
            None => None,
        };
        let (device, directory) = (options.device, options.directory);
        let is_first = options.ranks.as_ref().is_none_or(|ranks| ranks.rank() == 0);
        let devices =
            if options.replicas.is_empty() { vec![device.clone()] } else { options.replicas };
        let is_cut =
            matches!(settings, Settings::Curves(_) | Settings::Clouds(_) | Settings::Pictures(_));
        if devices.len() > 1 && !is_cut {
            let kind = settings.kind();
            let message = format!("training of kind `{kind}` computes on one device");
            let help = "several devices can learn curves, clouds and pictures";
            return Err(Error::refused(message).with_help(help));
        }
        let names: Vec<_> = devices.iter().map(Device::name).collect();
        let names = names.join(", ");
        let mut silent = Silent;
        let lesson = Lesson {
            device: device.clone(),
            devices,
            config,
            trainer: settings.trainer().clone(),
            seed: settings.seed(),
            start,
            from: options.from,
            around: Surroundings {
                directory: directory.clone(),
                existing: options.existing.unwrap_or(Existing::Refuse),
                ranks: options.ranks,
                observer: options.observer.unwrap_or(&mut silent),
                stop: options.stop,
                device: names,
                program: options.program,
            },
        };
        let finished = match (&settings, data) {
            (Settings::Curves(settings), Data::Curves(data)) => {
                curves::learn(settings, data, lesson)
            }
            (Settings::Clouds(settings), Data::Clouds(data)) => {
                clouds::learn(settings, data, lesson)
            }
            (Settings::Pictures(settings), Data::Pictures(data)) => {
                pictures::learn(settings, data, lesson)
            }
            (Settings::SetEnergies(settings), Data::SetEnergies(data)) => {
                set_energies::learn(settings, data, lesson)
            }
            (Settings::Latents(settings), Data::Latents(data)) => {
                latents::learn(settings, data, lesson)
            }
            (Settings::Patterns(settings), Data::Patterns(data)) => {
                patterns::learn(settings, data, lesson)
            }
            (Settings::Topics(settings), Data::Topics(data)) => {
                topics::learn(settings, data, lesson)
            }
            _ => Err(Error::invalid("data", settings.kind(), "data of another kind")),
        }?;
        let Finished { checkpoint, seconds } = finished;
        let directory = directory.as_deref();
        let model = Self::restore(settings, checkpoint, directory, Some(seconds), &device)?;
        if let (Kind::Clouds(model), Data::Clouds(data), true) = (&model.kind, data, is_first) {
            model.keep_codes(data)?;
        }
        Ok(model)
    }
}

/// Everything about a training but the process and its data.
pub(super) struct Lesson<'a> {
    pub(super) device: Device,
    /// Of the replicas.
    devices: Vec<Device>,
    config: String,
    trainer: TrainerConfig,
    seed: u64,
    start: Option<Tensors>,
    from: Option<PathBuf>,
    around: Surroundings<'a>,
}

impl Lesson<'_> {
    /// The model of every shard on its device, made by `build`.
    pub(super) fn replicas<T: Shardable>(
        &self,
        build: impl Fn(Shard, &Device) -> Result<T> + Sync,
    ) -> Result<Replicas<T>> {
        let count = self.trainer.shards;
        let devices = &self.devices;
        let build = |shard: Shard, replica: usize| build(shard, &devices[replica]);
        Replicas::new(count, devices.len(), self.around.ranks.clone(), build)
    }

    /// Trains `model`; `numbers` belong to it.
    pub(super) fn run<T: Trainable + ?Sized>(
        self,
        model: &mut T,
        evaluation: Evaluation<'_, T>,
        numbers: BTreeMap<String, Vec<f64>>,
    ) -> Result<Finished> {
        let plan = Plan {
            config: self.config.clone(),
            changeable: vec!["train.num_steps".into()],
            trainer: self.trainer,
            seed: self.seed,
            evaluations: vec![evaluation],
            numbers,
            start: self.start,
        };
        let from = self.from;
        run_training(model, plan, self.around).map_err(|error| match (&error, from) {
            (Error::Refused { message, help: None }, Some(from)) => {
                match sizes_that_differ(&from, &self.config) {
                    Some(help) => Error::refused(message.clone()).with_help(help),
                    None => error,
                }
            }
            _ => error,
        })
    }
}

/// The weights in a folder as the state of a training that begins.
fn weights_of(folder: &Path, settings: &Settings, config: &str) -> Result<Tensors> {
    let checkpoint = newest(folder)?;
    let before = Settings::parse(&checkpoint.meta.config)?;
    if before.kind() != settings.kind() {
        let message = format!(
            "`{}` holds a model of {}, these settings are for {}",
            folder.display(),
            before.kind(),
            settings.kind()
        );
        let help = "start from a model of the same kind of data";
        return Err(Error::refused(message).with_help(help));
    }
    let process = |text: &str| leaf(text, "process");
    if process(&checkpoint.meta.config)? != process(config)? {
        let message = format!("`{}` holds a model of another `process`", folder.display());
        let help = "start from a model of the same process";
        return Err(Error::refused(message).with_help(help));
    }
    // Processes without averages start with all they have.
    if has_averages(&checkpoint) && checkpoint.meta.holds == Holds::Everything {
        return checkpoint.weights()?.model_state();
    }
    checkpoint.model_state()
}

/// Whether the state has the parts that weights are made of.
pub(super) fn has_averages(checkpoint: &Checkpoint) -> bool {
    checkpoint.state.keys().any(|name| name.starts_with("average/"))
}

fn newest(folder: &Path) -> Result<Checkpoint> {
    if let Some(loaded) = CheckpointStore::read_newest(folder.join(CHECKPOINTS))? {
        return Ok(loaded.checkpoint);
    }
    let message = format!("there is no model in `{}` to start from", folder.display());
    let help = "give the folder of a run or of exported weights, such as models/chairs";
    Err(Error::refused(message).with_help(help))
}

/// Which settings of the networks a model had otherwise, in words.
fn sizes_that_differ(folder: &Path, config: &str) -> Option<String> {
    let before = newest(folder).ok()?.meta.config;
    let keys = differing_keys(&before, config).ok()?;
    let sections = [
        "model.",
        "element_model.",
        "neural.",
        "implicit.",
        "exact.",
        "gplvm.",
        "bruno.",
        "statistician.",
        "hidden_locations.",
    ];
    let words: Vec<String> = keys
        .iter()
        .filter(|key| sections.iter().any(|section| key.starts_with(section)))
        .map(|key| {
            let side = |text: &str| leaf(text, key).ok().flatten().unwrap_or("none".into());
            format!("`{key}` was {}, now {}", side(&before), side(config))
        })
        .collect();
    (!words.is_empty()).then(|| format!("use the sizes it was trained with: {}", words.join("; ")))
}
