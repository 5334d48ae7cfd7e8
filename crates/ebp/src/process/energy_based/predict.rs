//! Predictions: normalised densities and draws, given a context.
//!
//! Two ways to remove θ ~ q(θ | context), both normalised over the value's domain:
//!
//! ```text
//! mixture     p(x | t) = mean_m exp(f(x, t; θ_m)) / Z(t; θ_m)
//! geometric   p(x | t) ∝ exp(mean_m f(x, t; θ_m))          the paper's eq. (pred_approx)
//! ```
//!
//! f stands for f/τ here.

use candle_core::Tensor;

use super::config::Estimator;
use super::features::push_features;
use super::partition::{Chunk, Distinct, Nodes, for_each_chunk};
use super::{EnergyBasedProcess, Result};
use crate::linalg::log_sum_exp;
use crate::nn::Mode;
use crate::point::{PointBatch, PointMlp};
use crate::process::task::{check_dimensions, count_locations};
use crate::process::{LogDensity, Predictive, Process};
use crate::rng::Stream;
use crate::{IndexedSet, SetOffsets};

/// How θ is removed from a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictionRule {
    /// The average of the normalised densities: what the model says.
    Mixture,
    /// The paper's approximation: the normalised exponential of the average f.
    Geometric,
}

/// Draws of θ per prediction.
const NUM_DRAWS: usize = 32;

impl Process for EnergyBasedProcess {
    fn name(&self) -> &'static str {
        match self.config().estimator {
            Estimator::Importance => "ebp-importance",
            Estimator::Ade => "ebp-ade",
        }
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(self.predict(context, PredictionRule::Mixture)?))
    }
}

/// An energy-based process given a context: draws of θ.
#[derive(Debug)]
pub struct EnergyBasedPredictive<'a> {
    process: &'a EnergyBasedProcess,
    rule: PredictionRule,
    energy: PointMlp,
    nodes: Nodes,
    /// `[NUM_DRAWS, k]`.
    thetas: Vec<f32>,
}

impl EnergyBasedProcess {
    /// The law given `context`, with θ removed in the way asked for. Uses the moving average of
    /// the parameters if it was swapped in.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the context does not fit.
    pub fn predict(
        &self,
        context: &IndexedSet,
        rule: PredictionRule,
    ) -> Result<EnergyBasedPredictive<'_>> {
        let config = self.config();
        check_dimensions("context", context, config.location_dim, config.value_dim)?;
        let posterior = self.posterior.encode(&[context])?;
        let row = |tensor: &Tensor| -> Result<Vec<f32>> { Ok(tensor.flatten_all()?.to_vec1()?) };
        let (mean, log_std_dev) = (row(&posterior.mean)?, row(&posterior.log_std_dev)?);
        let mut thetas = vec![0.0; NUM_DRAWS * config.latent_dim];
        Stream::new(0, "prediction").fill_normal(0, 0, &mut thetas);
        for theta in thetas.chunks_exact_mut(config.latent_dim) {
            for ((theta, mean), log_std_dev) in theta.iter_mut().zip(&mean).zip(&log_std_dev) {
                *theta = mean + log_std_dev.exp() * *theta;
            }
        }
        let parameters = self.energy.parameters(Mode::Evaluate)?;
        let flat = self.energy.calibrated(&parameters)?.to_vec1::<f32>()?;
        let energy = PointMlp::new(self.energy.module.shape().clone(), flat)?;
        let nodes = Nodes::new(config.value_domain, config.value_dim);
        Ok(EnergyBasedPredictive { process: self, rule, energy, nodes, thetas })
    }
}

/// What normalises the density at one location.
#[derive(Clone, Debug, Default)]
struct Normaliser {
    /// log Z of every draw of θ, or of their geometric mean.
    log_partitions: Vec<f64>,
    /// The largest error to be expected in them.
    error: f64,
}

impl EnergyBasedPredictive<'_> {
    fn normalisers(&self, distinct: &Distinct) -> Result<Vec<Normaliser>> {
        let mut normalisers = vec![Normaliser::default(); distinct.count];
        self.visit(distinct, |chunk| {
            let places = normalisers.iter_mut().enumerate().skip(chunk.start).take(chunk.len);
            for (place, normaliser) in places {
                let mut add = |exponents: &[f64]| {
                    let (log_partition, error) = self.nodes.integrate(exponents);
                    normaliser.log_partitions.push(log_partition);
                    normaliser.error = normaliser.error.max(error);
                };
                match self.rule {
                    PredictionRule::Mixture => {
                        for draw in 0..NUM_DRAWS {
                            add(&widened(chunk.exponents(draw, place)));
                        }
                    }
                    PredictionRule::Geometric => add(&self.mean_exponents(chunk, place)),
                }
            }
            Ok(())
        })?;
        Ok(normalisers)
    }

    /// mean_m f(x_k, t; θ_m) at every node.
    fn mean_exponents(&self, chunk: &Chunk, place: usize) -> Vec<f64> {
        let mut mean = vec![0.0; self.nodes.count];
        for draw in 0..NUM_DRAWS {
            for (mean, &f) in mean.iter_mut().zip(chunk.exponents(draw, place)) {
                *mean += f64::from(f) / NUM_DRAWS as f64;
            }
        }
        mean
    }

    fn visit(&self, distinct: &Distinct, visit: impl FnMut(&Chunk) -> Result<()>) -> Result<()> {
        for_each_chunk(self.process, &self.energy, &self.nodes, &self.thetas, distinct, visit)
    }

    /// f of every target under every draw, `[NUM_DRAWS, targets]`.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn values(&self, targets: &IndexedSet) -> Result<Vec<f32>> {
        let mut rows = Vec::new();
        for i in 0..targets.len() {
            rows.extend(targets.value(i).iter().map(|&x| x as f32));
            let frequencies = self.process.config().location_frequencies;
            push_features(targets.location(i), frequencies, &mut rows);
        }
        let elements = rows.repeat(NUM_DRAWS);
        let offsets = SetOffsets::uniform(NUM_DRAWS, targets.len())?;
        let batch = PointBatch { elements: &elements, offsets: &offsets, context: &self.thetas };
        self.process.energy.module.backend().values(&self.energy, &batch)
    }
}

impl Predictive for EnergyBasedPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let config = self.process.config();
        check_dimensions("targets", targets, config.location_dim, config.value_dim)?;
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let distinct = Distinct::new(self.process, targets.locations());
        let normalisers = self.normalisers(&distinct)?;
        let values = self.values(targets)?;
        let n = targets.len();
        let (low, high) = config.value_domain;
        let is_inside = |x: &f64| (f64::from(low)..=f64::from(high)).contains(x);
        Ok((0..n)
            .map(|i| {
                // Outside the domain the density is zero.
                if !targets.value(i).iter().all(is_inside) {
                    return LogDensity { value: f64::NEG_INFINITY, std_error: 0.0 };
                }
                let normaliser = &normalisers[distinct.of_target[i]];
                let value = |draw: usize| f64::from(values[draw * n + i]);
                match self.rule {
                    PredictionRule::Mixture => {
                        let terms = normaliser.log_partitions.iter().enumerate();
                        let terms: Vec<f64> = terms.map(|(draw, z)| value(draw) - z).collect();
                        let mut density = LogDensity::of_mean(&terms);
                        density.std_error = density.std_error.hypot(normaliser.error);
                        density
                    }
                    PredictionRule::Geometric => {
                        let mean = (0..NUM_DRAWS).map(value).sum::<f64>() / NUM_DRAWS as f64;
                        let value = mean - normaliser.log_partitions[0];
                        LogDensity { value, std_error: normaliser.error }
                    }
                }
            })
            .collect())
    }

    /// A cell of the domain by its mass, then a point of the cell: exact up to the cells' width.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "u in [0, 1) times the number of draws is one of their numbers"
    )]
    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        let config = self.process.config();
        let num_locations = count_locations(locations, config.location_dim)?;
        if num_locations == 0 || count == 0 {
            return Ok(Vec::new());
        }
        let distinct = Distinct::new(self.process, locations);
        // One θ for all locations of a draw: a joint draw.
        let mut uniforms = vec![0.0; count];
        stream.child(0).fill_uniform(0, 0, &mut uniforms);
        let draws: Vec<usize> = uniforms.iter().map(|u| (u * NUM_DRAWS as f32) as usize).collect();
        let dims = config.value_dim;
        let mut samples = vec![0.0; count * num_locations * dims];
        self.visit(&distinct, |chunk| {
            let places = distinct.of_target.iter().enumerate();
            for (target, &place) in places.filter(|(_, place)| chunk.holds(**place)) {
                let mut uniforms = vec![0.0; count * (dims + 1)];
                stream.child(1 + target as u64).fill_uniform(0, 0, &mut uniforms);
                // θ is one of a few, so are the shares.
                let mut shares: Vec<Option<Vec<f64>>> = vec![None; NUM_DRAWS];
                for (sample, uniforms) in uniforms.chunks_exact(dims + 1).enumerate() {
                    let draw = match self.rule {
                        PredictionRule::Mixture => draws[sample],
                        PredictionRule::Geometric => 0,
                    };
                    let shares = shares[draw].get_or_insert_with(|| {
                        cumulative(&match self.rule {
                            PredictionRule::Mixture => widened(chunk.exponents(draw, place)),
                            PredictionRule::Geometric => self.mean_exponents(chunk, place),
                        })
                    });
                    let mut uniforms = uniforms.iter().map(|&u| f64::from(u));
                    let u = uniforms.next().unwrap_or(0.5);
                    let cell = shares.partition_point(|share| *share <= u).min(shares.len() - 1);
                    let at = (sample * num_locations + target) * dims;
                    let point = self.nodes.point_in_cell(cell, uniforms);
                    samples[at..at + dims].iter_mut().zip(point).for_each(|(x, y)| *x = y);
                }
            }
            Ok(())
        })?;
        Ok(samples)
    }
}

fn widened(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&number| f64::from(number)).collect()
}

/// Shares of the cells' mass, summed up: the last one is 1.
fn cumulative(exponents: &[f64]) -> Vec<f64> {
    let log_total = log_sum_exp(exponents);
    let mut sum = 0.0;
    let shares = exponents.iter().map(|exponent| {
        sum += (exponent - log_total).exp();
        sum
    });
    shares.collect()
}
