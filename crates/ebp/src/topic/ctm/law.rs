//! The law of one document: its mode, the curvature there, and weighted draws around it.
//!
//! ```text
//! log p(η, words) = Σ_w c_w log Σ_k θ_k β_kw + log N(η; μ, Σ),   θ = softmax(η)
//! step            η += (n (diag θ − θ θᵀ) + Σ⁻¹)⁻¹ (Σ_w c_w r_w − n θ − Σ⁻¹ (η − μ)),   r_wk ∝ θ_k β_kw
//! ```
//!
//! The matrix is that of the bound with the responsibilities r held fixed, so it is always positive definite
//! and a step hardly ever has to be shortened. Its inverse at the mode is the covariance of the Gaussian that
//! stands for the posterior (Laplace; Wang, Blei, 2013).
#![allow(clippy::needless_range_loop, reason = "numbers run through several arrays at once")]

use super::super::Document;
use super::super::mixture::dot;
use crate::Result;
use crate::error::check_length;
use crate::linalg::{Cholesky, Matrix, log_sum_exp};
use crate::rng::Stream;

/// Newton's rounds at most; a document ends when no entry of η moves by more than the tolerance.
const TOLERANCE: f64 = 1e-3;
/// No entry of η moves farther in one round.
const FARTHEST: f64 = 2.0;
/// Draws are this much wider than the Gaussian at the mode: weights of tails stay bounded.
const WIDENING: f64 = 1.25;

/// μ, Σ and the topics.
#[derive(Clone, Debug)]
pub(super) struct Law {
    /// μ, `[K]`.
    pub(super) mean: Vec<f64>,
    /// Σ, `[K, K]`.
    pub(super) covariance: Vec<f64>,
    /// β, `[V, K]`.
    pub(super) topics: Vec<f64>,
    /// Σ⁻¹, `[K, K]`.
    precision: Vec<f64>,
    log_determinant: f64,
}

/// Draws of η with the logs of their weights p(η, words) / q(η).
pub(super) struct Draws {
    pub(super) shares: Vec<Vec<f64>>,
    pub(super) log_weights: Vec<f64>,
}

impl Law {
    pub(super) fn new(mean: Vec<f64>, covariance: Vec<f64>, topics: Vec<f64>) -> Result<Self> {
        let k = mean.len();
        check_length("covariance", covariance.len(), k * k, || format!("{k} topics squared"))?;
        check_length("topics", topics.len(), topics.len() / k.max(1) * k, || format!("of {k}"))?;
        let cholesky = Cholesky::new(Matrix::zeros(k, k), |matrix| {
            matrix.entries_mut().copy_from_slice(&covariance);
        })?;
        let log_determinant = cholesky.log_determinant();
        let (inverse, _) = cholesky.into_inverse(Matrix::zeros(k, k));
        let mut precision = vec![0.0; k * k];
        for i in 0..k {
            for j in 0..=i {
                precision[i * k + j] = inverse.at(i, j);
                precision[j * k + i] = inverse.at(i, j);
            }
        }
        Ok(Self { mean, covariance, topics, precision, log_determinant })
    }

    /// Σ⁻¹ (η − μ).
    fn pull(&self, eta: &[f64]) -> Vec<f64> {
        let rest: Vec<f64> = eta.iter().zip(&self.mean).map(|(eta, mean)| eta - mean).collect();
        self.precision.chunks_exact(eta.len()).map(|row| dot(row, &rest)).collect()
    }

    /// The factor of n (diag θ − θ θᵀ) + Σ⁻¹.
    pub(super) fn curvature(&self, shares: &[f64], num_tokens: f64) -> Result<Cholesky> {
        let k = shares.len();
        Cholesky::new(Matrix::zeros(k, k), |matrix| {
            for j in 0..k {
                let scale = num_tokens * shares[j];
                let column = matrix.column_mut(j);
                for i in j..k {
                    column[i] = self.precision[j * k + i] - scale * shares[i];
                }
                column[j] += scale;
            }
        })
    }

    /// Moves η towards the mode of a document. Returns the rounds it took.
    pub(super) fn climb(
        &self,
        document: Document<'_>,
        eta: &mut [f64],
        most_rounds: usize,
    ) -> Result<usize> {
        let k = eta.len();
        let num_tokens = document.num_tokens() as f64;
        for round in 1..=most_rounds {
            let shares = softmax(eta);
            let mut sums = vec![0.0; k];
            for (word, count) in document.pairs() {
                let topics = &self.topics[word * k..][..k];
                let ratio = count / dot(&shares, topics).max(f64::MIN_POSITIVE);
                sums.iter_mut().zip(topics).for_each(|(sum, topic)| *sum += ratio * topic);
            }
            let pull = self.pull(eta);
            let mut step = Matrix::zeros(k, 1);
            for (i, entry) in step.entries_mut().iter_mut().enumerate() {
                *entry = shares[i] * sums[i] - num_tokens * shares[i] - pull[i];
            }
            let factor = self.curvature(&shares, num_tokens)?;
            factor.solve_lower(&mut step);
            factor.solve_upper(&mut step);
            let largest = step.entries().iter().fold(0.0_f64, |max, x| max.max(x.abs()));
            let scale = (FARTHEST / largest).min(1.0);
            eta.iter_mut().zip(step.entries()).for_each(|(eta, x)| *eta += scale * x);
            if largest < TOLERANCE {
                return Ok(round);
            }
        }
        Ok(most_rounds)
    }

    /// log p(words | η) + log N(η; μ, Σ) without −K/2 log 2π.
    pub(super) fn log_joint(&self, document: Document<'_>, eta: &[f64], shares: &[f64]) -> f64 {
        let k = eta.len();
        let words: f64 = document
            .pairs()
            .map(|(word, count)| count * dot(shares, &self.topics[word * k..][..k]).ln())
            .sum();
        let rest: Vec<f64> = eta.iter().zip(&self.mean).map(|(eta, mean)| eta - mean).collect();
        words - 0.5 * (dot(&self.pull(eta), &rest) + self.log_determinant)
    }

    /// Draws around the mode.
    pub(super) fn draws(
        &self,
        document: Document<'_>,
        mode: &[f64],
        count: usize,
        stream: Stream,
    ) -> Result<Draws> {
        let k = mode.len();
        let factor = self.curvature(&softmax(mode), document.num_tokens() as f64)?;
        let mut noise = vec![0.0_f32; k * count];
        stream.fill_normal(0, 0, &mut noise);
        // η = mode + s L⁻ᵀ ξ has covariance s² (L Lᵀ)⁻¹.
        let mut moves = Matrix::zeros(k, count);
        moves.entries_mut().iter_mut().zip(&noise).for_each(|(x, z)| *x = f64::from(*z));
        factor.solve_upper(&mut moves);
        let constant = 0.5 * factor.log_determinant() - k as f64 * WIDENING.ln();
        let (mut all, mut log_weights) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (draw, noise) in noise.chunks_exact(k).enumerate() {
            let eta: Vec<f64> =
                mode.iter().zip(moves.column(draw)).map(|(m, x)| m + WIDENING * x).collect();
            let shares = softmax(&eta);
            let square: f64 = noise.iter().map(|z| f64::from(*z).powi(2)).sum();
            log_weights.push(self.log_joint(document, &eta, &shares) - constant + 0.5 * square);
            all.push(shares);
        }
        Ok(Draws { shares: all, log_weights })
    }
}

/// exp η / Σ exp η.
pub(super) fn softmax(eta: &[f64]) -> Vec<f64> {
    let log_sum = log_sum_exp(eta);
    eta.iter().map(|eta| (eta - log_sum).exp()).collect()
}
