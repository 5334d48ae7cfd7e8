//! Processes that a launcher started to train one model together, such as `mpiexec -n 2 ebp train`.
//!
//! The first one keeps the run and speaks. One that fails tells the others; one that dies is missed by them.

use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ebp::Error;
use ebp::exchange::{Launch, Loss, Ranks, Watch, join};

use crate::failure::Failure;
use crate::interrupt::{self, StopFlag};

/// How long the watch may take to say who is gone.
const PATIENCE: Duration = Duration::from_secs(9);
/// How long the libraries' own ends may take once a process is to end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// This process among those that train together; alone if no launcher started it.
#[derive(Debug)]
pub(crate) struct Together {
    ranks: Option<Arc<Ranks>>,
    watch: Option<Watch>,
    /// Ctrl-C reaches all processes, and all must save.
    stop_flag: Option<StopFlag>,
}

impl Together {
    /// Joins the others, where a launcher started any.
    pub(crate) fn begin() -> Result<Self, Failure> {
        let ranks = match Launch::find() {
            Some(launch) => Some(join(&launch)?),
            None => None,
        };
        Ok(Self { ranks, watch: None, stop_flag: None })
    }

    pub(crate) fn ranks(&self) -> Option<Arc<Ranks>> {
        self.ranks.clone()
    }

    /// Whether this process keeps the run and speaks.
    pub(crate) fn is_first(&self) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.rank() == 0)
    }

    /// Threads of this process, where several share a machine and nobody said how many.
    pub(crate) fn threads(&self, asked: Option<usize>) -> Option<usize> {
        // MPICH's launcher lets all processes run on all cores; Open MPI's gives each its own.
        let local = std::env::var("MPI_LOCALNRANKS").ok().and_then(|text| text.parse().ok());
        let local = local.filter(|&local: &usize| self.ranks.is_some() && local > 1);
        asked.or_else(|| {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            local.map(|local| (cores / local).max(1))
        })
    }

    /// The folder of the run, which the first process chooses, and begins to watch the others.
    pub(crate) fn watch(
        &mut self,
        directory: impl FnOnce() -> Result<PathBuf, Failure>,
    ) -> Result<PathBuf, Failure> {
        let Some(ranks) = self.ranks.clone() else { return directory() };
        let chosen = if self.is_first() { Some(directory()?) } else { None };
        let told = chosen.as_ref().map(|chosen| chosen.to_string_lossy().into_owned().into_bytes());
        let told = ranks.share(told).map_err(|error| self.failure(error))?;
        let directory = chosen.unwrap_or_else(|| String::from_utf8_lossy(&told).as_ref().into());
        if ranks.size() > 1 {
            let place = directory.clone();
            let watch = Watch::begin(&ranks, move |loss| end_now(loss, &place));
            self.watch = Some(watch.map_err(|error| self.failure(error))?);
            self.stop_flag = Some(interrupt::stop_flag()?);
        }
        Ok(directory)
    }

    /// How an error of training ends this process: what all of them know is told by the first alone.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        let is_common = matches!(error, Error::Peer { .. } | Error::Diverged { .. });
        if is_common && !self.is_first() { Failure::Told } else { error.into() }
    }

    /// Ends the common work, after which every process goes its own way; all hear of a failure.
    pub(crate) fn end<R>(self, done: Result<R, Failure>) -> Result<R, Failure> {
        let Some(ranks) = &self.ranks else { return done };
        let done = match done {
            // One that has failed at its very end is heard by those that have not.
            Ok(done) => match ranks.any(false) {
                Ok(_) => Ok(done),
                Err(error) => Err(self.failure(error)),
            },
            Err(failure) => {
                ranks.leave(&Error::Failed { message: failure.text(), help: None });
                Err(failure)
            }
        };
        if ranks.is_cut() {
            // The watch knows who is gone, says so and ends this process; a library that has lost
            // another process cannot end its work.
            thread::sleep(PATIENCE);
            return done;
        }
        drop(self.watch);
        let closed = ranks.close();
        let done = done?;
        closed?;
        Ok(done)
    }
}

/// Says who was lost and what is left, and ends this process, which may wait for the lost one.
#[expect(clippy::exit, reason = "nothing else ends a call that waits for a process that is gone")]
fn end_now(loss: &Loss, directory: &Path) {
    if loss.is_news {
        let last = std::fs::read_to_string(directory.join("checkpoints").join("last"));
        let left = match last {
            Ok(last) => format!(
                "the last checkpoint is {} in `{}`; `--resume` goes on from it, with any number of processes",
                last.trim(),
                directory.display()
            ),
            Err(_) => "there is no checkpoint yet".to_owned(),
        };
        let Loss { rank, host, .. } = loss;
        drop(writeln!(stderr(), "rank {rank} on {host} is gone, so training ends: {left}"));
    }
    thread::spawn(|| {
        thread::sleep(LAST_WORDS);
        std::process::abort();
    });
    std::process::exit(1);
}
