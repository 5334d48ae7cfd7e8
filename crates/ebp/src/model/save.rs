//! A trained model without what only training needs, to share or to commit.
//!
//! ```text
//! README.md        what it is and how it is asked, with the header that hubs of models read
//! config.toml      the settings, the data by their name only
//! checkpoints/     the newest one, weights only
//! codes.npy        models of clouds: codes of the training sets, for learned laws of θ
//! metrics.jsonl    the record of training
//! calibration.json the temperature of predictions, where one was kept
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use super::train::has_averages;
use super::{CHECKPOINTS, Kind, Model, card, recalibration};
use crate::checkpoint::CheckpointStore;
use crate::files::{create_folder, entries, write_json};
use crate::{Error, Result};

const METRICS_FILE: &str = "metrics.jsonl";

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// All files, seen from the folder.
    pub files: Vec<String>,
    /// Of all files.
    pub bytes: u64,
    /// Why laws of θ that are learned from codes need the data.
    pub no_codes: Option<String>,
}

impl Model {
    /// Writes the model into a new or empty folder, from which [`load`](Self::load) takes it with
    /// the same answers. Averages stand in the place of parameters and there is no optimiser, so
    /// that it cannot be trained further. Of `data.source` the file's name is kept.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the folder is not free; otherwise what the disk says.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<Saved> {
        let folder = folder.as_ref();
        check_free(folder)?;
        let mut weights = self.checkpoint.clone();
        if self.is_resumable() && has_averages(&weights) {
            weights = weights.weights()?;
        }
        let text = shared_settings(&weights.meta.config)?;
        weights.meta.config.clone_from(&text);
        create_folder(folder)?;
        let no_codes = match &self.kind {
            Kind::Clouds(model) => {
                model.write_codes_to(folder).err().map(|error| error.to_string())
            }
            _ => None,
        };
        if let Some(metrics) = self.directory.as_ref().map(|run| run.join(METRICS_FILE))
            && metrics.is_file()
        {
            fs::copy(&metrics, folder.join(METRICS_FILE)).map_err(Error::io("copy", &metrics))?;
        }
        if let Some(kept) = self.recalibration() {
            write_json(&folder.join(recalibration::FILE), kept)?;
        }
        let config = folder.join("config.toml");
        fs::write(&config, &text).map_err(Error::io("write", &config))?;
        let readme = folder.join(card::FILE);
        fs::write(&readme, self.card()).map_err(Error::io("write", &readme))?;
        // Last, so that a folder that was cut short is no model.
        CheckpointStore::open(folder.join(CHECKPOINTS), 1)?.save(&weights, 1)?;
        let (mut files, mut bytes) = (Vec::new(), 0);
        list(folder, folder, &mut files, &mut bytes)?;
        Ok(Saved { files, bytes, no_codes })
    }
}

/// That nothing is lost by writing to `out`.
fn check_free(out: &Path) -> Result<()> {
    let found = match entries(out) {
        Ok(found) if found.is_empty() => return Ok(()),
        Ok(_) => "files in it",
        Err(_) if out.is_file() => "a file",
        Err(error) => return Err(error),
    };
    let message = format!("`{}` must be a new or an empty folder, found {found}", out.display());
    Err(Error::refused(message).with_help("choose another folder, or remove this one"))
}

/// The settings with the data by their name only.
fn shared_settings(text: &str) -> Result<String> {
    let mut table: toml::Table = text
        .parse()
        .map_err(|error| Error::failed(format!("the settings cannot be read: {error}")))?;
    let source = table.get_mut("data").and_then(|data| data.get_mut("source"));
    if let Some(toml::Value::String(source)) = source {
        *source = name_only(source);
    }
    crate::config::text_of(&table)
}

/// The last component of a path; other words stay as they are.
pub(super) fn name_only(source: &str) -> String {
    let trimmed = source.trim_end_matches(['/', '\\']);
    match trimmed.rsplit_once(['/', '\\']) {
        None => source.to_owned(),
        // A folder `data/chair` must not become the built-in shape `chair`.
        Some((_, name)) if !name.contains('.') => format!("./{name}"),
        Some((_, name)) => name.to_owned(),
    }
}

/// All files under `folder` as seen from `root`, by name, and the sum of their sizes.
fn list(root: &Path, folder: &Path, files: &mut Vec<String>, bytes: &mut u64) -> Result<()> {
    for name in entries(folder)? {
        let path: PathBuf = folder.join(name);
        if path.is_dir() {
            list(root, &path, files, bytes)?;
        } else {
            *bytes += fs::metadata(&path).map_err(Error::io("read", &path))?.len();
            files.push(path.strip_prefix(root).unwrap_or(&path).display().to_string());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_keep_their_name_and_nothing_else() {
        for (source, expected) in [
            ("chair", "chair"),
            ("rain.csv", "rain.csv"),
            ("/home/me/data/chair.npy", "chair.npy"),
            ("C:\\data\\rain.csv", "rain.csv"),
            ("modelnet10/chair/", "./chair"),
        ] {
            assert_eq!(name_only(source), expected);
        }
        let text = "kind = \"clouds\"\nseed = 3\n\n[data]\nheld_out = 2\nsource = \"/a/b.npy\"\n";
        assert_eq!(shared_settings(text).unwrap(), text.replace("/a/", ""));
        assert!(shared_settings("seed").is_err());
    }
}
