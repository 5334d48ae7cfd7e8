//! Predictions: normalised densities and draws, given a context.
//!
//! Two ways to remove θ ~ q(θ | context), both normalised by quadrature over the value's domain:
//!
//! ```text
//! mixture     p(x | t) = mean_m exp(f(x, t; θ_m)) / Z(t; θ_m)
//! geometric   p(x | t) ∝ exp(mean_m f(x, t; θ_m))          the paper's eq. (pred_approx)
//! ```

use std::collections::BTreeMap;

use candle_core::Tensor;

use super::features::push_features;
use super::importance::check_dims;
use super::{EnergyBasedProcess, Estimator};
use crate::point::{CandidateValues, Candidates, LogPartition, LogWeights, PointBatch, PointMlp};
use crate::process::{LogDensity, Predictive, Process};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result, SetOffsets};

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

/// Quadrature nodes over the domain of a one-dimensional value.
const NUM_NODES: usize = 512;

impl Process for EnergyBasedProcess {
    fn name(&self) -> &'static str {
        match self.config().estimator {
            Estimator::Importance => "ebp-importance",
            Estimator::Ade(_) => "ebp-ade",
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
    prediction: PredictionRule,
    energy: PointMlp,
    /// `[NUM_DRAWS, k]`.
    thetas: Vec<f32>,
}

impl EnergyBasedProcess {
    /// The law given `context`, with θ removed in the way asked for. Uses the moving average of
    /// the parameters if it was swapped in.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the context does not fit, or values have more than one
    /// dimension (not supported yet by quadrature).
    pub fn predict(
        &self,
        context: &IndexedSet,
        prediction: PredictionRule,
    ) -> Result<EnergyBasedPredictive<'_>> {
        let config = self.config();
        check_dims("context", context, (config.location_dim, config.value_dim))?;
        if config.value_dim != 1 {
            return Err(Error::invalid("value_dim", "1 for quadrature", config.value_dim));
        }
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
        let temperature = match &config.estimator {
            Estimator::Importance => 1.0,
            Estimator::Ade(ade) => ade.temperature,
        };
        let flat = self.calibrated_parameters(temperature)?.to_vec1::<f32>()?;
        let energy = PointMlp::new(self.energy.shape().clone(), flat)?;
        Ok(EnergyBasedPredictive { process: self, prediction, energy, thetas })
    }
}

/// Locations without repetition, and which one each target has.
struct Distinct {
    /// Features, `[distinct, features]`.
    features: Vec<f32>,
    count: usize,
    of_target: Vec<usize>,
}

impl EnergyBasedPredictive<'_> {
    fn distinct(&self, locations: &[f64]) -> Distinct {
        let config = self.process.config();
        let mut numbers: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        let mut features = Vec::new();
        let of_target = locations
            .chunks_exact(config.location_dim)
            .map(|location| {
                let key = location.iter().map(|t| t.to_bits()).collect();
                let next = numbers.len();
                *numbers.entry(key).or_insert_with(|| {
                    push_features(location, config.location_frequencies, &mut features);
                    next
                })
            })
            .collect();
        Distinct { features, count: numbers.len(), of_target }
    }

    /// Midpoints of the quadrature's cells, and the log of their width.
    fn nodes(&self) -> (Vec<f32>, f32) {
        let (low, high) = self.process.config().value_domain;
        let width = (high - low) / NUM_NODES as f32;
        ((0..NUM_NODES).map(|node| low + (node as f32 + 0.5) * width).collect(), width.ln())
    }

    /// f at all nodes and log Z, for every draw of θ and every distinct location.
    fn quadrature(&self, distinct: &Distinct) -> Result<LogPartition> {
        let (nodes, log_width) = self.nodes();
        let log_weights = vec![log_width; NUM_NODES];
        let locations = distinct.features.repeat(NUM_DRAWS);
        let offsets = SetOffsets::uniform(NUM_DRAWS, distinct.count)?;
        self.process.energy.backend().log_partition(
            &self.energy,
            &Candidates {
                values: CandidateValues::Shared(&nodes),
                num_candidates: NUM_NODES,
                locations: &locations,
                offsets: &offsets,
                context: &self.thetas,
                log_weights: LogWeights::Shared(&log_weights),
            },
        )
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
        self.process.energy.backend().values(&self.energy, &batch)
    }
}

impl Predictive for EnergyBasedPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let config = self.process.config();
        check_dims("targets", targets, (config.location_dim, config.value_dim))?;
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let distinct = self.distinct(targets.locations());
        let partition = self.quadrature(&distinct)?;
        let values = self.values(targets)?;
        let n = targets.len();
        let (low, high) = config.value_domain;
        let is_inside = |x: f64| x >= f64::from(low) && x <= f64::from(high);
        Ok((0..n)
            .map(|i| {
                // Outside the domain the density is zero.
                if !is_inside(targets.value(i)[0]) {
                    return LogDensity { value: f64::NEG_INFINITY, std_error: 0.0 };
                }
                let place = distinct.of_target[i];
                let value = |draw: usize| f64::from(values[draw * n + i]);
                match self.prediction {
                    PredictionRule::Mixture => log_mean_exp((0..NUM_DRAWS).map(|draw| {
                        let z = partition.log_partition[draw * distinct.count + place];
                        value(draw) - f64::from(z)
                    })),
                    PredictionRule::Geometric => {
                        let mean = (0..NUM_DRAWS).map(value).sum::<f64>() / NUM_DRAWS as f64;
                        let log_z = self.geometric_log_partition(&partition, &distinct, place);
                        LogDensity { value: mean - log_z, std_error: 0.0 }
                    }
                }
            })
            .collect())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "u in [0, 1) times the number of draws is one of their numbers"
    )]
    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        let dim = self.process.config().location_dim;
        if !locations.len().is_multiple_of(dim) {
            return Err(Error::invalid("locations", format!("rows of {dim}"), locations.len()));
        }
        let distinct = self.distinct(locations);
        if distinct.count == 0 || count == 0 {
            return Ok(Vec::new());
        }
        let partition = self.quadrature(&distinct)?;
        let (nodes, _) = self.nodes();
        let half_width = 0.5 * f64::from(nodes[1] - nodes[0]);
        let num_locations = distinct.of_target.len();
        let mut uniforms = vec![0.0_f32; count * (num_locations * 2 + 1)];
        stream.fill_uniform(0, 0, &mut uniforms);
        let mut uniform = uniforms.into_iter().map(f64::from);
        let mut draw_uniform = || uniform.next().unwrap_or(0.5);
        let mut samples = Vec::with_capacity(count * num_locations);
        for _ in 0..count {
            // One θ for all locations: a joint draw.
            let draw = (draw_uniform() * NUM_DRAWS as f64) as usize;
            for &place in &distinct.of_target {
                let anchor = draw * distinct.count + place;
                let f = &partition.values[anchor * NUM_NODES..][..NUM_NODES];
                let cell = draw_cell(f, draw_uniform());
                let offset = half_width * (2.0 * draw_uniform() - 1.0);
                samples.push(f64::from(nodes[cell]) + offset);
            }
        }
        Ok(samples)
    }
}

impl EnergyBasedPredictive<'_> {
    /// log ∫ exp(mean_m f(x, t; θ_m)) dx
    fn geometric_log_partition(
        &self,
        partition: &LogPartition,
        distinct: &Distinct,
        place: usize,
    ) -> f64 {
        let (_, log_width) = self.nodes();
        let means = (0..NUM_NODES).map(|node| {
            let f = |draw: usize| {
                f64::from(partition.values[(draw * distinct.count + place) * NUM_NODES + node])
            };
            (0..NUM_DRAWS).map(f).sum::<f64>() / NUM_DRAWS as f64
        });
        log_mean_exp(means).value + (NUM_NODES as f64).ln() + f64::from(log_width)
    }
}

/// log of the mean of exp, with its standard error by the delta method: sd(p)/(√m mean(p)).
fn log_mean_exp(terms: impl Iterator<Item = f64>) -> LogDensity {
    let terms: Vec<f64> = terms.collect();
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return LogDensity { value: largest, std_error: 0.0 };
    }
    let m = terms.len() as f64;
    let weights: Vec<f64> = terms.iter().map(|term| (term - largest).exp()).collect();
    let mean = weights.iter().sum::<f64>() / m;
    let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / (m - 1.0).max(1.0);
    LogDensity { value: largest + mean.ln(), std_error: (variance / m).sqrt() / mean }
}

/// The cell where the running sum of exp f passes a share `u` of the whole.
fn draw_cell(f: &[f32], u: f64) -> usize {
    let largest = f.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f64> = f.iter().map(|f| f64::from(f - largest).exp()).collect();
    let mut rest = u * weights.iter().sum::<f64>();
    for (cell, weight) in weights.iter().enumerate() {
        rest -= weight;
        if rest < 0.0 {
            return cell;
        }
    }
    f.len() - 1
}
