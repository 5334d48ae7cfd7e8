//! One module per verb of the command line.

pub(crate) mod bench;
mod cloud_model;
mod clouds;
pub(crate) mod data;
mod distance;
pub(crate) mod doctor;
mod metrics;
pub(crate) mod plot;
pub(crate) mod predict;
pub(crate) mod reproduce;
pub(crate) mod sample;
pub(crate) mod train;

use crate::args::{Arguments, Command};
use crate::device;
use crate::failure::Failure;

/// Runs what was typed.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    device::choose(arguments.device);
    match arguments.command {
        Command::Train(train) => train::run(&train),
        Command::Predict(predict) => predict::run(&predict),
        Command::Sample(sample) => sample::run(&sample),
        Command::Plot(plot) => plot::run(plot),
        Command::Reproduce(reproduce) => reproduce::run(reproduce),
        Command::Bench(bench) => bench::run(bench),
        Command::Doctor(doctor) => doctor::run(&doctor),
        Command::Distance(distance) => distance::run(&distance),
        Command::Metrics(metrics) => metrics::run(&metrics),
        Command::Data(data) => data::run(data),
    }
}
