//! Maximum likelihood by simulation (Geyer and Møller, 1994), and the value of the likelihood itself.
//!
//! ```text
//! ∇ℓ(θ) = T(x) − E_θ T,   −∇²ℓ(θ) = Cov_θ T,   θ' = θ + Cov(T)⁻¹ (T(x) − mean T)
//! log Z(β) = ∫ E n  d log β      from β |W| = 10⁻³, where log Z = β |W|, along the intercept
//! ```
//!
//! A round draws patterns at θ by birth, death and moves (one point, or Langevin steps of all) and takes
//! Newton's step with their moments, until the step is within its Monte Carlo error. Where networks write the
//! potential, T is ∂f/∂w and θ the weights, which may be penalised. The information is the covariance of T.
//! Moments are those of θ, and f of a network bends: a step is halved until the likelihood rises by the ratio that
//! the same patterns tell, and until enough of them count there (Geyer and Thompson, 1992):
//!
//! ```text
//! ℓ(θ') − ℓ(θ) = mean_x d(x) − log mean_y exp d(y),   d = f(·; θ') − f(·; θ),   x seen, y drawn at θ
//! ```
//!
//! ℓ is the log of the Janossy density, so that Poisson, Gibbs and determinantal processes can be compared.

use std::fmt::Debug;

use rayon::prelude::*;

use super::gibbs::{Family, Gibbs};
use super::newton::{Expansion, inverse, solve};
use super::simulate::{ChainSettings, Moves, simulate_thinned};
use super::window::{Pattern, Window};
use crate::linalg::Matrix;
use crate::rng::Stream;
use crate::{Error, Result};

/// A step is halved so often at most; then nothing along it is better than where it begins.
const MOST_HALVINGS: usize = 12;
/// The share of drawn patterns that must count at the end of a step. Of a normal d with deviation σ, exp(−σ²) count:
/// 1.7 standard errors of one pattern.
const LEAST_COUNTING: f64 = 0.05;

/// Effort of the simulations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LikelihoodSettings {
    /// Patterns of a round.
    pub num_patterns: usize,
    /// Chains that they are read from.
    pub num_chains: usize,
    /// Rounds at most.
    pub num_rounds: usize,
    /// How points of a chain move.
    pub moves: Moves,
}

impl Default for LikelihoodSettings {
    fn default() -> Self {
        Self { num_patterns: 2000, num_chains: 16, num_rounds: 8, moves: Moves::Points }
    }
}

/// A law of patterns whose parameters are climbed: coefficients, or weights that write a potential.
pub trait Likelihood: Debug + Sync {
    /// The law at some parameters, the first of which is the intercept.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if they mean nothing.
    fn model(&self, at: &[f64]) -> Result<Gibbs>;

    /// ∂f/∂parameters of a pattern, which is T where f is linear in them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the pattern breaks a hard core.
    fn slopes(&self, at: &[f64], pattern: &Pattern) -> Result<Vec<f64>>;

    /// Half of this times the squares of all parameters but the first is taken from the log-likelihood.
    fn decay(&self) -> f64 {
        0.0
    }
}

/// f is linear in its coefficients.
#[derive(Debug)]
struct Linear {
    family: Family,
    window: Window,
}

impl Likelihood for Linear {
    fn model(&self, at: &[f64]) -> Result<Gibbs> {
        Gibbs::new(self.family, self.window, at.to_vec())
    }

    fn slopes(&self, _at: &[f64], pattern: &Pattern) -> Result<Vec<f64>> {
        self.family.totals_or_error(pattern)
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct LikelihoodFit {
    /// At the maximum.
    pub model: Gibbs,
    /// Its parameters: the coefficients, or α and weights.
    pub parameters: Vec<f64>,
    /// From the information, of the patterns that were seen.
    pub standard_errors: Vec<f64>,
    /// Of the simulation, in the same units.
    pub monte_carlo_errors: Vec<f64>,
    /// Rounds that it took.
    pub num_rounds: usize,
    /// Of the parameters: I⁻¹ of the patterns that were seen, or what a penalty makes of it.
    covariance: Matrix,
}

impl LikelihoodFit {
    /// A number of the process, and its standard error by the delta method.
    ///
    /// # Errors
    ///
    /// As [`Likelihood::model`].
    pub fn number(
        &self,
        law: &dyn Likelihood,
        number: impl Fn(&Gibbs) -> f64,
    ) -> Result<(f64, f64)> {
        let at = &self.parameters;
        let slope = |j: usize| -> Result<f64> {
            let step = 1e-4 * at[j].abs().max(1.0);
            let side = |step: f64| -> Result<f64> {
                let mut moved = at.clone();
                moved[j] += step;
                Ok(number(&law.model(&moved)?))
            };
            Ok((side(step)? - side(-step)?) / (2.0 * step))
        };
        let slopes = (0..at.len()).map(slope).collect::<Result<Vec<_>>>()?;
        let mut variance = 0.0;
        for (i, a) in slopes.iter().enumerate() {
            for (j, b) in slopes.iter().enumerate() {
                variance += a * b * self.covariance.at(i, j);
            }
        }
        Ok((number(&self.model), variance.max(0.0).sqrt()))
    }
}

/// Climbs from `start`, best a pseudolikelihood fit.
///
/// # Errors
///
/// [`Error::InvalidValue`] if data break a hard core, [`Error::Failed`] if there is no maximum; as
/// [`simulate`](super::simulate()).
pub fn maximum_likelihood(
    start: &Gibbs,
    patterns: &[Pattern],
    settings: &LikelihoodSettings,
    stream: Stream,
) -> Result<LikelihoodFit> {
    let law = Linear { family: *start.family(), window: start.window() };
    climb_likelihood(&law, start.coefficients(), patterns, settings, stream)
}

/// The same of any law, from parameters `start`. Where f is not linear in them, its second derivatives are
/// left out of the information (Fisher's scoring).
///
/// # Errors
///
/// As [`maximum_likelihood`].
pub fn climb_likelihood(
    law: &dyn Likelihood,
    start: &[f64],
    patterns: &[Pattern],
    settings: &LikelihoodSettings,
    stream: Stream,
) -> Result<LikelihoodFit> {
    let count = patterns.iter().map(|pattern| pattern.points().len()).max().unwrap_or(0);
    let chain = ChainSettings { moves: settings.moves, ..ChainSettings::for_points(count) };
    let mut parameters = start.to_vec();
    let (scale, num_rounds) = (patterns.len().max(1) as f64, settings.num_rounds.max(1));
    for round in 1..=num_rounds {
        let model = law.model(&parameters)?;
        let size = (settings.num_chains, settings.num_patterns);
        let thin = chain.num_steps / 20;
        let drawn = simulate_thinned(&model, size, (&chain, thin), stream.child(round as u64))?;
        let slopes = |patterns: &[Pattern]| -> Result<Vec<Vec<f64>>> {
            patterns.par_iter().map(|pattern| law.slopes(&parameters, pattern)).collect()
        };
        let observed = mean(&slopes(patterns)?);
        let decay = law.decay() / scale;
        let (step, inverse) = scoring_step(&observed, &slopes(&drawn)?, &parameters, decay)?;
        let errors: Vec<f64> = (0..step.len()).map(|j| inverse.at(j, j).sqrt()).collect();
        // Far from where was drawn the moments are others: at most two standard errors of one pattern at
        // once.
        let worst = step.iter().zip(&errors).map(|(s, e)| s.abs() / e).fold(0.0, f64::max);
        let mut share = (2.0 / worst).min(1.0);
        for _ in 0..MOST_HALVINGS {
            let moved: Vec<f64> =
                parameters.iter().zip(&step).map(|(at, s)| at + share * s).collect();
            let next = law.model(&moved)?;
            let (rise, counting) = compare([&model, &next], patterns, &drawn);
            let squares = |at: &[f64]| at[1..].iter().map(|w| w * w).sum::<f64>();
            let penalty = 0.5 * decay * (squares(&moved) - squares(&parameters));
            if rise > penalty && counting >= LEAST_COUNTING * drawn.len() as f64 {
                parameters = moved;
                break;
            }
            share *= 0.5;
        }
        // Patterns of a chain are correlated; twice the independent error is the scale of the noise.
        let noise = 2.0 / (drawn.len() as f64).sqrt();
        if worst <= 2.0 * noise || round == num_rounds {
            let covariance = spread(&inverse, decay, scale);
            return Ok(LikelihoodFit {
                model: law.model(&parameters)?,
                parameters,
                standard_errors: (0..errors.len())
                    .map(|j| covariance.at(j, j).max(0.0).sqrt())
                    .collect(),
                monte_carlo_errors: errors.iter().map(|e| e * noise).collect(),
                num_rounds: round,
                covariance,
            });
        }
    }
    Err(Error::failed("the simulated likelihood took no round"))
}

/// ℓ(θ') − ℓ(θ) per pattern, and how many of the drawn ones it rests on.
fn compare([from, to]: [&Gibbs; 2], seen: &[Pattern], drawn: &[Pattern]) -> (f64, f64) {
    let changes = |patterns: &[Pattern]| -> Vec<f64> {
        let of = |law: &Gibbs, pattern| law.log_density_up_to_constant(pattern);
        patterns.par_iter().map(|pattern| of(to, pattern) - of(from, pattern)).collect()
    };
    let (of_seen, of_drawn) = (changes(seen), changes(drawn));
    let top = of_drawn.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = of_drawn.iter().map(|d| (d - top).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let squares: f64 = weights.iter().map(|w| w * w).sum();
    let log_ratio = top + (sum / drawn.len() as f64).ln();
    (of_seen.iter().sum::<f64>() / seen.len() as f64 - log_ratio, sum * sum / squares)
}

fn mean(rows: &[Vec<f64>]) -> Vec<f64> {
    let mut mean = vec![0.0; rows.first().map_or(0, Vec::len)];
    for row in rows {
        mean.iter_mut().zip(row).for_each(|(sum, t)| *sum += t / rows.len() as f64);
    }
    mean
}

/// (Cov(T) + decay)⁻¹ (T(x) − mean T − decay θ) and (Cov(T) + decay)⁻¹; the intercept has no decay.
fn scoring_step(
    observed: &[f64],
    totals: &[Vec<f64>],
    at: &[f64],
    decay: f64,
) -> Result<(Vec<f64>, Matrix)> {
    let (dim, count) = (observed.len(), totals.len() as f64);
    let mean = mean(totals);
    let mut moments = Expansion::zero(dim);
    for t in totals {
        let away: Vec<f64> = t.iter().zip(&mean).map(|(t, m)| t - m).collect();
        moments.add(&away, 0.0, 1.0 / count);
    }
    moments.gradient = observed.iter().zip(&mean).map(|(o, m)| o - m).collect();
    for (j, at) in at.iter().enumerate().take(dim).skip(1) {
        moments.gradient[j] -= decay * at;
        moments.information.column_mut(j)[j] += decay;
    }
    Ok((solve(&moments)?, inverse(&moments)?))
}

/// The covariance of what maximises a penalised likelihood of so many patterns, A⁻¹ I A⁻¹ with A = I + decay:
/// directions that the data say nothing about are held by the penalty, and do not vary.
fn spread(inverse: &Matrix, decay: f64, num_patterns: f64) -> Matrix {
    let dim = inverse.num_rows();
    let mut covariance = Matrix::zeros(dim, dim);
    for j in 0..dim {
        for i in 0..dim {
            // I = A − decay, which the intercept does not have
            let held: f64 = (1..dim).map(|k| inverse.at(i, k) * inverse.at(k, j)).sum();
            covariance.column_mut(j)[i] = (inverse.at(i, j) - decay * held) / num_patterns;
        }
    }
    covariance
}

/// Gauss and Legendre's rule of 16 nodes on −1..1: nodes and weights of its positive half.
const GAUSS: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_09),
];

/// The expected number of points where log Z is taken to be it.
const SPARSE: f64 = 1e-3;

/// log Z by integrating the mean number of points along the intercept, and its Monte Carlo standard error.
/// Z is that of the Janossy density: 1 without points.
///
/// # Errors
///
/// As [`simulate`](super::simulate()).
pub fn log_partition(
    model: &Gibbs,
    num_points: usize,
    settings: &LikelihoodSettings,
    stream: Stream,
) -> Result<(f64, f64)> {
    let alone = Gibbs::new(
        Family { interaction: super::Interaction::None, ..*model.family() },
        model.window(),
        model.coefficients()[..model.family().trend.names().len()].to_vec(),
    )?;
    // ∫ λ without interaction: −ℓ of no points.
    let nothing = Pattern::new(model.window(), Vec::new())?;
    let mass = -alone.poisson_log_likelihood(&nothing).unwrap_or(0.0);
    let length = (mass / SPARSE).ln();
    let chain = ChainSettings { moves: settings.moves, ..ChainSettings::for_points(num_points) };
    let (mut value, mut variance) = (SPARSE, 0.0);
    let nodes = GAUSS.iter().flat_map(|&(node, weight)| [(-node, weight), (node, weight)]);
    for (number, (node, weight)) in nodes.enumerate() {
        let lower = 0.5 * (1.0 - node) * length;
        let thinner = model.shifted(-lower);
        let stream = stream.child(number as u64);
        let (chains, count) = (settings.num_chains, settings.num_patterns / 4);
        let drawn =
            simulate_thinned(&thinner, (chains, count), (&chain, chain.num_steps / 20), stream)?;
        // Chains are independent: their means tell the error.
        let per_chain = drawn.len().div_ceil(chains);
        let means: Vec<f64> = drawn
            .chunks(per_chain)
            .map(|part| {
                part.iter().map(|p| p.points().len() as f64).sum::<f64>() / part.len() as f64
            })
            .collect();
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let spread: f64 = means.iter().map(|m| (m - mean).powi(2)).sum();
        let error = spread / (means.len() * (means.len() - 1).max(1)) as f64;
        value += 0.5 * length * weight * mean;
        variance += (0.5 * length * weight).powi(2) * error;
    }
    Ok((value, variance.sqrt()))
}
