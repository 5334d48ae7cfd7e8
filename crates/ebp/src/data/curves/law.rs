//! The law of one set, given its latent.

use std::f64::consts::TAU;

use crate::rng::Stream;

use super::gaussian_process::Function;
use super::{CurveFamily, NOISE_STD_DEV};

/// The law of the elements of one set: everything is known but the noise and the coins.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveLaw {
    family: CurveFamily,
    latent: Latent,
}

/// What distinguishes one set of a family from another.
#[derive(Clone, Debug, PartialEq)]
enum Latent {
    None,
    Phase(f64),
    Function(Function),
}

/// The centres m_b(t) of the one or two branches at a location.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branches {
    first: f64,
    second: Option<f64>,
}

impl CurveLaw {
    /// The law of a new set.
    pub(super) fn draw(family: CurveFamily, stream: Stream) -> Self {
        let latent = match family {
            CurveFamily::Phase => {
                let mut uniform = [0.0];
                stream.fill_uniform(0, 0, &mut uniform);
                Latent::Phase(TAU * f64::from(uniform[0]))
            }
            CurveFamily::Gp => Latent::Function(Function::draw(stream)),
            _ => Latent::None,
        };
        Self { family, latent }
    }

    /// The law of every set of a family without latent.
    pub(super) fn of_family(family: CurveFamily) -> Self {
        Self { family, latent: Latent::None }
    }

    /// The law of `phase` with a known φ.
    pub(super) fn with_phase(phase: f64) -> Self {
        Self { family: CurveFamily::Phase, latent: Latent::Phase(phase) }
    }

    /// The family this law belongs to.
    pub fn family(&self) -> CurveFamily {
        self.family
    }

    /// φ of a set of `phase`.
    pub fn phase(&self) -> Option<f64> {
        match self.latent {
            Latent::Phase(phase) => Some(phase),
            _ => None,
        }
    }

    /// m_b(t).
    pub(super) fn branches(&self, t: f64) -> Branches {
        let (first, second) = match (self.family, &self.latent) {
            (_, Latent::Function(function)) => (function.value(t), None),
            (_, Latent::Phase(phase)) => {
                let (sine, cosine) = (2.0 * t + phase).sin_cos();
                (sine, Some(cosine))
            }
            (CurveFamily::Lines, _) => (0.5, Some(-0.5)),
            (CurveFamily::Circle, _) => {
                let height = (4.0 - t * t).max(0.0).sqrt();
                (height, Some(-height))
            }
            (CurveFamily::Sine, _) => ((2.0 * t).sin(), None),
            _ => ((2.0 * t).sin(), Some((2.0 * t).cos())),
        };
        Branches { first, second }
    }

    /// The centres of the branches at `t`, one or two. They are the modes of the density where
    /// they lie more than 2σ apart; closer ones merge.
    pub fn modes(&self, t: f64) -> Vec<f64> {
        let branches = self.branches(t);
        std::iter::once(branches.first).chain(branches.second).collect()
    }

    /// log p(x | t, latent) in nats.
    pub fn log_density(&self, t: f64, x: f64) -> f64 {
        self.branches(t).log_density(x)
    }
}

impl Branches {
    /// The branch of a fair coin, a number in [0, 1).
    pub(super) fn choose(self, coin: f64) -> f64 {
        match self.second {
            Some(second) if coin >= 0.5 => second,
            _ => self.first,
        }
    }

    /// log mean_b N(x; m_b, σ²).
    pub(super) fn log_density(self, x: f64) -> f64 {
        let first = log_normal(x - self.first, NOISE_STD_DEV);
        match self.second {
            None => first,
            Some(second) => {
                log_add(first, log_normal(x - second, NOISE_STD_DEV)) - std::f64::consts::LN_2
            }
        }
    }

    /// |m₁ − m₂|, if there are two.
    pub(super) fn separation(self) -> Option<f64> {
        self.second.map(|second| (self.first - second).abs())
    }
}

/// log N(d; 0, s²) = −d²/(2s²) − log s − ½ log 2π
pub(super) fn log_normal(difference: f64, std_dev: f64) -> f64 {
    let z = difference / std_dev;
    -0.5 * z * z - std_dev.ln() - 0.5 * TAU.ln()
}

/// log(eᵃ + eᵇ)
pub(super) fn log_add(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY {
        return high;
    }
    high + (low - high).exp().ln_1p()
}
