//! `ebp encode`: features of clouds from a trained model.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::model::{Model, class_of, read_cloud_inputs};
use serde::Serialize;

use crate::args::Common;
use crate::failure::Failure;
use crate::{device, output, progress};

const HELP: &str = "\
The class of a cloud is the part of its name before the last slash: `chair/12` of a file chair.npy
or a folder chair.

Examples:
  ebp encode runs/cloud modelnet10/ -o features.npy --labels labels.txt
  ebp classify features.npy --labels labels.txt";

/// Arguments of `ebp encode`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct EncodeArguments {
    /// Folder of a run
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// Files, folders or caches of clouds
    #[arg(value_name = "SETS", required = true)]
    sets: Vec<PathBuf>,

    /// Where the features go, `[clouds, width]`
    #[arg(short, long, value_name = "FILE", default_value = "features.npy")]
    out: PathBuf,

    /// Which features
    #[arg(long, value_enum, default_value_t = FeatureName::Pooled)]
    features: FeatureName,

    /// Write the class of every cloud to this file, one a line
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// What the encoder offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FeatureName {
    /// The pooled vector
    Pooled,
    /// μ of q(θ | set)
    Mean,
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    clouds: usize,
    features: usize,
    out: String,
}

/// Clouds that are encoded between two looks at the bar.
const AT_ONCE: usize = 256;

/// Encodes and writes.
pub(crate) fn run(arguments: &EncodeArguments) -> Result<(), Failure> {
    let report = arguments.common.install(|| encode(arguments))?;
    if arguments.common.json {
        return output::print_json(None, &report);
    }
    let Report { clouds, features, out, .. } = report;
    output::print(&format!("{clouds} clouds, {features} features each: {out}\n"))
}

fn encode(arguments: &EncodeArguments) -> Result<Report, Failure> {
    let model = Model::load_on(&arguments.model, &device::open()?)?;
    let clouds = read_cloud_inputs(&arguments.sets)?;
    let count = clouds.num_sets();
    let done = progress::count(count as u64, arguments.common.quiet, "clouds");
    let mut values = Vec::new();
    for start in (0..count).step_by(AT_ONCE) {
        let members: Vec<usize> = (start..(start + AT_ONCE).min(count)).collect();
        let codes = model.encode(&clouds.select(&members)?)?;
        values.extend(match arguments.features {
            FeatureName::Pooled => codes.pooled,
            FeatureName::Mean => codes.mean,
        });
        done.inc(members.len() as u64);
    }
    done.finish();
    let width = values.len() / count;
    write_npy(&arguments.out, &Array::new(vec![count, width], values)?, Precision::Single)?;
    if let Some(path) = &arguments.labels {
        let class = |set| class_of(&clouds.name(set)).to_owned();
        let lines: Vec<String> = (0..count).map(class).collect();
        std::fs::write(path, lines.join("\n") + "\n")
            .map_err(|error| Failure::cannot("write", path, &error))?;
    }
    Ok(Report {
        model: arguments.model.display().to_string(),
        clouds: count,
        features: width,
        out: arguments.out.display().to_string(),
    })
}
