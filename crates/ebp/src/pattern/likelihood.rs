//! Maximum likelihood by simulation (Geyer and Møller, 1994), and the value of the likelihood itself.
//!
//! ```text
//! ∇ℓ(θ) = T(x) − E_θ T,   −∇²ℓ(θ) = Cov_θ T,   θ' = θ + Cov(T)⁻¹ (T(x) − mean T)
//! log Z(β) = ∫ E n  d log β      from β |W| = 10⁻³, where log Z = β |W|, along the intercept
//! ```
//!
//! A round draws patterns at θ by birth, death and move and takes Newton's step with their moments, until
//! the step is within its Monte Carlo error. The information is the covariance of T. ℓ is the log of the Janossy density, so that
//! Poisson, Gibbs and determinantal processes can be compared.

use super::gibbs::{Family, Gibbs};
use super::newton::{Expansion, inverse, solve};
use super::simulate::{ChainSettings, simulate_thinned};
use super::window::Pattern;
use crate::rng::Stream;
use crate::{Error, Result};

/// Effort of the simulations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LikelihoodSettings {
    /// Patterns of a round.
    pub num_patterns: usize,
    /// Chains that they are read from.
    pub num_chains: usize,
    /// Rounds at most.
    pub num_rounds: usize,
}

impl Default for LikelihoodSettings {
    fn default() -> Self {
        Self { num_patterns: 2000, num_chains: 16, num_rounds: 8 }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct LikelihoodFit {
    /// At the maximum.
    pub model: Gibbs,
    /// From the information, of the pattern that was seen.
    pub standard_errors: Vec<f64>,
    /// Of the simulation, in the same units.
    pub monte_carlo_errors: Vec<f64>,
    /// Rounds that it took.
    pub num_rounds: usize,
}

/// How many proposals lie between two patterns of a chain, and how many before the first.
fn chain_of(patterns: &[Pattern]) -> (ChainSettings, usize) {
    let count = patterns.iter().map(|pattern| pattern.points().len()).max().unwrap_or(0);
    let settings = ChainSettings::for_points(count);
    (settings, settings.num_steps / 20)
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
    let family = *start.family();
    let observed = mean_totals(&family, patterns)?;
    let (chain, thin) = chain_of(patterns);
    let mut model = start.clone();
    let scale = patterns.len().max(1) as f64;
    for round in 1..=settings.num_rounds.max(1) {
        let size = (settings.num_chains, settings.num_patterns);
        let drawn = simulate_thinned(&model, size, (&chain, thin), stream.child(round as u64))?;
        let totals: Vec<Vec<f64>> =
            drawn.iter().filter_map(|pattern| family.totals(pattern)).collect();
        let from = model.coefficients().to_vec();
        let (step, errors) = scoring_step(&observed, &totals)?;
        // Far from where was drawn the moments are others: at most two standard errors of one pattern at
        // once.
        let worst = step.iter().zip(&errors).map(|(s, e)| s.abs() / e).fold(0.0, f64::max);
        let share = (2.0 / worst).min(1.0);
        let next = from.iter().zip(&step).map(|(f, s)| f + share * s).collect();
        model = Gibbs::new(family, model.window(), next)?;
        // Patterns of a chain are correlated; twice the independent error is the scale of the noise.
        let noise = 2.0 / (totals.len() as f64).sqrt();
        if worst <= 2.0 * noise || round == settings.num_rounds.max(1) {
            return Ok(LikelihoodFit {
                model,
                standard_errors: errors.iter().map(|e| e / scale.sqrt()).collect(),
                monte_carlo_errors: errors.iter().map(|e| e * noise).collect(),
                num_rounds: round,
            });
        }
    }
    Err(Error::failed("the simulated likelihood took no round"))
}

fn mean_totals(family: &Family, patterns: &[Pattern]) -> Result<Vec<f64>> {
    let mut mean = vec![0.0; family.num_coefficients()];
    for pattern in patterns {
        let totals = family.totals(pattern).ok_or_else(|| {
            let found = format!("two points {} apart", pattern.least_distance());
            Error::invalid("the hard core", "kept by the data", found)
        })?;
        mean.iter_mut().zip(&totals).for_each(|(sum, t)| *sum += t / patterns.len() as f64);
    }
    Ok(mean)
}

/// Cov(T)⁻¹ (T(x) − mean T), and the square roots of the diagonal of Cov(T)⁻¹.
fn scoring_step(observed: &[f64], totals: &[Vec<f64>]) -> Result<(Vec<f64>, Vec<f64>)> {
    let (dim, count) = (observed.len(), totals.len() as f64);
    let mean: Vec<f64> =
        (0..dim).map(|j| totals.iter().map(|t| t[j]).sum::<f64>() / count).collect();
    let mut moments = Expansion::zero(dim);
    for t in totals {
        let away: Vec<f64> = t.iter().zip(&mean).map(|(t, m)| t - m).collect();
        moments.add(&away, 0.0, 1.0 / count);
    }
    moments.gradient = observed.iter().zip(&mean).map(|(o, m)| o - m).collect();
    let step = solve(&moments)?;
    let covariance = inverse(&moments)?;
    Ok((step, (0..dim).map(|j| covariance.at(j, j).sqrt()).collect()))
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
    let coefficients = model.coefficients();
    let alone = Gibbs::new(
        Family { interaction: super::Interaction::None, ..*model.family() },
        model.window(),
        coefficients[..model.family().trend.names().len()].to_vec(),
    )?;
    // ∫ λ without interaction: −ℓ of no points.
    let nothing = Pattern::new(model.window(), Vec::new())?;
    let mass = -alone.poisson_log_likelihood(&nothing).unwrap_or(0.0);
    let length = (mass / SPARSE).ln();
    let chain = ChainSettings::for_points(num_points);
    let (mut value, mut variance) = (SPARSE, 0.0);
    let nodes = GAUSS.iter().flat_map(|&(node, weight)| [(-node, weight), (node, weight)]);
    for (number, (node, weight)) in nodes.enumerate() {
        let lower = 0.5 * (1.0 - node) * length;
        let mut at = coefficients.to_vec();
        at[0] -= lower;
        let thinner = Gibbs::new(*model.family(), model.window(), at)?;
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
