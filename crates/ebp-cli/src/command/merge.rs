//! `ebp merge`: parts of a command with `--shard`, put together.

use std::path::PathBuf;

use clap::{Args, Parser};
use miette::miette;

use super::{encode, metrics, sample, score};
use crate::args::{Arguments, Command};
use crate::failure::Failure;
use crate::shard::Parts;
use crate::{output, progress};

const HELP: &str = "\
What is printed and written is what the command without `--shard` prints and writes, to the last byte; only
`seconds` of `ebp sample` are the sum over all shares, and `elapsed_s` in JSON is the time of merging. Files that the command was told to write beside its
result (`--points`, `--labels`, `--picture`) are written now, where it would have written them.

Examples:
  for i in 1 2 3 4; do ebp metrics a.npy b.npy --shard $i/4 -o part-$i; done
  ebp merge part-* --json > metrics.json
  parallel ebp sample runs/shapes -n 10000 --shard {}/8 -o part-{} ::: 1 2 3 4 5 6 7 8
  ebp merge part-* -o samples.npy";

/// Arguments of `ebp merge`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct MergeArguments {
    /// The folders of all shares, in any order
    #[arg(value_name = "PARTS", required = true)]
    parts: Vec<PathBuf>,

    /// Where the result goes, as `-o` of the command without `--shard`
    #[arg(short, long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    pub(crate) threads: Option<usize>,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress, nothing but warnings and the result
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Puts parts together.
pub(crate) fn run(arguments: &MergeArguments) -> Result<(), Failure> {
    let parts = Parts::open(&arguments.parts)?;
    let devices = parts.devices().join(" and ");
    if parts.have_several_devices() {
        progress::notice(&format!(
            "note: not all parts were computed on the same device ({devices}), and devices may round differently"
        ));
    }
    output::stand_for(parts.command(), (!devices.is_empty()).then_some(devices));
    let words = std::iter::once("ebp").chain(parts.typed().iter().map(String::as_str));
    let typed = Arguments::try_parse_from(words).map_err(|error| {
        Failure::Failed(miette!("what the parts say was typed cannot be read: {error}"))
    })?;
    match typed.command {
        Command::Metrics(metrics) => metrics::merge(metrics, &parts, arguments),
        Command::Score(score) => score::merge(score, &parts, arguments),
        Command::Encode(encode) => encode::merge(encode, &parts, arguments),
        Command::Sample(sample) => sample::merge(sample, &parts, arguments),
        _ => Err(Failure::Failed(miette!("the parts are of a command that has no shares"))),
    }
}

impl MergeArguments {
    /// That results which go to stdout are not asked into a file.
    pub(crate) fn refuse_out(&self, command: &str) -> Result<(), Failure> {
        match &self.out {
            None => Ok(()),
            Some(_) => Err(Failure::Usage(miette!(
                help = "write `> FILE` in the place of `-o FILE`",
                "`ebp {command}` prints its result and has no file to write it to"
            ))),
        }
    }
}
