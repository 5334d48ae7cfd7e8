//! `ebp plot`: the curves of a run, from its `metrics.jsonl`.

use std::path::PathBuf;

use clap::Args;
use ebp::figure::run_curves;
use serde::Serialize;

use crate::failure::Failure;
use crate::{output, show, theme};

/// Arguments of `ebp plot`.
#[derive(Debug, Args)]
pub(crate) struct PlotArguments {
    /// Folder of a run
    run: PathBuf,

    /// Only these quantities, separated by commas [default: all that were recorded]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,

    /// Begin at this step; the first ones often dwarf all others
    #[arg(long, value_name = "STEP", default_value_t = 0)]
    from: u64,

    /// Where the picture goes: .svg, or .png with an .svg beside it [default: plots/curves.png in the run's
    /// folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What was drawn.
#[derive(Debug, Serialize)]
struct Report {
    run: String,
    picture: String,
}

/// Draws one panel per quantity.
pub(crate) fn run(arguments: &PlotArguments) -> Result<(), Failure> {
    let metrics = arguments.run.join("metrics.jsonl");
    let figure = run_curves::draw(&metrics, &arguments.only, arguments.from)?;
    let out =
        arguments.out.clone().unwrap_or_else(|| arguments.run.join("plots").join("curves.png"));
    figure.save(&out, theme::chosen())?;
    let picture = out.display().to_string();
    if arguments.json {
        let run = arguments.run.display().to_string();
        return output::print_json(None, &Report { run, picture });
    }
    output::print(&format!("picture  {picture}\n"))?;
    show::picture(&out, false)
}
