//! The theorem that exact processes are energy-based processes, by numerical integration.
//!
//! With features φ(t) and θ ~ N(0, I), the energy f = −(x − θᵀφ(t))²/(2σ²) has log Z = ½ log 2πσ²,
//! and ∫ ∏ᵢ exp(f(xᵢ, tᵢ; θ))/Z p(θ) dθ is the Gaussian process with k(t, t′) = φ(t)ᵀφ(t′). With a
//! second latent β⁻¹ ~ Gamma(ν/2, rate γ/2) that scales signal and noise together,
//! x = √(β(ν − 2)/γ) (θᵀφ(t) + σξ), it is the Student-t process, whatever γ.
//!
//! Integrals are trapezoidal sums, which converge geometrically for such integrands.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ebp::kernel::{Kernel, Pairs};
use ebp::linalg::log_sum_exp;
use ebp::process::{ExactProcess, ExactProcessConfig, GaussianProcess, StudentTProcess};
use ebp::{IndexedSet, Result};

const NOISE: f64 = 0.3;
const LOG_TAU: f64 = 1.837_877_066_409_345_5;

/// φ(t) with d features: 1/2, sin t, and cos 2t.
fn features(t: f64, dim: usize) -> Vec<f64> {
    [0.5, t.sin(), (2.0 * t).cos()][..dim].to_vec()
}

/// k(t, t′) = φ(t)ᵀ φ(t′).
#[derive(Debug)]
struct FeatureKernel {
    dim: usize,
}

impl Kernel for FeatureKernel {
    fn parameter_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn log_parameters(&self) -> Vec<f64> {
        Vec::new()
    }

    fn with_log_parameters(&self, _log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        Ok(Box::new(Self { dim: self.dim }))
    }

    fn variance(&self, location: &[f64]) -> f64 {
        features(location[0], self.dim).iter().map(|f| f * f).sum()
    }

    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]) {
        let here = features(location[0], self.dim);
        for (k, other) in out.iter_mut().zip(others) {
            *k = features(*other, self.dim).iter().zip(&here).map(|(a, b)| a * b).sum();
        }
    }

    fn add_gradient(&self, _: Pairs<'_>, _: &mut [f64]) {}

    fn add_location_gradient(&self, pairs: Pairs<'_>, sum: &mut [f64]) {
        let Pairs { location: at, others, weights } = pairs;
        let slopes = [0.0, at[0].cos(), -2.0 * (2.0 * at[0]).sin()];
        for (other, weight) in others.iter().zip(weights) {
            let there = features(*other, self.dim);
            sum[0] += weight * there.iter().zip(slopes).map(|(a, b)| a * b).sum::<f64>();
        }
    }
}

fn data() -> IndexedSet {
    IndexedSet::new(1, 1, vec![-1.0, 0.2, 0.9, 2.5], vec![0.4, -0.6, 1.1, 0.3]).unwrap()
}

/// Σᵢ f(xᵢ, tᵢ; θ) − log Z with signal and noise scaled by `scale`.
fn log_likelihood(set: &IndexedSet, phi: &[Vec<f64>], theta: &[f64], scale: f64) -> f64 {
    let variance = scale * scale * NOISE;
    set.values()
        .iter()
        .zip(phi)
        .map(|(x, phi)| {
            let signal: f64 = phi.iter().zip(theta).map(|(f, t)| f * t).sum();
            let log_potential = -(x - scale * signal).powi(2) / (2.0 * variance);
            let log_partition = 0.5 * (LOG_TAU + variance.ln());
            log_potential - log_partition
        })
        .sum()
}

/// log ∫ ∏ᵢ p(xᵢ | tᵢ, θ) N(θ; 0, I) dθ on a grid of `step` over [−`reach`, `reach`]^d.
fn log_integral(set: &IndexedSet, dim: usize, scale: f64, reach: f64, step: f64) -> f64 {
    let phi: Vec<Vec<f64>> = set.locations().iter().map(|t| features(*t, dim)).collect();
    let mut grid = Vec::new();
    let mut position = -reach;
    while position <= reach {
        grid.push(position);
        position += step;
    }
    let count = grid.len().pow(u32::try_from(dim).unwrap());
    let terms: Vec<f64> = (0..count)
        .map(|mut number| {
            let mut theta = [0.0; 3];
            for coordinate in &mut theta[..dim] {
                *coordinate = grid[number % grid.len()];
                number /= grid.len();
            }
            let theta = &theta[..dim];
            // log N(θ; 0, I)
            let log_prior: f64 = theta.iter().map(|t| -0.5 * (t * t + LOG_TAU)).sum();
            log_prior + log_likelihood(set, &phi, theta, scale)
        })
        .collect();
    log_sum_exp(&terms) + dim as f64 * step.ln()
}

fn config() -> ExactProcessConfig {
    ExactProcessConfig { location_dim: 1, value_dim: 1, noise_variance: NOISE }
}

#[test]
fn a_quadratic_energy_with_normal_latents_is_the_gaussian_process() {
    for (dim, step) in [(1, 0.05), (2, 0.1), (3, 0.2)] {
        let process = GaussianProcess::new(Box::new(FeatureKernel { dim }), &config()).unwrap();
        for n in 0..=4 {
            let set = data().select(&(0..n).collect::<Vec<_>>());
            let expected = process.log_marginal(&set).unwrap();
            let found = log_integral(&set, dim, 1.0, 7.0, step);
            assert!((found - expected).abs() < 1e-6, "{dim}, {n}: {found}, {expected}");
        }
    }
}

/// With β = (γ/2)/g the precision is g ~ Gamma(ν/2, 1), and the scale √((ν − 2)/(2g)): γ is gone.
/// Integrated over u = log g, where the density is exp(u ν/2 − eᵘ)/Γ(ν/2).
#[test]
fn a_latent_scale_makes_it_the_student_t_process() {
    let nu = 5.0;
    // Γ(5/2) = ¾ √π
    let log_gamma = (0.75 * std::f64::consts::PI.sqrt()).ln();
    let step = 0.15;
    for (dim, theta_step) in [(1, 0.05), (2, 0.15)] {
        let kernel = Box::new(FeatureKernel { dim });
        let process = StudentTProcess::new(kernel, &config(), nu).unwrap();
        for n in 1..=4 {
            let set = data().select(&(0..n).collect::<Vec<_>>());
            let terms: Vec<f64> = (0..100)
                .map(|i| {
                    let u = -9.5 + step * f64::from(i);
                    let scale = ((nu - 2.0) / (2.0 * u.exp())).sqrt();
                    let log_prior = 0.5 * nu * u - u.exp() - log_gamma;
                    log_prior + log_integral(&set, dim, scale, 7.0, theta_step)
                })
                .collect();
            let found = log_sum_exp(&terms) + step.ln();
            let expected = process.log_marginal(&set).unwrap();
            assert!((found - expected).abs() < 1e-6, "{dim}, {n}: {found}, {expected}");
        }
    }
}
