//! `ebp export`: a trained model without what only training needs, to share or to commit.
//!
//! ```text
//! config.toml      the settings, the data by their name only
//! checkpoints/     the newest one, weights only
//! codes.npy        models of clouds: codes of the training sets, for learned laws of θ
//! metrics.jsonl    the record of training, for `ebp plot`
//! ```

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use ebp::checkpoint::{Checkpoint, CheckpointStore, META_FILE, STATE_FILE};
use miette::miette;
use serde::Serialize;

use super::cloud_model::TrainedCloud;
use crate::failure::Failure;
use crate::output;

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

const METRICS_FILE: &str = "metrics.jsonl";

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
    kind: String,
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
    let (path, checkpoint) = newest(run)?;
    let settings = shared_settings(&checkpoint.meta.config).map_err(|error| {
        Failure::Failed(miette!("the settings in `{}` cannot be read: {error}", run.display()))
    })?;
    let mut weights = checkpoint.weights()?;
    weights.meta.config.clone_from(&settings.text);

    let cloud = (settings.kind == "clouds").then(|| TrainedCloud::load(run)).transpose()?;
    fs::create_dir_all(out).map_err(|error| Failure::cannot("create", out, &error))?;
    let no_codes = cloud.and_then(|cloud| cloud.write_codes_to(out).err()).map(reason);
    let metrics = run.join(METRICS_FILE);
    if metrics.is_file() {
        let copied = fs::copy(&metrics, out.join(METRICS_FILE));
        copied.map_err(|error| Failure::cannot("copy", &metrics, &error))?;
    }
    let config = out.join("config.toml");
    fs::write(&config, &settings.text)
        .map_err(|error| Failure::cannot("write", &config, &error))?;
    // Last, so that a folder that was cut short is no model.
    CheckpointStore::open(out.join("checkpoints"), 1)?.save(&weights, 1)?;

    let (mut files, mut bytes) = (Vec::new(), 0);
    list(out, out, &mut files, &mut bytes)?;
    let folder = out.display();
    let example = match settings.kind.as_str() {
        "clouds" => format!("ebp sample {folder} -n 12 -o clouds/"),
        "curves" => format!("ebp predict {folder} --context known.csv --at at.csv"),
        "pictures" => format!("ebp complete {folder} --image torn.png"),
        _ => format!("ebp plot {folder}"),
    };
    let report = Report {
        run: run.display().to_string(),
        out: folder.to_string(),
        kind: settings.kind,
        steps: weights.meta.step,
        bytes,
        run_checkpoint_bytes: size(&path.join(STATE_FILE))? + size(&path.join(META_FILE))?,
        files,
        no_codes,
        example,
    };
    if arguments.json { output::print_json(&report) } else { output::print(&report.text()) }
}

impl Report {
    fn text(&self) -> String {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let mut text = format!(
            "weights after {} steps, {:.2} MB (the run's checkpoint has {:.2} MB): {}\n",
            self.steps,
            megabytes(self.bytes),
            megabytes(self.run_checkpoint_bytes),
            self.out
        );
        for file in &self.files {
            let _ = writeln!(text, "  {file}");
        }
        if let Some(reason) = &self.no_codes {
            let _ = writeln!(
                text,
                "without codes of the training sets ({reason}): sample with `--prior standard`"
            );
        }
        let _ = writeln!(text, "use it like a run: {}", self.example);
        text
    }
}

/// The newest checkpoint of a run, with everything in it, and its folder.
fn newest(run: &Path) -> Result<(PathBuf, Checkpoint), Failure> {
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
    Ok((loaded.path, loaded.checkpoint))
}

/// That nothing is lost by writing to `out`.
fn check_free(out: &Path) -> Result<(), Failure> {
    let occupied = |found: &str| {
        Failure::Usage(miette!(
            help = "choose another folder, or remove this one",
            "`--out {}` must be a new or an empty folder, found {found}",
            out.display()
        ))
    };
    if !out.exists() {
        return Ok(());
    }
    if !out.is_dir() {
        return Err(occupied("a file"));
    }
    let mut entries = fs::read_dir(out).map_err(|error| Failure::cannot("read", out, &error))?;
    if entries.next().is_some() { Err(occupied("files in it")) } else { Ok(()) }
}

/// Settings for everyone.
struct Shared {
    kind: String,
    text: String,
}

/// The settings with the data by their name only.
fn shared_settings(text: &str) -> Result<Shared, String> {
    let mut table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
    let kind = table.get("kind").and_then(toml::Value::as_str).unwrap_or("curves").to_owned();
    let source = table.get_mut("data").and_then(|data| data.get_mut("source"));
    if let Some(toml::Value::String(source)) = source {
        *source = name_only(source);
    }
    let text = toml::to_string_pretty(&table).map_err(|error| error.to_string())?;
    Ok(Shared { kind, text })
}

/// The last component of a path; other words stay as they are.
fn name_only(source: &str) -> String {
    let trimmed = source.trim_end_matches(['/', '\\']);
    match trimmed.rsplit_once(['/', '\\']) {
        None => source.to_owned(),
        // A folder `data/chair` must not become the built-in shape `chair`.
        Some((_, name)) if !name.contains('.') => format!("./{name}"),
        Some((_, name)) => name.to_owned(),
    }
}

/// What a failure says, in one line.
fn reason(failure: Failure) -> String {
    match failure {
        Failure::Usage(report) | Failure::Failed(report) => report.to_string(),
        Failure::ReaderGone | Failure::Interrupted => "interrupted".to_owned(),
    }
}

/// All files under `folder` as seen from `root`, by name, and the sum of their sizes.
fn list(
    root: &Path,
    folder: &Path,
    files: &mut Vec<String>,
    bytes: &mut u64,
) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::cannot("read", folder, &error);
    let entries = fs::read_dir(folder).map_err(cannot)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>().map_err(cannot)?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            list(root, &path, files, bytes)?;
        } else {
            *bytes += size(&path)?;
            files.push(path.strip_prefix(root).unwrap_or(&path).display().to_string());
        }
    }
    Ok(())
}

fn size(path: &Path) -> Result<u64, Failure> {
    let found = fs::metadata(path).map_err(|error| Failure::cannot("read", path, &error))?;
    Ok(found.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_keep_their_name_and_nothing_else() {
        for (source, expected) in [
            ("chair", "chair"),
            ("rain.csv", "rain.csv"),
            ("/home/me/data/chair.npy", "chair.npy"),
            ("C:\\data\\rain.csv", "rain.csv"),
            ("modelnet10/chair/", "./chair"),
        ] {
            assert_eq!(name_only(source), expected);
        }
        let text = "kind = \"clouds\"\nseed = 3\n\n[data]\nheld_out = 2\nsource = \"/a/b.npy\"\n";
        let shared = shared_settings(text).unwrap();
        assert_eq!((shared.kind.as_str(), shared.text), ("clouds", text.replace("/a/", "")));
        assert_eq!(shared_settings("seed = 1\n").unwrap().kind, "curves");
        assert!(shared_settings("seed").is_err());
    }
}
