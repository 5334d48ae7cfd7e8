//! The law of θ under which softmax(θ) is Dirichlet(α, …, α): independent logarithms of gammas.
//!
//! ```text
//! e^θ_k ~ Gamma(α),    log p(θ) = Σ_k [ α θ_k − e^θ_k − log Γ(α) ]
//! ```
//!
//! With it a mixture of topics by softmax(θ) is latent Dirichlet allocation. Draws are those of Marsaglia
//! and Tsang (2000) for Gamma(α + 1), times U^(1/α).

use super::{Prior, PriorState, check_rows};
use crate::rng::Stream;
use crate::{Error, Result};

/// Independent logarithms of Gamma(α).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirichletPrior {
    /// k.
    dim: usize,
    /// α.
    concentration: f64,
}

impl DirichletPrior {
    /// Of `dim` coordinates.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the concentration α is positive and finite.
    pub fn new(dim: usize, concentration: f64) -> Result<Self> {
        if concentration > 0.0 && concentration.is_finite() {
            return Ok(Self { dim, concentration });
        }
        Err(Error::invalid("concentration", "positive and finite", concentration))
    }

    /// log of one Gamma(α), from a stream of its own.
    fn log_gamma_draw(&self, stream: Stream) -> f64 {
        let third = self.concentration + 2.0 / 3.0;
        let scale = 1.0 / (9.0 * third).sqrt();
        // Above 95 in 100 are taken.
        for attempt in 0..u64::MAX {
            let x = f64::from(stream.normal(0, attempt));
            let cube = (1.0 + scale * x).powi(3);
            let threshold = log_uniform(stream.child(0), attempt);
            if cube > 0.0 && threshold < 0.5 * x * x + third * (1.0 - cube + cube.ln()) {
                return (third * cube).ln() + log_uniform(stream.child(1), 0) / self.concentration;
            }
        }
        f64::NAN
    }
}

/// log U, U in (0, 1].
fn log_uniform(stream: Stream, index: u64) -> f64 {
    let mut uniform = [0.0];
    stream.fill_uniform(0, index, &mut uniform);
    (1.0 - f64::from(uniform[0])).ln()
}

impl Prior for DirichletPrior {
    fn name(&self) -> &'static str {
        "dirichlet"
    }

    fn dim(&self) -> usize {
        self.dim
    }

    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn sample(&self, count: usize, stream: Stream) -> Result<Vec<f32>> {
        let draw = |index: usize| self.log_gamma_draw(stream.child(index as u64)) as f32;
        Ok((0..count * self.dim).map(draw).collect())
    }

    fn log_density(&self, thetas: &[f32]) -> Result<Vec<f64>> {
        check_rows("thetas", thetas.len(), self.dim)?;
        let (alpha, log_gamma) = (self.concentration, libm::lgamma(self.concentration));
        let term = |theta: &f32| {
            let theta = f64::from(*theta);
            alpha * theta - theta.exp() - log_gamma
        };
        Ok(thetas.chunks_exact(self.dim).map(|row| row.iter().map(term).sum()).collect())
    }

    fn state(&self) -> Result<PriorState> {
        Ok(PriorState::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means and variances of the shares softmax(θ): 1/k and (k − 1)/(k² (k α + 1)).
    #[test]
    fn shares_are_dirichlet() {
        for (dim, alpha) in [(2, 0.3), (4, 2.0)] {
            let prior = DirichletPrior::new(dim, alpha).unwrap();
            let count = 4000;
            let thetas = prior.sample(count, Stream::new(3, "draws")).unwrap();
            let shares: Vec<f64> = thetas
                .chunks_exact(dim)
                .map(|row| {
                    let weights = row.iter().map(|&theta| f64::from(theta).exp());
                    f64::from(row[0]).exp() / weights.sum::<f64>()
                })
                .collect();
            let (k, n) = (dim as f64, count as f64);
            let mean = shares.iter().sum::<f64>() / n;
            let variance = (k - 1.0) / (k * k * (k * alpha + 1.0));
            assert!((mean - 1.0 / k).abs() < 4.0 * (variance / n).sqrt(), "{mean}");
            let squares: Vec<f64> = shares.iter().map(|s| (s - 1.0 / k).powi(2)).collect();
            let found = squares.iter().sum::<f64>() / n;
            let spread = squares.iter().map(|s| (s - found).powi(2)).sum::<f64>() / n;
            assert!((found - variance).abs() < 4.0 * (spread / n).sqrt(), "{found} {variance}");
        }
        assert!(DirichletPrior::new(2, 0.0).is_err());
    }

    /// The density integrates to one, by the trapezoid rule, which is exact for such smooth ends.
    #[test]
    fn the_density_is_normalised() {
        let prior = DirichletPrior::new(1, 0.7).unwrap();
        let grid: Vec<f32> = (0..12_000).map(|i| -50.0 + 0.005 * i as f32).collect();
        let total: f64 = prior.log_density(&grid).unwrap().iter().map(|l| 0.005 * l.exp()).sum();
        // f32 steps of the grid are uneven by 4e-6/0.005 near −50, where nothing is.
        assert!((total - 1.0).abs() < 1e-5, "{total}");
    }
}
