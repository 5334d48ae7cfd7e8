//! A temperature kept beside a model: predictions are then exp(f/T)/Z_T in place of exp(f)/Z.
//!
//! T is fitted by likelihood on sets that were not learned from, and lies in `calibration.json` in the
//! model's folder. [`Model::load`] takes it up, and says so; without the file nothing is changed.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Kind, Model};
use crate::files::write_json;
use crate::{Error, Result};

/// The file in the folder of a model.
pub(super) const FILE: &str = "calibration.json";

/// A fitted temperature, and what it was worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recalibration {
    /// T: densities are exp(f/T)/Z_T. Above 1 they are wider.
    pub temperature: f64,
    /// Of the model that it was fitted to.
    pub step: u64,
    /// Elements that it was fitted to.
    pub count: usize,
    /// Nats per element of those at T = 1.
    pub nats_before: f64,
    /// Nats per element of those at T.
    pub nats_after: f64,
}

impl Model {
    /// The temperature that predictions use, where one was kept.
    pub fn recalibration(&self) -> Option<&Recalibration> {
        self.recalibration.as_ref()
    }

    /// Keeps a temperature in the model's folder, for everyone who loads the model.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the model has no folder or no energy over values at locations, or if the
    /// temperature was fitted to another model; otherwise what the disk says.
    pub fn keep(&mut self, recalibration: &Recalibration) -> Result<()> {
        let Some(directory) = self.directory.clone() else {
            return Err(Error::refused("a model without a folder cannot keep a temperature"));
        };
        self.take(recalibration.clone(), &directory)?;
        write_json(&directory.join(FILE), recalibration)
    }

    /// Takes up the temperature that lies in the folder, if there is one.
    pub(super) fn take_kept(&mut self, directory: &Path) -> Result<()> {
        let file = directory.join(FILE);
        if !file.is_file() {
            return Ok(());
        }
        let text = std::fs::read_to_string(&file).map_err(Error::io("read", &file))?;
        let found = serde_json::from_str(&text).map_err(|error| {
            Error::failed(format!("`{}` cannot be read: {error}", file.display()))
                .with_help("remove it, or fit the temperature again with `ebp calibrate --keep`")
        })?;
        self.take(found, directory)
    }

    fn take(&mut self, found: Recalibration, directory: &Path) -> Result<()> {
        let step = self.step();
        if found.step != step {
            let message = format!(
                "the temperature in `{}` was fitted to step {}, and the model is that of step {step}",
                directory.display(),
                found.step
            );
            let help = format!("remove {FILE}, or fit it again with `ebp calibrate --keep`");
            return Err(Error::refused(message).with_help(help));
        }
        if let Kind::Curves(model) = &mut self.kind {
            model.set_temperature(found.temperature)?;
        } else {
            let message = "only models of curves and tables keep a temperature";
            return Err(Error::refused(message));
        }
        self.recalibration = Some(found);
        Ok(())
    }
}
