//! The paper's experiments: functions from settings to numbers and pictures.
//!
//! A [`Laboratory`] is where they happen: a folder in which everything that is finished is kept, so
//! that what was interrupted goes on, a device, and someone who watches. Every experiment has a
//! struct of what is asked for and gives [`Findings`]: a report, which is plain data with a text
//! form, and its pictures. [`outcome`] says what a single trained model has learned.

pub mod ablation;
pub mod album;
pub mod bench;
pub mod calibration;
pub mod completion;
pub mod consistency;
pub mod denoising;
pub mod documents;
pub mod energies;
pub mod figure1;
mod generated;
pub mod generation;
pub mod outcome;
pub mod simulation;
mod subject;
pub mod table1;
pub mod table2;
mod text;

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

pub use self::generated::{Generation, GenerationRow, generation_table};
pub use self::subject::{CloudSource, MeasuredOn, PartSizes};
pub use self::text::{table, with_interval};
use crate::Result;
use crate::figure::{Figure, Theme};
use crate::files::write_json;
use crate::model::{Data, Device, Model, Settings, TrainOptions};
use crate::train::{Existing, Observer, Program, Silent};

/// Where experiments happen.
#[derive(Debug)]
pub struct Laboratory<'a> {
    /// Models, results and pictures; what is finished there is not done again.
    pub folder: PathBuf,
    /// Where to compute.
    pub device: Device,
    /// The program, for the files of runs.
    pub program: Program,
    /// Who is told.
    pub watch: &'a mut dyn Watch,
    /// Once it is true, a training saves its state and ends with
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub stop: Option<&'a AtomicBool>,
    /// What plots lie on.
    pub theme: Theme,
}

/// One who watches an experiment.
pub trait Watch: Debug {
    /// A piece of work begins.
    fn begin(&mut self, _piece: &str) {}

    /// Something worth a line is known.
    fn note(&mut self, _line: &str) {}

    /// Who is told about a training.
    fn observer(&mut self) -> &mut dyn Observer;
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched(Silent);

impl Watch for Unwatched {
    fn observer(&mut self) -> &mut dyn Observer {
        &mut self.0
    }
}

/// What an experiment found.
#[derive(Clone, Debug)]
pub struct Findings<R> {
    /// The numbers.
    pub report: R,
    /// The pictures, and where they belong.
    pub pictures: Vec<(PathBuf, Figure)>,
}

impl<R> Findings<R> {
    /// Writes the pictures to where they belong, drawings also as SVG beside them.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub fn save_pictures(&self, theme: Theme) -> Result<()> {
        self.pictures.iter().try_for_each(|(path, picture)| picture.save(path, theme))
    }
}

impl<R: Serialize> Findings<R> {
    /// Writes the pictures, and the numbers as `name`.json into the laboratory's folder.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub fn keep(&self, laboratory: &Laboratory<'_>, name: &str) -> Result<()> {
        self.save_pictures(laboratory.theme)?;
        write_json(&laboratory.file(&format!("{name}.json")), &self.report)
    }
}

impl Laboratory<'_> {
    /// A file or folder in the laboratory's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The model of these settings in the folder `name`: the one that is there and finished, or
    /// trained now, going on where an earlier training was interrupted.
    ///
    /// # Errors
    ///
    /// As [`Model::train`].
    pub fn model(&mut self, name: &str, settings: Settings) -> Result<(Model, Data)> {
        let data = Data::load(&settings)?;
        let model = self.model_on(name, settings, &data)?;
        Ok((model, data))
    }

    /// The same with data that are loaded already.
    ///
    /// # Errors
    ///
    /// As [`Model::train_on`].
    pub fn model_on(&mut self, name: &str, settings: Settings, data: &Data) -> Result<Model> {
        let directory = self.file(name);
        if let Ok(model) = Model::load_on(&directory, &self.device)
            && *model.settings() == settings
            && model.is_finished()
        {
            return Ok(model);
        }
        let options = TrainOptions {
            directory: Some(directory),
            existing: Some(Existing::Resume),
            device: self.device.clone(),
            replicas: Vec::new(),
            ranks: None,
            from: None,
            observer: Some(self.watch.observer()),
            stop: self.stop,
            program: self.program.clone(),
        };
        Model::train_on(settings, data, options)
    }
}
