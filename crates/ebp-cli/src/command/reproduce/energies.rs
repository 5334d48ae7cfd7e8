//! Energies of held-out, generated and noise clouds: the paper's histograms and their overlap.

use clap::Args;
use ebp::metric::overlap::overlap;
use ebp::process::PointMethod;
use ebp::rng::Stream;
use serde::Serialize;

use super::clouds::{CloudExperiment, keep_json};
use crate::command::cloud_model::PriorName;
use crate::failure::Failure;
use crate::output;
use crate::threads::start_threads;
use ebp::figure::histogram::{HistogramPlot, Sample};
use ebp::figure::save;

const HELP: &str = "\
The energy of a cloud is the mean over its points of log Z(θ) − u(x; θ) at the cloud's own θ: its
negative log density per point in nats of the standardised data. Generated clouds are drawn with
full noise, so that their law is the model's. Noise clouds are uniform on the box of the data.

Examples:
  ebp reproduce energies
  ebp reproduce energies --model runs/cloud";

/// Arguments of `ebp reproduce energies`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct EnergiesArguments {
    #[command(flatten)]
    experiment: CloudExperiment,
}

#[derive(Debug, Serialize)]
struct Report {
    data: String,
    clouds: usize,
    /// Overlap coefficient of held-out and generated clouds, with its 95 % interval.
    overlap: f64,
    overlap_low: f64,
    overlap_high: f64,
    /// What two samples of one law would have.
    overlap_same_law: f64,
    overlap_noise: f64,
    held_out: Vec<f64>,
    generated: Vec<f64>,
    noise: Vec<f64>,
    picture: String,
}

/// Trains if need be, scores and prints.
pub(super) fn run(arguments: &EnergiesArguments) -> Result<(), Failure> {
    let experiment = &arguments.experiment;
    let report = start_threads(experiment.threads)?.install(|| measure(experiment))?;
    keep_json(&experiment.file("energies.json")?, &report)?;
    if experiment.json {
        return output::print_json(&report);
    }
    let mean = |sample: &[f64]| sample.iter().sum::<f64>() / sample.len() as f64;
    output::print(&format!(
        "{}: {} clouds of each kind\n\n\
         mean energy: held out {:.3}, generated {:.3}, noise {:.3} nats per point\n\
         overlap of held out and generated: {:.2} ({:.2} to {:.2}); of one law {:.2}\n\
         overlap of held out and noise: {:.2}\n\
         picture: {}\n",
        report.data,
        report.clouds,
        mean(&report.held_out),
        mean(&report.generated),
        mean(&report.noise),
        report.overlap,
        report.overlap_low,
        report.overlap_high,
        report.overlap_same_law,
        report.overlap_noise,
        report.picture
    ))
}

/// Proposals for every log Z.
const NUM_PROPOSALS: usize = 16_384;

fn measure(experiment: &CloudExperiment) -> Result<Report, Failure> {
    let subject = experiment.subject("model", &[])?;
    let trained = &subject.trained;
    let (dim, affine) = (trained.dim(), &trained.scale.affine);
    let num_points = trained.settings.evaluation.num_points;
    let stream = Stream::new(0, "energies");
    // −log p per point at θ = μ, the mean over a set's points.
    let energies = |sets: &[&[f32]], number: u64| -> Result<Vec<f64>, Failure> {
        let (process, k) = (&trained.process, trained.process.config().latent_dim);
        let codes = process.encode(sets)?.mean;
        let partitions = process.log_partition(&codes, NUM_PROPOSALS, stream.child(number))?;
        let rows = sets.iter().zip(codes.chunks_exact(k)).zip(partitions);
        rows.map(|((set, code), partition)| {
            let u = process.log_potentials(set, code)?;
            let sum: f64 = u.iter().map(|&u| f64::from(u)).sum();
            Ok(partition.value - sum / u.len() as f64)
        })
        .collect()
    };
    // Equal sizes: the mean of few points varies more.
    let held_out: Vec<&[f32]> =
        subject.held_out().into_iter().map(|set| &set[..set.len().min(num_points * dim)]).collect();
    let count = held_out.len();
    let samples = subject.samples(PriorName::Kernel, PointMethod::Langevin)?;
    let generated: Vec<Vec<f32>> = samples
        .iter()
        .map(|cloud| {
            let mut cloud = cloud.clone();
            affine.apply(&mut cloud);
            cloud
        })
        .collect();
    let (mut low, mut high) = (vec![f32::INFINITY; dim], vec![f32::NEG_INFINITY; dim]);
    for point in held_out.iter().flat_map(|set| set.chunks_exact(dim)) {
        for (axis, x) in point.iter().enumerate() {
            low[axis] = low[axis].min(*x);
            high[axis] = high[axis].max(*x);
        }
    }
    let noise: Vec<Vec<f32>> = (0..count)
        .map(|number| {
            let mut cloud = vec![0.0; num_points * dim];
            stream.child(100).fill_uniform(0, (number * cloud.len()) as u64, &mut cloud);
            for point in cloud.chunks_exact_mut(dim) {
                for (axis, x) in point.iter_mut().enumerate() {
                    *x = low[axis] + *x * (high[axis] - low[axis]);
                }
            }
            cloud
        })
        .collect();
    let of = |clouds: &[Vec<f32>], number: u64| {
        energies(&clouds.iter().map(Vec::as_slice).collect::<Vec<_>>(), number)
    };
    let (held_out, generated, noise) =
        (energies(&held_out, 1)?, of(&generated, 2)?, of(&noise, 3)?);
    let found = overlap(&held_out, &generated, stream.child(4))?;
    let apart = overlap(&held_out, &noise, stream.child(5))?;
    let picture = experiment.file("energies.png")?;
    let sample = |name: &str, values: &[f64]| Sample { name: name.into(), values: values.to_vec() };
    let figure = HistogramPlot {
        title: format!("Energies of clouds: {}", trained.settings.data.source),
        samples: vec![
            sample("held out", &held_out),
            sample("generated", &generated),
            sample("noise", &noise),
        ],
        x_label: "energy, nats per point".into(),
        note: format!("overlap {:.2}", found.coefficient.value),
        scale: 2,
    };
    save(&figure.draw()?, &picture)?;
    Ok(Report {
        data: trained.settings.data.source.clone(),
        clouds: count,
        overlap: found.coefficient.value,
        overlap_low: found.coefficient.low,
        overlap_high: found.coefficient.high,
        overlap_same_law: found.same_law,
        overlap_noise: apart.coefficient.value,
        held_out,
        generated,
        noise,
        picture: picture.display().to_string(),
    })
}
