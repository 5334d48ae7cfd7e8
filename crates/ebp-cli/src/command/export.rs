//! `ebp export`: a trained model without what only training needs, to share or to commit.
//!
//! ```text
//! README.md        a model card, with the header that hubs of models read
//! config.toml      the settings, the data by their name only
//! checkpoints/     the newest one, weights only
//! codes.npy        models of clouds: codes of the training sets, for learned laws of θ
//! metrics.jsonl    the record of training, for `ebp plot`
//! ```

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use clap::Args;
use ebp::checkpoint::{CheckpointStore, META_FILE, STATE_FILE};
use ebp::model::Model;
use miette::miette;
use serde::Serialize;

use crate::failure::Failure;
use crate::{output, progress};

const HELP: &str = "\
The newest checkpoint is exported: averages in the place of the parameters, no optimiser. Every
command that takes the folder of a run takes the folder of weights and answers with the same bytes,
without the data; only `ebp train --resume` needs the run itself. The command line and the paths of
this machine stay behind: of `data.source` the file's name is kept.

Examples:
  ebp export runs/shapes --out models/chairs
  ebp sample models/chairs -n 12 -o chairs/
  ebp export runs/sines --out sines --json
  ebp predict sines --context known.csv --at at.csv";

/// Arguments of `ebp export`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ExportArguments {
    /// Folder of a run
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// Folder that gets the weights: a new or an empty one
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What was written.
#[derive(Debug, Serialize)]
struct Report {
    run: String,
    out: String,
    kind: &'static str,
    steps: u64,
    /// Of all files.
    bytes: u64,
    /// Of the checkpoint that they were made of.
    run_checkpoint_bytes: u64,
    files: Vec<String>,
    /// Why laws of θ that are learned from codes need the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_codes: Option<String>,
    /// A command to begin with.
    example: String,
}

/// Exports and reports.
pub(crate) fn run(arguments: &ExportArguments) -> Result<(), Failure> {
    let (run, out) = (&arguments.run, &arguments.out);
    check_free(out)?;
    let run_checkpoint_bytes = newest(run)?;
    let model = Model::load(run)?;
    // The codes of all training sets may be among it.
    let saved = progress::during(false, "writing weights", || model.save(out))?;
    let (kind, folder) = (model.settings().kind(), out.display());
    let example = match kind {
        "clouds" => format!("ebp sample {folder} -n 12 -o clouds/"),
        "curves" => format!("ebp predict {folder} --context known.csv --at at.csv"),
        "pictures" => format!("ebp complete {folder} --image torn.png"),
        _ => format!("ebp sample {folder} -n 12 --points 16 -o sets/"),
    };
    let report = Report {
        run: run.display().to_string(),
        out: folder.to_string(),
        kind,
        steps: model.step(),
        bytes: saved.bytes,
        run_checkpoint_bytes,
        files: saved.files,
        no_codes: saved.no_codes,
        example,
    };
    if arguments.json {
        output::print_json(None, &report)
    } else {
        output::print(&report.to_string())
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        writeln!(
            f,
            "weights after {} steps, {:.2} MB (the run's checkpoint has {:.2} MB): {}",
            self.steps,
            megabytes(self.bytes),
            megabytes(self.run_checkpoint_bytes),
            self.out
        )?;
        for file in &self.files {
            writeln!(f, "  {file}")?;
        }
        if let Some(reason) = &self.no_codes {
            writeln!(
                f,
                "without codes of the training sets ({reason}): sample with `--prior standard`"
            )?;
        }
        writeln!(f, "use it like a run: {}", self.example)
    }
}

/// That there is a run to export, and the size of its newest checkpoint.
fn newest(run: &Path) -> Result<u64, Failure> {
    let folder = run.join("checkpoints");
    if !folder.is_dir() {
        return Err(Failure::Usage(miette!(
            help = "give the folder of a run of `ebp train`, such as runs/shapes",
            "there is no run in `{}`",
            run.display()
        )));
    }
    let Some(loaded) = CheckpointStore::read_newest(folder)? else {
        return Err(Failure::Usage(miette!(
            help = "let it train until its first checkpoint, or choose another run",
            "the run in `{}` has no checkpoint",
            run.display()
        )));
    };
    if loaded.checkpoint.check_resumable().is_err() {
        return Err(Failure::Usage(miette!(
            help = "copy the folder as it is",
            "`{}` is exported already: it holds weights only",
            run.display()
        )));
    }
    let size = |name: &str| std::fs::metadata(loaded.path.join(name)).map_or(0, |file| file.len());
    Ok(size(STATE_FILE) + size(META_FILE))
}

/// That nothing is lost by writing to `out`, before a model is looked for.
fn check_free(out: &Path) -> Result<(), Failure> {
    let found = match std::fs::read_dir(out).map(Iterator::count) {
        Ok(count) if count > 0 => "files in it",
        Err(_) if out.exists() => "a file",
        _ => return Ok(()),
    };
    Err(Failure::Usage(miette!(
        help = "choose another folder, or remove this one",
        "`--out {}` must be a new or an empty folder, found {found}",
        out.display()
    )))
}
