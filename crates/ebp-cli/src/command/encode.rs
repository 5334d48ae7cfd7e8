//! `ebp encode`: features of clouds from a trained model.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ebp::data::npy::{Array, Precision, write_npy};

use super::cloud_model::{TrainedCloud, read_inputs, sets};
use crate::failure::Failure;
use crate::output;
use crate::threads::start_threads;

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

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    threads: Option<usize>,
}

/// What the encoder offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FeatureName {
    /// The pooled vector
    Pooled,
    /// μ of q(θ | set)
    Mean,
}

/// Encodes and writes.
pub(crate) fn run(arguments: &EncodeArguments) -> Result<(), Failure> {
    start_threads(arguments.threads)?.install(|| {
        let trained = TrainedCloud::load(&arguments.model)?;
        let clouds = read_inputs(&arguments.sets, &trained)?;
        let codes = trained.process.encode(&sets(&clouds))?;
        let values = match arguments.features {
            FeatureName::Pooled => codes.pooled,
            FeatureName::Mean => codes.mean,
        };
        let count = clouds.num_clouds();
        let width = values.len() / count;
        let array = Array::new(vec![count, width], values)?;
        write_npy(&arguments.out, &array, Precision::Single)?;
        if let Some(path) = &arguments.labels {
            let lines: String =
                clouds.names().iter().map(|name| format!("{}\n", class_of(name))).collect();
            std::fs::write(path, lines).map_err(|error| Failure::cannot("write", path, &error))?;
        }
        let out = arguments.out.display();
        output::print(&format!("{count} clouds, {width} features each: {out}\n"))
    })
}

/// The name of the folder or file that holds a cloud.
pub(crate) fn class_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(class, _)| class)
}
