//! What the experiments on clouds share: a model, its data, and samples of it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::Laboratory;
use crate::data::ReportSets;
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
    /// Which sets are measured on.
    pub on: MeasuredOn,
}

/// Which sets an experiment measures on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredOn {
    /// Those that neither training nor any choice has seen: numbers to publish.
    #[default]
    Report,
    /// Those that settings are chosen by: numbers to compare settings with.
    Choose,
}

/// How many sets of each kind there are, and which of them were measured on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSizes {
    /// Learned from.
    pub train: usize,
    /// Chosen by.
    pub choose: usize,
    /// Set aside for reports; 0 where nothing was.
    pub report: usize,
    /// Which of those, in words.
    pub report_name: String,
    /// What the numbers were measured on.
    pub measured_on: MeasuredOn,
    /// How many sets of it.
    pub measured: usize,
}

impl Display for PartSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { train, choose, report, report_name, measured_on, measured } = self;
        write!(f, "learned from {train} sets, chosen by {choose}, ")?;
        match measured_on {
            MeasuredOn::Report => {
                write!(f, "measured on {report} that no choice has seen ({report_name})")
            }
            MeasuredOn::Choose => {
                write!(f, "measured on {measured} of those chosen by: not for reports")
            }
        }
    }
}

impl Default for CloudSource {
    /// Built-in chairs, small enough for two cores.
    fn default() -> Self {
        Self {
            preset: "shapes".into(),
            data: None,
            changes: Vec::new(),
            model: None,
            on: MeasuredOn::Report,
        }
    }
}

/// How many sets are set aside for reports where neither the data nor the settings say so.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReportShare {
    /// As many as settings are chosen by.
    AsChosenBy,
    /// A fifth of all.
    Fifth,
}

/// Clouds that several tables and pictures show.
pub(super) type SharedClouds = Rc<[Vec<f32>]>;

/// A model and its data.
pub(super) struct Subject {
    model: Model,
    pub(super) data: CloudData,
    on: MeasuredOn,
    report: Option<ReportSets>,
    /// Samples that were asked for before: tables and pictures show the same ones.
    drawn: RefCell<Vec<(PriorKind, PointMethod, SharedClouds)>>,
}

impl CloudSource {
    /// Of the model's random numbers, where it is trained here.
    pub(super) fn seed(&self) -> Result<u64> {
        match Settings::preset(&self.preset, &self.changes)? {
            Settings::Clouds(settings) => Ok(settings.seed),
            _ => Err(Error::invalid("preset", "of clouds", &self.preset)),
        }
    }

    /// The model given or trained in the folder `name`, with further changes on top.
    pub(super) fn subject(
        &self,
        laboratory: &mut Laboratory<'_>,
        name: &str,
        further: &[String],
    ) -> Result<Subject> {
        self.subject_with(laboratory, name, further, ReportShare::AsChosenBy)
    }

    /// The same, with another share of the data for reports.
    pub(super) fn subject_with(
        &self,
        laboratory: &mut Laboratory<'_>,
        name: &str,
        further: &[String],
        share: ReportShare,
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
            let mut settings = Settings::preset(&self.preset, &changes)?;
            if let Settings::Clouds(settings) = &mut settings
                && settings.data.report == 0
            {
                settings.data.report = match share {
                    ReportShare::AsChosenBy => settings.data.held_out,
                    ReportShare::Fifth => {
                        let data = CloudData::load(settings)?;
                        (data.train.num_sets() + data.choose.num_sets()).div_ceil(5)
                    }
                };
            }
            laboratory.model(name, settings)?
        };
        let Data::Clouds(data) = data else {
            return Err(Error::invalid("data", "clouds", "data of another kind"));
        };
        let report = match self.on {
            MeasuredOn::Report => Some(model.clouds()?.report_sets()?),
            MeasuredOn::Choose => None,
        };
        Ok(Subject { model, data, on: self.on, report, drawn: RefCell::default() })
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

    /// The clouds that are measured on, standardised.
    pub(super) fn references(&self) -> Result<Vec<Cow<'_, [f32]>>> {
        Ok(match &self.report {
            Some(report) => (0..report.num_sets()).map(|set| report.set(set)).collect(),
            None => self.data.choice_sets(self.settings()?.evaluation.num_sets),
        })
    }

    /// The sets that only reports see.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the experiment is on others.
    pub(super) fn report_sets(&self) -> Result<&ReportSets> {
        self.report.as_ref().ok_or_else(|| Error::refused("this is measured on report sets only"))
    }

    /// How many sets there are of each kind.
    pub(super) fn sizes(&self) -> Result<PartSizes> {
        Ok(PartSizes {
            train: self.data.train.num_sets(),
            choose: self.data.choose.num_sets(),
            report: self.report.as_ref().map_or(0, ReportSets::num_sets),
            report_name: self.report.as_ref().map_or("", ReportSets::description).to_owned(),
            measured_on: self.on,
            measured: self.num_references()?,
        })
    }

    /// Clouds in the units of the data.
    pub(super) fn raw<S: AsRef<[f32]>>(&self, sets: &[S]) -> Result<Vec<Vec<f32>>> {
        let model = self.model()?;
        Ok(sets.iter().map(|set| model.in_data_units(set.as_ref())).collect())
    }

    /// How many clouds are measured on.
    pub(super) fn num_references(&self) -> Result<usize> {
        let of_choice = self.data.choose.num_sets().min(self.settings()?.evaluation.num_sets);
        Ok(self.report.as_ref().map_or(of_choice, ReportSets::num_sets))
    }

    /// As many training clouds as are measured on: a yardstick, which samples may beat.
    pub(super) fn oracle(&self, number: u64) -> Result<Vec<Vec<f32>>> {
        let train = &self.data.train;
        let order = Stream::new(number, "oracle").permutation(train.num_sets());
        let count = self.num_references()?;
        let sets: Vec<_> = order.iter().take(count).map(|&set| train.set(set)).collect();
        self.raw(&sets)
    }

    /// As many samples as are measured on with kernels taken in turn, which are not independent.
    pub(super) fn samples_in_turn(&self) -> Result<Vec<Vec<f32>>> {
        let model = self.model()?;
        let stream = Stream::new(model.settings().seed, "reproduce in turn");
        let count = self.num_references()?;
        let theta = model.prior(PriorKind::Kernel)?.sample_in_turn(count, stream.child(0))?;
        self.drawn_at(&theta, stream.child(1))
    }

    /// Training clouds, as many as are measured on, and what the model makes of their codes.
    pub(super) fn rebuilt(&self) -> Result<Vec<Vec<f32>>> {
        let model = self.model()?;
        let sets = self.data.train.first_sets(self.num_references()?);
        let codes = model.encode_sets(&sets)?;
        self.drawn_at(&codes.mean, Stream::new(model.settings().seed, "rebuilt"))
    }

    fn drawn_at(&self, theta: &[f32], stream: Stream) -> Result<Vec<Vec<f32>>> {
        let (draw, num_points) = (DrawSettings::default(), self.num_points()?);
        Ok(self.model()?.draw(theta, num_points, &draw, stream, &mut |_| {})?.0)
    }

    /// As many samples as are measured on.
    pub(super) fn samples(&self, prior: PriorKind, method: PointMethod) -> Result<SharedClouds> {
        let is_asked = |(p, m, _): &&(PriorKind, PointMethod, _)| (*p, *m) == (prior, method);
        if let Some((_, _, known)) = self.drawn.borrow().iter().find(is_asked) {
            return Ok(Rc::clone(known));
        }
        let clouds = self.draws(prior, &DrawSettings { method, ..DrawSettings::default() })?;
        let clouds = SharedClouds::from(clouds);
        self.drawn.borrow_mut().push((prior, method, Rc::clone(&clouds)));
        Ok(clouds)
    }

    /// As many samples as are held out, drawn in a way of one's own: the same θ in every way.
    pub(super) fn draws(&self, prior: PriorKind, draw: &DrawSettings) -> Result<Vec<Vec<f32>>> {
        let model = self.model()?;
        let stream = Stream::new(model.settings().seed, "reproduce");
        let theta = model.prior(prior)?.sample(self.num_references()?, stream.child(0))?;
        let num_points = self.num_points()?;
        Ok(model.draw(&theta, num_points, draw, stream.child(1), &mut |_| {})?.0)
    }
}
