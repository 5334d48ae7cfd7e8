//! One module per verb of the command line.

pub(crate) mod bench;
mod clouds;
pub(crate) mod complete;
pub(crate) mod data;
mod distance;
mod metrics;
pub(crate) mod plot;
pub(crate) mod predict;
pub(crate) mod reproduce;
pub(crate) mod train;

use crate::args::{Arguments, Command};
use crate::failure::Failure;

/// Runs what was typed.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Train(train) => train::run(&train),
        Command::Predict(predict) => predict::run(&predict),
        Command::Complete(complete) => complete::run(&complete),
        Command::Plot(plot) => plot::run(plot),
        Command::Reproduce(reproduce) => reproduce::run(reproduce),
        Command::Bench(bench) => bench::run(bench),
        Command::Distance(distance) => distance::run(&distance),
        Command::Metrics(metrics) => metrics::run(&metrics),
        Command::Data(data) => data::run(data),
    }
}
