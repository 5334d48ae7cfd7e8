//! Draws of θ that walk from a Gaussian q to p(θ | set), and the integral on their way.
//!
//! ```text
//! π_β ∝ q^(1−β) (exp ℓ)^β,    log ∫ exp ℓ = Σ_stages log E_β exp(δ w),    w = ℓ − log q
//! ```
//!
//! A stage is as long as half of the draws still count. Then draws are resampled by exp(δ w) and
//! moved by steps that leave q as it is, accepted by β w alone, so that neither the number of
//! dimensions nor their scales matter (Crank and Nicolson's):
//!
//! ```text
//! ξ' = √(1 − s²) ξ + s η,    θ = c + L⁻ᵀ ξ,    accepted with probability exp(β (w' − w))
//! ```
//!
//! If q is close, there is one stage: importance sampling. The estimate of ∫ exp ℓ has no bias for any
//! number of stages and moves.

use super::EnergyBasedProcess;
use super::grid::{effective, systematic};
use super::laplace::{Laplace, Question};
use super::score::ScoreSettings;
use crate::Result;
use crate::process::LogDensity;
use crate::process::pareto::{HOLDS, pareto_shape};
use crate::rng::Stream;

/// Draws that still count at the end of a stage, as a share.
const COUNTED: f64 = 0.5;
/// So few have no shape at all.
const FEWEST_DRAWS: usize = 20;
/// Moves between stages.
const NUM_MOVES: usize = 2;
/// s at first; it follows the share of moves that are accepted.
const FIRST_STEP: f64 = 0.3;

/// What came of it.
pub(super) struct Walk {
    /// log ∫ exp ℓ, with the error of draws.
    pub(super) value: LogDensity,
    /// The error of draws.
    pub(super) of_draws: f64,
    /// The error of log Z that ratios leave, a mean over draws.
    pub(super) of_ratios: f64,
    pub(super) num_draws: usize,
    /// Of the stage where fewest count.
    pub(super) effective_draws: f64,
    /// Of the stage where it is largest.
    pub(super) pareto_k: Option<f64>,
    pub(super) holds: bool,
}

/// Draws by their noise ξ, with w and the error of log Z of each.
struct Draws {
    noise: Vec<f64>,
    weights: Vec<f64>,
    errors: Vec<f64>,
}

impl EnergyBasedProcess {
    /// Walks until β = 1, or until there may be no more draws and the rest is one stage.
    pub(super) fn walk(
        &self,
        question: &Question<'_>,
        laplace: &Laplace,
        settings: &ScoreSettings,
        stream: Stream,
    ) -> Result<Walk> {
        let (k, count) = (self.config.latent_dim, settings.num_draws);
        let mut draws = self.weigh_noise(question, laplace, normal(count * k, stream.child(0)))?;
        let mut walk = Walk {
            value: LogDensity { value: 0.0, std_error: 0.0 },
            of_draws: 0.0,
            of_ratios: 0.0,
            num_draws: count,
            effective_draws: count as f64,
            pareto_k: None,
            holds: true,
        };
        let (mut beta, mut step) = (0.0, FIRST_STEP);
        for stage in 1_u64.. {
            let stream = stream.child(stage);
            let is_last = walk.num_draws + NUM_MOVES * count > settings.most_draws;
            let length = if is_last { 1.0 - beta } else { length(&draws.weights, 1.0 - beta) };
            let terms: Vec<f64> = draws.weights.iter().map(|w| length * w).collect();
            walk.add(&terms);
            beta += length;
            if beta >= 1.0 {
                walk.of_ratios = draws.errors.iter().sum::<f64>() / count as f64;
                break;
            }
            draws = draws.resampled(&terms, k, stream.child(0));
            for number in 0..NUM_MOVES as u64 {
                let stream = stream.child(1 + number);
                let share = self.move_draws(question, laplace, &mut draws, (beta, step), stream)?;
                walk.num_draws += count;
                step = (step * if share < 0.25 { 0.6 } else { 1.4 }).min(1.0);
            }
        }
        Ok(walk)
    }

    /// One step of every draw, and the share that was accepted.
    fn move_draws(
        &self,
        question: &Question<'_>,
        laplace: &Laplace,
        draws: &mut Draws,
        (beta, step): (f64, f64),
        stream: Stream,
    ) -> Result<f64> {
        let (k, count) = (self.config.latent_dim, draws.weights.len());
        let kept = (1.0 - step * step).sqrt();
        let fresh = normal(count * k, stream.child(0));
        let mixed =
            draws.noise.iter().zip(&fresh).map(|(xi, eta)| kept * xi + step * eta).collect();
        let moved = self.weigh_noise(question, laplace, mixed)?;
        let mut uniforms = vec![0.0; count];
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        let mut accepted = 0;
        for (draw, uniform) in uniforms.into_iter().enumerate() {
            let gain = beta * (moved.weights[draw] - draws.weights[draw]);
            if f64::from(uniform).ln() < gain {
                let row = draw * k..(draw + 1) * k;
                draws.noise[row.clone()].copy_from_slice(&moved.noise[row]);
                draws.weights[draw] = moved.weights[draw];
                draws.errors[draw] = moved.errors[draw];
                accepted += 1;
            }
        }
        Ok(f64::from(accepted) / count as f64)
    }

    /// w of draws.
    fn weigh_noise(
        &self,
        question: &Question<'_>,
        laplace: &Laplace,
        noise: Vec<f64>,
    ) -> Result<Draws> {
        let k = self.config.latent_dim;
        let n = question.set.len() / self.space.value_dim;
        let (theta, log_q) = laplace.place(&noise);
        let laws = question.law.log_density(&theta)?;
        let of_points = self.candidate_potentials(question.mlp, question.set, &theta)?;
        let of_places = self.candidate_potentials(question.mlp, &laplace.places, &theta)?;
        let num_places = laplace.potentials.len();
        let weigh = |draw: usize| {
            let places = &of_places[draw * num_places..][..num_places];
            let ratio = laplace.ratio(&theta[draw * k..][..k], places);
            // In f64: a sum of thousands of f32 loses digits.
            let sum: f64 = of_points[draw * n..][..n].iter().map(|&u| f64::from(u)).sum();
            let log_z = laplace.log_partition.value + ratio.value;
            (sum - n as f64 * log_z + laws[draw] - log_q[draw], ratio.std_error)
        };
        let (weights, errors) = (0..log_q.len()).map(weigh).unzip();
        Ok(Draws { noise, weights, errors })
    }
}

impl Walk {
    /// A stage with these terms.
    fn add(&mut self, terms: &[f64]) {
        let stage = LogDensity::of_mean(terms);
        let pareto_k = pareto_shape(terms);
        self.value.value += stage.value;
        self.value.std_error = self.value.std_error.hypot(stage.std_error);
        self.of_draws = self.value.std_error;
        let counted = effective(terms);
        self.effective_draws = self.effective_draws.min(counted);
        // Copies that resampling made and no move parted can leave too few weights above the others for
        // a shape: then half of the draws must count, and be enough for a shape without copies.
        let is_even = terms.len() > FEWEST_DRAWS && counted >= 0.99 * COUNTED * terms.len() as f64;
        self.holds &= pareto_k.map_or(is_even, |k| k < HOLDS);
        self.pareto_k = match (self.pareto_k, pareto_k) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
}

impl Draws {
    fn resampled(&self, terms: &[f64], k: usize, stream: Stream) -> Self {
        let total = crate::linalg::log_sum_exp(terms);
        let shares: Vec<f64> = terms.iter().map(|term| (term - total).exp()).collect();
        let chosen = systematic(&shares, terms.len(), stream);
        let rows = chosen.iter().flat_map(|&draw| &self.noise[draw * k..(draw + 1) * k]);
        Self {
            noise: rows.copied().collect(),
            weights: chosen.iter().map(|&draw| self.weights[draw]).collect(),
            errors: chosen.iter().map(|&draw| self.errors[draw]).collect(),
        }
    }
}

/// The longest stage, at most `left`, after which enough draws count; by halving an interval.
fn length(weights: &[f64], left: f64) -> f64 {
    let counted = |length: f64| {
        effective(&weights.iter().map(|w| length * w).collect::<Vec<_>>()) / weights.len() as f64
    };
    if counted(left) >= COUNTED {
        return left;
    }
    let (mut low, mut high) = (0.0, left);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if counted(middle) >= COUNTED {
            low = middle;
        } else {
            high = middle;
        }
    }
    // A walk must go on, however steep its weights.
    low.max(1e-3 * left)
}

fn normal(count: usize, stream: Stream) -> Vec<f64> {
    let mut noise = vec![0.0; count];
    stream.fill_normal(0, 0, &mut noise);
    noise.into_iter().map(f64::from).collect()
}
