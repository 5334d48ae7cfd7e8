//! How a command fails: what it tells the user, and its exit code.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use miette::{MietteHandlerOpts, Report};

/// Chooses how reports look; must come before the first one is made.
pub fn set_style() {
    // Wrapping would break `--energy-widths` at its hyphens. The call fails only if a style is
    // already set, and that one serves as well.
    let _ = miette::set_hook(Box::new(|_| {
        Box::new(MietteHandlerOpts::new().wrap_lines(false).build())
    }));
}

/// The exit code of a process that was interrupted: 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// A command that did not finish.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for cannot be done: exit code 2.
    Usage(Report),
    /// It was tried and went wrong: exit code 1.
    Failed(Report),
    /// The reader of stdout went away, as `head` does: nothing is wrong.
    ReaderGone,
    /// It was asked to stop, and saved its state: exit code 130.
    Interrupted,
    /// Another process of the same training says what went wrong: exit code 1.
    Told,
}

impl Failure {
    /// That something could not be done to a file or folder.
    pub(crate) fn cannot(action: &str, path: &Path, error: &io::Error) -> Self {
        Self::Failed(miette::miette!("cannot {action} `{}`: {error}", path.display()))
    }

    /// What went wrong, for other processes.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Usage(report) | Self::Failed(report) => report.to_string(),
            Self::ReaderGone => "nobody reads its results".to_owned(),
            Self::Interrupted => "it was interrupted".to_owned(),
            Self::Told => "another process failed".to_owned(),
        }
    }

    /// Tells the user on stderr and gives the exit code.
    #[expect(clippy::print_stderr, reason = "the one place where the program says what went wrong")]
    pub fn report(self) -> ExitCode {
        match self {
            Self::Usage(report) => {
                eprintln!("{report:?}");
                ExitCode::from(2)
            }
            Self::Failed(report) => {
                eprintln!("{report:?}");
                ExitCode::from(1)
            }
            Self::ReaderGone => ExitCode::SUCCESS,
            Self::Told => ExitCode::from(1),
            Self::Interrupted => ExitCode::from(INTERRUPTED),
        }
    }
}

/// What the library says about folders and settings is about what was asked for; the rest went
/// wrong on the way.
impl From<ebp::Error> for Failure {
    fn from(error: ebp::Error) -> Self {
        match error {
            ebp::Error::Occupied { .. } => Self::Usage(miette::miette!(
                help = "`--resume` goes on with the run, `--force` begins again in its place",
                "{error}"
            )),
            ebp::Error::Interrupted { .. } => Self::Interrupted,
            ebp::Error::InvalidValue { .. } | ebp::Error::Refused { .. } => {
                Self::Usage(report(&error))
            }
            _ => Self::Failed(report(&error)),
        }
    }
}

/// The words of an error, with its help.
fn report(error: &ebp::Error) -> Report {
    match error.help() {
        Some(help) => miette::miette!(help = help, "{error}"),
        None => miette::miette!("{error}"),
    }
}

/// Only stdout is written with `?`.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ReaderGone;
        }
        Self::Failed(miette::miette!(
            help = "is the disk full that stdout is written to?",
            "cannot write the result: {error}"
        ))
    }
}
