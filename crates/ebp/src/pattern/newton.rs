//! Newton's method for a concave function of a few coefficients.
//!
//! ```text
//! θ' = θ + step · I(θ)⁻¹ ∇ℓ(θ),   I = −∇²ℓ,   step = 1, ½, ¼, … until ℓ rises
//! ```
//!
//! For generalised linear models this is iteratively reweighted least squares.

use crate::linalg::{Cholesky, Matrix};
use crate::{Error, Result};

/// Steps at most; concave functions need about ten.
const MOST_STEPS: usize = 60;
/// How often a step is halved.
const MOST_HALVINGS: usize = 40;
/// A predicted rise ½ gᵀ I⁻¹ g of this size, relative to max(1, |ℓ|), is rounding.
const NEGLIGIBLE: f64 = 1e-13;

/// ℓ, ∇ℓ and −∇²ℓ at some θ.
#[derive(Clone, Debug)]
pub(crate) struct Expansion {
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
    /// −∇²ℓ, lower triangle.
    pub(crate) information: Matrix,
}

impl Expansion {
    pub(crate) fn zero(dim: usize) -> Self {
        Self { value: 0.0, gradient: vec![0.0; dim], information: Matrix::zeros(dim, dim) }
    }

    /// Adds `slope` · t to the gradient and `curvature` · t tᵀ to the information.
    pub(crate) fn add(&mut self, row: &[f64], slope: f64, curvature: f64) {
        for (j, &t) in row.iter().enumerate() {
            self.gradient[j] += slope * t;
            let scaled = curvature * t;
            let column = &mut self.information.column_mut(j)[j..];
            column.iter_mut().zip(&row[j..]).for_each(|(entry, other)| *entry += scaled * other);
        }
    }
}

/// The greatest value, where it is, and I⁻¹ there.
#[derive(Clone, Debug)]
pub(crate) struct Summit {
    pub(crate) coefficients: Vec<f64>,
    pub(crate) value: f64,
    /// I⁻¹, both triangles.
    pub(crate) covariance: Matrix,
}

/// Climbs from `start`. `names` are of the coefficients, for the error that says which of them has no end.
pub(crate) fn maximise(
    start: &[f64],
    names: &[String],
    mut expand: impl FnMut(&[f64]) -> Expansion,
) -> Result<Summit> {
    let mut at = start.to_vec();
    let mut expansion = expand(&at);
    for _ in 0..MOST_STEPS {
        let direction = solve(&expansion)?;
        let rise: f64 = direction.iter().zip(&expansion.gradient).map(|(d, g)| d * g).sum();
        if !rise.is_finite() {
            break;
        }
        if 0.5 * rise <= NEGLIGIBLE * expansion.value.abs().max(1.0) {
            let covariance = inverse(&expansion)?;
            return Ok(Summit { coefficients: at, value: expansion.value, covariance });
        }
        let mut step = 1.0;
        let mut found = None;
        for _ in 0..MOST_HALVINGS {
            let trial: Vec<f64> = at.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
            let next = expand(&trial);
            if next.value >= expansion.value + 1e-4 * step * rise {
                found = Some((trial, next));
                break;
            }
            step *= 0.5;
        }
        match found {
            Some((trial, next)) => (at, expansion) = (trial, next),
            // Rounding: as near as it gets.
            None if 0.5 * rise <= 1e-8 * expansion.value.abs().max(1.0) => {
                let covariance = inverse(&expansion)?;
                return Ok(Summit { coefficients: at, value: expansion.value, covariance });
            }
            None => break,
        }
        if at.iter().any(|x| x.abs() > 1e4) {
            break;
        }
    }
    let (largest, value) = at
        .iter()
        .enumerate()
        .fold((0, 0.0_f64), |best, (i, x)| if x.abs() > best.1.abs() { (i, *x) } else { best });
    let name = names.get(largest).map_or("a coefficient", String::as_str);
    Err(Error::failed(format!("the likelihood has no maximum: `{name}` reached {value:.3e}")).with_help(
        "the data do not bound this coefficient, as when no pair is within the radius: change the radius, \
         or take a hard core",
    ))
}

/// I⁻¹ g. A singular matrix has no maximum, or many.
pub(crate) fn solve(expansion: &Expansion) -> Result<Vec<f64>> {
    let dim = expansion.gradient.len();
    let cholesky = factor(expansion)?;
    let mut right = Matrix::zeros(dim, 1);
    right.entries_mut().copy_from_slice(&expansion.gradient);
    cholesky.solve_lower(&mut right);
    cholesky.solve_upper(&mut right);
    Ok(right.entries().to_vec())
}

pub(crate) fn inverse(expansion: &Expansion) -> Result<Matrix> {
    let dim = expansion.gradient.len();
    let (mut inverse, _) = factor(expansion)?.into_inverse(Matrix::zeros(dim, dim));
    for j in 0..dim {
        for i in 0..j {
            let entry = inverse.at(j, i);
            inverse.column_mut(j)[i] = entry;
        }
    }
    Ok(inverse)
}

fn factor(expansion: &Expansion) -> Result<Cholesky> {
    let dim = expansion.gradient.len();
    let all = expansion.information.entries();
    if !all.iter().all(|entry| entry.is_finite()) {
        return Err(Error::failed("the information of the coefficients is not finite")
            .with_help("rescale the coordinates, or leave the trend out"));
    }
    if let Some(flat) = (0..dim).find(|&j| expansion.information.at(j, j) <= 0.0) {
        return Err(Error::failed(format!("the data say nothing about coefficient {flat}"))
            .with_help(
                "no quadrature point has this statistic: change the radius, or use a larger window",
            ));
    }
    Cholesky::new(Matrix::zeros(dim, dim), |k| k.entries_mut().copy_from_slice(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ℓ = 3 θ − exp θ has its maximum at ln 3, and I = 3 there.
    #[test]
    fn climbs_to_the_maximum_and_knows_its_curvature() {
        let expand = |at: &[f64]| {
            let mut expansion = Expansion::zero(1);
            expansion.value = 3.0 * at[0] - at[0].exp();
            expansion.add(&[1.0], 3.0 - at[0].exp(), at[0].exp());
            expansion
        };
        let summit = maximise(&[-4.0], &["a".into()], expand).unwrap();
        assert!((summit.coefficients[0] - 3_f64.ln()).abs() < 1e-7);
        assert!((summit.covariance.at(0, 0) - 1.0 / 3.0).abs() < 1e-6);
    }

    /// ℓ = −exp(−θ) rises for ever.
    #[test]
    fn a_function_without_maximum_is_an_error_that_names_the_coefficient() {
        let expand = |at: &[f64]| {
            let mut expansion = Expansion::zero(1);
            expansion.value = -(-at[0]).exp();
            expansion.add(&[1.0], (-at[0]).exp(), (-at[0]).exp());
            expansion
        };
        // Rises below 10⁻¹³ end the climb, so the slope is made larger.
        let steep = |at: &[f64]| {
            let mut expansion = expand(at);
            expansion.value = at[0];
            expansion.gradient[0] = 1.0;
            expansion
        };
        let error = maximise(&[0.0], &["interaction".into()], steep).unwrap_err();
        assert!(error.to_string().contains("interaction"), "{error}");
    }
}
