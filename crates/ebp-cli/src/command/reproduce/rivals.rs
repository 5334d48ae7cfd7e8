//! Every model of Figure 1 by name, trained on built-in curves.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::ValueEnum;
use ebp::IndexedSet;
use ebp::data::CurveFamily;
use ebp::kernel::Rbf;
use ebp::point::{CpuBackend, PointBackend};
use ebp::process::neural::{NeuralProcess, NeuralProcessConfig};
use ebp::process::{
    ExactProcessConfig, FitConfig, GaussianProcess, Learner, Process, StudentTProcess,
    VariationalImplicitProcess, VariationalImplicitProcessConfig,
};
use ebp::rng::Stream;
use ebp::train::{
    Observer, Outcome, Regression, Session, TaskConfig, TaskSource, Trainer, TrainerConfig,
};

use crate::command::train::{Data, new_process, preset_settings};
use crate::device::Device;
use crate::failure::Failure;

/// Sets and elements that the hyperparameters of exact processes are fitted to.
const FITTED_SETS: u64 = 20;
const FITTED_ELEMENTS: usize = 30;
/// Steps of the neural and implicit rivals, with 16 sets each.
const RIVAL_STEPS: u64 = 1500;
const RIVAL_SETS: usize = 16;

/// A model of Figure 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Model {
    EbpImportance,
    EbpAde,
    Gp,
    Tp,
    Cnp,
    Np,
    Anp,
    Vip,
}

/// A trained process, or none if it was interrupted.
pub(super) type Trained = Option<Box<dyn Process>>;

impl Model {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::EbpImportance => "ebp-importance",
            Self::EbpAde => "ebp-ade",
            Self::Gp => "gp",
            Self::Tp => "tp",
            Self::Cnp => "cnp",
            Self::Np => "np",
            Self::Anp => "anp",
            Self::Vip => "vip",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|model| model.name() == name)
    }

    /// Trains the model on `family`.
    pub(super) fn train(
        self,
        family: CurveFamily,
        seed: u64,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<Trained, Failure> {
        let backend: Arc<dyn PointBackend> = Arc::new(CpuBackend::new());
        let neural = |config: NeuralProcessConfig| -> Result<Box<dyn Learner>, Failure> {
            Ok(Box::new(NeuralProcess::new(config, seed, Arc::clone(&backend))?))
        };
        let learner: Box<dyn Learner> = match self {
            Self::Gp | Self::Tp => return Ok(Some(self.fit(family, seed)?)),
            Self::EbpImportance => return energy_based(family.name(), seed, observer, stop),
            Self::EbpAde => {
                let preset = format!("{}-ade", family.name());
                return energy_based(&preset, seed, observer, stop);
            }
            Self::Cnp => neural(NeuralProcessConfig::conditional())?,
            Self::Np => neural(NeuralProcessConfig::latent())?,
            Self::Anp => neural(NeuralProcessConfig::attentive())?,
            Self::Vip => {
                let config = VariationalImplicitProcessConfig::default();
                Box::new(VariationalImplicitProcess::new(config, seed, backend)?)
            }
        };
        let tasks = TaskConfig { num_sets: RIVAL_SETS, ..TaskConfig::default() };
        let model = Regression::new(learner, TaskSource::Curves(family), tasks)?;
        let trainer = TrainerConfig { num_steps: RIVAL_STEPS, ..TrainerConfig::default() };
        finish(model, trainer, seed, observer, stop)
    }

    /// Marginal likelihood of training sets; the length-scale is the hyperparameter that matters.
    fn fit(self, family: CurveFamily, seed: u64) -> Result<Box<dyn Process>, Failure> {
        let data = Stream::new(seed, "train");
        let sets = (0..FITTED_SETS)
            .map(|number| Ok(family.draw(data, number, FITTED_ELEMENTS)?.set))
            .collect::<ebp::Result<Vec<IndexedSet>>>()?;
        let kernel = Box::new(Rbf::new(1.0, 0.5)?);
        let config = ExactProcessConfig { noise_variance: 0.1, ..ExactProcessConfig::default() };
        let fit = FitConfig { num_restarts: 3, ..FitConfig::default() };
        let stream = Stream::new(seed, "fit");
        if self == Self::Gp {
            let (fitted, _) = GaussianProcess::new(kernel, &config)?.fit(&sets, &fit, stream)?;
            return Ok(Box::new(fitted));
        }
        let (fitted, _) = StudentTProcess::new(kernel, &config, 5.0)?.fit(&sets, &fit, stream)?;
        Ok(Box::new(fitted))
    }
}

/// What `ebp train PRESET --seed SEED` trains.
fn energy_based(
    preset: &str,
    seed: u64,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Trained, Failure> {
    let settings = preset_settings(preset, seed)?;
    let data = Data::load(&settings)?;
    let process = Box::new(new_process(&settings, &data, &Device::cpu())?);
    let model = Regression::new(process, data.source()?, settings.tasks)?;
    finish(model, settings.train, seed, observer, stop)
}

fn finish(
    mut model: Regression,
    trainer: TrainerConfig,
    seed: u64,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Trained, Failure> {
    let mut session = Session::new(observer);
    session.stop = Some(stop);
    match Trainer::new(trainer, seed)?.run(&mut model, session)? {
        Outcome::Interrupted { .. } => Ok(None),
        Outcome::Finished { .. } => {
            let mut process = model.into_process();
            process.use_average()?;
            Ok(Some(process))
        }
    }
}
