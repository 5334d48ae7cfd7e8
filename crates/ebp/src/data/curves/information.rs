//! What a family's law costs in nats per element: the floor no model can pass, and the bound of
//! every model whose output is one Gaussian.
//!
//! Both depend on t only through the distance d of the two branches. In units of z = (x − m₁)/σ,
//! and by the symmetry of the two branches,
//!
//! ```text
//! H(d) = −∫ N(z) log[½ N(z) + ½ N(z − d/σ)] dz + log σ
//! G(d) = ½ log 2πe (σ² + d²/4)                        the Gaussian with the same moments
//! ```
//!
//! and the answers are their means over t, and over φ for `phase`.

use std::f64::consts::{E, LN_2, TAU};

use super::law::{log_add, log_normal};
use super::{CurveFamily, CurveLaw, NOISE_STD_DEV};

/// Midpoints over t: the circle's ends, where d falls to 0 like a root, need the most.
const NUM_LOCATIONS: usize = 4000;
/// Steps of a tenth over |z| ≤ 8: the trapezoidal rule is exact to rounding for such integrands.
const NUM_NODES: usize = 161;

impl CurveFamily {
    /// The expected −log p(x | t, latent) of one element, in nats, over locations and latents:
    /// no model does better.
    ///
    /// ```
    /// use ebp::data::CurveFamily;
    ///
    /// assert!((CurveFamily::Sines.floor() + 0.265).abs() < 5e-4);
    /// ```
    pub fn floor(self) -> f64 {
        self.mean_over_separations(mixture_entropy)
    }

    /// How far the best single Gaussian at every t stays above the [`floor`](Self::floor), in nats
    /// per element: the bound for neural processes with Gaussian outputs.
    pub fn single_gaussian_excess(self) -> f64 {
        self.mean_over_separations(|d| single_gaussian(d) - mixture_entropy(d))
    }

    /// The mean of `cost` over the distances of the branches; one branch is two at distance 0.
    fn mean_over_separations(self, cost: impl Fn(f64) -> f64) -> f64 {
        let (low, high) = self.location_range();
        let mean = |law: &dyn Fn(f64) -> f64| {
            let nodes = (0..NUM_LOCATIONS).map(|i| (i as f64 + 0.5) / NUM_LOCATIONS as f64);
            nodes.map(|u| cost(law(u))).sum::<f64>() / NUM_LOCATIONS as f64
        };
        match self {
            // 2t + φ is uniform on the circle at any t.
            Self::Phase => mean(&|u| separation(&CurveLaw::with_phase(TAU * u), 0.0)),
            Self::Gp | Self::Sine => cost(0.0),
            _ => mean(&|u| separation(&CurveLaw::of_family(self), low + (high - low) * u)),
        }
    }
}

fn separation(law: &CurveLaw, t: f64) -> f64 {
    law.branches(t).separation().unwrap_or(0.0)
}

/// H(d)
fn mixture_entropy(separation: f64) -> f64 {
    let step = 16.0 / (NUM_NODES - 1) as f64;
    let integral: f64 = (0..NUM_NODES)
        .map(|k| {
            let z = -8.0 + step * k as f64;
            let log_first = log_normal(z, 1.0);
            let log_second = log_normal(z - separation / NOISE_STD_DEV, 1.0);
            -log_first.exp() * (log_add(log_first, log_second) - LN_2)
        })
        .sum();
    integral * step + NOISE_STD_DEV.ln()
}

/// G(d)
fn single_gaussian(separation: f64) -> f64 {
    let variance = NOISE_STD_DEV * NOISE_STD_DEV + 0.25 * separation * separation;
    0.5 * (TAU * E * variance).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far apart, the mixture costs one Gaussian and the coin: ½ log 2πe σ² + log 2; together, one
    /// Gaussian.
    #[test]
    fn entropies_at_the_ends() {
        let gaussian = 0.5 * (TAU * E * 0.01).ln();
        assert!((mixture_entropy(0.0) - gaussian).abs() < 1e-12);
        assert!((mixture_entropy(3.0) - gaussian - LN_2).abs() < 1e-12);
    }

    /// The prototype's numbers, to their last digit.
    #[test]
    fn floors_and_gaussian_bounds_are_the_published_ones() {
        let cases = [
            (CurveFamily::Sines, -0.265, 0.78),
            (CurveFamily::Lines, -0.191, 0.94),
            (CurveFamily::Circle, -0.192, 2.00),
        ];
        for (family, floor, excess) in cases {
            assert!((family.floor() - floor).abs() < 6e-4, "{family:?} {}", family.floor());
            let found = family.single_gaussian_excess();
            assert!((found - excess).abs() < 6e-3, "{family:?} {found}");
        }
    }
}
