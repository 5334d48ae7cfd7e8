//! A process of one number per element whose elements all correlate alike, in f64: the law of a latent
//! coordinate of BRUNO.
//!
//! ```text
//! z₁, …, zₙ ~ T(ν, μ, K)  or  N(μ, K),   K = v ((1 − ρ) I + ρ 11ᵀ),   0 < ρ < 1
//! ```
//!
//! The paper's kernel σ² I + 11ᵀ, in other units. What n elements say about the next one is carried by
//! four numbers, updated in O(1) (Korshunova et al., 2018):
//!
//! ```text
//! d = ρ/(1 + ρ (n − 1)),   m ← (1 − d) m + d z,   w ← (1 − d) w + d v (1 − ρ),   β ← β + (z − m)²/w
//! z_{n+1} | z₁…ₙ ~ T(ν + n, m, w (ν − 2 + β)/(ν − 2 + n))      or N(m, w)
//! ```
//!
//! and their joint density is closed: |K| = vⁿ (1 − ρ)ⁿ⁻¹ (1 + (n − 1) ρ) and
//! β = (Σc² − (Σc)² ρ/(1 + (n − 1) ρ))/(v (1 − ρ)) with c = z − μ.

use crate::process::exact::Family;
use crate::process::gaussian::Gaussian;
use crate::process::student_t::StudentT;
use crate::{Error, Result};

/// Elements that correlate alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeableLaw {
    /// μ.
    pub mean: f64,
    /// v: the variance of an element.
    pub variance: f64,
    /// ρ: the correlation of any two.
    pub correlation: f64,
    /// ν > 2; `None` for the Gaussian.
    pub degrees: Option<f64>,
}

/// What is known after n elements.
#[derive(Clone, Copy, Debug)]
pub struct Recurrent {
    law: ExchangeableLaw,
    count: usize,
    mean: f64,
    variance: f64,
    form: f64,
}

/// Derivatives of log p(z₁, …, zₙ).
#[derive(Clone, Copy, Debug, Default)]
pub struct LawSlopes {
    /// By μ.
    pub mean: f64,
    /// By log v.
    pub log_variance: f64,
    /// By the logit of ρ.
    pub logit_correlation: f64,
    /// By log(ν − 2); 0 of the Gaussian.
    pub log_degrees: f64,
}

impl ExchangeableLaw {
    /// From real numbers: μ, log v, the logit of ρ and, of the Student-t process, log(ν − 2).
    pub fn from_real(mean: f64, log_variance: f64, logit: f64, log_degrees: Option<f64>) -> Self {
        Self {
            mean,
            variance: log_variance.exp(),
            correlation: 1.0 / (1.0 + (-logit).exp()),
            degrees: log_degrees.map(|log| 2.0 + log.exp()),
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the number that is outside its range.
    pub fn check(&self) -> Result<()> {
        if !self.mean.is_finite() {
            return Err(Error::invalid("mean", "finite", self.mean));
        }
        if !(self.variance > 0.0 && self.variance.is_finite()) {
            return Err(Error::invalid("variance", "positive and finite", self.variance));
        }
        if !(self.correlation > 0.0 && self.correlation < 1.0) {
            return Err(Error::invalid("correlation", "between 0 and 1", self.correlation));
        }
        match self.degrees {
            Some(degrees) if !(degrees > 2.0 && degrees.is_finite()) => {
                Err(Error::invalid("degrees", "above 2 and finite", degrees))
            }
            _ => Ok(()),
        }
    }

    /// What is known before any element.
    pub fn start(self) -> Recurrent {
        Recurrent { law: self, count: 0, mean: self.mean, variance: self.variance, form: 0.0 }
    }

    /// log |K| and β of n elements with Σc and Σc².
    fn determinant_and_form(&self, n: f64, sum: f64, squares: f64) -> (f64, f64) {
        let (v, rho) = (self.variance, self.correlation);
        let spread = 1.0 + (n - 1.0) * rho;
        let log_determinant = n * v.ln() + (n - 1.0) * (-rho).ln_1p() + spread.ln();
        (log_determinant, (squares - sum * sum * rho / spread) / (v * (1.0 - rho)))
    }

    /// log p(z₁, …, zₙ) in closed form; 0 for none.
    pub fn log_density(&self, values: impl Iterator<Item = f64> + Clone) -> f64 {
        let n = values.clone().count();
        if n == 0 {
            return 0.0;
        }
        let centred = values.map(|z| z - self.mean);
        let (sum, squares) = centred.fold((0.0, 0.0), |(s, q), c| (s + c, q + c * c));
        let (log_determinant, form) = self.determinant_and_form(n as f64, sum, squares);
        match self.degrees {
            Some(degrees) => StudentT { degrees }.log_density(n as f64, log_determinant, form),
            None => Gaussian.log_density(n as f64, log_determinant, form),
        }
    }

    /// The same with its derivatives: those by zᵢ are written to `slopes`, `[n]` at a stride.
    pub fn log_density_and_slopes(
        &self,
        values: impl ExactSizeIterator<Item = f64> + Clone,
        slopes: &mut dyn FnMut(usize, f64),
    ) -> (f64, LawSlopes) {
        let count = values.len();
        if count == 0 {
            return (0.0, LawSlopes::default());
        }
        let (n, v, rho) = (count as f64, self.variance, self.correlation);
        let centred = values.map(|z| z - self.mean);
        let (sum, squares) = centred.clone().fold((0.0, 0.0), |(s, q), c| (s + c, q + c * c));
        let (log_determinant, form) = self.determinant_and_form(n, sum, squares);
        let marginal = match self.degrees {
            Some(degrees) => StudentT { degrees }.marginal(count, log_determinant, &[form]),
            None => Gaussian.marginal(count, log_determinant, &[form]),
        };
        // s = −2 ∂ log p/∂β
        let (scale, spread) = (marginal.scales[0], 1.0 + (n - 1.0) * rho);
        let inverse = 1.0 / (v * (1.0 - rho));
        let share = sum * rho / spread;
        let mut total = 0.0;
        for (place, c) in centred.enumerate() {
            let slope = -scale * inverse * (c - share);
            total += slope;
            slopes(place, slope);
        }
        // ∂ log |K|/∂ρ = (n − 1) (1/(1 + (n−1) ρ) − 1/(1 − ρ));
        // ∂β/∂ρ = β/(1 − ρ) − (Σc)²/(v (1 − ρ) (1 + (n−1) ρ)²)
        let by_determinant = (n - 1.0) * (1.0 / spread - 1.0 / (1.0 - rho));
        let by_form = form / (1.0 - rho) - inverse * (sum / spread).powi(2);
        let by_correlation = -0.5 * (by_determinant + scale * by_form);
        let of_law = LawSlopes {
            mean: -total,
            log_variance: 0.5 * (scale * form - n),
            logit_correlation: rho * (1.0 - rho) * by_correlation,
            log_degrees: marginal.gradient.first().copied().unwrap_or(0.0),
        };
        (marginal.value, of_law)
    }
}

impl Recurrent {
    /// The law of the next element: its mean, variance and degrees of freedom.
    pub fn moments(&self) -> (f64, f64, Option<f64>) {
        match self.law.degrees {
            None => (self.mean, self.variance, None),
            Some(degrees) => {
                let n = self.count as f64;
                let widening = (degrees - 2.0 + self.form) / (degrees - 2.0 + n);
                (self.mean, widening * self.variance, Some(degrees + n))
            }
        }
    }

    /// log p(z | those before).
    pub fn log_density(&self, value: f64) -> f64 {
        let (mean, variance, degrees) = self.moments();
        let form = (value - mean).powi(2) / variance;
        match degrees {
            Some(degrees) => StudentT { degrees }.log_density(1.0, variance.ln(), form),
            None => Gaussian.log_density(1.0, variance.ln(), form),
        }
    }

    /// One more element.
    pub fn update(&mut self, value: f64) {
        let ExchangeableLaw { variance, correlation: rho, .. } = self.law;
        let innovation = value - self.mean;
        self.form += innovation * innovation / self.variance;
        let share = rho / (1.0 + rho * self.count as f64);
        self.mean += share * innovation;
        self.variance += share * (variance * (1.0 - rho) - self.variance);
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexedSet;
    use crate::kernel::Constant;
    use crate::process::{ExactProcess, ExactProcessConfig, GaussianProcess, StudentTProcess};

    const VALUES: [f64; 6] = [0.4, -1.3, 2.2, 0.1, 5.0, -0.6];

    fn laws() -> [ExchangeableLaw; 4] {
        let law = |mean, variance, correlation, degrees| ExchangeableLaw {
            mean,
            variance,
            correlation,
            degrees,
        };
        [
            law(0.3, 1.7, 0.4, None),
            law(-0.2, 0.6, 0.93, Some(4.5)),
            law(0.0, 2.0, 1e-3, Some(400.0)),
            law(0.1, 1.0, 0.999, None),
        ]
    }

    #[test]
    fn the_recurrence_is_the_closed_form_for_every_number_of_elements() {
        for law in laws() {
            law.check().unwrap();
            let (mut state, mut total) = (law.start(), 0.0);
            for n in 0..=VALUES.len() {
                let closed = law.log_density(VALUES[..n].iter().copied());
                assert!((total - closed).abs() < 1e-11 * closed.abs().max(1.0), "{total} {closed}");
                if let Some(&z) = VALUES.get(n) {
                    let next = law.log_density(VALUES[..=n].iter().copied()) - closed;
                    assert!((state.log_density(z) - next).abs() < 1e-10);
                    total += state.log_density(z);
                    state.update(z);
                }
            }
        }
    }

    /// K = ρ v 11ᵀ + (1 − ρ) v I is a constant kernel with noise: the exact processes of this library.
    #[test]
    fn it_is_a_process_with_a_constant_kernel() {
        for law in laws() {
            let kernel = Box::new(Constant::new(law.variance * law.correlation).unwrap());
            let noise_variance = law.variance * (1.0 - law.correlation);
            let config = ExactProcessConfig { noise_variance, ..ExactProcessConfig::default() };
            let values: Vec<f64> = VALUES.iter().map(|z| z - law.mean).collect();
            let set = IndexedSet::new(1, 1, vec![0.0; values.len()], values).unwrap();
            let expected = match law.degrees {
                None => GaussianProcess::new(kernel, &config).unwrap().log_marginal(&set),
                Some(nu) => StudentTProcess::new(kernel, &config, nu).unwrap().log_marginal(&set),
            };
            let (expected, found) = (expected.unwrap(), law.log_density(VALUES.iter().copied()));
            assert!((found - expected).abs() < 1e-8 * expected.abs(), "{found} {expected}");
        }
    }

    #[test]
    fn slopes_equal_differences() {
        let at = [0.3_f64, 0.2, -0.4, 0.7];
        for has_degrees in [false, true] {
            let law = |p: &[f64; 4]| {
                ExchangeableLaw::from_real(p[0], p[1], p[2], has_degrees.then_some(p[3]))
            };
            let mut by_value = [0.0; VALUES.len()];
            let (value, of_law) =
                law(&at).log_density_and_slopes(VALUES.iter().copied(), &mut |i, slope| {
                    by_value[i] = slope;
                });
            assert!((value - law(&at).log_density(VALUES.iter().copied())).abs() < 1e-13);
            let found =
                [of_law.mean, of_law.log_variance, of_law.logit_correlation, of_law.log_degrees];
            let h = 1e-5;
            for (place, found) in found.iter().enumerate() {
                let moved = |step: f64| {
                    let mut p = at;
                    p[place] += step;
                    law(&p).log_density(VALUES.iter().copied())
                };
                let expected = (moved(h) - moved(-h)) / (2.0 * h);
                assert!((found - expected).abs() < 1e-8, "{place}: {found} {expected}");
            }
            for (place, found) in by_value.iter().enumerate() {
                let moved = |step: f64| {
                    let mut values = VALUES;
                    values[place] += step;
                    law(&at).log_density(values.iter().copied())
                };
                let expected = (moved(h) - moved(-h)) / (2.0 * h);
                assert!((found - expected).abs() < 1e-8, "{place}: {found} {expected}");
            }
        }
    }

    #[test]
    fn ranges_are_checked() {
        let [law, ..] = laws();
        assert!(ExchangeableLaw { correlation: 1.0, ..law }.check().is_err());
        assert!(ExchangeableLaw { variance: -1.0, ..law }.check().is_err());
        assert!(ExchangeableLaw { degrees: Some(2.0), ..law }.check().is_err());
        assert!(ExchangeableLaw { mean: f64::NAN, ..law }.check().is_err());
    }
}
