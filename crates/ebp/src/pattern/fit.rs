//! Fits of Gibbs processes that need no simulation, by regression on quadrature points.
//!
//! ```text
//! pseudolikelihood (Besag; Berman and Turner)  Σ_data log λ(xᵢ | X∖xᵢ) − Σ_j w_j λ(u_j | X)
//! logistic (Baddeley et al., 2014)             Σ_data log λ/(λ + ρ) + Σ_dummy log ρ/(λ + ρ)
//! ```
//!
//! Both are concave in the coefficients; Newton's method finds the maximum. Their curvature gives standard
//! errors only where points are independent. [`simulated_errors`] gives those of any family, from the spread
//! of the objective's gradient over patterns drawn from what was fitted.

use rayon::prelude::*;

use super::gibbs::{Family, Gibbs};
use super::newton::{Expansion, Summit, inverse, maximise};
use super::quadrature::{Design, berman_turner, check_points, default_tiles, logistic};
use super::simulate::{ChainSettings, simulate};
use super::window::Pattern;
use crate::rng::Stream;
use crate::{Error, Result};

/// By which regression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Regression {
    /// Berman and Turner's device with spatstat's default quadrature.
    #[default]
    Pseudolikelihood,
    /// Logistic composite likelihood against a grid of dummy points.
    Logistic,
}

impl Regression {
    /// The rows of one pattern.
    fn design(self, family: &Family, pattern: &Pattern) -> Result<Design> {
        match self {
            Self::Pseudolikelihood => berman_turner(family, pattern),
            Self::Logistic => logistic(family, pattern, default_tiles(pattern.points().len())),
        }
    }

    /// The objective around `at`.
    fn expand(self, design: &Design, at: &[f64]) -> Expansion {
        match self {
            Self::Pseudolikelihood => pseudolikelihood(design, at),
            Self::Logistic => logistic_likelihood(design, at),
        }
    }
}

/// A fitted process.
#[derive(Clone, Debug)]
pub struct Fit {
    /// With the coefficients that were found.
    pub model: Gibbs,
    /// The maximum: a log pseudolikelihood, or what took its place.
    pub objective: f64,
    /// Data points that counted, those within the border.
    pub num_points: usize,
    /// From the curvature alone: right without interaction.
    pub curvature_errors: Vec<f64>,
}

/// The maximum of the objective over all patterns together.
///
/// # Errors
///
/// [`Error::Refused`] if there is nothing to fit, [`Error::InvalidValue`] if data break a hard core,
/// [`Error::Failed`] if there is no maximum.
///
/// ```
/// use ebp::pattern::{Family, Interaction, Pattern, Regression, Trend, Window, fit};
///
/// let pattern = Pattern::new(Window::unit(), vec![[0.2, 0.3], [0.6, 0.4], [0.7, 0.9]])?;
/// let poisson = Family { trend: Trend::Constant, interaction: Interaction::None };
/// let fitted = fit(&poisson, &[pattern], Regression::Pseudolikelihood)?;
/// // λ = n/|W|, with standard error 1/√n of its logarithm.
/// assert!((fitted.model.coefficients()[0] - 3_f64.ln()).abs() < 1e-9);
/// assert!((fitted.curvature_errors[0] - 3_f64.sqrt().recip()).abs() < 1e-9);
/// # Ok::<(), ebp::Error>(())
/// ```
pub fn fit(family: &Family, patterns: &[Pattern], regression: Regression) -> Result<Fit> {
    let window = patterns.first().ok_or_else(no_patterns)?.window();
    let design = joint_design(family, patterns, regression)?;
    check_bounded(family, &design)?;
    let summit = maximise(&start(&design), &family.names(), |at| regression.expand(&design, at))?;
    let Summit { coefficients, value, covariance } = summit;
    Ok(Fit {
        model: Gibbs::new(*family, window, coefficients)?,
        objective: value,
        num_points: design.num_data(),
        curvature_errors: (0..design.dim).map(|j| covariance.at(j, j).sqrt()).collect(),
    })
}

fn no_patterns() -> Error {
    Error::refused("there is no pattern to fit").with_help("give at least one")
}

/// The rows of all patterns.
pub(crate) fn joint_design(
    family: &Family,
    patterns: &[Pattern],
    regression: Regression,
) -> Result<Design> {
    let parts = patterns.par_iter().map(|pattern| regression.design(family, pattern));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let design = Design::join(parts);
    check_points(design.num_data(), family.interaction.reach())?;
    Ok(design)
}

/// Statistics of interactions are never negative. Where one is 0 at every data point but not everywhere, its
/// coefficient falls for ever.
fn check_bounded(family: &Family, design: &Design) -> Result<()> {
    let first = family.trend.names().len();
    let is_seen = |j: usize| design.rows().any(|(row, _, is_data)| is_data && row[j] > 0.0);
    match (first..design.dim).find(|&j| !is_seen(j)) {
        None => Ok(()),
        Some(j) => {
            let name = &family.names()[j];
            let message =
                format!("no data point has the statistic `{name}`: its coefficient is −∞");
            Err(Error::failed(message)
                .with_help("no two points are within the radius: lengthen it, or fit a hard core"))
        }
    }
}

/// The Poisson process of the same mean number of points.
fn start(design: &Design) -> Vec<f64> {
    let total: f64 = design.weights.iter().sum();
    let mut start = vec![0.0; design.dim];
    start[0] = (design.num_data() as f64 / total).ln();
    start
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// log PL, its gradient and −∇².
fn pseudolikelihood(design: &Design, at: &[f64]) -> Expansion {
    let mut expansion = Expansion::zero(design.dim);
    for (row, weight, is_data) in design.rows() {
        let log_intensity = dot(row, at);
        let mass = weight * log_intensity.exp();
        expansion.value += if is_data { log_intensity - mass } else { -mass };
        expansion.add(row, f64::from(u8::from(is_data)) - mass, mass);
    }
    expansion
}

/// The same of the logistic likelihood; ρ = 1/w.
fn logistic_likelihood(design: &Design, at: &[f64]) -> Expansion {
    let mut expansion = Expansion::zero(design.dim);
    for (row, weight, is_data) in design.rows() {
        // p = λ/(λ + ρ), the logit of which is log λ + log w
        let logit = dot(row, at) + weight.ln();
        let share = 1.0 / (1.0 + (-logit).exp());
        // log p = −log(1 + exp(−logit)), log(1 − p) = −log(1 + exp logit)
        let softplus = |x: f64| if x > 30.0 { x } else { x.exp().ln_1p() };
        expansion.value -= softplus(if is_data { -logit } else { logit });
        expansion.add(row, f64::from(u8::from(is_data)) - share, share * (1.0 - share));
    }
    expansion
}

/// Standard errors of the coefficients by Godambe's information H⁻¹ J H⁻¹: J is the covariance of the
/// objective's gradient over `count` simulated data sets of as many patterns, H its mean curvature.
///
/// # Errors
///
/// As [`simulate`]; [`Error::Failed`] if the simulated patterns say nothing about a coefficient.
pub fn simulated_errors(
    fitted: &Fit,
    num_patterns: usize,
    regression: Regression,
    count: usize,
    (chain, stream): (&ChainSettings, Stream),
) -> Result<Vec<f64>> {
    let (family, at) = (*fitted.model.family(), fitted.model.coefficients());
    if fitted.model.is_poisson() && regression == Regression::Pseudolikelihood {
        return Ok(fitted.curvature_errors.clone());
    }
    let drawn = simulate(&fitted.model, count * num_patterns, chain, stream)?;
    let expansions = drawn
        .par_iter()
        .map(|pattern| Ok(regression.expand(&regression.design(&family, pattern)?, at)))
        .collect::<Result<Vec<_>>>()?;
    let mut total = Expansion::zero(at.len());
    let mut spread = Expansion::zero(at.len());
    let size = expansions.len() as f64;
    for one in &expansions {
        spread.add(&one.gradient, 0.0, 1.0 / size);
        let entries = total.information.entries_mut().iter_mut().zip(one.information.entries());
        entries.for_each(|(sum, entry)| *sum += entry / size);
    }
    let bread = inverse(&total)?;
    let dim = at.len();
    let meat = |i: usize, j: usize| spread.information.at(i.max(j), i.min(j));
    let error = |k: usize| {
        let mut sum = 0.0;
        for i in 0..dim {
            for j in 0..dim {
                sum += bread.at(k, i) * meat(i, j) * bread.at(j, k);
            }
        }
        (sum / num_patterns as f64).sqrt()
    };
    Ok((0..dim).map(error).collect())
}
