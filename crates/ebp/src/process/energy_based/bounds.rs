//! log Z from both sides, by a learned sampler whose density is known anywhere: that of a mixture.
//!
//! ```text
//! E_q[u − L | inside] + log q(inside)  ≤  log Z  ≤  E_p[u − L]
//! ```
//!
//! Below, draws of the sampler, of which those outside of the domain are left out: given that they are
//! inside their law has the density q/q(inside). Above, points of the energy's own law, walked back
//! through the steps of the sampler (`sampler`'s `reach`). How far the two are apart is how far the
//! sampler is from the energy. At several places both are means over the places; errors are standard
//! errors over draws.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use super::{EnergyBasedProcess, PredictionRule};
use crate::energy::Energy;
use crate::process::{LogDensity, Predictive};
use crate::rng::Stream;
use crate::sampler::Purpose;
use crate::{IndexedSet, Result};

/// log Z from both sides, each a mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionBounds {
    /// At most log Z, but for its error.
    pub lower: LogDensity,
    /// At least log Z, but for its error and that of the points that it is taken over.
    pub upper: LogDensity,
}

/// An estimate of log Z, and what the sampler says about it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundedPartition {
    /// By quadrature or importance sampling.
    pub estimate: LogDensity,
    /// By the learned sampler.
    pub bounds: PartitionBounds,
}

impl BoundedPartition {
    /// The same in units in which log Z is larger by `shift`.
    #[must_use]
    pub fn shifted(self, shift: f64) -> Self {
        let Self { mut estimate, mut bounds } = self;
        for number in [&mut estimate, &mut bounds.lower, &mut bounds.upper] {
            number.value += shift;
        }
        Self { estimate, bounds }
    }

    /// The mean of several, of independent errors; `None` of none.
    pub fn mean(several: &[Self]) -> Option<Self> {
        let mean = |get: fn(&Self) -> LogDensity| {
            mean_of_estimates(&several.iter().map(get).collect::<Vec<_>>())
        };
        (!several.is_empty()).then(|| Self {
            estimate: mean(|found| found.estimate),
            bounds: PartitionBounds {
                lower: mean(|found| found.bounds.lower),
                upper: mean(|found| found.bounds.upper),
            },
        })
    }
}

impl Display for BoundedPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { estimate, bounds: PartitionBounds { lower, upper } } = self;
        let number = |x: &LogDensity| format!("{:.4} ± {:.4}", x.value, x.std_error);
        let (lower, estimate, upper) = (number(lower), number(estimate), number(upper));
        write!(f, "at least {lower}, estimated {estimate}, at most {upper}")
    }
}

impl EnergyBasedProcess {
    /// log Z(θ) of one θ `[k]`, or the mean of log Z(t; θ) over places with the features `[places, width]`,
    /// from both sides; `None` without such a sampler. `following` are as many points of the law
    /// p(· | t, θ) of every place, as exact as they are.
    pub(super) fn partition_bounds(
        &self,
        (theta, features): (&[f32], &[f32]),
        following: &[f32],
        stream: Stream,
    ) -> Result<Option<PartitionBounds>> {
        let (Some(learned), Energy::Element(energy)) = (self.sampler(), &self.parts.energy) else {
            return Ok(None);
        };
        if !self.config.sampler.has_densities() {
            return Ok(None);
        }
        let (dim, mut tape) = (self.space.value_dim, self.device.tape());
        let (followed, places) = self.follow(&mut tape, (learned, energy), theta, features)?;
        let count = following.len() / dim;
        let num_places = places.offsets.num_elements();
        let ends = tape.upload(following.to_vec(), (count, dim))?;
        let Some(reached) =
            learned.sampler.reach(&mut tape, followed, &places, ends, stream.child(0))?
        else {
            return Ok(None);
        };
        let wanted = (count / num_places, Purpose::Use);
        let draws = learned.sampler.draw(&mut tape, followed, &places, wanted, stream.child(1))?;
        let drawn = tape.download(draws.values)?;
        // u − L of every point, −∞ outside of the domain
        let gaps = |points: &[f32], densities: Vec<f32>| -> Result<Vec<f64>> {
            let u = self.potentials_at(points, features, theta)?;
            let domain = self.space.low..=self.space.high;
            let rows = u.iter().zip(densities).zip(points.chunks_exact(dim));
            Ok(rows
                .map(|((u, l), x)| {
                    let is_inside = x.iter().all(|x| domain.contains(x));
                    if is_inside { f64::from(*u) - f64::from(l) } else { f64::NEG_INFINITY }
                })
                .collect())
        };
        let below = gaps(&drawn, tape.download(draws.log_density)?)?;
        let above = gaps(following, tape.download(reached)?)?;
        let over_places = |gaps: &[f64], of_place: fn(&[f64]) -> LogDensity| {
            let means: Vec<_> = gaps.chunks_exact(gaps.len() / num_places).map(of_place).collect();
            mean_of_estimates(&means)
        };
        Ok(Some(PartitionBounds {
            lower: over_places(&below, from_below),
            upper: over_places(&above, mean),
        }))
    }

    /// The mean over locations `[m, d_t]` of log Z(t; θ) at the mean θ given a context, by quadrature and
    /// from both sides by `count` points at each; `None` without a sampler whose density is known
    /// anywhere.
    ///
    /// # Errors
    ///
    /// As [`predict`](Self::predict).
    pub fn bounded_partition(
        &self,
        context: &IndexedSet,
        locations: &[f64],
        count: usize,
        stream: Stream,
    ) -> Result<Option<BoundedPartition>> {
        let context = self.as_batch("context", context)?;
        let (theta, _) = self.latent_law(&context)?;
        let rule = PredictionRule::Mixture;
        let predictive = self.predict_given(&context, theta.clone(), rule, 1.0)?;
        let drawn = predictive.sample(locations, count, stream.child(0))?;
        // From draws of all places to places with all their draws.
        let dim = self.space.value_dim;
        let row = drawn.len() / count;
        let of_place = |place: usize| {
            drawn.chunks_exact(row).flat_map(move |draw| &draw[place * dim..(place + 1) * dim])
        };
        #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
        let following: Vec<f32> = (0..row / dim).flat_map(of_place).map(|&x| x as f32).collect();
        let (estimate, features) = predictive.mean_log_partition(locations)?;
        let bounds = self.partition_bounds((&theta, &features), &following, stream.child(1))?;
        Ok(bounds.map(|bounds| BoundedPartition { estimate, bounds }))
    }
}

/// E[g | g > −∞] + log P(g > −∞) of numbers g, −∞ if there is none.
fn from_below(gaps: &[f64]) -> LogDensity {
    let inside: Vec<f64> = gaps.iter().copied().filter(|gap| gap.is_finite()).collect();
    let share = inside.len() as f64 / gaps.len() as f64;
    let found = mean(&inside);
    // The error of log share: √((1 − share)/(share K)).
    let of_share = ((1.0 - share) / inside.len() as f64).sqrt();
    LogDensity {
        value: if inside.is_empty() { f64::NEG_INFINITY } else { found.value + share.ln() },
        std_error: found.std_error.hypot(of_share),
    }
}

fn mean(numbers: &[f64]) -> LogDensity {
    let count = numbers.len().max(2) as f64;
    let value = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let squares: f64 = numbers.iter().map(|x| (x - value).powi(2)).sum();
    LogDensity { value, std_error: (squares / (count - 1.0) / count).sqrt() }
}

/// The mean of independent estimates.
pub(super) fn mean_of_estimates(estimates: &[LogDensity]) -> LogDensity {
    let count = estimates.len() as f64;
    let squares: f64 = estimates.iter().map(|estimate| estimate.std_error.powi(2)).sum();
    LogDensity {
        value: estimates.iter().map(|estimate| estimate.value).sum::<f64>() / count,
        std_error: squares.sqrt() / count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Dynamics, EnergyBasedConfig, Estimator, SamplerConfig, Space};
    use crate::tape::Device;

    /// At places of curves, whatever moves the draws: the quadrature lies between the bounds, by more than their
    /// errors, as an untrained sampler is far from the energy. The domain is narrow: draws leave it.
    #[test]
    fn log_z_of_places_lies_between_the_bounds() {
        let context = IndexedSet::new(1, 1, vec![0.1, -0.4], vec![0.3, 0.6]).unwrap();
        for dynamics in [
            Dynamics::None,
            Dynamics::Langevin,
            Dynamics::Hamiltonian,
            Dynamics::GeneralizedHamiltonian,
        ] {
            let config = EnergyBasedConfig {
                latent_dim: 2,
                encoder_widths: vec![8],
                head_widths: vec![],
                energy_widths: vec![16],
                estimator: Estimator::Ade,
                sampler: SamplerConfig {
                    hyper_widths: vec![8],
                    dynamics,
                    num_dynamics_steps: 3,
                    dynamics_widths: vec![8],
                    step_size: 0.05,
                    ..SamplerConfig::default()
                },
                ..EnergyBasedConfig::default()
            };
            let space = Space::regression(1, 1, (-1.0, 1.0));
            let process = EnergyBasedProcess::new(config, space, 3, &Device::default()).unwrap();
            let (places, stream) = ([-1.0, 0.0, 0.7], Stream::new(1, "bounds"));
            let found = process.bounded_partition(&context, &places, 4000, stream);
            let BoundedPartition { estimate, bounds } = found.unwrap().unwrap();
            let PartitionBounds { lower, upper } = bounds;
            assert!(estimate.std_error < 1e-3, "{estimate:?}");
            let label = format!("{dynamics:?}: {lower:?} {estimate:?} {upper:?}");
            assert!(estimate.value - lower.value > 4.0 * lower.std_error, "{label}");
            assert!(upper.value - estimate.value > 4.0 * upper.std_error, "{label}");
            assert!(lower.value > estimate.value - 5.0 && lower.std_error < 0.1, "{label}");
        }
    }

    /// Of numbers of which a quarter is −∞: the mean of the others and log ¾.
    #[test]
    fn draws_outside_of_the_domain_have_their_price() {
        let found = from_below(&[1.0, f64::NEG_INFINITY, 2.0, 3.0]);
        assert!((found.value - 2.0 - 0.75_f64.ln()).abs() < 1e-12, "{found:?}");
        // Standard errors 1/√3 of the mean and √(¼/3) of the log share.
        assert!((found.std_error - (1.0_f64 / 3.0 + 0.25 / 3.0).sqrt()).abs() < 1e-12);
        let nothing = from_below(&[f64::NEG_INFINITY; 3]).value;
        assert!(nothing.is_infinite() && nothing < 0.0, "{nothing}");
    }
}
