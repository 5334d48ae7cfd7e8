//! Predictions for sets without locations: the law of further points, given some.
//!
//! ```text
//! p(x | context) = E_q(θ | context) exp u(x; θ) / Z(θ)
//! ```
//!
//! All points of a draw share one θ: a part of a shape is completed by points of that shape.

use super::{DrawSettings, EnergyBasedProcess};
use crate::point::PointMlp;
use crate::process::task::check_dimensions;
use crate::process::{LogDensity, Predictive};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// Proposals for log Z of every draw of θ.
const NUM_PROPOSALS: usize = 8192;

/// The law of further points, given some.
#[derive(Debug)]
pub struct PointsPredictive<'a> {
    process: &'a EnergyBasedProcess,
    thetas: Vec<f32>,
}

impl<'a> PointsPredictive<'a> {
    pub(super) fn new(process: &'a EnergyBasedProcess, context: &IndexedSet) -> Result<Self> {
        let _: PointMlp = process.element_network()?;
        let context = process.as_batch("context", context)?;
        let stream = Stream::new(0, "prediction");
        let thetas = process.draw_latents(&context, process.config.num_draws, stream)?;
        Ok(Self { process, thetas })
    }
}

impl Predictive for PointsPredictive<'_> {
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let (process, space) = (self.process, &self.process.space);
        check_dimensions("targets", targets, 0, space.value_dim)?;
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let stream = Stream::new(0, "prediction partitions");
        let partitions = process.log_partition(&self.thetas, NUM_PROPOSALS, stream)?;
        let points: Vec<f32> = targets.values().iter().map(|&x| x as f32).collect();
        let mut potentials = Vec::new();
        for theta in self.thetas.chunks_exact(process.config.latent_dim) {
            potentials.push(process.log_potentials(&points, theta)?);
        }
        let error = partitions.iter().map(|z| z.std_error).fold(0.0, f64::max);
        let domain = process.domain();
        let density = |i: usize| {
            if !domain.holds(&points[i * space.value_dim..][..space.value_dim]) {
                return LogDensity { value: f64::NEG_INFINITY, std_error: 0.0 };
            }
            let terms = potentials.iter().zip(&partitions).map(|(u, z)| f64::from(u[i]) - z.value);
            let mut found = LogDensity::of_mean(&terms.collect::<Vec<f64>>());
            found.std_error = found.std_error.hypot(error);
            found
        };
        Ok((0..targets.len()).map(density).collect())
    }

    /// One set of `count` points of one θ; there are no locations.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "u in [0, 1) times the number of draws is one of their numbers"
    )]
    fn sample(&self, _locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut uniform = [0.0];
        stream.child(0).fill_uniform(0, 0, &mut uniform);
        let k = self.process.config.latent_dim;
        let draw = (uniform[0] * self.process.config.num_draws as f32) as usize;
        let theta = &self.thetas[draw * k..][..k];
        let settings = DrawSettings::default();
        let (points, _) = self.process.draw_points(theta, count, &settings, stream.child(1))?;
        Ok(points.into_iter().map(f64::from).collect())
    }
}
