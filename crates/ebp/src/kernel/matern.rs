//! Matérn's kernels, whose functions have as many derivatives as the smoothness allows.
//!
//! ```text
//! a = √(2s) r/ℓ      s = 1/2: k = v e⁻ᵃ    s = 3/2: k = v (1 + a) e⁻ᵃ
//!                    s = 5/2: k = v (1 + a + a²/3) e⁻ᵃ
//! ```
//!
//! s is the usual ν, a letter that the Student-t process needs for its degrees of freedom.

use super::{Kernel, Pairs, add_differences, check_positive, from_logarithms, squared_distances};
use crate::Result;

/// How often functions drawn with a Matérn kernel can be differentiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smoothness {
    /// s = 1/2: continuous (the Ornstein–Uhlenbeck process).
    Half,
    /// s = 3/2: once.
    ThreeHalves,
    /// s = 5/2: twice.
    FiveHalves,
}

impl Smoothness {
    /// √(2s).
    fn rate(self) -> f64 {
        match self {
            Self::Half => 1.0,
            Self::ThreeHalves => 3_f64.sqrt(),
            Self::FiveHalves => 5_f64.sqrt(),
        }
    }

    /// k/(v e⁻ᵃ).
    fn polynomial(self, a: f64) -> f64 {
        match self {
            Self::Half => 1.0,
            Self::ThreeHalves => 1.0 + a,
            Self::FiveHalves => 1.0 + a * (1.0 + a / 3.0),
        }
    }

    /// (∂k/∂log ℓ)/(v e⁻ᵃ) = −a (P′ − P) for k = v P e⁻ᵃ.
    fn slope(self, a: f64) -> f64 {
        match self {
            Self::Half => a,
            Self::ThreeHalves => a * a,
            Self::FiveHalves => a * a * (1.0 + a) / 3.0,
        }
    }
}

/// k(t, t′) = v P(a) e⁻ᵃ with a = √(2s) ‖t − t′‖/ℓ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matern {
    smoothness: Smoothness,
    signal_variance: f64,
    length_scale: f64,
}

impl Matern {
    /// From s, v and ℓ; s is not fitted.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if v or ℓ is not positive and finite.
    pub fn new(smoothness: Smoothness, signal_variance: f64, length_scale: f64) -> Result<Self> {
        Ok(Self {
            smoothness,
            signal_variance: check_positive("signal_variance", signal_variance)?,
            length_scale: check_positive("length_scale", length_scale)?,
        })
    }
}

impl Kernel for Matern {
    fn parameter_names(&self) -> Vec<&'static str> {
        vec!["signal_variance", "length_scale"]
    }

    fn log_parameters(&self) -> Vec<f64> {
        vec![self.signal_variance.ln(), self.length_scale.ln()]
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        let [signal_variance, length_scale] = from_logarithms(log_parameters)?;
        Ok(Box::new(Self::new(self.smoothness, signal_variance, length_scale)?))
    }

    fn variance(&self, _location: &[f64]) -> f64 {
        self.signal_variance
    }

    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]) {
        let scale = self.smoothness.rate() / self.length_scale;
        for (k, r2) in out.iter_mut().zip(squared_distances(location, others)) {
            // k = v P(a) e⁻ᵃ
            let a = scale * r2.sqrt();
            *k = self.signal_variance * self.smoothness.polynomial(a) * (-a).exp();
        }
    }

    fn add_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        let scale = self.smoothness.rate() / self.length_scale;
        let (mut by_variance, mut by_length) = (0.0, 0.0);
        for (weight, r2) in pairs.weights.iter().zip(pairs.squares()) {
            // ∂k/∂log v = k,  ∂k/∂log ℓ = v (P − P′) a e⁻ᵃ
            let a = scale * r2.sqrt();
            let decay = weight * (-a).exp();
            by_variance += decay * self.smoothness.polynomial(a);
            by_length += decay * self.smoothness.slope(a);
        }
        gradient[0] += self.signal_variance * by_variance;
        gradient[1] += self.signal_variance * by_length;
    }

    fn add_location_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        let scale = self.smoothness.rate() / self.length_scale;
        let distances = squared_distances(pairs.location, pairs.others);
        // ∂k/∂t = −(∂k/∂log ℓ) (t − t′)/r², since k depends on r/ℓ alone
        let factors = pairs.weights.iter().zip(distances).map(|(weight, r2)| {
            let a = scale * r2.sqrt();
            let slope = self.smoothness.slope(a) * (-a).exp();
            if r2 > 0.0 { -weight * self.signal_variance * slope / r2 } else { 0.0 }
        });
        add_differences(pairs.location, pairs.others, factors, gradient);
    }
}
