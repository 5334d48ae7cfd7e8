//! From the encoder's θ to the mode of p(θ | set).
//!
//! ```text
//! θ ← θ + s Λ⁻¹∇ℓ(θ),    E and Cov over places drawn from r, by their weights exp(u(·; θ))/r
//! ```
//!
//! Places are drawn for one θ. Kept for the whole way they let θ gain where they are blind: Z is taken
//! for small because its mass has moved to where no place is. So a step may not leave too few places that
//! count, and where the climb stops new places are drawn, all over the domain, around the set's points and
//! where the energy of this θ has mass. Only a θ that new places do not move is the end of it.

use super::EnergyBasedProcess;
use super::grid::{Weighted, effective};
use super::laplace::{Question, information, precision, solve};
use crate::Result;
use crate::linalg::Cholesky;
use crate::rng::Stream;

/// Places by which E and Cov are taken on the way: r has mass where the set is, whatever θ says, so that
/// nothing is gained by a spike there.
const LOOKED_AT: usize = 2048;
/// Looks at ℓ and its gradient, at most.
const MOST_LOOKS: usize = 24;
/// Times that new places are drawn, at most.
const MOST_RENEWALS: u64 = 4;
/// A step that promises fewer nats is not taken.
const WORTH_A_STEP: f64 = 1.0;
/// Nor one that promises less than this share of what errors of E ∂u promise by themselves.
const WORTH_OF_NOISE: f64 = 0.25;
/// New places promise that much where θ is right, by chance; twice that says that it is not.
const SURPRISE: f64 = 2.0;
/// A step may leave this share of the places that counted where they were drawn.
const WORN: f64 = 0.25;

/// Where a climb ended.
pub(super) struct Climbed {
    pub(super) theta: Vec<f32>,
    /// Places drawn for this θ, with their weights.
    pub(super) around: Weighted,
    /// Whether these places would not have moved it.
    pub(super) has_settled: bool,
    /// Values of the network that were looked at, a gradient counted as two more.
    pub(super) num_evaluations: usize,
}

/// Places with log r of each, −∞ and ∞ left as they are, and how many counted where they were drawn.
struct Ground {
    places: Vec<f32>,
    log_r: Vec<f64>,
    counted: f64,
}

/// ℓ and its derivatives at one θ.
struct Look {
    value: f64,
    gradient: Vec<f64>,
    precision: Cholesky,
    /// Places that count.
    counted: f64,
}

impl Look {
    /// Λ⁻¹∇ℓ and what it promises.
    fn step(&self) -> (Vec<f64>, f64) {
        let step = solve(&self.precision, &self.gradient);
        let promised = step.iter().zip(&self.gradient).map(|(s, g)| 0.5 * s * g).sum();
        (step, promised)
    }

    /// What errors of E ∂u promise where there is nothing to gain: they have the covariance F/m of m
    /// places that count, and Λ ≥ n F, so at most ½ n k/m on average.
    fn noise(&self, n: f64) -> f64 {
        0.5 * n * self.gradient.len() as f64 / self.counted
    }
}

impl EnergyBasedProcess {
    /// Climbs from μ; `around` are places for Z(μ) with their weights.
    pub(super) fn climb(
        &self,
        question: &Question<'_>,
        mean: &[f32],
        mut around: Weighted,
        stream: Stream,
    ) -> Result<Climbed> {
        let n = (question.set.len() / self.space.value_dim) as f64;
        let mut theta = mean.to_vec();
        let (mut ground, mut best) = self.look_around(question, &around, &theta)?;
        let mut num_evaluations = ground.evaluations(n);
        let (mut share, mut num_renewals, mut has_moved, mut has_settled) = (1.0, 0, false, false);
        for _ in 1..MOST_LOOKS {
            let (step, promised) = best.step();
            let noise = best.noise(n);
            // Places that θ was not chosen by promise a whole step of noise, others no more than is left.
            let worth = if has_moved { WORTH_OF_NOISE } else { SURPRISE } * noise;
            if promised * share < worth.max(WORTH_A_STEP) {
                if !has_moved {
                    // A step that had to be halved again and again gained nothing: that is no top.
                    has_settled = promised < (SURPRISE * noise).max(WORTH_A_STEP);
                    break;
                }
                if num_renewals == MOST_RENEWALS {
                    break;
                }
                num_renewals += 1;
                around = self.renewed(question, &theta, stream.child(num_renewals))?;
                (ground, best) = self.look_around(question, &around, &theta)?;
                num_evaluations += around.log_weights.len() + self.particle_evaluations();
                num_evaluations += ground.evaluations(n);
                (share, has_moved) = (1.0, false);
                continue;
            }
            let next = moved(&theta, &step, share);
            let look = self.look(question, &ground, &next)?;
            num_evaluations += ground.evaluations(n);
            if look.value > best.value && look.counted > WORN * ground.counted {
                (theta, best, share, has_moved) = (next, look, 1.0, true);
            } else {
                share *= 0.5;
            }
        }
        if has_moved {
            around = self.renewed(question, &theta, stream.child(1 + MOST_RENEWALS))?;
            num_evaluations += around.log_weights.len() + self.particle_evaluations();
        }
        Ok(Climbed { theta, around, has_settled, num_evaluations })
    }

    fn renewed(&self, question: &Question<'_>, theta: &[f32], stream: Stream) -> Result<Weighted> {
        self.around(question.mlp, question.set, theta, question.num_proposals, stream)
    }

    /// Some of the places that were drawn for this θ, and ℓ by them.
    fn look_around(
        &self,
        question: &Question<'_>,
        around: &Weighted,
        theta: &[f32],
    ) -> Result<(Ground, Look)> {
        let dim = self.space.value_dim;
        let apart = around.log_weights.len().div_ceil(LOOKED_AT);
        let chosen = (0..around.log_weights.len()).step_by(apart);
        let places: Vec<f32> = chosen
            .clone()
            .flat_map(|place| &around.values[place * dim..(place + 1) * dim])
            .copied()
            .collect();
        let potentials = self.log_potentials(&places, theta)?;
        let log_r = chosen
            .zip(&potentials)
            .map(|(place, u)| f64::from(*u) - around.log_weights[place])
            .collect();
        let mut ground = Ground { places, log_r, counted: 0.0 };
        let look = self.look(question, &ground, theta)?;
        ground.counted = look.counted;
        Ok((ground, look))
    }

    /// ℓ, but for constants, with E over places by their weights exp(u)/r.
    fn look(&self, question: &Question<'_>, ground: &Ground, theta: &[f32]) -> Result<Look> {
        let k = theta.len();
        let dim = self.space.value_dim;
        let n = (question.set.len() / dim) as f64;
        let (potentials, mut slopes) = self.slopes(question.mlp, &ground.places, theta)?;
        // A place outside of the domain has r = ∞ and no weight.
        let pairs = potentials.iter().zip(&ground.log_r);
        let logs: Vec<f64> = pairs.map(|(u, log_r)| f64::from(*u) - log_r).collect();
        let total = crate::linalg::log_sum_exp(&logs);
        let shares: Vec<f64> = logs.iter().map(|log| (log - total).exp()).collect();
        let mut mean = vec![0.0; k];
        for (row, share) in slopes.chunks_exact(k).zip(&shares) {
            row.iter().zip(&mut mean).for_each(|(slope, sum)| *sum += share * slope);
        }
        for row in slopes.chunks_exact_mut(k) {
            row.iter_mut().zip(&mean).for_each(|(slope, mean)| *slope -= mean);
        }
        let ones = vec![1.0; question.set.len() / dim];
        let (of_points, point_slope) =
            self.sum_of_slopes(question.mlp, question.set, &ones, theta)?;
        let (prior_slope, prior_precision) = question.law.slope(theta, &question.widths())?;
        let log_prior = question.law.log_density(theta)?[0];
        let gradient = (0..k).map(|j| point_slope[j] - n * mean[j] + prior_slope[j]).collect();
        Ok(Look {
            value: of_points - n * (total - (logs.len() as f64).ln()) + log_prior,
            gradient,
            precision: precision(&information(&slopes, &shares, k), n, &prior_precision)?,
            counted: effective(&logs),
        })
    }
}

impl Ground {
    /// Values that a look costs, a gradient counted as two more.
    fn evaluations(&self, num_points: f64) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of points"
        )]
        let num_points = num_points as usize;
        3 * (num_points + self.log_r.len())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "codes are single precision")]
fn moved(theta: &[f32], step: &[f64], share: f64) -> Vec<f32> {
    theta.iter().zip(step).map(|(theta, step)| (f64::from(*theta) + share * step) as f32).collect()
}
