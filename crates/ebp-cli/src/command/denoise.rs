//! `ebp denoise`: a noisy cloud, cleaned by a trained model.

use std::path::PathBuf;

use clap::Args;
use ebp::data::Cloud;
use ebp::data::cloud::write_cloud;
use ebp::figure::{contact_sheet, save};
use ebp::model::{Model, read_cloud_inputs, write_clouds};
use ebp::process::DenoiseSettings;
use serde::Serialize;

use crate::args::Common;
use crate::failure::Failure;
use crate::{device, output, progress};

const HELP: &str = "\
Every point climbs to where the model, told the whole cloud, finds points likely. With `--noise`,
the standard deviation of the noise in the units of the file, points also remember where they were
found, which keeps them evenly spread.

Examples:
  ebp denoise runs/shapes noisy.ply -o clean.ply --noise 0.03
  ebp denoise runs/shapes noisy/ -o clean/ --steps 40";

/// Arguments of `ebp denoise`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DenoiseArguments {
    /// Folder of a run
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// A file with a noisy cloud, or a folder of such files
    #[arg(value_name = "NOISY")]
    noisy: PathBuf,

    /// Where the clean cloud goes; a folder if there are many
    #[arg(short, long, value_name = "PATH")]
    out: PathBuf,

    /// Standard deviation of the noise, in the units of the file
    #[arg(long, value_name = "X")]
    noise: Option<f32>,

    /// How many steps
    #[arg(long, value_name = "N", default_value_t = DenoiseSettings::default().num_steps)]
    steps: usize,

    /// The first step's size, in squared standard deviations of the data
    #[arg(long, value_name = "X", default_value_t = DenoiseSettings::default().step_size)]
    step_size: f32,

    /// A picture of the clouds before and after
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    clouds: usize,
    steps: usize,
    /// How far points moved, root mean square, in the units of the file.
    moved: f64,
    out: String,
}

/// Clouds of a row of the picture.
const COLUMNS: usize = 8;

/// Denoises and writes.
pub(crate) fn run(arguments: &DenoiseArguments) -> Result<(), Failure> {
    let report = arguments.common.install(|| denoise(arguments))?;
    if arguments.common.json {
        return output::print_json(None, &report);
    }
    output::print(&format!(
        "{} clouds denoised in {} steps; points moved by {:.4} (root mean square): {}\n",
        report.clouds, report.steps, report.moved, report.out
    ))?;
    arguments.common.show(arguments.picture.as_deref())
}

fn denoise(arguments: &DenoiseArguments) -> Result<Report, Failure> {
    let model = Model::load_on(&arguments.model, &device::open()?)?;
    let dim = model.clouds()?.dim();
    let clouds = read_cloud_inputs(std::slice::from_ref(&arguments.noisy))?;
    let settings = DenoiseSettings {
        num_steps: arguments.steps,
        step_size: arguments.step_size,
        noise: arguments.noise,
        ..DenoiseSettings::default()
    };
    let count = clouds.num_sets();
    let done = progress::count(count as u64, arguments.common.quiet, "clouds");
    let (mut after, mut moved) = (Vec::new(), 0.0);
    for set in 0..count {
        let noisy = clouds.set(set);
        let clean = model.denoise(&noisy, &settings)?;
        let square: f64 = clean.iter().zip(&*noisy).map(|(a, b)| f64::from((a - b).powi(2))).sum();
        moved += (square * dim as f64 / noisy.len() as f64).sqrt() / count as f64;
        after.push(clean);
        done.inc(1);
    }
    done.finish();
    if let [cloud] = after.as_slice() {
        write_cloud(&arguments.out, &Cloud { dim, points: cloud.clone() })?;
    } else {
        write_clouds(&arguments.out, &after, dim, "ply")?;
    }
    if let Some(picture) = &arguments.picture {
        let shown = count.min(COLUMNS);
        let before: Vec<Vec<f32>> = (0..shown).map(|set| clouds.set(set).into_owned()).collect();
        save(&contact_sheet::draw_rows(&[&before, &after[..shown]], dim), picture)?;
    }
    Ok(Report {
        model: arguments.model.display().to_string(),
        clouds: count,
        steps: arguments.steps,
        moved,
        out: arguments.out.display().to_string(),
    })
}
