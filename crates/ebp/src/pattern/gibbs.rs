//! Gibbs point processes by their conditional intensity.
//!
//! ```text
//! p(x₁, …, x_n) = exp(α · Σᵢ z(xᵢ) + θ · T(X)) / Z      against the Poisson process of rate 1
//! λ(u | X)      = p(X ∪ u)/p(X) = exp(α · z(u) + θ · t(u, X))
//! ```
//!
//! z = 1, or (1, x, y) for a trend. A [`DeepSets`] potential may be added to the exponent. λ needs no Z:
//! fitting and simulation are built on it.

use std::sync::Arc;

use super::deep_sets::DeepSets;
use super::interaction::Interaction;
use super::near::Near;
use super::window::{Pattern, Window};
use crate::{Error, Result};

/// What the intensity does without interaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Trend {
    /// z = 1.
    #[default]
    Constant,
    /// z = (1, x, y).
    LogLinear,
}

impl Trend {
    /// Names of the numbers of z.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Constant => &["intercept"],
            Self::LogLinear => &["intercept", "x", "y"],
        }
    }

    /// Writes z(u).
    fn write(self, [x, y]: [f64; 2], out: &mut [f64]) {
        match self {
            Self::Constant => out[0] = 1.0,
            Self::LogLinear => out.copy_from_slice(&[1.0, x, y]),
        }
    }
}

/// The form of a Gibbs process: what α and θ are coefficients of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// z.
    pub trend: Trend,
    /// t.
    pub interaction: Interaction,
}

impl Family {
    /// How many coefficients it has.
    pub fn num_coefficients(&self) -> usize {
        self.trend.names().len() + self.interaction.num_statistics()
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        let trend = self.trend.names().iter().map(|&name| name.to_owned());
        trend.chain(self.interaction.names()).collect()
    }

    /// Writes (z(u), t(u, X without `skip`)); `false` if λ is 0.
    pub(crate) fn statistics(
        &self,
        place: [f64; 2],
        near: &Near,
        skip: Option<usize>,
        out: &mut [f64],
    ) -> bool {
        let (trend, interaction) = out.split_at_mut(self.trend.names().len());
        self.trend.write(place, trend);
        self.interaction.statistics(place, near, skip, interaction)
    }

    /// (Σ z(xᵢ), T(X)): the sufficient statistic of the pattern; `None` if a hard core is broken.
    pub fn totals(&self, pattern: &Pattern) -> Option<Vec<f64>> {
        let mut totals = vec![0.0; self.trend.names().len()];
        let mut one = totals.clone();
        for &point in pattern.points() {
            self.trend.write(point, &mut one);
            totals.iter_mut().zip(&one).for_each(|(sum, z)| *sum += z);
        }
        totals.extend(self.interaction.totals(pattern)?);
        Some(totals)
    }

    /// The same, with what is wrong where a hard core is broken.
    pub(crate) fn totals_or_error(&self, pattern: &Pattern) -> Result<Vec<f64>> {
        self.totals(pattern).ok_or_else(|| {
            let found = format!("two points {} apart", pattern.least_distance());
            Error::invalid("the hard core", "kept by the data", found)
        })
    }
}

/// A Gibbs process in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Gibbs {
    family: Family,
    window: Window,
    coefficients: Vec<f64>,
    deep: Option<Arc<DeepSets>>,
}

impl Gibbs {
    /// With `coefficients` (α, θ).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for a radius that is not positive, and coefficients that are not as many
    /// finite numbers as the family has.
    ///
    /// ```
    /// use ebp::pattern::{Family, Gibbs, Interaction, Pattern, Trend, Window};
    ///
    /// // β = 100, γ = ½ within 0.1.
    /// let family = Family { trend: Trend::Constant, interaction: Interaction::Strauss { radius: 0.1 } };
    /// let strauss = Gibbs::new(family, Window::unit(), vec![100_f64.ln(), 0.5_f64.ln()])?;
    /// let pattern = Pattern::new(Window::unit(), vec![[0.5, 0.5], [0.55, 0.5]])?;
    /// let intensity = strauss.intensity(&pattern, [0.5, 0.55]);
    /// assert!((intensity - 25.0).abs() < 1e-9);
    /// # Ok::<(), ebp::Error>(())
    /// ```
    pub fn new(family: Family, window: Window, coefficients: Vec<f64>) -> Result<Self> {
        family.interaction.check()?;
        let count = family.num_coefficients();
        if coefficients.len() != count || !coefficients.iter().all(|c| c.is_finite()) {
            let expected = format!("{count} finite numbers");
            return Err(Error::invalid("coefficients", expected, format!("{coefficients:?}")));
        }
        Ok(Self { family, window, coefficients, deep: None })
    }

    /// The same with a Deep Sets potential beside what it has.
    #[must_use]
    pub fn with_deep_sets(self, deep: DeepSets) -> Self {
        Self { deep: Some(Arc::new(deep)), ..self }
    }

    /// The Deep Sets potential, where it has one.
    pub fn deep_sets(&self) -> Option<&DeepSets> {
        self.deep.as_deref()
    }

    /// Whether points do not act on each other.
    pub fn is_poisson(&self) -> bool {
        self.family.interaction == Interaction::None && self.deep.is_none()
    }

    /// The same with another intercept: λ is multiplied by exp `by`.
    pub(crate) fn shifted(&self, by: f64) -> Self {
        let mut shifted = self.clone();
        shifted.coefficients[0] += by;
        shifted
    }

    /// Its form.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// Where it lives.
    pub fn window(&self) -> Window {
        self.window
    }

    /// α and θ.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// λ(u | X).
    pub fn intensity(&self, pattern: &Pattern, place: [f64; 2]) -> f64 {
        let near = self.near(pattern.points());
        self.intensity_near(place, &near, None)
    }

    /// λ at many places.
    pub fn intensities(&self, pattern: &Pattern, places: &[[f64; 2]]) -> Vec<f64> {
        let near = self.near(pattern.points());
        places.iter().map(|&place| self.intensity_near(place, &near, None)).collect()
    }

    /// λ(xᵢ | X without xᵢ) of every point.
    pub fn intensities_of_points(&self, pattern: &Pattern) -> Vec<f64> {
        let near = self.near(pattern.points());
        let points = pattern.points().iter().enumerate();
        points.map(|(i, &point)| self.intensity_near(point, &near, Some(i))).collect()
    }

    /// log p(X) + log Z against the Poisson process of rate 1; −∞ if a hard core is broken.
    pub fn log_density_up_to_constant(&self, pattern: &Pattern) -> f64 {
        let dot =
            |totals: Vec<f64>| totals.iter().zip(&self.coefficients).map(|(t, c)| t * c).sum();
        let sum = self.family.totals(pattern).map_or(f64::NEG_INFINITY, dot);
        sum + self.deep.as_ref().map_or(0.0, |deep| deep.value(self.window, pattern.points()))
    }

    /// Gradient of the log density by the points. Steps and areas are taken as flat.
    pub(crate) fn forces(&self, points: &[[f64; 2]]) -> Vec<[f64; 2]> {
        let drift = match self.coefficients[1..] {
            [b, c, ..] if self.family.trend == Trend::LogLinear => [b, c],
            _ => [0.0; 2],
        };
        let mut forces = vec![drift; points.len()];
        let of_pairs = &self.coefficients[self.family.trend.names().len()..];
        self.family.interaction.add_forces(of_pairs, self.window, points, &mut forces);
        if let Some(deep) = &self.deep {
            let slopes = deep.slopes(self.window, points).points;
            forces.iter_mut().zip(slopes).for_each(|(force, [x, y])| {
                force[0] += x;
                force[1] += y;
            });
        }
        forces
    }

    /// The log-likelihood where Z is known, that is without interaction: Σ log λ(xᵢ) − ∫ λ, the log of the
    /// Janossy density, which is p(X) exp(−|W|).
    pub fn poisson_log_likelihood(&self, pattern: &Pattern) -> Option<f64> {
        if !self.is_poisson() {
            return None;
        }
        let [[x0, x1], [y0, y1]] = self.window.sides();
        let sum = self.log_density_up_to_constant(pattern);
        // ∫ exp(b x) dx, stable around b = 0
        let along = |b: f64, from: f64, to: f64| {
            if b == 0.0 { to - from } else { (b * from).exp() * (b * (to - from)).exp_m1() / b }
        };
        let [b, c] = match self.coefficients[..] {
            [_, b, c] => [b, c],
            _ => [0.0; 2],
        };
        let total = self.coefficients[0].exp() * along(b, x0, x1) * along(c, y0, y1);
        Some(sum - total)
    }

    pub(crate) fn near(&self, points: &[[f64; 2]]) -> Near {
        let reach = self.deep.as_ref().map_or(0.0, |deep| deep.shape().reach);
        self.family.interaction.near(self.window, points, reach)
    }

    pub(crate) fn intensity_near(&self, place: [f64; 2], near: &Near, skip: Option<usize>) -> f64 {
        let mut statistics = [0.0; 8];
        let count = self.coefficients.len();
        let mut many = Vec::new();
        let out = if count <= statistics.len() {
            &mut statistics[..count]
        } else {
            many.resize(count, 0.0);
            &mut many[..]
        };
        if !self.family.statistics(place, near, skip, out) {
            return 0.0;
        }
        let sum: f64 = out.iter().zip(&self.coefficients).map(|(t, c)| t * c).sum();
        let deep = self.deep.as_ref().map_or(0.0, |deep| deep.log_ratio(place, near, skip));
        (sum + deep).exp()
    }
}
