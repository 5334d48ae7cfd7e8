//! Arguments of most commands, and what they do.

use std::fmt::Display;
use std::path::Path;

use clap::Args;
use ebp::model::PriorKind;
use serde::Serialize;

use super::choice::Choice;
use crate::failure::Failure;
use crate::threads::start_threads;
use crate::{output, show};

/// How a command runs and what it shows.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Common {
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = super::number_of_threads)]
    pub(crate) threads: Option<usize>,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress, nothing but warnings and the result
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl Common {
    /// Does the work on as many threads as asked for.
    pub(crate) fn install<R: Send>(
        &self,
        work: impl FnOnce() -> Result<R, Failure> + Send,
    ) -> Result<R, Failure> {
        start_threads(self.threads)?.install(work)
    }

    /// Prints a report in the form asked for; `seed` is that of all its random numbers, if there is one.
    pub(crate) fn print(
        &self,
        seed: Option<u64>,
        report: &(impl Serialize + Display),
    ) -> Result<(), Failure> {
        if self.json {
            output::print_json(seed, report)
        } else {
            output::print(&report.to_string())
        }
    }

    /// Shows pictures that were written below the result, where somebody would see them.
    pub(crate) fn show<'a>(
        &self,
        pictures: impl IntoIterator<Item = &'a Path>,
    ) -> Result<(), Failure> {
        if self.json {
            return Ok(());
        }
        let mut pictures = pictures.into_iter().take(MOST_SHOWN);
        pictures.try_for_each(|picture| show::picture(picture, self.quiet))
    }
}

/// More pictures would push the result off the screen.
const MOST_SHOWN: usize = 3;

/// Laws of θ by name.
pub(crate) const PRIORS: &[Choice<PriorKind>] = &[
    (
        "kernel",
        "Kernels around the codes of the training sets, their widths learned",
        PriorKind::Kernel,
    ),
    ("flow", "A flow fitted to the codes of the training sets: learned", PriorKind::Flow),
    (
        "gaussian",
        "A Gaussian fitted to the codes of the training sets: learned",
        PriorKind::Gaussian,
    ),
    ("standard", "N(0, I), as the model was trained", PriorKind::Standard),
];
