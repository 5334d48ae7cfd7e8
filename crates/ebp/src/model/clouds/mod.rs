//! Models of clouds: laws of sets of points of any size.
//!
//! The path: [`CloudSettings`] → [`CloudData`] (standardised, what is held out) → `learn` →
//! [`CloudModel`], which answers in the units of the data.

mod data;
mod files;
mod prior;
mod score;
mod settings;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use self::data::CloudData;
pub(crate) use self::data::CloudScale;
pub use self::files::{class_of, read_cloud_inputs, write_clouds};
pub use self::score::{CodeScore, ScoreOptions};
pub use self::settings::{CloudDataSettings, CloudEvaluation, CloudSettings, PriorKind};
use super::{Device, Lesson};
use crate::checkpoint::{Checkpoint, Holds};
use crate::data::normalise::Affine;
use crate::data::{CloudSource, Parts, ReportSets};
use crate::latent::Prior;
use crate::process::LogDensity;
use crate::process::{
    DenoiseSettings, DrawReport, DrawSettings, DrawTally, EnergyBasedProcess, LatentCodes,
};
use crate::recipe::Space;
use crate::rng::Stream;
use crate::train::{CloudTraining, Evaluation, Finished, Step};
use crate::{Error, Result};

/// A trained model of clouds.
#[derive(Debug)]
pub struct CloudModel {
    settings: CloudSettings,
    /// With its averages.
    process: EnergyBasedProcess,
    scale: CloudScale,
    device: Device,
    codes: CodeSource,
    /// Laws of θ that were asked for before, in the order of [`PriorKind::ALL`].
    priors: [OnceLock<Arc<dyn Prior>>; 4],
}

/// Where the codes of the training sets are.
#[derive(Debug, Default)]
struct CodeSource {
    /// The folder of the model, if it has one.
    directory: Option<PathBuf>,
    /// Whether the codes in the folder are those of these weights.
    is_final: bool,
    known: OnceLock<LatentCodes>,
}

/// The untrained process that the settings describe.
fn build(
    settings: &CloudSettings,
    scale: &CloudScale,
    device: &Device,
) -> Result<EnergyBasedProcess> {
    let space = Space::points(scale.affine.centre.len(), scale.half_width);
    EnergyBasedProcess::new(settings.model.clone(), space, settings.seed, device.tape())
}

/// Codes of `count` standardised clouds, which are read a few at a time.
fn encode<'a>(
    process: &EnergyBasedProcess,
    count: usize,
    set: impl Fn(usize) -> Cow<'a, [f32]>,
) -> Result<LatentCodes> {
    process.encode_each(count, |index, part| part.push(&[], &set(index)))
}

/// The untrained process with its clouds.
pub(crate) fn cloud_training(
    settings: &CloudSettings,
    clouds: &CloudSource,
    scale: &CloudScale,
    device: &Device,
) -> Result<CloudTraining> {
    let process = build(settings, scale, device)?;
    CloudTraining::new(process, clouds.clone(), settings.batch_size, settings.seed)
}

/// Trains the process that the settings describe.
pub(super) fn learn(
    settings: &CloudSettings,
    data: &CloudData,
    lesson: Lesson<'_>,
) -> Result<Finished> {
    let mut model = lesson.replicas(|shard, device| {
        let process = build(settings, &data.scale, device)?;
        let (clouds, size, seed) = (data.train.clone(), settings.batch_size, settings.seed);
        CloudTraining::of_shard(process, clouds, size, seed, shard)
    })?;
    let held_out = data.choice_sets(settings.evaluation.num_sets);
    let held_out = model.first().process().point_sets(&held_out)?;
    let look = move |model: &mut CloudTraining, step: &Step| {
        let process = model.process_mut();
        process.use_average();
        let found = process.evaluate(&held_out, step.stream);
        process.use_parameters();
        Ok(found?.into_iter().map(|(name, value)| (format!("held_out_{name}"), value)).collect())
    };
    let evaluation = Evaluation::of_first(Evaluation::new(settings.evaluation.every, look)?);
    lesson.run(&mut model, evaluation, data.scale.numbers())
}

impl CloudModel {
    /// The model that a checkpoint holds, kept in `directory` if it is kept at all.
    pub(super) fn restore(
        settings: &CloudSettings,
        checkpoint: &Checkpoint,
        directory: Option<&Path>,
        device: &Device,
    ) -> Result<Self> {
        let scale = CloudScale::from_numbers(&checkpoint.meta.numbers)?;
        let mut process = build(settings, &scale, device)?;
        process.restore(&checkpoint.model_state()?)?;
        process.use_average();
        let meta = &checkpoint.meta;
        let codes = CodeSource {
            directory: directory.map(Path::to_owned),
            is_final: meta.holds != Holds::Everything || meta.step == settings.train.num_steps,
            known: OnceLock::new(),
        };
        let (settings, device) = (settings.clone(), device.clone());
        Ok(Self { settings, process, scale, device, codes, priors: Default::default() })
    }

    /// The settings it was trained with.
    pub fn settings(&self) -> &CloudSettings {
        &self.settings
    }

    /// How training estimated log Z, by name.
    pub fn estimator(&self) -> &'static str {
        self.process.config().estimator.name()
    }

    /// The numbers of a point.
    pub fn dim(&self) -> usize {
        self.scale.affine.centre.len()
    }

    /// k, the size of θ.
    pub fn latent_dim(&self) -> usize {
        self.process.config().latent_dim
    }

    /// Whether a sampler was trained that points can start from.
    pub fn has_sampler(&self) -> bool {
        self.process.has_sampler()
    }

    pub(crate) fn affine(&self) -> &Affine {
        &self.scale.affine
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// `num_points` points for each θ of `theta` `[clouds, k]`, in the units of the data. `watch` is
    /// told how many clouds are done.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is 0, `theta` does not fit or there is no learned sampler
    /// to start from.
    pub fn draw(
        &self,
        theta: &[f32],
        num_points: usize,
        settings: &DrawSettings,
        stream: Stream,
        watch: &mut dyn FnMut(usize),
    ) -> Result<(Vec<Vec<f32>>, DrawReport)> {
        let (points, report) =
            self.process.draw_points_watched(theta, num_points, settings, stream, watch)?;
        let size = num_points * self.dim();
        Ok((points.chunks_exact(size).map(|cloud| self.in_data_units(cloud)).collect(), report))
    }

    /// Group `number` of the clouds that [`draw`](Self::draw) gives for `theta`, and how well it went.
    pub(in crate::model) fn draw_group(
        &self,
        theta: &[f32],
        number: usize,
        num_points: usize,
        settings: &DrawSettings,
        stream: Stream,
    ) -> Result<(Vec<Vec<f32>>, DrawTally)> {
        let (points, tally) =
            self.process.draw_group(theta, number, num_points, settings, stream)?;
        let size = num_points * self.dim();
        Ok((points.chunks_exact(size).map(|cloud| self.in_data_units(cloud)).collect(), tally))
    }

    /// What the encoder says about clouds in the units of the data.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the clouds do not fit or a number is not finite.
    pub fn encode(&self, clouds: &CloudSource) -> Result<LatentCodes> {
        self.encode_standardised(&self.standardise(clouds)?)
    }

    /// A noisy cloud `[n, d]`, cleaned; points, `settings.noise` and the answer in the units of the
    /// data.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the points or a setting do not fit.
    pub fn denoise(&self, points: &[f32], settings: &DenoiseSettings) -> Result<Vec<f32>> {
        let affine = &self.scale.affine;
        let mut noisy = points.to_vec();
        affine.apply(&mut noisy);
        let noise = settings.noise.map(|noise| noise / affine.scale);
        let settings = DenoiseSettings { noise, ..*settings };
        Ok(self.in_data_units(&self.process.denoise(&noisy, None, None, &settings)?))
    }

    /// A cloud of standardised points in the units of the data.
    pub(crate) fn in_data_units(&self, cloud: &[f32]) -> Vec<f32> {
        let mut cloud = cloud.to_vec();
        self.scale.affine.invert(&mut cloud);
        cloud
    }

    /// Clouds in the units of the data, standardised.
    fn standardise(&self, clouds: &CloudSource) -> Result<CloudSource> {
        if clouds.dim() != self.dim() {
            return Err(Error::refused(format!(
                "the model's points have {} numbers, found {}",
                self.dim(),
                clouds.dim()
            )));
        }
        clouds.check_finite()?;
        clouds.clone().standardised(self.scale.affine.clone())
    }
}

/// What experiments ask, about standardised sets.
impl CloudModel {
    /// `name` of what is measured on held-out sets: `nats`, `kl`.
    pub(crate) fn evaluate<S: AsRef<[f32]>>(
        &self,
        sets: &[S],
        stream: Stream,
    ) -> Result<impl Fn(&str) -> f64 + use<S>> {
        let found = self.process.evaluate(&self.process.point_sets(sets)?, stream)?;
        Ok(move |name: &str| {
            found.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, value)| *value)
        })
    }

    pub(crate) fn encode_standardised(&self, sets: &CloudSource) -> Result<LatentCodes> {
        encode(&self.process, sets.num_sets(), |set| sets.set(set))
    }

    /// Codes of `count` standardised sets, read one by one, by this encoder and by one of the same
    /// shape that has learned nothing.
    pub(crate) fn encode_both<'a>(
        &self,
        count: usize,
        set: impl Fn(usize) -> Cow<'a, [f32]>,
    ) -> Result<[LatentCodes; 2]> {
        let untrained = build(&self.settings, &self.scale, &self.device)?;
        Ok([encode(&self.process, count, &set)?, encode(&untrained, count, &set)?])
    }

    /// The sets that neither training nor any choice has seen. Nothing but a trained model has them.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if none were set aside; otherwise what stands in the way of the data.
    pub(crate) fn report_sets(&self) -> Result<ReportSets> {
        data::report_sets(&self.settings.data, &self.scale)
    }

    /// Other clouds, `report` of which are reported on where they have no splits, standardised.
    pub(crate) fn parts_of(&self, path: &Path, report: usize) -> Result<Parts> {
        let settings = CloudDataSettings { report, ..self.settings.data.clone() };
        data::other_parts(path, &settings, &self.scale)
    }

    pub(crate) fn encode_sets<S: AsRef<[f32]>>(&self, sets: &[S]) -> Result<LatentCodes> {
        self.process.encode(&self.process.point_sets(sets)?)
    }

    pub(crate) fn denoise_standardised(
        &self,
        points: &[f32],
        is_fixed: &[bool],
        theta: Option<&[f32]>,
        settings: &DenoiseSettings,
    ) -> Result<Vec<f32>> {
        self.process.denoise(points, Some(is_fixed), theta, settings)
    }

    pub(crate) fn log_partition(
        &self,
        theta: &[f32],
        num_proposals: usize,
        stream: Stream,
    ) -> Result<Vec<LogDensity>> {
        self.process.log_partition(theta, num_proposals, stream)
    }

    /// Standardised points on their way from noise, one `[sets, num_points, d]` a frame.
    pub(crate) fn points_from_noise(
        &self,
        theta: &[f32],
        num_points: usize,
        num_frames: usize,
        stream: Stream,
    ) -> Result<Vec<Vec<f32>>> {
        self.process.points_from_noise(theta, num_points, num_frames, stream)
    }

    pub(crate) fn log_potentials(&self, points: &[f32], theta: &[f32]) -> Result<Vec<f32>> {
        self.process.log_potentials(points, theta)
    }
}
