//! All parts of a whole: that they belong together, that none is missing and none comes twice.

use std::fs;
use std::path::{Path, PathBuf};

use ebp::data::npy::{Array, read_npy};
use miette::miette;
use serde::de::DeserializeOwned;

use super::part::{Header, rows_file, strange_version, values_file};
use crate::failure::Failure;

/// Parts that are a whole, in the order of their shares.
#[derive(Debug)]
pub(crate) struct Parts {
    headers: Vec<Header>,
    folders: Vec<PathBuf>,
}

impl Parts {
    /// Reads what the folders say of themselves, and checks it.
    pub(crate) fn open(folders: &[PathBuf]) -> Result<Self, Failure> {
        let mut parts = Vec::new();
        for folder in folders {
            let Some(header) = Header::read(folder) else {
                return Err(Failure::Usage(miette!(
                    help = "parts are folders that commands with `--shard I/N -o FOLDER` make",
                    "`{}` is no part: it must hold a readable part.json",
                    folder.display()
                )));
            };
            if let Some(version) = strange_version(&header) {
                return Err(Failure::Usage(miette!(
                    help = "make all parts by one version and merge them by the same",
                    "`{}` was made by {version}, this is ebp {}",
                    folder.display(),
                    env!("CARGO_PKG_VERSION")
                )));
            }
            parts.push((header, folder.clone()));
        }
        for (header, folder) in &parts {
            belongs(header, folder, &parts[0].0, &parts[0].1)?;
        }
        parts.sort_by_key(|(header, _)| header.share);
        for pair in parts.windows(2) {
            if pair[0].0.share == pair[1].0.share {
                return Err(Failure::Usage(miette!(
                    help = "name one of them",
                    "`{}` and `{}` are both share {}",
                    pair[0].1.display(),
                    pair[1].1.display(),
                    pair[0].0.share
                )));
            }
        }
        let Some((first, _)) = parts.first() else {
            return Err(Failure::Usage(miette!("at least one part is needed")));
        };
        let count = first.share.count();
        let has = |number: usize| parts.iter().any(|(header, _)| header.share.number() == number);
        let missing: Vec<String> =
            (1..=count).filter(|&number| !has(number)).map(|n| format!("{n}/{count}")).collect();
        if !missing.is_empty() {
            return Err(Failure::Usage(miette!(
                help = format!("run `{}` with each of them after `--shard`", first.words()),
                "of {count} shares {} are missing: {}",
                missing.len(),
                missing.join(", ")
            )));
        }
        if let Some((header, folder)) = parts.iter().find(|(header, _)| !header.is_whole) {
            return Err(Failure::Usage(miette!(
                help = format!("the same command goes on: {}", header.words()),
                "`{}`, share {}, is not finished",
                folder.display(),
                header.share
            )));
        }
        let (headers, folders) = parts.into_iter().unzip();
        Ok(Self { headers, folders })
    }

    /// The folders, in the order of their shares.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// What was typed for one of them, without the program's name.
    pub(crate) fn typed(&self) -> &[String] {
        &self.headers[0].typed
    }

    /// The command that they are parts of.
    pub(crate) fn command(&self) -> &str {
        &self.headers[0].question.command
    }

    /// The devices that parts were computed on, each once.
    pub(crate) fn devices(&self) -> Vec<String> {
        let mut devices: Vec<String> =
            self.headers.iter().filter_map(|header| header.device.clone()).collect();
        devices.sort();
        devices.dedup();
        devices
    }

    /// Whether some were computed on other devices than others.
    pub(crate) fn have_several_devices(&self) -> bool {
        self.headers.iter().any(|header| header.device != self.headers[0].device)
    }

    /// The rows of all pieces, in their order, each with the folder that holds it.
    pub(crate) fn rows<R: DeserializeOwned>(&self) -> Result<Vec<R>, Failure> {
        self.each(|folder, piece| {
            let path = rows_file(folder, piece);
            let bytes = fs::read(&path).map_err(|error| Failure::cannot("read", &path, &error))?;
            serde_json::from_slice(&bytes).map_err(|error| {
                Failure::Failed(miette!(
                    help = format!("remove the folder and make its part again: {}", self.words()),
                    "`{}` does not hold what it should: {error}",
                    path.display()
                ))
            })
        })
    }

    /// The numbers of all pieces, in their order.
    pub(crate) fn values(&self) -> Result<Vec<Array<f32>>, Failure> {
        self.each(|folder, piece| Ok(read_npy(&values_file(folder, piece))?))
    }

    fn words(&self) -> String {
        self.headers[0].words()
    }

    fn each<T>(
        &self,
        read: impl Fn(&Path, usize) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut all = Vec::new();
        for (header, folder) in self.headers.iter().zip(&self.folders) {
            for piece in header.share.range(header.question.num_pieces) {
                all.push(read(folder, piece)?);
            }
        }
        Ok(all)
    }
}

/// Whether two parts are of one whole.
fn belongs(header: &Header, folder: &Path, first: &Header, other: &Path) -> Result<(), Failure> {
    let (a, b) = (&header.question, &first.question);
    let difference = if a.command != b.command {
        format!("one is of `ebp {}`, the other of `ebp {}`", a.command, b.command)
    } else if a.arguments != b.arguments {
        format!("`{}` and `{}` ask for different things", header.words(), first.words())
    } else if a.inputs != b.inputs {
        format!("what they read differs: {} and {}", a.inputs, b.inputs)
    } else if header.share.count() != first.share.count() {
        format!("one is share {}, the other {}", header.share, first.share)
    } else if a.num_pieces != b.num_pieces {
        format!("one is of {} pieces, the other of {}", a.num_pieces, b.num_pieces)
    } else {
        return Ok(());
    };
    Err(Failure::Usage(miette!(
        help = "merge parts of one command with the same model, sets and number of shares",
        "`{}` does not belong to `{}`: {difference}",
        folder.display(),
        other.display()
    )))
}
