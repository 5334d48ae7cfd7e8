//! The command line of energy-based processes, as a library so that tests and examples can drive
//! its parts. The interface is the binary `ebp`; nothing here is stable.
//!
//! [`main`] parses what was typed (`args`) and hands it to a command (`command`). Results go
//! to stdout, progress and errors to stderr. Exit codes: 0 done, 1 failed, 2 usage,
//! 130 interrupted.

mod args;
mod command;
mod device;
#[cfg(test)]
mod documents;
mod failure;
mod interrupt;
mod output;
mod progress;
mod run;
mod threads;

use std::process::ExitCode;

use clap::Parser;

/// Compiles and runs the programs of that page with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct LibraryPage;

pub use self::failure::{Failure, set_style};
pub use self::run::train_watched;

/// Runs what was typed.
pub fn main() -> ExitCode {
    set_style();
    match command::run(args::Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
