//! The folder of a run, where everything about it is kept.
//!
//! ```text
//! config.toml                  the resolved configuration
//! run.json                     version, commit, device, threads, seed, command line
//! seconds.json                 how long it was trained
//! metrics.jsonl                the record of every step
//! events.out.tfevents.*        the same for TensorBoard
//! checkpoints/                 see `checkpoint`
//! samples/, plots/             what other commands make of it
//! run.lock                     locked while a process writes here; otherwise without meaning
//! ```

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Metrics, TensorBoard, tensorboard};
use crate::checkpoint::CheckpointStore;
use crate::files::{entries, is_leftover, remove_leftovers, replace_file, write_json};
use crate::{Error, Result};

const CONFIG_FILE: &str = "config.toml";
const DESCRIPTION_FILE: &str = "run.json";
const METRICS_FILE: &str = "metrics.jsonl";
const CHECKPOINTS: &str = "checkpoints";
const LOCK_FILE: &str = "run.lock";

/// What to do with a folder that already holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it alone and say so.
    Refuse,
    /// Go on with the run in it.
    Resume,
    /// Remove the run in it and begin again. Files that are no part of a run stay.
    Replace,
}

/// How a run came about, for `run.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunDescription {
    /// Version of the program.
    pub version: String,
    /// Commit it was built from, where known.
    pub commit: Option<String>,
    /// Where it computes.
    pub device: String,
    /// With how many threads.
    pub threads: usize,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The command line, program first.
    pub arguments: Vec<String>,
}

/// The folder of a run, locked for this process as long as this lives.
#[derive(Debug)]
pub struct RunDirectory {
    root: PathBuf,
    /// Unlocked by the system when the process ends, however it ends.
    _lock: File,
}

impl RunDirectory {
    /// Opens `root` for a run, and creates it if it is not there.
    ///
    /// # Errors
    ///
    /// [`Error::Occupied`] if it holds something and `existing` is [`Existing::Refuse`], holds
    /// something else than a run and is to be replaced, holds no run and is to be resumed, or if
    /// another process is writing to it. [`Error::InvalidValue`] if it is to be resumed and holds
    /// weights only. [`Error::Io`] if it cannot be used.
    pub fn open(root: impl Into<PathBuf>, existing: Existing) -> Result<Self> {
        let root = root.into();
        let found = entries(&root)?;
        // What a killed process was writing is removed below.
        let is_empty = found.iter().all(|name| name == LOCK_FILE || is_leftover(name));
        let is_run = found.iter().any(|name| name == DESCRIPTION_FILE || name == CONFIG_FILE);
        let occupied = |found: &str, remedy| {
            Err(Error::Occupied { path: root.clone(), found: found.into(), remedy })
        };
        match existing {
            Existing::Refuse if !is_empty => {
                return occupied(
                    if is_run { "a run" } else { "other files" },
                    "resume the run, replace it by force, or choose another folder",
                );
            }
            Existing::Resume if !is_run && !is_empty => {
                return occupied("files but no run to resume", "choose the folder of a run");
            }
            Existing::Replace if !is_run && !is_empty => {
                return occupied(
                    "files that are no run",
                    "only runs are replaced by force; choose another folder",
                );
            }
            _ => {}
        }
        // Before anything is written: what was exported stays as it is. Damage is told later.
        if existing == Existing::Resume
            && let Ok(Some(loaded)) = CheckpointStore::read_newest(root.join(CHECKPOINTS))
        {
            loaded.checkpoint.check_resumable()?;
        }
        fs::create_dir_all(&root).map_err(Error::io("create", &root))?;
        let lock = lock(&root)?;
        remove_leftovers(&root)?;
        if existing == Existing::Replace {
            remove_run(&root)?;
        }
        Ok(Self { root, _lock: lock })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The resolved configuration of the run in this folder, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it is there and cannot be read.
    pub fn config(&self) -> Result<Option<String>> {
        let path = self.root.join(CONFIG_FILE);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            text => text.map(Some).map_err(Error::io("read", path)),
        }
    }

    /// Writes `config.toml` and `run.json`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if they cannot be written.
    pub fn describe(&self, config: &str, description: &RunDescription) -> Result<()> {
        replace_file(&self.root, CONFIG_FILE, config.as_bytes())?;
        write_json(&self.root.join(DESCRIPTION_FILE), description)
    }

    /// The checkpoints, of which the `num_kept` newest are kept.
    ///
    /// # Errors
    ///
    /// As [`CheckpointStore::open`].
    pub fn checkpoints(&self, num_kept: usize) -> Result<CheckpointStore> {
        CheckpointStore::open(self.root.join(CHECKPOINTS), num_kept)
    }

    /// The metrics, to be told of every event.
    ///
    /// # Errors
    ///
    /// As [`Metrics::open`].
    pub fn metrics(&self, record_every: u64) -> Result<Metrics> {
        Metrics::open(&self.root.join(METRICS_FILE), record_every)
    }

    /// A new event file, to be told of every event; see [`TensorBoard::create`].
    ///
    /// # Errors
    ///
    /// As [`TensorBoard::create`].
    pub fn tensorboard(&self, record_every: u64, start_time: f64) -> Result<TensorBoard> {
        TensorBoard::create(&self.root, record_every, start_time)
    }
}

fn lock(root: &Path) -> Result<File> {
    let path = root.join(LOCK_FILE);
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false);
    let file = options.open(&path).map_err(Error::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Occupied {
            path: root.into(),
            found: "another process that is writing to it".into(),
            remedy: "wait for it to end, or choose another folder",
        }),
        Err(TryLockError::Error(error)) => Err(Error::io("lock", path)(error)),
    }
}

/// Removes what this library put there, and nothing else. What marks the folder as a run goes
/// last, so that a removal that was cut short can be repeated.
fn remove_run(root: &Path) -> Result<()> {
    for name in [CHECKPOINTS, "samples", "plots"] {
        let path = root.join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        }
    }
    let mut files = entries(root)?;
    files.retain(|name| {
        name == METRICS_FILE
            || name == super::run::SECONDS_FILE
            || name.starts_with(tensorboard::FILE_PREFIX)
    });
    files.extend([CONFIG_FILE.to_owned(), DESCRIPTION_FILE.to_owned()]);
    for name in files {
        let path = root.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => removed.map_err(Error::io("remove", path))?,
        }
    }
    Ok(())
}
