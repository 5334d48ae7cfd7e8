//! What the experiments on clouds share: a model, its data, and samples of it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use super::Laboratory;
use crate::model::{CloudData, CloudModel, CloudSettings, Data, Model, PriorKind, Settings};
use crate::process::{DrawSettings, PointMethod};
use crate::rng::Stream;
use crate::{Error, Result};

/// Which model of clouds an experiment is about.
#[derive(Clone, Debug)]
pub struct CloudSource {
    /// Settings of the model.
    pub preset: String,
    /// Built-in shapes by name, or a file, folder or cache of clouds; without it the preset's.
    pub data: Option<String>,
    /// Changes of settings, each `key=value`.
    pub changes: Vec<String>,
    /// The folder of a model that is trained already, in place of all that.
    pub model: Option<PathBuf>,
}

impl Default for CloudSource {
    /// Built-in chairs, small enough for two cores.
    fn default() -> Self {
        Self { preset: "shapes".into(), data: None, changes: Vec::new(), model: None }
    }
}

/// Clouds that several tables and pictures show.
pub(super) type SharedClouds = Rc<[Vec<f32>]>;

/// A model and its data.
pub(super) struct Subject {
    model: Model,
    pub(super) data: CloudData,
    /// Samples that were asked for before: tables and pictures show the same ones.
    drawn: RefCell<Vec<(PriorKind, PointMethod, SharedClouds)>>,
}

impl CloudSource {
    /// The model given or trained in the folder `name`, with further changes on top.
    pub(super) fn subject(
        &self,
        laboratory: &mut Laboratory<'_>,
        name: &str,
        further: &[String],
    ) -> Result<Subject> {
        laboratory.watch.begin(name);
        let (model, data) = if let Some(directory) = &self.model {
            let model = Model::load_on(directory, &laboratory.device)?;
            model.clouds()?;
            let data = Data::load(model.settings())?;
            (model, data)
        } else {
            let mut changes = Vec::new();
            if let Some(data) = &self.data {
                changes.push(format!("data.source={}", toml::Value::String(data.clone())));
            }
            changes.extend(self.changes.iter().chain(further).cloned());
            laboratory.model(name, Settings::preset(&self.preset, &changes)?)?
        };
        model.clouds()?;
        match data {
            Data::Clouds(data) => Ok(Subject { model, data, drawn: RefCell::default() }),
            _ => Err(Error::invalid("data", "clouds", "data of another kind")),
        }
    }
}

impl Subject {
    pub(super) fn model(&self) -> Result<&CloudModel> {
        self.model.clouds()
    }

    pub(super) fn settings(&self) -> Result<&CloudSettings> {
        Ok(self.model()?.settings())
    }

    pub(super) fn step(&self) -> u64 {
        self.model.step()
    }

    /// Seconds of training, where they are known.
    pub(super) fn seconds(&self) -> Option<f64> {
        self.model.seconds()
    }

    /// Points of a cloud that distances are measured with.
    pub(super) fn num_points(&self) -> Result<usize> {
        Ok(self.settings()?.evaluation.num_points)
    }

    /// Held-out clouds, standardised.
    pub(super) fn held_out(&self) -> Result<Vec<Cow<'_, [f32]>>> {
        Ok(self.data.held_out_sets(self.settings()?.evaluation.num_sets))
    }

    /// Clouds in the units of the data.
    pub(super) fn raw<S: AsRef<[f32]>>(&self, sets: &[S]) -> Result<Vec<Vec<f32>>> {
        let model = self.model()?;
        Ok(sets.iter().map(|set| model.in_data_units(set.as_ref())).collect())
    }

    /// How many clouds are held out and looked at.
    pub(super) fn num_held_out(&self) -> Result<usize> {
        Ok(self.data.held_out.num_sets().min(self.settings()?.evaluation.num_sets))
    }

    /// As many training clouds as are held out: a yardstick, which samples may beat.
    pub(super) fn oracle(&self, number: u64) -> Result<Vec<Vec<f32>>> {
        let train = &self.data.train;
        let order = Stream::new(number, "oracle").permutation(train.num_sets());
        let count = self.num_held_out()?;
        let sets: Vec<_> = order.iter().take(count).map(|&set| train.set(set)).collect();
        self.raw(&sets)
    }

    /// As many samples as are held out with kernels taken in turn, which are not independent.
    pub(super) fn samples_in_turn(&self) -> Result<Vec<Vec<f32>>> {
        let model = self.model()?;
        let stream = Stream::new(model.settings().seed, "reproduce in turn");
        let count = self.num_held_out()?;
        let theta = model.prior(PriorKind::Kernel)?.sample_in_turn(count, stream.child(0))?;
        self.drawn_at(&theta, stream.child(1))
    }

    /// Training clouds, as many as are held out, and what the model makes of their codes.
    pub(super) fn rebuilt(&self) -> Result<Vec<Vec<f32>>> {
        let model = self.model()?;
        let sets = self.data.train.first_sets(self.num_held_out()?);
        let codes = model.encode_sets(&sets)?;
        self.drawn_at(&codes.mean, Stream::new(model.settings().seed, "rebuilt"))
    }

    fn drawn_at(&self, theta: &[f32], stream: Stream) -> Result<Vec<Vec<f32>>> {
        let (draw, num_points) = (DrawSettings::default(), self.num_points()?);
        Ok(self.model()?.draw(theta, num_points, &draw, stream, &mut |_| {})?.0)
    }

    /// As many samples as are held out.
    pub(super) fn samples(&self, prior: PriorKind, method: PointMethod) -> Result<SharedClouds> {
        let is_asked = |(p, m, _): &&(PriorKind, PointMethod, _)| (*p, *m) == (prior, method);
        if let Some((_, _, known)) = self.drawn.borrow().iter().find(is_asked) {
            return Ok(Rc::clone(known));
        }
        let model = self.model()?;
        let stream = Stream::new(model.settings().seed, "reproduce");
        let count = self.num_held_out()?;
        let theta = model.prior(prior)?.sample(count, stream.child(0))?;
        let draw = DrawSettings { method, ..DrawSettings::default() };
        let num_points = self.num_points()?;
        let (clouds, _) = model.draw(&theta, num_points, &draw, stream.child(1), &mut |_| {})?;
        let clouds = SharedClouds::from(clouds);
        self.drawn.borrow_mut().push((prior, method, Rc::clone(&clouds)));
        Ok(clouds)
    }
}
