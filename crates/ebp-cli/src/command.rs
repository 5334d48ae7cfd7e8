//! One module per verb of the command line.

pub(crate) mod bench;
pub(crate) mod data;

use crate::args::{Arguments, Command};
use crate::failure::Failure;

/// Runs what was typed.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Bench(bench) => bench::run(bench),
        Command::Data(data) => data::run(data),
    }
}
