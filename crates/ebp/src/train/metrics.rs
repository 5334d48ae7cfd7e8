//! `metrics.jsonl`: one JSON object per line and step, such as
//!
//! ```text
//! {"step":41,"loss":0.25,"test_error":0.5}
//! {"step":40,"rollback":1,"from_step":57,"quantity":"loss","found":"NaN","learning_rate_factor":0.5}
//! ```
//!
//! Every step stands there once: a run that goes on from step s, or goes back to it, first removes
//! the lines from s on. No line holds a time, so that equal runs leave equal bytes. A number that
//! is not finite, which only an evaluation can give, is `null`.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Event, Observer, StepNumbers};
use crate::checkpoint::Rollback;
use crate::{Error, Result};

/// Writes the file.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    file: File,
    record_every: u64,
}

/// The part of a line that says whether it is kept.
#[derive(Deserialize)]
struct Line {
    step: u64,
    rollback: Option<u64>,
}

impl Metrics {
    /// Opens or creates the file; one step in `record_every` is written.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `record_every` is 0, [`Error::Io`] if the file cannot be opened.
    pub fn open(path: &Path, record_every: u64) -> Result<Self> {
        if record_every == 0 {
            return Err(Error::invalid("record_every", "at least 1", record_every));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(Error::io("open", path))?;
        Ok(Self { path: path.into(), file, record_every })
    }

    /// Removes the lines from `step` on and those of rollbacks beyond the first `num_rollbacks`.
    /// These are always the end of the file. A line that is cut short is removed as well.
    fn truncate(&mut self, step: u64, num_rollbacks: u64) -> Result<()> {
        let failed = |action| Error::io(action, &self.path);
        self.file.seek(SeekFrom::Start(0)).map_err(failed("read"))?;
        let mut reader = BufReader::new(&self.file);
        let (mut length, mut line) = (0, Vec::new());
        loop {
            line.clear();
            let num_bytes = reader.read_until(b'\n', &mut line).map_err(failed("read"))?;
            let is_kept = line.ends_with(b"\n")
                && serde_json::from_slice(&line).is_ok_and(|line: Line| match line.rollback {
                    Some(number) => number <= num_rollbacks,
                    None => line.step < step,
                });
            if !is_kept {
                break;
            }
            length += num_bytes as u64;
        }
        self.file.set_len(length).map_err(failed("write"))?;
        self.file.seek(SeekFrom::End(0)).map_err(failed("write"))?;
        Ok(())
    }

    fn append(&mut self, object: Map<String, Value>) -> Result<()> {
        // One write per line, without a buffer of ours: a killed process loses none.
        let line = format!("{}\n", Value::Object(object));
        self.file.write_all(line.as_bytes()).map_err(Error::io("write", &self.path))
    }
}

impl Observer for Metrics {
    fn observe(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Started { step, num_rollbacks, .. } => self.truncate(*step, *num_rollbacks),
            Event::Step(numbers) if numbers.is_kept(self.record_every) => {
                self.append(step_line(numbers))
            }
            Event::RolledBack { rollback, num_rollbacks } => {
                self.truncate(rollback.to_step, *num_rollbacks)?;
                self.append(rollback_line(rollback, *num_rollbacks))
            }
            Event::Checkpoint { .. } => {
                self.file.sync_data().map_err(Error::io("write", &self.path))
            }
            _ => Ok(()),
        }
    }
}

fn step_line(numbers: &StepNumbers<'_>) -> Map<String, Value> {
    let mut line = Map::from_iter([("step".into(), numbers.step.into())]);
    line.extend(numbers.iter().map(|(name, value)| (name.to_owned(), value.into())));
    line
}

fn rollback_line(rollback: &Rollback, number: u64) -> Map<String, Value> {
    Map::from_iter([
        ("step".into(), rollback.to_step.into()),
        ("rollback".into(), number.into()),
        ("from_step".into(), rollback.from_step.into()),
        ("quantity".into(), rollback.quantity.clone().into()),
        ("found".into(), rollback.found.clone().into()),
        ("learning_rate_factor".into(), rollback.learning_rate_factor.into()),
    ])
}
