//! Energies of held-out, generated and noise clouds: the paper's histograms and their overlap.
//!
//! The energy of a cloud is the mean over its points of log Z(θ) − u(x; θ) at the cloud's own θ: its
//! negative log density per point in nats of the standardised data. Generated clouds are drawn with
//! full noise, so that their law is the model's. Noise clouds are uniform on the box of the data.

use std::fmt::{self, Display};

use serde::Serialize;

use super::{CloudSource, Findings, Laboratory, PartSizes};
use crate::Result;
use crate::figure::histogram::{HistogramPlot, Sample};
use crate::metric::overlap::overlap;
use crate::model::{CloudModel, PriorKind};
use crate::process::PointMethod;
use crate::rng::Stream;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct EnergiesExperiment {
    /// The model.
    pub source: CloudSource,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct EnergiesReport {
    /// Where the clouds come from.
    pub data: String,
    /// How many of each kind.
    pub clouds: usize,
    /// How many were learned from, chosen by and measured on.
    pub parts: PartSizes,
    /// Overlap coefficient of held-out and generated clouds.
    pub overlap: f64,
    /// The lower end of its 95 % interval.
    pub overlap_low: f64,
    /// The upper end.
    pub overlap_high: f64,
    /// What two samples of one law would have.
    pub overlap_same_law: f64,
    /// Of held-out and noise clouds.
    pub overlap_noise: f64,
    /// The energies of held-out clouds.
    pub held_out: Vec<f64>,
    /// Of generated ones.
    pub generated: Vec<f64>,
    /// Of noise.
    pub noise: Vec<f64>,
    /// Where the picture belongs.
    pub picture: String,
}

/// Proposals for every log Z.
const NUM_PROPOSALS: usize = 16_384;

impl EnergiesExperiment {
    /// Trains if need be, and scores.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`].
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<EnergiesReport>> {
        let subject = self.source.subject(laboratory, "model", &[])?;
        let model = subject.model()?;
        let (dim, num_points) = (model.dim(), subject.num_points()?);
        let stream = Stream::new(0, "energies");
        // Equal sizes: the mean of few points varies more.
        let held_out = subject.references()?;
        let held_out: Vec<&[f32]> =
            held_out.iter().map(|set| &set[..set.len().min(num_points * dim)]).collect();
        let count = held_out.len();
        let samples = subject.samples(PriorKind::Kernel, PointMethod::Langevin)?;
        let mut generated: Vec<Vec<f32>> = samples.to_vec();
        for cloud in &mut generated {
            model.affine().apply(cloud);
        }
        let noise = uniform(&held_out, dim, num_points, stream.child(100));
        let of = |clouds: &[Vec<f32>], number: u64| {
            let clouds: Vec<&[f32]> = clouds.iter().map(Vec::as_slice).collect();
            energies(model, &clouds, stream.child(number))
        };
        laboratory.watch.begin("energies");
        let held_out = energies(model, &held_out, stream.child(1))?;
        let (generated, noise) = (of(&generated, 2)?, of(&noise, 3)?);
        let found = overlap(&held_out, &generated, stream.child(4))?;
        let apart = overlap(&held_out, &noise, stream.child(5))?;
        let data = model.settings().data.source.clone();
        let sample =
            |name: &str, values: &[f64]| Sample { name: name.into(), values: values.to_vec() };
        let figure = HistogramPlot {
            title: format!("Energies of clouds: {data}"),
            samples: vec![
                sample("held out", &held_out),
                sample("generated", &generated),
                sample("noise", &noise),
            ],
            x_label: "energy, nats per point".into(),
            note: format!("overlap {:.2}", found.coefficient.value),
        };
        let picture = laboratory.file("energies.png");
        let report = EnergiesReport {
            data,
            clouds: count,
            parts: subject.sizes()?,
            overlap: found.coefficient.value,
            overlap_low: found.coefficient.low,
            overlap_high: found.coefficient.high,
            overlap_same_law: found.same_law,
            overlap_noise: apart.coefficient.value,
            held_out,
            generated,
            noise,
            picture: picture.display().to_string(),
        };
        Ok(Findings { report, pictures: vec![(picture, figure.draw()?.into())] })
    }
}

/// −log p per point at θ = μ, the mean over a set's points.
fn energies(model: &CloudModel, sets: &[&[f32]], stream: Stream) -> Result<Vec<f64>> {
    let codes = model.encode_sets(sets)?.mean;
    let partitions = model.log_partition(&codes, NUM_PROPOSALS, stream)?;
    let rows = sets.iter().zip(codes.chunks_exact(model.latent_dim())).zip(partitions);
    rows.map(|((set, code), partition)| {
        let u = model.log_potentials(set, code)?;
        let sum: f64 = u.iter().map(|&u| f64::from(u)).sum();
        Ok(partition.value - sum / u.len() as f64)
    })
    .collect()
}

/// As many clouds of points that are uniform on the box of `sets`.
fn uniform(sets: &[&[f32]], dim: usize, num_points: usize, stream: Stream) -> Vec<Vec<f32>> {
    let (mut low, mut high) = (vec![f32::INFINITY; dim], vec![f32::NEG_INFINITY; dim]);
    for point in sets.iter().flat_map(|set| set.chunks_exact(dim)) {
        for (axis, x) in point.iter().enumerate() {
            low[axis] = low[axis].min(*x);
            high[axis] = high[axis].max(*x);
        }
    }
    let cloud = |number: usize| {
        let mut cloud = vec![0.0; num_points * dim];
        stream.fill_uniform(0, (number * cloud.len()) as u64, &mut cloud);
        for point in cloud.chunks_exact_mut(dim) {
            for (axis, x) in point.iter_mut().enumerate() {
                *x = low[axis] + *x * (high[axis] - low[axis]);
            }
        }
        cloud
    };
    (0..sets.len()).map(cloud).collect()
}

impl Display for EnergiesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = |sample: &[f64]| sample.iter().sum::<f64>() / sample.len() as f64;
        writeln!(
            f,
            "{}: {}; {} clouds of each kind\n\n\
             mean energy: held out {:.3}, generated {:.3}, noise {:.3} nats per point\n\
             overlap of held out and generated: {:.2} ({:.2} to {:.2}); of one law {:.2}\n\
             overlap of held out and noise: {:.2}\n\
             picture: {}",
            self.data,
            self.parts,
            self.clouds,
            mean(&self.held_out),
            mean(&self.generated),
            mean(&self.noise),
            self.overlap,
            self.overlap_low,
            self.overlap_high,
            self.overlap_same_law,
            self.overlap_noise,
            self.picture
        )
    }
}
