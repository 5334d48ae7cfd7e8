//! One module per verb of the command line.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod classify;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod data;
pub(crate) mod denoise;
mod distance;
pub(crate) mod doctor;
pub(crate) mod encode;
pub(crate) mod export;
pub(crate) mod man;
pub(crate) mod merge;
mod metrics;
pub(crate) mod plot;
pub(crate) mod predict;
pub(crate) mod query;
pub(crate) mod reference;
pub(crate) mod render;
pub(crate) mod reproduce;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod train;
pub(crate) mod view;

use crate::args::{Arguments, Command};
use crate::failure::Failure;
use crate::{device, show, theme};

/// Runs what was typed.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    device::choose(arguments.device);
    show::choose(arguments.show);
    theme::choose(arguments.theme);
    match arguments.command {
        Command::Train(train) => train::run(&train),
        Command::Predict(predict) => predict::run(&predict),
        Command::Calibrate(calibrate) => calibrate::run(&calibrate),
        Command::Sample(sample) => sample::run(&sample),
        Command::Score(score) => score::run(&score),
        Command::Denoise(denoise) => denoise::run(&denoise),
        Command::Encode(encode) => encode::run(&encode),
        Command::Complete(complete) => complete::run(&complete),
        Command::Export(export) => export::run(&export),
        Command::Plot(plot) => plot::run(&plot),
        Command::Render(render) => render::run(&render),
        Command::Reproduce(reproduce) => reproduce::run(&reproduce),
        Command::Bench(bench) => bench::run(&bench),
        Command::Doctor(doctor) => doctor::run(&doctor),
        Command::Distance(distance) => distance::run(&distance),
        Command::Metrics(metrics) => metrics::run(&metrics),
        Command::Merge(merge) => merge::run(&merge),
        Command::Classify(classify) => classify::run(&classify),
        Command::Data(data) => data::run(data),
        Command::Query(query) => query::run(&query),
        Command::View(view) => view::run(&view),
        Command::Completions(completions) => completions::run(&completions),
        Command::Man(man) => man::run(&man),
        Command::Reference(reference) => reference::run(&reference),
    }
}
