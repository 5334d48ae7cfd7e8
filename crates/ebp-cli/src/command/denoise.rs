//! `ebp denoise`: a noisy cloud, cleaned by a trained model.

use std::path::PathBuf;

use clap::Args;
use ebp::data::Cloud;
use ebp::data::cloud::write_cloud;
use ebp::process::DenoiseSettings;

use super::cloud_model::{TrainedCloud, draw_rows, read_inputs, standardised_sets, write_clouds};
use crate::failure::Failure;
use crate::output;
use crate::threads::start_threads;

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

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    threads: Option<usize>,
}

/// Clouds of a row of the picture.
const COLUMNS: usize = 8;

/// Denoises and writes.
pub(crate) fn run(arguments: &DenoiseArguments) -> Result<(), Failure> {
    start_threads(arguments.threads)?.install(|| {
        let trained = TrainedCloud::load(&arguments.model)?;
        let clouds = read_inputs(std::slice::from_ref(&arguments.noisy), &trained)?;
        let affine = &trained.scale.affine;
        let settings = DenoiseSettings {
            num_steps: arguments.steps,
            step_size: arguments.step_size,
            noise: arguments.noise.map(|noise| noise / affine.scale),
            ..DenoiseSettings::default()
        };
        let (mut before, mut after, mut moved) = (Vec::new(), Vec::new(), 0.0);
        for set in 0..clouds.num_clouds() {
            let noisy = clouds.cloud(set);
            let clean = trained.process.denoise(noisy, None, None, &settings)?;
            let square: f64 =
                clean.iter().zip(noisy).map(|(a, b)| f64::from((a - b).powi(2))).sum();
            moved += (square * trained.dim() as f64 / noisy.len() as f64).sqrt();
            before.extend(standardised_sets(noisy, noisy.len(), affine));
            after.extend(standardised_sets(&clean, clean.len(), affine));
        }
        let dim = trained.dim();
        if let [cloud] = after.as_slice() {
            write_cloud(&arguments.out, &Cloud { dim, points: cloud.clone() })?;
        } else {
            write_clouds(&arguments.out, &after, dim, "ply")?;
        }
        if let Some(picture) = &arguments.picture {
            let first = |clouds: &[Vec<f32>]| clouds[..clouds.len().min(COLUMNS)].to_vec();
            draw_rows(picture, &[&first(&before), &first(&after)], dim)?;
        }
        let mean = moved / clouds.num_clouds() as f64 * f64::from(affine.scale);
        output::print(&format!(
            "{} clouds denoised in {} steps; points moved by {mean:.4} (root mean square): {}\n",
            clouds.num_clouds(),
            settings.num_steps,
            arguments.out.display()
        ))
    })
}
