//! The folder of a run's checkpoints: the newest few, the best one, and where to go on.
//!
//! A checkpoint's place in the order is (rollbacks, step): after a return to step 100, what was
//! saved at step 150 before it is older. Both numbers are in the folder's name. Every folder that
//! is there is whole, so the newest intact one is where a run goes on; the pointers `last` and
//! `best` are for those who use the model.

use std::fs;
use std::path::{Path, PathBuf};

use super::{BEST, Checkpoint, LAST};
use crate::files::{self, entries, remove_folder, replace_file};
use crate::{Error, Result};

/// Longest line in a pointer.
const MAX_POINTER_BYTES: u64 = 256;
/// Begins the name of a checkpoint that turned out damaged and was set aside.
const DAMAGED: &str = "damaged-";

/// Steps and rollbacks, by which checkpoints are named and ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    num_rollbacks: u64,
    step: u64,
}

impl Place {
    fn of(checkpoint: &Checkpoint) -> Self {
        let num_rollbacks = checkpoint.meta.rollbacks.len() as u64;
        Self { num_rollbacks, step: checkpoint.meta.step }
    }

    fn name(self) -> String {
        match self.num_rollbacks {
            0 => format!("step-{:012}", self.step),
            count => format!("step-{:012}-rollback-{count}", self.step),
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let numbers = name.strip_prefix("step-")?;
        let (step, num_rollbacks) = match numbers.split_once("-rollback-") {
            Some((step, count)) => (step, count.parse().ok()?),
            None => (numbers, 0),
        };
        let place = Self { num_rollbacks, step: step.parse().ok()? };
        (place.name() == name).then_some(place)
    }
}

/// A checkpoint that was read, and those that could not be.
#[derive(Debug)]
pub struct Loaded {
    /// The newest intact one.
    pub checkpoint: Checkpoint,
    /// Its folder.
    pub path: PathBuf,
    /// Newer ones that are damaged, with the reason. They were set aside under the name
    /// `damaged-…`.
    pub damaged: Vec<Error>,
}

/// The checkpoints of one run. One process may write to it at a time.
#[derive(Debug)]
pub struct CheckpointStore {
    folder: PathBuf,
    num_kept: usize,
}

impl CheckpointStore {
    /// Opens `folder` for writing, creates it if it is not there, and removes what a process that
    /// died left half written. The `num_kept` newest checkpoints are kept.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `num_kept` is 0, [`Error::Io`] if the folder cannot be used.
    pub fn open(folder: impl Into<PathBuf>, num_kept: usize) -> Result<Self> {
        let folder = folder.into();
        if num_kept == 0 {
            return Err(Error::invalid("num_kept", "at least 1", num_kept));
        }
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        files::remove_leftovers(&folder)?;
        Ok(Self { folder, num_kept })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a checkpoint, points `last` at it, and removes old ones. Those that `best` points
    /// at and the newest one whose step is a multiple of `milestone` stay.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for content that cannot be saved, [`Error::Io`] if it cannot be
    /// written; earlier checkpoints are as they were then.
    pub fn save(&self, checkpoint: &Checkpoint, milestone: u64) -> Result<PathBuf> {
        let name = Place::of(checkpoint).name();
        let path = self.folder.join(&name);
        let encoded = checkpoint.encode()?;
        // A run that goes on from further back comes by the same places with the same bytes.
        if !encoded.is_at(&path) {
            remove_folder(&self.folder, &name)?;
            encoded.write(&self.folder, &name)?;
        }
        self.point(LAST, &name)?;
        let is_best = |best: &super::Best| {
            let place = Place { num_rollbacks: best.num_rollbacks, step: best.step };
            place == Place::of(checkpoint)
        };
        if checkpoint.meta.best.as_ref().is_some_and(is_best) {
            self.point(BEST, &name)?;
        }
        self.prune(milestone)?;
        Ok(path)
    }

    /// Reads the newest intact checkpoint; `None` if there never was one.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if there are checkpoints but none is intact, [`Error::Io`] if they
    /// cannot be read.
    pub fn load_newest(&self) -> Result<Option<Loaded>> {
        let mut damaged = Vec::new();
        for place in self.places()?.into_iter().rev() {
            let path = self.folder.join(place.name());
            match Checkpoint::load(&path) {
                Ok(checkpoint) => {
                    for error in &damaged {
                        self.set_aside(error)?;
                    }
                    self.repair_pointers(place, &checkpoint)?;
                    return Ok(Some(Loaded { checkpoint, path, damaged }));
                }
                Err(error @ Error::Damaged { .. }) => damaged.push(error),
                Err(error) => return Err(error),
            }
        }
        damaged.into_iter().next().map_or(Ok(None), Err)
    }

    /// Reads the newest intact checkpoint in `folder` and changes nothing there, so that a model can
    /// be asked, by any number of processes, while it is trained; `None` if there is none.
    ///
    /// # Errors
    ///
    /// As [`load_newest`](Self::load_newest).
    pub fn read_newest(folder: impl Into<PathBuf>) -> Result<Option<Loaded>> {
        let store = Self { folder: folder.into(), num_kept: usize::MAX };
        let mut damaged = Vec::new();
        for place in store.places()?.into_iter().rev() {
            let path = store.folder.join(place.name());
            match Checkpoint::load(&path) {
                Ok(checkpoint) => return Ok(Some(Loaded { checkpoint, path, damaged })),
                // The trainer may remove an old one between the listing and the reading.
                Err(Error::Io { .. }) if !path.exists() => {}
                Err(error @ Error::Damaged { .. }) => damaged.push(error),
                Err(error) => return Err(error),
            }
        }
        damaged.into_iter().next().map_or(Ok(None), Err)
    }

    /// Reads the newest intact checkpoint that is not newer than `checkpoint` and whose step is a
    /// multiple of `milestone`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the folder cannot be read.
    pub fn load_milestone(
        &self,
        checkpoint: &Checkpoint,
        milestone: u64,
    ) -> Result<Option<Checkpoint>> {
        let mut places = self.places()?;
        places.retain(|place| {
            *place <= Place::of(checkpoint) && place.step.is_multiple_of(milestone)
        });
        let load = |place: &Place| Checkpoint::load(&self.folder.join(place.name())).ok();
        Ok(places.iter().rev().find_map(load))
    }

    fn point(&self, pointer: &str, name: &str) -> Result<()> {
        replace_file(&self.folder, pointer, format!("{name}\n").as_bytes())
    }

    /// A process may die after writing a checkpoint and before pointing at it, and a damaged
    /// checkpoint may have been pointed at.
    fn repair_pointers(&self, place: Place, checkpoint: &Checkpoint) -> Result<()> {
        self.point(LAST, &place.name())?;
        if let Some(best) = &checkpoint.meta.best {
            let best = Place { num_rollbacks: best.num_rollbacks, step: best.step };
            if self.folder.join(best.name()).is_dir() {
                self.point(BEST, &best.name())?;
            }
        }
        Ok(())
    }

    fn set_aside(&self, error: &Error) -> Result<()> {
        let Error::Damaged { path, .. } = error else { return Ok(()) };
        let Some(name) = path.parent().and_then(Path::file_name).and_then(|name| name.to_str())
        else {
            return Ok(());
        };
        let aside = format!("{DAMAGED}{name}");
        remove_folder(&self.folder, &aside)?;
        files::rename(&self.folder.join(name), &self.folder.join(aside))
    }

    fn prune(&self, milestone: u64) -> Result<()> {
        let places = self.places()?;
        let best = self.folder.join(BEST);
        let best = if best.is_file() { follow(&best).ok() } else { None };
        let newest_milestone =
            places.iter().rev().find(|place| place.step.is_multiple_of(milestone));
        let num_old = places.len().saturating_sub(self.num_kept);
        for place in &places[..num_old] {
            let name = place.name();
            let is_best = best.as_ref().is_some_and(|path| path.ends_with(&name));
            if !is_best && Some(place) != newest_milestone {
                remove_folder(&self.folder, &name)?;
            }
        }
        Ok(())
    }

    /// Of all checkpoints, oldest first.
    fn places(&self) -> Result<Vec<Place>> {
        let mut places: Vec<_> =
            entries(&self.folder)?.iter().filter_map(|name| Place::parse(name)).collect();
        places.sort();
        Ok(places)
    }
}

/// The folder that a pointer names.
pub(super) fn follow(pointer: &Path) -> Result<PathBuf> {
    let bytes = super::read_limited(pointer, MAX_POINTER_BYTES)?;
    let name = String::from_utf8_lossy(&bytes);
    let name = name.trim_end();
    // A checkpoint's name only: a pointer must not lead out of its folder.
    if Place::parse(name).is_none() {
        let reason = format!("it must name a checkpoint beside it, found {name:?}");
        return Err(Error::Damaged { path: pointer.into(), reason });
    }
    Ok(pointer.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named_and_ordered() {
        let place = |num_rollbacks, step| Place { num_rollbacks, step };
        for place in [place(0, 0), place(0, 1_234_567_890_123_456), place(3, 7)] {
            assert_eq!(Place::parse(&place.name()), Some(place));
        }
        assert!(place(0, 150) < place(1, 100) && place(1, 100) < place(1, 101));
        for name in ["step-", "step-1", "step-00000000000x", "step-000000000001-rollback-0", "last"]
        {
            assert_eq!(Place::parse(name), None, "{name}");
        }
    }
}
