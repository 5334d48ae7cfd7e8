//! What the experiments on clouds share: which model, which data, trained where.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use ebp::process::{DrawSettings, PointMethod};
use ebp::rng::Stream;
use ebp::train::Existing;

use crate::command::cloud_model::{
    CloudData, CloudSettings, PriorName, TrainedCloud, standardised_sets,
};
use crate::command::train::{TrainingFolder, train_cloud};
use crate::failure::Failure;
use ebp::config::Layers;
use ebp::model::PRESETS;

/// Arguments of all experiments on clouds.
#[derive(Clone, Debug, Args)]
pub(crate) struct CloudExperiment {
    /// Settings of the model
    #[arg(long, value_name = "PRESET", default_value = "shapes")]
    pub(super) preset: String,

    /// Built-in shapes by name, or a file, folder or cache of clouds [default: the preset's]
    #[arg(long, value_name = "PATH|NAME")]
    pub(super) data: Option<String>,

    /// A model that is trained already, in place of a preset; its own data are used
    #[arg(long, value_name = "DIR", conflicts_with_all = ["preset", "data", "set"])]
    pub(super) model: Option<PathBuf>,

    /// Change a setting, such as train.num_steps=500; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,

    /// Folder of models, results and pictures; what is finished there is not done again
    #[arg(long, value_name = "DIR", default_value = "runs/reproduce")]
    pub(super) out: PathBuf,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    pub(super) threads: Option<usize>,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(super) json: bool,

    /// Show no progress
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// Clouds that several tables and pictures show.
type SharedClouds = Rc<[Vec<f32>]>;

/// A model and its data.
pub(super) struct Subject {
    pub(super) trained: TrainedCloud,
    pub(super) data: CloudData,
    /// Samples that were asked for before: tables and pictures show the same ones.
    drawn: RefCell<Vec<(PriorName, PointMethod, SharedClouds)>>,
}

impl CloudExperiment {
    /// The model given or trained, with further settings on top; `name` is its folder.
    pub(super) fn subject(&self, name: &str, further: &[String]) -> Result<Subject, Failure> {
        if let Some(directory) = &self.model {
            let trained = TrainedCloud::load(directory)?;
            let data = CloudData::load(&trained.settings)?;
            return Ok(Subject { trained, data, drawn: RefCell::default() });
        }
        let mut assignments = Vec::new();
        if let Some(data) = &self.data {
            assignments.push(format!("data.source={}", toml::Value::String(data.clone())));
        }
        assignments.extend(self.set.iter().cloned());
        assignments.extend(further.iter().cloned());
        let layers = Layers {
            presets: PRESETS,
            preset: Some(self.preset.clone()),
            assignments,
            ..Layers::default()
        };
        let resolved = layers.resolve::<CloudSettings>()?;
        let directory = self.out.join(name);
        let data = CloudData::load(&resolved.config)?;
        if let Ok(trained) = TrainedCloud::load(&directory)
            && trained.settings == resolved.config
            && trained.step == resolved.config.train.num_steps
        {
            return Ok(Subject { trained, data, drawn: RefCell::default() });
        }
        let folder = TrainingFolder {
            directory: &directory,
            existing: Existing::Resume,
            config: resolved.text,
        };
        let trained = train_cloud(resolved.config, &data, folder, self.quiet)?;
        Ok(Subject { trained, data, drawn: RefCell::default() })
    }

    /// A file in the folder of results.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf, Failure> {
        std::fs::create_dir_all(&self.out)
            .map_err(|error| Failure::cannot("create", &self.out, &error))?;
        Ok(self.out.join(name))
    }
}

impl Subject {
    /// Held-out clouds, standardised.
    pub(super) fn held_out(&self) -> Vec<&[f32]> {
        self.data.held_out_sets(self.trained.settings.evaluation.num_sets)
    }

    /// Clouds in the units of the data.
    pub(super) fn raw(&self, sets: &[&[f32]]) -> Vec<Vec<f32>> {
        let affine = &self.trained.scale.affine;
        sets.iter().flat_map(|set| standardised_sets(set, set.len(), affine)).collect()
    }

    /// As many training clouds as are held out: the best a model can hope for.
    pub(super) fn oracle(&self, number: u64) -> Vec<Vec<f32>> {
        let order = Stream::new(number, "oracle").permutation(self.data.train.num_clouds());
        let count = self.held_out().len();
        let sets: Vec<&[f32]> =
            order.iter().take(count).map(|&set| self.data.train.cloud(set)).collect();
        self.raw(&sets)
    }

    /// As many samples as are held out.
    pub(super) fn samples(
        &self,
        prior: PriorName,
        method: PointMethod,
    ) -> Result<SharedClouds, Failure> {
        let is_asked = |(p, m, _): &&(PriorName, PointMethod, _)| (*p, *m) == (prior, method);
        if let Some((_, _, known)) = self.drawn.borrow().iter().find(is_asked) {
            return Ok(Rc::clone(known));
        }
        let stream = Stream::new(self.trained.settings.seed, "reproduce");
        let count = self.held_out().len();
        let theta = self.trained.draw_latents(prior, count, stream.child(0))?;
        let settings = DrawSettings { method, ..DrawSettings::default() };
        let num_points = self.trained.settings.evaluation.num_points;
        let (clouds, _) =
            self.trained.draw_clouds(&theta, num_points, &settings, stream.child(1))?;
        let clouds = SharedClouds::from(clouds);
        self.drawn.borrow_mut().push((prior, method, Rc::clone(&clouds)));
        Ok(clouds)
    }
}

/// Writes a result beside the models, so that a table can be made again.
pub(super) fn keep_json(path: &Path, value: &impl serde::Serialize) -> Result<(), Failure> {
    Ok(ebp::files::write_json(path, value)?)
}
