//! What a user holds: [`Model`], trained on any kind of data, loaded from any folder of one.
//!
//! ```no_run
//! use ebp::model::{Model, SampleOptions};
//!
//! let model = Model::load("models/chairs")?;
//! let chairs = model.sample(&SampleOptions { count: 3, ..SampleOptions::default() })?;
//! assert_eq!(chairs.sets.len(), 3);
//! # Ok::<(), ebp::Error>(())
//! ```
//!
//! [`Settings`] decide a model: a preset of [`PRESETS`], a file, changes on top. [`Data`] is what
//! they name, or [`Given`] sets of one's own program. [`Model::train`] leaves a folder that [`Model::load`] takes, at any time and however
//! training ended; [`Model::save`] writes one without what only training needs. Questions and
//! answers are in the units of the data.
//!
//! One folder per kind of data has its settings, its data and its model. What process is behind a
//! kind is known in its `mod.rs` alone.

mod card;
mod clouds;
mod curves;
mod device;
mod fingerprint;
mod given;
mod latents;
mod neural;
mod patterns;
mod pictures;
mod presets;
mod recalibration;
mod sample;
mod save;
mod set_energies;
mod settings;
mod topics;
mod train;

use std::path::{Path, PathBuf};

pub use self::clouds::{
    CloudData, CloudDataSettings, CloudEvaluation, CloudModel, CloudSettings, CodeScore, PriorKind,
    ScoreOptions, class_of, read_cloud_inputs, write_clouds,
};
pub(crate) use self::clouds::{CloudScale, cloud_training};
pub use self::curves::{
    CurveData, CurveDataSettings, CurveEvaluation, CurveModel, CurveProcess, CurveSettings,
    ExactSettings, Forecast, ForecastLocation, ForecastMode, ForecastTarget, ImplicitSettings,
    PredictOptions, density_csv, samples_csv, summary_csv, targets_csv,
};
pub(crate) use self::curves::{CurveSource, TableData, nats};
pub use self::device::Device;
pub use self::given::Given;
pub use self::latents::{
    GplvmSettings, LatentData, LatentDataSettings, LatentEvaluation, LatentModel,
    LatentProcessName, LatentSets, LatentSettings, MapKernel, RowData, TableScale,
};
pub(crate) use self::latents::{SetProcess, one_nn_error, recovered};
pub use self::neural::NeuralSettings;
pub use self::patterns::{
    DppSettings, InteractionSettings, KernelName, LikelihoodEffort, PatternData,
    PatternDataSettings, PatternEvaluation, PatternFile, PatternMethod, PatternModel,
    PatternProcess, PatternSampler, PatternSettings, write_pattern_files,
};
pub(crate) use self::patterns::{
    Extra as PatternExtra, Law as PatternLaw, extras as pattern_extras, is_likelihood,
};
pub use self::pictures::{
    CompleteOptions, Completions, FigureColumns, GivenPicture, MaskOptions, PictureData,
    PictureDataSettings, PictureEvaluation, PictureModel, PictureProcessName, PictureSettings,
    PictureSize, PixelDraw,
};
pub(crate) use self::pictures::{filled, picture_training, rehearse};
pub use self::presets::PRESETS;
pub use self::recalibration::Recalibration;
pub use self::sample::{SampleGroup, SampleOptions, Samples, Sampling};
pub use self::save::Saved;
pub(crate) use self::set_energies::compare_sets;
pub use self::set_energies::{
    SetEnergyData, SetEnergyDataSettings, SetEnergyEvaluation, SetEnergyModel, SetEnergySettings,
    SetSizes,
};
pub use self::settings::Settings;
pub use self::topics::{
    TopicData, TopicDataSettings, TopicDocuments, TopicEvaluation, TopicProcess, TopicSettings,
};
use self::train::Lesson;
pub use self::train::{Data, TrainOptions};
use crate::checkpoint::{Checkpoint, CheckpointStore, Holds};
use crate::data::CloudSource;
use crate::data::table::Locations;
use crate::process::{DenoiseSettings, LatentCodes, Process, SetScore};
use crate::train::seconds_of_training;
use crate::{Error, IndexedSet, Result};

/// The folder of checkpoints in the folder of a model.
const CHECKPOINTS: &str = "checkpoints";

/// A trained model of any kind.
#[derive(Debug)]
pub struct Model {
    settings: Settings,
    checkpoint: Checkpoint,
    directory: Option<PathBuf>,
    seconds: Option<f64>,
    recalibration: Option<Recalibration>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Curves(Box<CurveModel>),
    Clouds(Box<CloudModel>),
    Pictures(Box<PictureModel>),
    SetEnergies(Box<SetEnergyModel>),
    Latents(Box<LatentModel>),
    Patterns(Box<PatternModel>),
    Topics(Box<TopicDocuments>),
}

impl Model {
    /// The model in the folder of a run or of exported weights, on the CPU.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there is none, otherwise what is wrong with its files.
    pub fn load(directory: impl AsRef<Path>) -> Result<Self> {
        Self::load_on(directory, &Device::cpu())
    }

    /// The same, computing on `device`.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_on(directory: impl AsRef<Path>, device: &Device) -> Result<Self> {
        let directory = directory.as_ref();
        let folder = directory.join(CHECKPOINTS);
        let found = if folder.is_dir() { CheckpointStore::read_newest(folder)? } else { None };
        let Some(loaded) = found else {
            let message = format!("there is no model in `{}`", directory.display());
            let help = "give the folder of a run of `ebp train`, such as runs/sines";
            return Err(Error::refused(message).with_help(help));
        };
        let checkpoint = loaded.checkpoint;
        let settings = Settings::parse(&checkpoint.meta.config).map_err(|error| {
            Error::failed(format!(
                "the settings in `{}` cannot be read: {error}",
                directory.display()
            ))
        })?;
        let seconds = seconds_of_training(directory);
        let mut model = Self::restore(settings, checkpoint, Some(directory), seconds, device)?;
        model.take_kept(directory)?;
        Ok(model)
    }

    /// The model that a checkpoint holds.
    fn restore(
        settings: Settings,
        checkpoint: Checkpoint,
        directory: Option<&Path>,
        seconds: Option<f64>,
        device: &Device,
    ) -> Result<Self> {
        let kind = match &settings {
            Settings::Curves(settings) => {
                Kind::Curves(Box::new(CurveModel::restore(settings, &checkpoint, device)?))
            }
            Settings::Clouds(settings) => {
                let model = CloudModel::restore(settings, &checkpoint, directory, device)?;
                Kind::Clouds(Box::new(model))
            }
            Settings::Pictures(settings) => {
                Kind::Pictures(Box::new(PictureModel::restore(settings, &checkpoint, device)?))
            }
            Settings::SetEnergies(settings) => {
                Kind::SetEnergies(Box::new(SetEnergyModel::restore(settings, &checkpoint, device)?))
            }
            Settings::Latents(settings) => {
                Kind::Latents(Box::new(LatentModel::restore(settings, &checkpoint, device)?))
            }
            Settings::Patterns(settings) => {
                Kind::Patterns(Box::new(PatternModel::restore(settings, &checkpoint)?))
            }
            Settings::Topics(settings) => {
                Kind::Topics(Box::new(TopicDocuments::restore(settings, &checkpoint, device)?))
            }
        };
        let directory = directory.map(Path::to_owned);
        Ok(Self { settings, checkpoint, directory, seconds, recalibration: None, kind })
    }

    /// The settings it was trained with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// After how many steps.
    pub fn step(&self) -> u64 {
        self.checkpoint.meta.step
    }

    /// Whether it took all the steps that its settings ask for.
    pub fn is_finished(&self) -> bool {
        self.step() == self.settings.trainer().num_steps
    }

    /// Seconds of training, where they are known.
    pub fn seconds(&self) -> Option<f64> {
        self.seconds
    }

    /// Its folder, if it has one.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Whether a run can go on from it; exported weights cannot be trained further.
    pub fn is_resumable(&self) -> bool {
        self.checkpoint.meta.holds == Holds::Everything
    }

    /// The name under which results are reported, such as `ebp-importance`.
    pub fn name(&self) -> &'static str {
        match &self.kind {
            Kind::Curves(model) => model.name(),
            Kind::Clouds(model) => model.estimator(),
            Kind::Pictures(model) => model.process().name(),
            Kind::SetEnergies(_) => "set-energy",
            Kind::Latents(model) => model.settings().process.name(),
            Kind::Patterns(model) => model.settings().process.name(),
            Kind::Topics(model) => model.model().name(),
        }
    }

    /// Draws of a latent that predictions average over from now on, in place of the settings' number;
    /// nothing where there is no latent to draw.
    pub fn set_num_draws(&mut self, count: usize) {
        match &mut self.kind {
            Kind::Curves(model) => model.learner_mut().set_num_draws(count),
            Kind::Pictures(model) => model.learner_mut().set_num_draws(count),
            _ => {}
        }
    }

    /// The model of curves that it is.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is of another kind.
    pub fn curves(&self) -> Result<&CurveModel> {
        match &self.kind {
            Kind::Curves(model) => Ok(model),
            _ => Err(self.is_no_model_of("curves", "sines")),
        }
    }

    /// The model of clouds that it is.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is of another kind.
    pub fn clouds(&self) -> Result<&CloudModel> {
        match &self.kind {
            Kind::Clouds(model) => Ok(model),
            _ => Err(self.is_no_model_of("clouds", "shapes")),
        }
    }

    /// The model of pictures that it is.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is of another kind.
    pub fn pictures(&self) -> Result<&PictureModel> {
        match &self.kind {
            Kind::Pictures(model) => Ok(model),
            _ => Err(self.is_no_model_of("pictures", "digits")),
        }
    }

    /// The energy of whole sets that it is.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is of another kind.
    pub fn set_energies(&self) -> Result<&SetEnergyModel> {
        match &self.kind {
            Kind::SetEnergies(model) => Ok(model),
            _ => Err(self.is_no_model_of("set-energies", "sticks")),
        }
    }

    /// The model of documents that it is.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is of another kind.
    pub fn topics(&self) -> Result<&TopicDocuments> {
        match &self.kind {
            Kind::Topics(model) => Ok(model),
            _ => Err(self.is_no_model_of("documents", "lda")),
        }
    }

    /// The model of point patterns that it is.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is of another kind.
    pub fn patterns(&self) -> Result<&PatternModel> {
        match &self.kind {
            Kind::Patterns(model) => Ok(model),
            _ => Err(self.is_no_model_of("patterns", "strauss")),
        }
    }

    /// The process with latents that it is.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is of another kind.
    pub fn latents(&self) -> Result<&LatentModel> {
        match &self.kind {
            Kind::Latents(model) => Ok(model),
            _ => Err(self.is_no_model_of("latents", "gplvm")),
        }
    }

    fn is_no_model_of(&self, wanted: &str, preset: &str) -> Error {
        let place = match &self.directory {
            Some(directory) => format!("`{}` holds", directory.display()),
            None => "this is".to_owned(),
        };
        Error::refused(format!("{place} a model of {}", self.settings.kind()))
            .with_help(format!("this takes models of {wanted}, such as `ebp train {preset}` makes"))
    }

    /// How likely clouds and their points are.
    ///
    /// # Errors
    ///
    /// As [`clouds`](Self::clouds) and [`CloudModel::score`].
    pub fn score(&self, clouds: &CloudSource, options: &ScoreOptions) -> Result<Vec<SetScore>> {
        let mut scores = Vec::new();
        self.clouds()?.score(clouds, options, &mut |_, score| scores.push(score))?;
        Ok(scores)
    }

    /// Codes and features of clouds, by a model of clouds or a Neural Statistician.
    ///
    /// # Errors
    ///
    /// As [`clouds`](Self::clouds), [`CloudModel::encode`] and [`LatentModel::encode`].
    pub fn encode(&self, clouds: &CloudSource) -> Result<LatentCodes> {
        if let Kind::Latents(model) = &self.kind {
            return model.encode(clouds);
        }
        self.clouds()?.encode(clouds)
    }

    /// A noisy cloud `[n, d]`, cleaned.
    ///
    /// # Errors
    ///
    /// As [`clouds`](Self::clouds) and [`CloudModel::denoise`].
    pub fn denoise(&self, points: &[f32], settings: &DenoiseSettings) -> Result<Vec<f32>> {
        self.clouds()?.denoise(points, settings)
    }

    /// What is said about values at the locations `at`, told those of `context`.
    ///
    /// # Errors
    ///
    /// As [`curves`](Self::curves) and [`CurveModel::predict`].
    pub fn predict(
        &self,
        context: &IndexedSet,
        at: &Locations,
        options: &PredictOptions,
    ) -> Result<Forecast> {
        self.curves()?.predict("all", context, at, options)
    }

    /// Pictures that a picture with missing pixels could be.
    ///
    /// # Errors
    ///
    /// As [`pictures`](Self::pictures) and [`PictureModel::complete`].
    pub fn complete(&self, given: &GivenPicture, options: &CompleteOptions) -> Result<Completions> {
        self.pictures()?.complete(given, options)
    }
}
