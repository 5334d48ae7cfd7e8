//! The best possible prediction: the true law averaged over what a context leaves open.
//!
//! For `phase` it is
//!
//! ```text
//! p(x | t, context) = Σ_j w_j p(x | t, φ_j),    w_j ∝ Π_i p(x_i | t_i, φ_j)
//! ```
//!
//! over equally spaced φ_j, which for a smooth periodic integrand converges exponentially once the
//! spacing 2π/2048 resolves the posterior. That has a standard deviation near 0.14/√n for n
//! context elements, so contexts of up to a thousand are exact to 10⁻⁴.

use std::f64::consts::TAU;

use crate::{Error, IndexedSet, Result};

use super::gaussian_process::Posterior;
use super::{CurveFamily, CurveLaw, NOISE_STD_DEV};

const NUM_PHASES: usize = 2048;
/// Terms below this share of the largest are dropped: together under 10⁻¹¹ of the sum.
const LOG_NEGLIGIBLE: f64 = -35.0;

/// The true law of further elements of a set of which a context is known.
///
/// ```
/// use ebp::IndexedSet;
/// use ebp::data::CurveFamily;
///
/// let context = IndexedSet::new(1, 1, vec![0.0], vec![0.9])?;
/// let predictive = CurveFamily::Gp.bayes(&context)?;
/// // Near a known element the law is narrow, far away it is the prior N(0, 1 + σ²).
/// assert!(predictive.log_density(0.0, 0.9) > 0.8);
/// assert!((predictive.log_density(2.0, 0.0) + 0.924).abs() < 1e-3);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BayesPredictive {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Law(CurveLaw),
    Phases(Vec<Phase>),
    Gaussian(Posterior),
}

impl BayesPredictive {
    /// log p(x | t, context) in nats.
    pub fn log_density(&self, t: f64, x: f64) -> f64 {
        match &self.kind {
            Kind::Law(law) => law.log_density(t, x),
            Kind::Phases(phases) => phase_log_density(phases, t, x),
            Kind::Gaussian(posterior) => posterior.log_density(t, x),
        }
    }

    /// Mean and variance of x at a location.
    pub fn moments(&self, t: f64) -> (f64, f64) {
        let branches: Vec<(f64, f64)> = match &self.kind {
            Kind::Gaussian(posterior) => return posterior.moments(t),
            Kind::Law(law) => law.modes(t).into_iter().map(|mode| (1.0, mode)).collect(),
            Kind::Phases(phases) => phases
                .iter()
                .flat_map(|phase| phase.branches(t).map(|mode| (phase.log_weight.exp(), mode)))
                .collect(),
        };
        let total: f64 = branches.iter().map(|(weight, _)| weight).sum();
        let mean = branches.iter().map(|(weight, mode)| weight * mode).sum::<f64>() / total;
        let spread: f64 =
            branches.iter().map(|(weight, mode)| weight * (mode - mean).powi(2)).sum();
        (mean, NOISE_STD_DEV * NOISE_STD_DEV + spread / total)
    }

    /// P(φ ≤ `phase` | context) for φ on [0, 2π); `None` of families without a phase.
    pub fn phase_position(&self, phase: f64) -> Option<f64> {
        let Kind::Phases(phases) = &self.kind else { return None };
        let spacing = TAU / NUM_PHASES as f64;
        // Every φ_j stands for the cell around it.
        let below = phases.iter().map(|found| {
            let centre = found.sine.atan2(found.cosine).rem_euclid(TAU);
            found.log_weight.exp() * ((phase - centre) / spacing + 0.5).clamp(0.0, 1.0)
        });
        Some(below.sum())
    }
}

impl CurveFamily {
    /// The true law of further elements, given a context, which may be empty.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the context has d_t = d_x = 1.
    pub fn bayes(self, context: &IndexedSet) -> Result<BayesPredictive> {
        for (field, dim) in
            [("location_dim", context.location_dim()), ("value_dim", context.value_dim())]
        {
            if dim != 1 {
                return Err(Error::invalid(field, "1", dim));
            }
        }
        let kind = match self {
            Self::Phase => Kind::Phases(phase_posterior(context)),
            Self::Gp => Kind::Gaussian(Posterior::new(context)?),
            _ => Kind::Law(CurveLaw::of_family(self)),
        };
        Ok(BayesPredictive { kind })
    }

    /// log p(x | t, context): [`bayes`](Self::bayes) for a single question.
    ///
    /// # Errors
    ///
    /// As [`bayes`](Self::bayes).
    pub fn bayes_log_density(self, context: &IndexedSet, t: f64, x: f64) -> Result<f64> {
        Ok(self.bayes(context)?.log_density(t, x))
    }
}

/// A phase that the context allows.
#[derive(Clone, Copy, Debug)]
struct Phase {
    sine: f64,
    cosine: f64,
    /// log w_j
    log_weight: f64,
}

impl Phase {
    /// sin(2t + φ) and cos(2t + φ).
    fn branches(&self, t: f64) -> [f64; 2] {
        let (sine, cosine) = (2.0 * t).sin_cos();
        // sin(a + b) = sin a cos b + cos a sin b, cos(a + b) = cos a cos b − sin a sin b
        [sine * self.cosine + cosine * self.sine, cosine * self.cosine - sine * self.sine]
    }
}

/// The phases that matter and their weights.
fn phase_posterior(context: &IndexedSet) -> Vec<Phase> {
    let elements = || context.locations().iter().zip(context.values());
    let mut phases: Vec<Phase> = (0..NUM_PHASES)
        .map(|j| {
            let phase = TAU * j as f64 / NUM_PHASES as f64;
            let law = CurveLaw::with_phase(phase);
            let log_weight = elements().map(|(&t, &x)| law.log_density(t, x)).sum();
            Phase { sine: phase.sin(), cosine: phase.cos(), log_weight }
        })
        .collect();
    let total = log_sum_exp(phases.iter().map(|phase| phase.log_weight));
    let highest = phases.iter().map(|phase| phase.log_weight).fold(f64::NEG_INFINITY, f64::max);
    phases.retain(|phase| phase.log_weight - highest > LOG_NEGLIGIBLE);
    for phase in &mut phases {
        phase.log_weight -= total;
    }
    phases
}

/// log Σ_j w_j ½ [N(x; sin(2t + φ_j), σ²) + N(x; cos(2t + φ_j), σ²)]
fn phase_log_density(phases: &[Phase], t: f64, x: f64) -> f64 {
    let exponents = || {
        phases.iter().flat_map(|phase| {
            phase.branches(t).map(|mode| {
                let z = (x - mode) / NOISE_STD_DEV;
                phase.log_weight - 0.5 * z * z
            })
        })
    };
    log_sum_exp(exponents()) - (2.0 * TAU.sqrt() * NOISE_STD_DEV).ln()
}

/// log Σ exp
fn log_sum_exp(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let highest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    let matters = terms.map(|term| term - highest).filter(|term| *term > LOG_NEGLIGIBLE);
    highest + matters.map(f64::exp).sum::<f64>().ln()
}
