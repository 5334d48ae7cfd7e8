//! The processes that learn pictures, and those that have learned.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ebp::checkpoint::CheckpointStore;
use ebp::data::image::Images;
use ebp::process::neural::{
    AttentionConfig, Deterministic, LatentConfig, NeuralProcess, NeuralProcessConfig,
};
use ebp::process::{
    DiscreteProcess, EnergyBasedConfig, EnergyBasedProcess, Estimator, Grid, LatentProcess,
    Learner, SamplerKind,
};
use ebp::train::{PictureTaskConfig, Pictures};
use miette::miette;

use super::data::PictureData;
use super::settings::{ProcessName, Settings};
use crate::device;
use crate::failure::Failure;

/// A process that learns pictures and can be asked about them.
pub(crate) trait PictureProcess: Learner + LatentProcess {}

impl<P: Learner + LatentProcess> PictureProcess for P {}

/// The size of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) channels: usize,
}

impl Size {
    pub(crate) fn of(images: &Images) -> Self {
        Self { width: images.width, height: images.height, channels: images.channels }
    }

    /// For the checkpoints.
    pub(crate) fn numbers(self) -> BTreeMap<String, Vec<f64>> {
        let numbers = [self.width, self.height, self.channels].map(|number| number as f64);
        BTreeMap::from([("picture_size".to_owned(), numbers.to_vec())])
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they were counts")]
    fn from_numbers(numbers: &BTreeMap<String, Vec<f64>>) -> Option<Self> {
        match numbers.get("picture_size")?[..] {
            [width, height, channels] => Some(Self {
                width: width as usize,
                height: height as usize,
                channels: channels as usize,
            }),
            _ => None,
        }
    }
}

/// The untrained energy-based process that the settings describe.
pub(crate) fn new_exact(settings: &Settings, size: Size) -> Result<DiscreteProcess, Failure> {
    let mut config = settings.model.clone();
    config.grid = Grid::new(size.width, size.height)?;
    config.channels = size.channels;
    Ok(DiscreteProcess::new(config, settings.seed, device::open()?.backend)?)
}

/// The untrained energy-based process with a network over (x, t).
fn new_element(settings: &Settings, size: Size) -> Result<EnergyBasedProcess, Failure> {
    let config = EnergyBasedConfig {
        location_dim: 2,
        value_dim: size.channels,
        // The nodes of the quadrature are then the middles of the 256 levels.
        value_domain: (-1.0, 1.0),
        estimator: match settings.process {
            ProcessName::Ade => Estimator::Ade,
            _ => Estimator::Importance,
        },
        ..settings.element_model.clone()
    };
    Ok(EnergyBasedProcess::new(config, settings.seed, device::open()?.backend)?)
}

/// The untrained process that the settings describe.
pub(crate) fn new_process(
    settings: &Settings,
    size: Size,
) -> Result<Box<dyn PictureProcess>, Failure> {
    let mut config = match settings.process {
        ProcessName::Exact => return Ok(Box::new(new_exact(settings, size)?)),
        ProcessName::Importance | ProcessName::Ade => {
            return Ok(Box::new(new_element(settings, size)?));
        }
        ProcessName::Cnp => NeuralProcessConfig::conditional(),
        ProcessName::Np => NeuralProcessConfig::latent(),
        ProcessName::Anp => NeuralProcessConfig::attentive(),
    };
    let rival = &settings.rival;
    let network = &mut config.network;
    (network.location_dim, network.value_dim) = (2, size.channels);
    network.encoder_widths = vec![rival.width; 2];
    network.representation_dim = rival.width;
    network.decoder_widths = vec![rival.width; 3];
    network.learning_rate = rival.learning_rate;
    if let Some(latent) = &mut config.latent {
        *latent = LatentConfig { latent_dim: rival.latent_dim, ..latent.clone() };
    }
    if let Deterministic::Attention(attention) = &mut config.deterministic {
        *attention = AttentionConfig { embedding_widths: vec![rival.width], ..attention.clone() };
    }
    Ok(Box::new(NeuralProcess::new(config, settings.seed, device::open()?.backend)?))
}

/// The process with its pictures.
pub(crate) fn new_model(
    settings: &Settings,
    data: &PictureData,
) -> Result<Pictures<dyn PictureProcess>, Failure> {
    let process = new_process(settings, Size::of(&data.training))?;
    let draws_rows = settings.process == ProcessName::Ade
        && settings.element_model.sampler.kind == SamplerKind::Block;
    // Blocks of an LSTM are rows where all unknown pixels are asked for, in their order.
    let max_target = match settings.process {
        ProcessName::Exact => settings.tasks.max_target,
        _ if draws_rows => settings.tasks.max_target,
        _ => settings.rival.max_target,
    };
    let tasks = PictureTaskConfig { max_target, ..settings.tasks };
    Ok(Pictures::new(process, Arc::clone(&data.training), tasks)?)
}

/// An energy-based process that completes pictures.
pub(crate) enum TrainedProcess {
    /// Over a finite alphabet.
    Exact(Box<DiscreteProcess>),
    /// With a network over (x, t).
    Element(Box<EnergyBasedProcess>),
}

/// A trained energy-based process of pictures, as its folder keeps it.
pub(crate) struct TrainedPictures {
    /// The process, predicting with its averages.
    pub(crate) process: TrainedProcess,
    pub(crate) size: Size,
    /// After how many steps.
    pub(crate) step: u64,
}

impl TrainedPictures {
    /// Reads the newest checkpoint of the run in `directory`.
    pub(crate) fn load(directory: &Path) -> Result<Self, Failure> {
        let not_a_run = || {
            Failure::Usage(miette!(
                help =
                    "give the folder of a run of `ebp train digits` or another preset of pictures",
                "there is no model of pictures in `{}`",
                directory.display()
            ))
        };
        let folder = directory.join("checkpoints");
        if !folder.is_dir() {
            return Err(not_a_run());
        }
        let Some(loaded) = CheckpointStore::read_newest(folder)? else { return Err(not_a_run()) };
        let state = &loaded.checkpoint.model_state()?;
        let meta = loaded.checkpoint.meta;
        let (Ok(settings), Some(size)) =
            (toml::from_str::<Settings>(&meta.config), Size::from_numbers(&meta.numbers))
        else {
            return Err(not_a_run());
        };
        let process = match settings.process {
            ProcessName::Exact => {
                let mut process = Box::new(new_exact(&settings, size)?);
                process.restore(state)?;
                process.use_average()?;
                TrainedProcess::Exact(process)
            }
            ProcessName::Importance | ProcessName::Ade => {
                let mut process = Box::new(new_element(&settings, size)?);
                process.restore(state)?;
                process.use_average()?;
                TrainedProcess::Element(process)
            }
            rival => {
                return Err(Failure::Usage(miette!(
                    "the model in `{}` is a {}; only energy-based ones complete pictures",
                    directory.display(),
                    rival.name()
                )));
            }
        };
        Ok(Self { process, size, step: meta.step })
    }
}
