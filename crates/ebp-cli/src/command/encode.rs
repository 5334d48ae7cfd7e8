//! `ebp encode`: features of clouds from a trained model.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ebp::Share;
use ebp::data::CloudSource;
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::model::{Model, class_of, read_cloud_inputs};
use serde::{Deserialize, Serialize};

use super::merge::MergeArguments;
use crate::args::Common;
use crate::failure::Failure;
use crate::shard::{self, Part, Parts, Question, ShardArgument};
use crate::{device, output, progress};

const HELP: &str = "\
The class of a cloud is the part of its name before the last slash: `chair/12` of a file chair.npy
or a folder chair.

Examples:
  ebp encode runs/cloud modelnet10/ -o features.npy --labels labels.txt
  ebp classify features.npy --labels labels.txt";

/// Arguments of `ebp encode`.
#[derive(Clone, Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct EncodeArguments {
    /// Folder of a run
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// Files, folders or caches of clouds
    #[arg(value_name = "SETS", required = true)]
    sets: Vec<PathBuf>,

    /// Where the features go, `[clouds, width]`; with --shard the folder of the part [default:
    /// features.npy]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Which features
    #[arg(long, value_enum, default_value_t = FeatureName::Pooled)]
    features: FeatureName,

    /// Write the class of every cloud to this file, one a line
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,

    #[command(flatten)]
    shard: ShardArgument,

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

/// Clouds that are encoded between two looks at the bar, and kept together in parts.
const AT_ONCE: usize = 256;
/// Where features go unless asked otherwise.
const OUT: &str = "features.npy";

/// Neighbouring clouds, encoded.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece {
    /// The class of each.
    classes: Vec<String>,
}

/// Encodes and writes, everything or a share.
pub(crate) fn run(arguments: &EncodeArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    if let (Some(share), Some(folder)) = (arguments.shard.share, &arguments.out) {
        return common.print(None, &common.install(|| encode_share(arguments, share, folder))?);
    }
    let pieces = common.install(|| {
        let (model, clouds) = open(arguments)?;
        let count = clouds.num_sets();
        let done = progress::count(count as u64, common.quiet, "clouds");
        let mut pieces = Vec::new();
        for number in 0..count.div_ceil(AT_ONCE) {
            pieces.push(encode(arguments, &model, &clouds, number)?);
            done.set(((number + 1) * AT_ONCE).min(count) as u64);
        }
        done.finish();
        Ok(pieces)
    })?;
    publish(arguments, pieces)
}

/// What [`run`] writes and prints, from the parts of all shares.
pub(crate) fn merge(
    mut arguments: EncodeArguments,
    parts: &Parts,
    how: &MergeArguments,
) -> Result<(), Failure> {
    arguments.out.clone_from(&how.out);
    (arguments.common.json, arguments.common.quiet) = (how.json, how.quiet);
    publish(&arguments, parts.rows()?.into_iter().zip(parts.values()?).collect())
}

fn open(arguments: &EncodeArguments) -> Result<(Model, CloudSource), Failure> {
    let model = Model::load_on(&arguments.model, &device::open()?)?;
    Ok((model, read_cloud_inputs(&arguments.sets)?))
}

/// Clouds `AT_ONCE · number` and those after them.
fn members(clouds: &CloudSource, number: usize) -> Range<usize> {
    number * AT_ONCE..((number + 1) * AT_ONCE).min(clouds.num_sets())
}

/// Their features and classes.
fn encode(
    arguments: &EncodeArguments,
    model: &Model,
    clouds: &CloudSource,
    number: usize,
) -> Result<(Piece, Array<f32>), Failure> {
    let members: Vec<usize> = members(clouds, number).collect();
    let codes = model.encode(&clouds.select(&members)?)?;
    let values = match arguments.features {
        FeatureName::Pooled => codes.pooled,
        FeatureName::Mean => codes.mean,
    };
    let classes = members.iter().map(|&set| class_of(&clouds.name(set)).to_owned()).collect();
    let shape = vec![members.len(), values.len() / members.len()];
    Ok((Piece { classes }, Array::new(shape, values)?))
}

fn encode_share(
    arguments: &EncodeArguments,
    share: Share,
    folder: &Path,
) -> Result<shard::Report, Failure> {
    let (model, clouds) = open(arguments)?;
    let same = EncodeArguments {
        out: None,
        shard: ShardArgument::default(),
        common: Common::default(),
        ..arguments.clone()
    };
    let part = Part::begin(
        folder,
        share,
        Question {
            command: "encode".to_owned(),
            arguments: format!("{same:?}"),
            inputs: shard::inputs_of(&model, Some(&clouds)),
            num_pieces: clouds.num_sets().div_ceil(AT_ONCE),
        },
    )?;
    let missing = part.missing();
    let num_missing = missing.iter().map(|&number| members(&clouds, number).len()).sum::<usize>();
    let done = progress::count(num_missing as u64, arguments.common.quiet, "clouds");
    for number in missing {
        let (piece, values) = encode(arguments, &model, &clouds, number)?;
        part.keep(number, &piece, Some(values))?;
        done.inc(members(&clouds, number).len() as u64);
    }
    done.finish();
    part.finish()
}

/// Writes features and classes, and reports.
fn publish(arguments: &EncodeArguments, pieces: Vec<(Piece, Array<f32>)>) -> Result<(), Failure> {
    let (pieces, values): (Vec<Piece>, Vec<Array<f32>>) = pieces.into_iter().unzip();
    let values: Vec<f32> = values.into_iter().flat_map(|array| array.values).collect();
    let classes: Vec<String> = pieces.into_iter().flat_map(|piece| piece.classes).collect();
    let (count, out) = (classes.len(), arguments.out.clone().unwrap_or_else(|| OUT.into()));
    let width = values.len() / count.max(1);
    write_npy(&out, &Array::new(vec![count, width], values)?, Precision::Single)?;
    if let Some(path) = &arguments.labels {
        std::fs::write(path, classes.join("\n") + "\n")
            .map_err(|error| Failure::cannot("write", path, &error))?;
    }
    let report = Report {
        model: arguments.model.display().to_string(),
        clouds: count,
        features: width,
        out: out.display().to_string(),
    };
    if arguments.common.json {
        return output::print_json(None, &report);
    }
    let Report { clouds, features, out, .. } = report;
    output::print(&format!("{clouds} clouds, {features} features each: {out}\n"))
}
