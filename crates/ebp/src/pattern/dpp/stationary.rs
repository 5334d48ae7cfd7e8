//! Stationary determinantal processes in a rectangle (Lavancier, Møller and Rubak, 2015).
//!
//! ```text
//! C(x) = ρ R(‖x‖/α),  φ its Fourier transform, 0 ≤ φ ≤ 1
//! Gaussian  R = exp(−s²)                         φ(0) = ρ π α²
//! Matérn    R = 2^{1−ν}/Γ(ν) s^ν K_ν(s)          φ(0) = 4π ρ α² ν
//! Cauchy    R = (1 + s²)^{−ν−1}                  φ(0) = ρ π α²/ν
//! log-likelihood = Σ_k log(1 − φ_k) + log det[C̃(xᵢ − xⱼ)],  C̃(x) = |W|⁻¹ Σ_k φ_k/(1 − φ_k) cos 2π k·x/l
//! ```
//!
//! The window is taken as a torus: frequencies are k/l for whole k, up to a rectangle of them that holds
//! 99.999 % of ρ, or 48 either way. The likelihood is the log of the Janossy density. ρ is fitted by n/|W|, α
//! by the likelihood. Points are drawn one by one from the projection onto chosen frequencies.

use std::f64::consts::{PI, TAU};

use crate::linalg::{Cholesky, Matrix};
use crate::pattern::draws::Draws;
use crate::pattern::window::{Pattern, Window};
use crate::rng::Stream;
use crate::{Error, Result};

/// Frequencies either way at most.
const MOST_FREQUENCIES: usize = 48;
/// The share of ρ that frequencies hold: what is cut off decides how the kernel meets its top, and so how near
/// points may come.
const HELD: f64 = 0.999_99;
/// A fit does not look at kernels so short that 48 frequencies hold less.
const LEAST_HELD: f64 = 0.99;
/// Places at which a fit looks first.
const SCAN: usize = 20;
/// α as a share of its limit: at 1 the likelihood of some patterns is 0.
const SCALES: [f64; 2] = [0.02, 0.999];

/// The shape of the correlation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DppKernel {
    /// exp(−s²).
    Gaussian,
    /// Whittle and Matérn's.
    Matern,
    /// A power.
    Cauchy,
}

/// A stationary determinantal process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationaryDpp {
    kernel: DppKernel,
    shape: f64,
    intensity: f64,
    scale: f64,
    window: Window,
}

/// What a fit has found.
#[derive(Clone, Debug)]
pub struct DppFit {
    /// At the maximum.
    pub model: StationaryDpp,
    /// Of ρ, from the variance of n under the model.
    pub intensity_error: f64,
    /// Of α, from the curvature of the likelihood; none at a limit of α.
    pub scale_error: Option<f64>,
    /// Of the data.
    pub log_likelihood: f64,
}

impl StationaryDpp {
    /// With intensity ρ, scale α and shape ν (which a Gaussian does not have).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless all are positive and α is below [`greatest_scale`](Self::greatest_scale).
    ///
    /// ```
    /// use ebp::pattern::{DppKernel, StationaryDpp, Window};
    ///
    /// // φ(0) = ρ π α² ≤ 1.
    /// let limit = StationaryDpp::greatest_scale(DppKernel::Gaussian, 1.0, 100.0);
    /// assert!((limit - 1.0 / (100.0 * std::f64::consts::PI).sqrt()).abs() < 1e-15);
    /// assert!(StationaryDpp::new(DppKernel::Gaussian, 1.0, [100.0, 1.1 * limit], Window::unit()).is_err());
    /// ```
    pub fn new(
        kernel: DppKernel,
        shape: f64,
        [intensity, scale]: [f64; 2],
        window: Window,
    ) -> Result<Self> {
        for (name, value) in [("shape", shape), ("intensity", intensity), ("scale", scale)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::invalid(name, "positive and finite", value));
            }
        }
        let limit = Self::greatest_scale(kernel, shape, intensity);
        if scale >= limit {
            return Err(Error::invalid("scale", format!("below {limit} at this intensity"), scale));
        }
        Ok(Self { kernel, shape, intensity, scale, window })
    }

    /// The α at which φ(0) = 1.
    pub fn greatest_scale(kernel: DppKernel, shape: f64, intensity: f64) -> f64 {
        match kernel {
            DppKernel::Gaussian => (PI * intensity).sqrt().recip(),
            DppKernel::Matern => (4.0 * PI * shape * intensity).sqrt().recip(),
            DppKernel::Cauchy => (shape / (PI * intensity)).sqrt(),
        }
    }

    /// ρ and α.
    pub fn parameters(&self) -> [f64; 2] {
        [self.intensity, self.scale]
    }

    /// Where it lives.
    pub fn window(&self) -> Window {
        self.window
    }

    /// φ at a frequency of length `frequency`.
    fn spectral_density(&self, frequency: f64) -> f64 {
        let Self { shape, intensity, scale, .. } = *self;
        match self.kernel {
            DppKernel::Gaussian => {
                intensity * PI * scale * scale * (-(PI * scale * frequency).powi(2)).exp()
            }
            DppKernel::Matern => {
                let s = TAU * scale * frequency;
                4.0 * PI * intensity * scale * scale * shape * (1.0 + s * s).powf(-shape - 1.0)
            }
            DppKernel::Cauchy => {
                let s = TAU * scale * frequency;
                let at_zero = intensity * PI * scale * scale / shape;
                // s^ν K_ν(s) is 2^{ν−1} Γ(ν) at 0.
                at_zero * scaled_bessel(shape, s)
            }
        }
    }

    /// R(r/α): pairs at distance r have correlation 1 − R².
    pub fn correlation(&self, distance: f64) -> f64 {
        let s = distance / self.scale;
        match self.kernel {
            DppKernel::Gaussian => (-s * s).exp(),
            DppKernel::Matern => scaled_bessel(self.shape, s),
            DppKernel::Cauchy => (1.0 + s * s).powf(-self.shape - 1.0),
        }
    }

    /// (k₁, k₂) and φ_k of all frequencies that are kept, and their sum over ρ |W|.
    fn frequencies(&self) -> (Vec<([f64; 2], f64)>, f64) {
        let [width, height] = self.window.lengths();
        let wanted = HELD * self.intensity * self.window.area();
        let density = |k: i32, l: i32| {
            self.spectral_density((f64::from(k) / width).hypot(f64::from(l) / height))
        };
        // A square of frequencies in units of 1/length, grown ring by ring.
        let longest = width.max(height);
        let mut all = vec![([0.0, 0.0], density(0, 0))];
        let mut sum = all[0].1;
        let (mut inner, mut ring) = ([0_i32; 2], 0_usize);
        while sum < wanted && ring < MOST_FREQUENCIES {
            ring += 1;
            #[expect(clippy::cast_possible_truncation, reason = "at most 48")]
            let outer = [width, height].map(|side| (ring as f64 * side / longest).ceil() as i32);
            for k in -outer[0]..=outer[0] {
                for l in -outer[1]..=outer[1] {
                    if k.abs() > inner[0] || l.abs() > inner[1] {
                        let value = density(k, l);
                        sum += value;
                        all.push(([f64::from(k), f64::from(l)], value));
                    }
                }
            }
            inner = outer;
        }
        (all, sum / (self.intensity * self.window.area()))
    }

    /// The share of ρ that the kept frequencies hold: 1 − this is what the approximation loses.
    pub fn held_share(&self) -> f64 {
        self.frequencies().1
    }

    /// log of the Janossy density of a pattern.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the pattern lives in another window.
    pub fn log_likelihood(&self, pattern: &Pattern) -> Result<f64> {
        if pattern.window() != self.window {
            return Err(Error::invalid(
                "window",
                "that of the process",
                format!("{:?}", pattern.window()),
            ));
        }
        let (frequencies, _) = self.frequencies();
        let nothing: f64 = frequencies.iter().map(|(_, value)| (-value).ln_1p()).sum();
        let points = pattern.points();
        let (area, lengths) = (self.window.area(), self.window.lengths());
        // Rows of cosines and sines over one of k and −k: their products are cosines of differences.
        let half: Vec<_> = frequencies
            .iter()
            .filter(|([k, l], _)| *k > 0.0 || (*k == 0.0 && *l > 0.0))
            .map(|&(k, value)| (k, (2.0 * value / (1.0 - value) / area).sqrt()))
            .collect();
        let mut rows = Matrix::zeros(points.len(), 2 * half.len() + 1);
        let zero = frequencies[0].1;
        rows.column_mut(0).fill((zero / (1.0 - zero) / area).sqrt());
        // cos and sin of 2π k x/l for whole k along each axis, from which those of sums follow.
        for (row, point) in points.iter().enumerate() {
            let [along, up] = [0, 1].map(|axis| {
                let turn = TAU * point[axis] / lengths[axis];
                let one = |k: usize| (k as f64 * turn).sin_cos();
                (0..=MOST_FREQUENCIES).map(one).collect::<Vec<_>>()
            });
            for (number, &([k, l], root)) in half.iter().enumerate() {
                let ((a, b), (c, d)) = (table(&along, k), table(&up, l));
                rows.column_mut(2 * number + 1)[row] = root * (b * d - a * c);
                rows.column_mut(2 * number + 2)[row] = root * (a * d + b * c);
            }
        }
        let products = rows.products_of_rows();
        let size = points.len();
        let factor = Cholesky::new(Matrix::zeros(size, size), |k| {
            k.entries_mut().copy_from_slice(products.entries());
        });
        // Equal or nearly equal points have determinant 0.
        let determinant = factor
            .ok()
            .filter(|factor| factor.jitter() == 0.0)
            .map_or(f64::NEG_INFINITY, |factor| factor.log_determinant());
        Ok(nothing + determinant)
    }

    /// A pattern, drawn exactly from the process on the torus.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if rounding leaves no place for a point.
    pub fn simulate(&self, stream: Stream) -> Result<Pattern> {
        let mut draws = Draws::new(stream);
        let (frequencies, _) = self.frequencies();
        let lengths = self.window.lengths();
        let chosen: Vec<[f64; 2]> = frequencies
            .iter()
            .filter(|(_, value)| draws.uniform() <= *value)
            .map(|&([k, l], _)| [TAU * k / lengths[0], TAU * l / lengths[1]])
            .collect();
        let count = chosen.len();
        let mut points = Vec::with_capacity(count);
        // Orthonormal directions of the points so far, real and imaginary parts.
        let mut basis: Vec<Vec<[f64; 2]>> = Vec::with_capacity(count);
        while points.len() < count {
            let mut tries = 0;
            loop {
                tries += 1;
                if tries > 100_000 {
                    return Err(Error::failed("no place is left for another point"));
                }
                let place = self.window.draw(&mut draws);
                let mut vector: Vec<[f64; 2]> = chosen
                    .iter()
                    .map(|[k, l]| {
                        let (sine, cosine) = (k * place[0] + l * place[1]).sin_cos();
                        [cosine, sine]
                    })
                    .collect();
                for direction in &basis {
                    // ⟨e, v⟩ = Σ conj(e) v
                    let [re, im] =
                        direction.iter().zip(&vector).fold([0.0; 2], |[re, im], (e, v)| {
                            [re + e[0] * v[0] + e[1] * v[1], im + e[0] * v[1] - e[1] * v[0]]
                        });
                    for (v, e) in vector.iter_mut().zip(direction) {
                        v[0] -= re * e[0] - im * e[1];
                        v[1] -= re * e[1] + im * e[0];
                    }
                }
                let left: f64 = vector.iter().map(|[re, im]| re * re + im * im).sum();
                if draws.uniform() * count as f64 <= left {
                    let root = left.sqrt();
                    basis.push(vector.into_iter().map(|[re, im]| [re / root, im / root]).collect());
                    points.push(place);
                    break;
                }
            }
        }
        Pattern::new(self.window, points)
    }

    /// ρ = n/|W|, and the α of greatest likelihood: a scan of its range, then golden sections.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for fewer than two points; [`Error::InvalidValue`] for windows that differ.
    pub fn fit(kernel: DppKernel, shape: f64, patterns: &[Pattern]) -> Result<DppFit> {
        let count: usize = patterns.iter().map(|pattern| pattern.points().len()).sum();
        let Some(first) = patterns.first().filter(|_| count > 1) else {
            let message = format!("a determinantal process needs two points, found {count}");
            return Err(Error::refused(message));
        };
        let window = first.window();
        let intensity = count as f64 / (window.area() * patterns.len() as f64);
        let limit = Self::greatest_scale(kernel, shape, intensity);
        let at = |share: f64| Self::new(kernel, shape, [intensity, share * limit], window);
        let value = |share: f64| -> Result<f64> {
            let model = at(share)?;
            if model.held_share() < LEAST_HELD {
                return Ok(f64::NEG_INFINITY);
            }
            patterns.iter().map(|pattern| model.log_likelihood(pattern)).sum()
        };
        let [least, most] = SCALES;
        let place = |number: usize| least + (most - least) * number as f64 / SCAN as f64;
        let scan = (0..=SCAN).map(|number| value(place(number))).collect::<Result<Vec<_>>>()?;
        let best = (0..=SCAN).max_by(|&i, &j| scan[i].total_cmp(&scan[j])).unwrap_or(0);
        let (mut low, mut high) = (place(best.saturating_sub(1)), place((best + 1).min(SCAN)));
        let golden = 0.5 * (5_f64.sqrt() - 1.0);
        let (mut inner, mut outer) = (high - golden * (high - low), low + golden * (high - low));
        let (mut at_inner, mut at_outer) = (value(inner)?, value(outer)?);
        while high - low > 1e-5 {
            if at_inner >= at_outer {
                (high, outer, at_outer) = (outer, inner, at_inner);
                inner = high - golden * (high - low);
                at_inner = value(inner)?;
            } else {
                (low, inner, at_inner) = (inner, outer, at_outer);
                outer = low + golden * (high - low);
                at_outer = value(outer)?;
            }
        }
        let share = 0.5 * (low + high);
        let model = at(share)?;
        let log_likelihood = value(share)?;
        let step = 1e-3;
        let is_inside = share - step > least && share + step < most;
        let scale_error = if is_inside {
            let second = (value(share + step)? - 2.0 * log_likelihood + value(share - step)?)
                / (step * step);
            (second < 0.0).then(|| limit / (-second).sqrt())
        } else {
            None
        };
        // Var n = Σ φ (1 − φ)
        let variance: f64 = model.frequencies().0.iter().map(|(_, v)| v * (1.0 - v)).sum();
        let intensity_error = variance.sqrt() / (window.area() * (patterns.len() as f64).sqrt());
        Ok(DppFit { model, intensity_error, scale_error, log_likelihood })
    }
}

/// (sin, cos) of a whole frequency of either sign.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, at most 48")]
fn table(values: &[(f64, f64)], frequency: f64) -> (f64, f64) {
    let (sine, cosine) = values[frequency.abs() as usize];
    (frequency.signum() * sine, cosine)
}

/// 2^{1−ν}/Γ(ν) s^ν K_ν(s), which is 1 at 0, with K_ν(s) = ∫₀^∞ exp(−s cosh t) cosh(ν t) dt by the
/// trapezoidal rule, whose error falls faster than any power of its step.
fn scaled_bessel(order: f64, s: f64) -> f64 {
    const STEP: f64 = 1.0 / 32.0;
    if s < 1e-8 {
        return 1.0;
    }
    // cosh t ≥ eᵗ/2: beyond s cosh t = 750 + ν t nothing is left.
    let mut sum = 0.5 * (-s).exp();
    for number in 1..4096_u32 {
        let t = STEP * f64::from(number);
        let term = (order * t - s * t.cosh()).exp() + (-order * t - s * t.cosh()).exp();
        sum += 0.5 * term;
        if term < 1e-18 * sum {
            break;
        }
    }
    let bessel = STEP * sum;
    if bessel <= 0.0 {
        return 0.0;
    }
    ((1.0 - order) * 2_f64.ln() - libm::lgamma(order) + order * s.ln() + bessel.ln()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K_{1/2}(s) = √(π/(2s)) exp(−s), so that the scaled one is exp(−s); SciPy 1.17.1: kv(1.3, 0.7).
    #[test]
    fn bessel_functions_are_the_known_ones() {
        for s in [1e-3, 0.2, 1.0, 7.5, 40.0] {
            let found = scaled_bessel(0.5, s);
            assert!((found / (-s).exp() - 1.0).abs() < 1e-10, "{s}: {found}");
        }
    }

    /// ∫ φ = C(0) = ρ, by the sum over a fine lattice of frequencies.
    #[test]
    fn spectral_densities_integrate_to_the_intensity() {
        let window = Window::new([[0.0, 4.0], [0.0, 4.0]]).unwrap();
        for (kernel, shape) in
            [(DppKernel::Gaussian, 1.0), (DppKernel::Matern, 2.0), (DppKernel::Cauchy, 1.5)]
        {
            let limit = StationaryDpp::greatest_scale(kernel, shape, 5.0);
            let model = StationaryDpp::new(kernel, shape, [5.0, 0.7 * limit], window).unwrap();
            assert!((model.held_share() - 1.0).abs() < 2e-3, "{kernel:?} {}", model.held_share());
            assert!((model.correlation(1e-9) - 1.0).abs() < 1e-6);
        }
    }
}
