//! The paper's denoising, and denoising of whole clouds.

use clap::Args;
use ebp::process::DenoiseSettings;
use ebp::rng::Stream;
use serde::Serialize;

use super::clouds::{CloudExperiment, Subject, keep_json};
use crate::command::cloud_model::{chamfer, draw_rows, standardised_sets};
use crate::failure::Failure;
use crate::output;
use crate::threads::start_threads;

const HELP: &str = "\
Two protocols on held-out clouds. `ball` perturbs the points within a radius of a random point and
moves those only; `everywhere` perturbs all points and moves all. Lengths are in the units of the
data. Chamfer distances to the clean clouds are means of squares; `own θ` encodes the noisy cloud
and what becomes of it, `clean θ` is told the clean cloud's code.

Examples:
  ebp reproduce denoising
  ebp reproduce denoising --model runs/cloud --sigma 0.1 --radius 0.2 --sigma-everywhere 0.03";

/// Arguments of `ebp reproduce denoising`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DenoisingArguments {
    #[command(flatten)]
    experiment: CloudExperiment,

    /// Noise in the ball
    #[arg(long, value_name = "X", default_value_t = 0.1)]
    sigma: f32,

    /// Radius of the ball
    #[arg(long, value_name = "X", default_value_t = 0.2)]
    radius: f32,

    /// Noise of the other protocol
    #[arg(long, value_name = "X", default_value_t = 0.03)]
    sigma_everywhere: f32,

    /// How far points may move, in units of the noise: larger values forget where they were found
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    reach: f32,

    /// How many steps
    #[arg(long, value_name = "N", default_value_t = 20)]
    steps: usize,

    /// The first step's size, in squared standard deviations of the data
    #[arg(long, value_name = "X", default_value_t = DenoiseSettings::default().step_size)]
    step_size: f32,
}

/// Clouds in the units of the data.
type Clouds = Vec<Vec<f32>>;

/// One protocol.
#[derive(Debug, Serialize)]
struct Row {
    protocol: &'static str,
    sigma: f32,
    /// Chamfer distance to the clean clouds.
    before: f64,
    own_theta: f64,
    clean_theta: f64,
    /// 1 − own_theta/before.
    removed: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    data: String,
    clouds: usize,
    steps: usize,
    rows: Vec<Row>,
    picture: String,
}

/// Trains if need be, denoises and prints.
pub(super) fn run(arguments: &DenoisingArguments) -> Result<(), Failure> {
    let report = start_threads(arguments.experiment.threads)?.install(|| measure(arguments))?;
    keep_json(&arguments.experiment.file("denoising.json")?, &report)?;
    if arguments.experiment.json {
        return output::print_json(&report);
    }
    let mut lines = vec![
        ["Chamfer ×10⁴", "σ", "noisy", "own θ", "clean θ", "removed"].map(String::from).to_vec(),
    ];
    for row in &report.rows {
        let cell = |x: f64| format!("{:.2}", 1e4 * x);
        lines.push(vec![
            row.protocol.to_owned(),
            row.sigma.to_string(),
            cell(row.before),
            cell(row.own_theta),
            cell(row.clean_theta),
            format!("{:.0} %", 100.0 * row.removed),
        ]);
    }
    let text = format!(
        "{}: {} held-out clouds, {} steps\n\n{}\npicture (clean, noisy, denoised): {}\n",
        report.data,
        report.clouds,
        report.steps,
        output::table(&lines),
        report.picture
    );
    output::print(&text)
}

fn measure(arguments: &DenoisingArguments) -> Result<Report, Failure> {
    let subject = arguments.experiment.subject("model", &[])?;
    let mut rows = Vec::new();
    let mut shown: Vec<Clouds> = Vec::new();
    for (protocol, sigma, radius) in [
        ("ball", arguments.sigma, Some(arguments.radius)),
        ("everywhere", arguments.sigma_everywhere, None),
    ] {
        let (row, pictures) = one(&subject, arguments, protocol, sigma, radius)?;
        rows.push(row);
        shown.extend(pictures);
    }
    let picture = arguments.experiment.file("denoising.png")?;
    let sheet: Vec<&[Vec<f32>]> = shown.iter().map(Vec::as_slice).collect();
    draw_rows(&picture, &sheet, subject.trained.dim())?;
    Ok(Report {
        data: subject.trained.settings.data.source.clone(),
        clouds: subject.held_out().len(),
        steps: arguments.steps,
        rows,
        picture: picture.display().to_string(),
    })
}

/// A protocol on all held-out clouds, and three rows of a picture.
fn one(
    subject: &Subject,
    arguments: &DenoisingArguments,
    protocol: &'static str,
    sigma: f32,
    radius: Option<f32>,
) -> Result<(Row, [Clouds; 3]), Failure> {
    let (affine, dim) = (&subject.trained.scale.affine, subject.trained.dim());
    let process = &subject.trained.process;
    let noise = sigma / affine.scale;
    let settings = DenoiseSettings {
        num_steps: arguments.steps,
        step_size: arguments.step_size,
        noise: Some(noise * arguments.reach),
        ..DenoiseSettings::default()
    };
    let raw = |points: &[f32]| standardised_sets(points, points.len(), affine);
    let (mut clean, mut noisy, mut own, mut told) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, set) in subject.held_out().into_iter().enumerate() {
        let stream = Stream::new(0, "denoising").child(number as u64);
        let mut draws = vec![0.0; set.len()];
        stream.child(0).fill_normal(0, 0, &mut draws);
        let n = set.len() / dim;
        let centre_row = stream.child(1).permutation(n)[0];
        let centre = &set[centre_row * dim..(centre_row + 1) * dim];
        let is_fixed: Vec<bool> = set
            .chunks_exact(dim)
            .map(|point| {
                let square: f32 = point.iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum();
                radius.is_some_and(|radius| square.sqrt() > radius / affine.scale)
            })
            .collect();
        let perturbed: Vec<f32> = set
            .iter()
            .zip(&draws)
            .enumerate()
            .map(|(place, (x, xi))| if is_fixed[place / dim] { *x } else { x + noise * xi })
            .collect();
        let fixed = Some(is_fixed.as_slice());
        let code = process.encode(&[set])?.mean;
        own.extend(raw(&process.denoise(&perturbed, fixed, None, &settings)?));
        told.extend(raw(&process.denoise(&perturbed, fixed, Some(&code), &settings)?));
        clean.extend(raw(set));
        noisy.extend(raw(&perturbed));
    }
    let before = chamfer(&noisy, &clean, dim)?;
    let own_theta = chamfer(&own, &clean, dim)?;
    let row = Row {
        protocol,
        sigma,
        before,
        own_theta,
        clean_theta: chamfer(&told, &clean, dim)?,
        removed: 1.0 - own_theta / before,
    };
    let first = |clouds: Vec<Vec<f32>>| clouds.into_iter().take(6).collect::<Vec<_>>();
    Ok((row, [first(clean), first(noisy), first(own)]))
}
