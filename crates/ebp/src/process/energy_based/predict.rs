//! Predictions: normalised densities and draws of values at locations, given a context.
//!
//! Two ways to remove θ ~ q(θ | context), both normalised over the value's domain:
//!
//! ```text
//! mixture     p(x | t) = mean_m exp(u(x, t; θ_m)) / Z(t; θ_m)
//! geometric   p(x | t) ∝ exp(mean_m u(x, t; θ_m))          the paper's eq. (pred_approx)
//! ```

use super::bounds::mean_of_estimates;
use super::levels::{LevelsPredictive, viewed};
use super::nodes::{Chunk, Distinct, Nodes, for_each_chunk};
use super::{BagPredictive, Energy, EnergyBasedProcess, PointsPredictive};
use crate::batch::SetBatch;
use crate::energy::{Observed, known_places, push_features};
use crate::linalg::log_sum_exp;
use crate::point::{PointBatch, PointMlp};
use crate::process::task::{check_dimensions, count_locations};
use crate::process::{LogDensity, Predictive, Process};
use crate::recipe::Estimator;
use crate::recipe::TrainingMode;
use crate::rng::Stream;
use crate::tape::DrawDomain;
use crate::{Error, IndexedSet, Result, SetOffsets};

/// How θ is removed from a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictionRule {
    /// The average of the normalised densities: what the model says.
    Mixture,
    /// The paper's approximation: the normalised exponential of the average f.
    Geometric,
}

impl Process for EnergyBasedProcess {
    fn name(&self) -> &'static str {
        match self.config().estimator {
            Estimator::Exact => "ebp-exact",
            Estimator::Importance => "ebp-importance",
            Estimator::Ade => "ebp-ade",
            Estimator::ScoreMatching => "ebp-score-matching",
        }
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        match &self.parts.energy {
            Energy::Levels(levels) => Ok(Box::new(LevelsPredictive::new(self, levels, context)?)),
            Energy::Words(words) => Ok(Box::new(BagPredictive::new(self, words, context)?)),
            Energy::Element(_) if self.space.location_dim == 0 => {
                Ok(Box::new(PointsPredictive::new(self, context)?))
            }
            Energy::Element(_) => Ok(Box::new(self.predict(context, PredictionRule::Mixture)?)),
        }
    }
}

impl EnergyBasedProcess {
    /// μ and log σ of q(θ | context).
    pub(super) fn latent_law(&self, context: &SetBatch) -> Result<(Vec<f32>, Vec<f32>)> {
        let rows = self.parts.posterior.rows(context)?.upload(&self.device)?;
        let mut tape = self.device.tape();
        tape.read(&self.parameters);
        let law = self.parts.posterior.read(&mut tape, &rows)?.law;
        Ok((tape.download(law.mean)?, tape.download(law.log_std_dev)?))
    }

    /// θ ~ q(θ | context), `[count, k]`, always the same for a stream.
    pub(super) fn draw_latents(
        &self,
        context: &SetBatch,
        count: usize,
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let (mean, log_std_dev) = self.latent_law(context)?;
        let mut thetas = vec![0.0; count * mean.len()];
        stream.fill_normal(0, 0, &mut thetas);
        for theta in thetas.chunks_exact_mut(mean.len()) {
            for ((theta, mean), log_std_dev) in theta.iter_mut().zip(&mean).zip(&log_std_dev) {
                *theta = mean + log_std_dev.exp() * *theta;
            }
        }
        Ok(thetas)
    }

    /// The context as one set of f32 numbers.
    pub(super) fn as_batch(&self, field: &str, set: &IndexedSet) -> Result<SetBatch> {
        let space = &self.space;
        check_dimensions(field, set, space.location_dim, space.value_dim)?;
        SetBatch::from_sets(space.location_dim, space.value_dim, [set])
    }

    /// What targets may see of the context beside θ: nothing, if training hid it.
    pub(super) fn observed(&self, context: &SetBatch) -> Result<Option<Observed>> {
        let Some(picture) = &self.parts.picture else { return Ok(None) };
        let (grid, channels) = (picture.surroundings.grid, picture.surroundings.channels);
        if self.config.mode == TrainingMode::FullSet {
            return Ok(Some(Observed::nothing(grid, channels)));
        }
        Observed::new(grid, channels, context.locations(0), context.values(0)).map(Some)
    }

    /// The numbers of locations `[m, d_t]` that are the same for all draws of the latents; for energies
    /// of all levels at once those that are no function of parameters.
    pub(super) fn location_rows(
        &self,
        seen: Option<&Observed>,
        locations: &[f32],
    ) -> Result<Vec<f32>> {
        if let (Some(picture), Some(seen)) = (&self.parts.picture, seen) {
            let places = known_places(picture.surroundings.grid, locations)?;
            let rows = picture.surroundings.rows(seen, &places);
            let (Some(view), Energy::Element(_)) = (&picture.view, &self.parts.energy) else {
                return Ok(rows);
            };
            // Energies of one value read everything as numbers of the host.
            let mut tape = self.device.tape();
            tape.read(&self.parameters);
            let found = viewed(&mut tape, view, seen, &places)?;
            let own = tape.upload(rows, (places.len(), picture.surroundings.num_features()))?;
            let both = tape.concat(&[own, found])?;
            return tape.download(both);
        }
        let mut rows = Vec::new();
        for location in locations.chunks_exact(self.space.location_dim) {
            push_features(location, self.config.location_frequencies, &mut rows);
        }
        Ok(rows)
    }

    pub(super) fn domain(&self) -> DrawDomain {
        let space = &self.space;
        DrawDomain { low: space.low, high: space.high, base_std_dev: self.config.base() }
    }

    /// The network of f/τ on the host.
    pub(super) fn element_network(&self) -> Result<PointMlp> {
        self.element_network_at(1.0)
    }

    /// The network of f/(τ T) on the host.
    fn element_network_at(&self, temperature: f64) -> Result<PointMlp> {
        match &self.parts.energy {
            Energy::Element(energy) if temperature.to_bits() == 1_f64.to_bits() => {
                energy.network(&self.parameters)
            }
            Energy::Element(energy) => energy.network_at(&self.parameters, temperature),
            Energy::Levels(_) | Energy::Words(_) => Err(Error::invalid(
                "energy",
                "`element`, which has a value for every number",
                self.config.energy.name(),
            )),
        }
    }

    /// The law of further elements, θ removed by a rule.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the context's dimensions are not those of the process, or if its
    /// values are of a finite alphabet.
    pub fn predict(
        &self,
        context: &IndexedSet,
        rule: PredictionRule,
    ) -> Result<EnergyBasedPredictive<'_>> {
        self.predict_at(context, rule, 1.0)
    }

    /// The same with the density exp(f/T)/Z_T given θ, for a temperature T beside the settings' own.
    ///
    /// # Errors
    ///
    /// As [`predict`](Self::predict), and if T is not positive and finite.
    pub fn predict_at(
        &self,
        context: &IndexedSet,
        rule: PredictionRule,
        temperature: f64,
    ) -> Result<EnergyBasedPredictive<'_>> {
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(Error::invalid("temperature", "positive and finite", temperature));
        }
        let context = self.as_batch("context", context)?;
        let stream = Stream::new(0, "prediction");
        let thetas = self.draw_latents(&context, self.config.num_draws, stream)?;
        self.predict_given(&context, thetas, rule, temperature)
    }

    /// The law of further elements under given draws of θ.
    pub(super) fn predict_given(
        &self,
        context: &SetBatch,
        thetas: Vec<f32>,
        rule: PredictionRule,
        temperature: f64,
    ) -> Result<EnergyBasedPredictive<'_>> {
        Ok(EnergyBasedPredictive {
            process: self,
            rule,
            energy: self.element_network_at(temperature)?,
            nodes: Nodes::new(&self.space, self.domain()),
            thetas,
            seen: self.observed(context)?,
        })
    }
}

/// The law of further elements, given a context.
#[derive(Debug)]
pub struct EnergyBasedPredictive<'a> {
    process: &'a EnergyBasedProcess,
    rule: PredictionRule,
    energy: PointMlp,
    nodes: Nodes,
    /// Draws of θ, `[draws, k]`.
    thetas: Vec<f32>,
    seen: Option<Observed>,
}

/// log Z of a place, under every θ or of the geometric mean, and the largest of their errors.
#[derive(Clone, Debug, Default)]
struct Normaliser {
    log_partitions: Vec<f64>,
    error: f64,
}

impl EnergyBasedPredictive<'_> {
    fn num_draws(&self) -> usize {
        self.thetas.len() / self.process.config.latent_dim
    }

    fn holds(&self, value: &[f64]) -> bool {
        let (low, high) = (f64::from(self.process.space.low), f64::from(self.process.space.high));
        value.iter().all(|x| (low..=high).contains(x))
    }

    /// log p(x | t) of every target with f divided by each of `temperatures`, `[temperatures, m]`: the
    /// network is evaluated once. Only for the mixture over θ.
    ///
    /// # Errors
    ///
    /// As [`log_density`](Predictive::log_density).
    pub fn log_densities_at(
        &self,
        targets: &IndexedSet,
        temperatures: &[f64],
    ) -> Result<Vec<Vec<f64>>> {
        let space = &self.process.space;
        check_dimensions("targets", targets, space.location_dim, space.value_dim)?;
        let rows = self.rows(targets.locations())?;
        let (distinct, n, draws) = (self.distinct(&rows), targets.len(), self.num_draws());
        let bases = self.bases(targets);
        let values = self.potentials(targets, &rows)?;
        let mut found = vec![vec![f64::NEG_INFINITY; n]; temperatures.len()];
        self.visit(&distinct, |chunk| {
            let places = distinct.of_target.iter().enumerate();
            for (i, &place) in
                places.filter(|(i, place)| chunk.holds(**place) && self.holds(targets.value(*i)))
            {
                for (found, &temperature) in found.iter_mut().zip(temperatures) {
                    let term = |draw: usize| {
                        let f = chunk.values(draw, place);
                        let log_partition = log_sum_exp(&self.nodes.exponents_at(f, temperature));
                        (values[draw * n + i] - bases[i]) / temperature + bases[i] - log_partition
                    };
                    let terms: Vec<f64> = (0..draws).map(term).collect();
                    found[i] = LogDensity::of_mean(&terms).value;
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The base measure of every target.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn bases(&self, targets: &IndexedSet) -> Vec<f64> {
        let domain = self.process.domain();
        let base = |i: usize| {
            let value: Vec<f32> = targets.value(i).iter().map(|&x| x as f32).collect();
            f64::from(domain.base(&value))
        };
        (0..targets.len()).map(base).collect()
    }

    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn rows(&self, locations: &[f64]) -> Result<Vec<f32>> {
        let narrow: Vec<f32> = locations.iter().map(|&t| t as f32).collect();
        self.process.location_rows(self.seen.as_ref(), &narrow)
    }

    fn distinct(&self, rows: &[f32]) -> Distinct {
        Distinct::new(rows, self.process.parts.num_features)
    }

    fn visit(&self, distinct: &Distinct, visit: impl FnMut(&Chunk) -> Result<()>) -> Result<()> {
        let parts = (&self.nodes, distinct);
        for_each_chunk(self.process, &self.energy, parts, &self.thetas, visit)
    }

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
                        for draw in 0..self.num_draws() {
                            add(&self.nodes.exponents(chunk.values(draw, place)));
                        }
                    }
                    PredictionRule::Geometric => add(&self.mean_exponents(chunk, place)),
                }
            }
            Ok(())
        })?;
        Ok(normalisers)
    }

    /// The mean over locations of log Z(t; θ), by quadrature or with its standard error, and the features
    /// of the locations `[m, width]`.
    pub(super) fn mean_log_partition(&self, locations: &[f64]) -> Result<(LogDensity, Vec<f32>)> {
        let rows = self.rows(locations)?;
        let distinct = self.distinct(&rows);
        let normalisers = self.normalisers(&distinct)?;
        let of_place = |&place: &usize| {
            let Normaliser { log_partitions, error } = &normalisers[place];
            let value = log_partitions.iter().sum::<f64>() / log_partitions.len() as f64;
            LogDensity { value, std_error: *error }
        };
        let found: Vec<_> = distinct.of_target.iter().map(of_place).collect();
        Ok((mean_of_estimates(&found), rows))
    }

    fn mean_exponents(&self, chunk: &Chunk, place: usize) -> Vec<f64> {
        let mut mean = vec![0.0; self.nodes.count];
        for draw in 0..self.num_draws() {
            let exponents = self.nodes.exponents(chunk.values(draw, place));
            for (mean, exponent) in mean.iter_mut().zip(exponents) {
                *mean += exponent / self.num_draws() as f64;
            }
        }
        mean
    }

    /// u of every target under every θ, `[draws, m]`.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn potentials(&self, targets: &IndexedSet, rows: &[f32]) -> Result<Vec<f64>> {
        let width = self.process.parts.num_features;
        let (mut elements, mut bases) = (Vec::new(), Vec::new());
        let domain = self.process.domain();
        for (i, row) in rows.chunks_exact(width).enumerate() {
            let value: Vec<f32> = targets.value(i).iter().map(|&x| x as f32).collect();
            bases.push(domain.base(&value));
            elements.extend(value);
            elements.extend_from_slice(row);
        }
        let elements = elements.repeat(self.num_draws());
        let offsets = SetOffsets::uniform(self.num_draws(), targets.len())?;
        let batch = PointBatch { elements: &elements, offsets: &offsets, context: &self.thetas };
        let f = self.process.device.backend().values(&self.energy, &batch)?;
        let with_base = f.iter().zip(bases.iter().cycle());
        Ok(with_base.map(|(f, base)| f64::from(f + base)).collect())
    }
}

impl Predictive for EnergyBasedPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let space = &self.process.space;
        check_dimensions("targets", targets, space.location_dim, space.value_dim)?;
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.rows(targets.locations())?;
        let distinct = self.distinct(&rows);
        let normalisers = self.normalisers(&distinct)?;
        let values = self.potentials(targets, &rows)?;
        let (n, draws) = (targets.len(), self.num_draws());
        Ok((0..n)
            .map(|i| {
                // Outside the domain the density is zero.
                if !self.holds(targets.value(i)) {
                    return LogDensity { value: f64::NEG_INFINITY, std_error: 0.0 };
                }
                let normaliser = &normalisers[distinct.of_target[i]];
                let value = |draw: usize| values[draw * n + i];
                match self.rule {
                    PredictionRule::Mixture => {
                        let terms = normaliser.log_partitions.iter().enumerate();
                        let terms: Vec<f64> = terms.map(|(draw, z)| value(draw) - z).collect();
                        let mut density = LogDensity::of_mean(&terms);
                        density.std_error = density.std_error.hypot(normaliser.error);
                        density
                    }
                    PredictionRule::Geometric => {
                        let mean = (0..draws).map(value).sum::<f64>() / draws as f64;
                        let value = mean - normaliser.log_partitions[0];
                        LogDensity { value, std_error: normaliser.error }
                    }
                }
            })
            .collect())
    }

    /// mean_m ∏ᵢ p(xᵢ | tᵢ, θ_m). The geometric rule is a law of single elements only.
    fn log_joint(&self, targets: &IndexedSet) -> Result<Option<LogDensity>> {
        let space = &self.process.space;
        check_dimensions("targets", targets, space.location_dim, space.value_dim)?;
        if self.rule == PredictionRule::Geometric {
            return Ok(None);
        }
        let n = targets.len();
        if n == 0 || !(0..n).all(|i| self.holds(targets.value(i))) {
            let value = if n == 0 { 0.0 } else { f64::NEG_INFINITY };
            return Ok(Some(LogDensity { value, std_error: 0.0 }));
        }
        let rows = self.rows(targets.locations())?;
        let distinct = self.distinct(&rows);
        let normalisers = self.normalisers(&distinct)?;
        let values = self.potentials(targets, &rows)?;
        let term = |draw: usize| {
            let of = |i: usize| &normalisers[distinct.of_target[i]];
            (0..n).map(|i| values[draw * n + i] - of(i).log_partitions[draw]).sum()
        };
        let terms: Vec<f64> = (0..self.num_draws()).map(term).collect();
        let mut joint = LogDensity::of_mean(&terms);
        let error: f64 = distinct.of_target.iter().map(|&place| normalisers[place].error).sum();
        joint.std_error = joint.std_error.hypot(error);
        Ok(Some(joint))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "u in [0, 1) times the number of draws is one of their numbers"
    )]
    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        let space = &self.process.space;
        let num_locations = count_locations(locations, space.location_dim)?;
        if num_locations == 0 || count == 0 {
            return Ok(Vec::new());
        }
        let distinct = self.distinct(&self.rows(locations)?);
        // One θ for all locations of a draw: a joint draw.
        let mut uniforms = vec![0.0; count];
        stream.child(0).fill_uniform(0, 0, &mut uniforms);
        let draws: Vec<usize> =
            uniforms.iter().map(|u| (u * self.num_draws() as f32) as usize).collect();
        let dims = space.value_dim;
        let mut samples = vec![0.0; count * num_locations * dims];
        self.visit(&distinct, |chunk| {
            let places = distinct.of_target.iter().enumerate();
            for (target, &place) in places.filter(|(_, place)| chunk.holds(**place)) {
                let mut uniforms = vec![0.0; count * (dims + 1)];
                stream.child(1 + target as u64).fill_uniform(0, 0, &mut uniforms);
                // θ is one of a few, so are the shares.
                let mut shares: Vec<Option<Vec<f64>>> = vec![None; self.num_draws()];
                for (sample, uniforms) in uniforms.chunks_exact(dims + 1).enumerate() {
                    let draw = match self.rule {
                        PredictionRule::Mixture => draws[sample],
                        PredictionRule::Geometric => 0,
                    };
                    let shares = shares[draw].get_or_insert_with(|| {
                        cumulative(&match self.rule {
                            PredictionRule::Mixture => {
                                self.nodes.exponents(chunk.values(draw, place))
                            }
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

/// Sums of shares of exp.
fn cumulative(exponents: &[f64]) -> Vec<f64> {
    let log_total = log_sum_exp(exponents);
    let mut sum = 0.0;
    let shares = exponents.iter().map(|exponent| {
        sum += (exponent - log_total).exp();
        sum
    });
    shares.collect()
}
