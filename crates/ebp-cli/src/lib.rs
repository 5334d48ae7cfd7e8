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
mod shard;
mod show;
mod theme;
mod threads;
mod together;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

/// Compiles and runs the programs of that page with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct LibraryPage;

pub use self::failure::{Failure, set_style};
pub use self::run::train_watched;

/// Runs what was typed.
pub fn main() -> ExitCode {
    set_style();
    let matches = args::Arguments::command().get_matches();
    output::begin(name_of(&matches));
    let arguments =
        args::Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match command::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The command that was typed, such as `data import`.
fn name_of(matches: &ArgMatches) -> String {
    let mut words = Vec::new();
    let mut below = matches.subcommand();
    while let Some((name, matches)) = below {
        words.push(name);
        below = matches.subcommand();
    }
    words.join(" ")
}
