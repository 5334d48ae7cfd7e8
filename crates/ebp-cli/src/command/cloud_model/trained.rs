//! A trained model of clouds as its folder keeps it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ebp::checkpoint::{CheckpointStore, Holds};
use ebp::data::npy::{Array, Precision, read_npy, write_npy};
use ebp::latent::{
    Codes, FlowConfig, FlowPrior, GaussianPrior, KernelConfig, KernelPrior, Prior, StandardPrior,
};
use ebp::process::{DrawReport, DrawSettings, LatentCodes, UnconditionalProcess};
use ebp::rng::Stream;
use miette::miette;

use super::data::{CloudData, CloudScale};
use super::settings::{CloudSettings, PriorName};
use super::standardised_sets;
use crate::device;
use crate::failure::Failure;

/// Codes of the training sets, for priors on θ: `[2, sets, k]`, μ and log σ.
const CODES_FILE: &str = "codes.npy";

/// A trained model with its scale.
#[derive(Debug)]
pub(crate) struct TrainedCloud {
    /// The settings it was trained with.
    pub(crate) settings: CloudSettings,
    /// The process, with its averages.
    pub(crate) process: UnconditionalProcess,
    /// The scales of its data.
    pub(crate) scale: CloudScale,
    /// After how many steps.
    pub(crate) step: u64,
    directory: PathBuf,
    /// Whether the folder holds weights only; its codes are then those of these weights.
    is_exported: bool,
    /// Laws of θ that were asked for before.
    priors: RefCell<Vec<(PriorName, Rc<dyn Prior>)>>,
}

impl TrainedCloud {
    /// A process that has just been trained in `directory`.
    pub(crate) fn new(
        settings: CloudSettings,
        mut process: UnconditionalProcess,
        scale: CloudScale,
        step: u64,
        directory: &Path,
    ) -> Result<Self, Failure> {
        process.use_average()?;
        Ok(Self {
            settings,
            process,
            scale,
            step,
            directory: directory.to_owned(),
            is_exported: false,
            priors: RefCell::default(),
        })
    }

    /// Reads the newest checkpoint of the run in `directory`.
    pub(crate) fn load(directory: &Path) -> Result<Self, Failure> {
        let folder = directory.join("checkpoints");
        let not_a_run = || {
            Failure::Usage(miette!(
                help = "give the folder of a run such as `ebp train shapes` makes: runs/shapes",
                "there is no model in `{}`",
                directory.display()
            ))
        };
        if !folder.is_dir() {
            return Err(not_a_run());
        }
        let Some(loaded) = CheckpointStore::read_newest(folder)? else { return Err(not_a_run()) };
        let state = loaded.checkpoint.model_state()?;
        let meta = loaded.checkpoint.meta;
        let settings: CloudSettings = toml::from_str(&meta.config).map_err(|error| {
            Failure::Usage(miette!(
                help = "this command takes models of clouds, such as `ebp train shapes` makes",
                "the settings in `{}` cannot be read: {error}",
                directory.display()
            ))
        })?;
        let scale = CloudScale::from_numbers(&meta.numbers)?;
        let config = scale.complete(settings.model.clone());
        let mut process =
            UnconditionalProcess::new(config, settings.seed, device::open()?.backend)?;
        process.restore(&state)?;
        let mut trained = Self::new(settings, process, scale, meta.step, directory)?;
        trained.is_exported = meta.holds != Holds::Everything;
        Ok(trained)
    }

    /// Numbers of a point.
    pub(crate) fn dim(&self) -> usize {
        self.scale.affine.centre.len()
    }

    /// Encodes the training sets and keeps the codes in the folder.
    pub(crate) fn keep_codes(&self, data: &CloudData) -> Result<LatentCodes, Failure> {
        let codes = self.process.encode(&data.training_sets())?;
        write_codes(&self.directory, &codes)?;
        Ok(codes)
    }

    /// Writes the codes of the training sets into another folder.
    pub(crate) fn write_codes_to(&self, directory: &Path) -> Result<(), Failure> {
        write_codes(directory, &self.codes()?)
    }

    /// The codes of the training sets: from the folder, or, where a run did not come to its end,
    /// from the data.
    fn codes(&self) -> Result<LatentCodes, Failure> {
        let path = self.directory.join(CODES_FILE);
        let k = self.process.config().latent_dim;
        if path.exists() && (self.is_exported || self.step == self.settings.train.num_steps) {
            let array: Array<f32> = read_npy(&path)?;
            if let [2, sets, found] = array.shape[..]
                && found == k
            {
                let (mean, log_std_dev) = array.values.split_at(sets * k);
                return Ok(LatentCodes {
                    latent_dim: k,
                    mean: mean.to_vec(),
                    log_std_dev: log_std_dev.to_vec(),
                    pooled: Vec::new(),
                });
            }
        }
        let data = CloudData::load(&self.settings)?;
        Ok(self.process.encode(&data.training_sets())?)
    }

    /// A law of θ, fitted to the codes of the training sets if it is a learned one.
    fn prior(&self, name: PriorName) -> Result<Rc<dyn Prior>, Failure> {
        let k = self.process.config().latent_dim;
        if let Some((_, prior)) = self.priors.borrow().iter().find(|(known, _)| *known == name) {
            return Ok(Rc::clone(prior));
        }
        let prior: Rc<dyn Prior> = if name == PriorName::Standard {
            Rc::new(StandardPrior { dim: k })
        } else {
            let codes = self.codes()?;
            let std_devs = codes.std_devs();
            let codes = Codes::new(k, &codes.mean, Some(&std_devs))?;
            let stream = Stream::new(self.settings.seed, "prior");
            match name {
                PriorName::Kernel => {
                    Rc::new(KernelPrior::fit(&codes, &KernelConfig::default(), stream)?.0)
                }
                PriorName::Flow => {
                    Rc::new(FlowPrior::fit(&codes, &FlowConfig::default(), stream)?.0)
                }
                _ => Rc::new(GaussianPrior::fit(&codes)?),
            }
        };
        self.priors.borrow_mut().push((name, Rc::clone(&prior)));
        Ok(prior)
    }

    /// `count` new θ, `[count, k]`.
    pub(crate) fn draw_latents(
        &self,
        prior: PriorName,
        count: usize,
        stream: Stream,
    ) -> Result<Vec<f32>, Failure> {
        Ok(self.prior(prior)?.sample(count, stream)?)
    }

    /// θ of a file, `[sets, k]`.
    pub(crate) fn read_latents(&self, path: &Path) -> Result<Vec<f32>, Failure> {
        let k = self.process.config().latent_dim;
        let array: Array<f32> = read_npy(path)?;
        match array.shape[..] {
            [sets, found] if sets > 0 && found == k => Ok(array.values),
            _ => Err(Failure::Usage(miette!(
                help = "write codes with `ebp encode MODEL SETS --features mean`",
                "`{}` must be of shape [sets, {k}], but is {:?}",
                path.display(),
                array.shape
            ))),
        }
    }

    /// Clouds of `num_points` for each θ, in the units of the data.
    pub(crate) fn draw_clouds(
        &self,
        theta: &[f32],
        num_points: usize,
        settings: &DrawSettings,
        stream: Stream,
    ) -> Result<(Vec<Vec<f32>>, DrawReport), Failure> {
        self.draw_clouds_watched(theta, num_points, settings, stream, &mut |_| {})
    }

    /// The same; `watch` is told how many are done.
    pub(crate) fn draw_clouds_watched(
        &self,
        theta: &[f32],
        num_points: usize,
        settings: &DrawSettings,
        stream: Stream,
        watch: &mut dyn FnMut(usize),
    ) -> Result<(Vec<Vec<f32>>, DrawReport), Failure> {
        let (points, report) =
            self.process.draw_points_watched(theta, num_points, settings, stream, watch)?;
        Ok((standardised_sets(&points, num_points * self.dim(), &self.scale.affine), report))
    }
}

fn write_codes(directory: &Path, codes: &LatentCodes) -> Result<(), Failure> {
    let shape = vec![2, codes.num_sets(), codes.latent_dim];
    let both = [codes.mean.as_slice(), &codes.log_std_dev].concat();
    Ok(write_npy(&directory.join(CODES_FILE), &Array::new(shape, both)?, Precision::Single)?)
}
