//! How a command fails: what it tells the user, and its exit code.

use std::io;
use std::process::ExitCode;

use miette::{MietteHandlerOpts, Report};

/// Chooses how reports look; must come before the first one is made.
pub(crate) fn set_style() {
    // Wrapping would break `--energy-widths` at its hyphens. The call fails only if a style is
    // already set, and that one serves as well.
    let _ = miette::set_hook(Box::new(|_| {
        Box::new(MietteHandlerOpts::new().wrap_lines(false).build())
    }));
}

/// A command that did not finish.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for cannot be done: exit code 2.
    Usage(Report),
    /// It was tried and went wrong: exit code 1.
    Failed(Report),
    /// The reader of stdout went away, as `head` does: nothing is wrong.
    ReaderGone,
}

impl Failure {
    /// Tells the user on stderr and gives the exit code.
    #[expect(clippy::print_stderr, reason = "the one place where the program says what went wrong")]
    pub(crate) fn report(self) -> ExitCode {
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
        }
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
