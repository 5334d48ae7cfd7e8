//! Residuals of a fitted process (Baddeley et al., 2005): what the data have beyond what λ expects.
//!
//! ```text
//! raw      R(B) = n(B) − ∫_B λ(u | X) du
//! inverse  R(B) = Σ_{xᵢ ∈ B} 1/λ(xᵢ | X∖xᵢ) − |B ∩ {λ > 0}|
//! Pearson  R(B) = Σ_{xᵢ ∈ B} λ(xᵢ | X∖xᵢ)^{−½} − ∫_B λ(u | X)^½ du
//! ```
//!
//! All have mean 0 under the model. Integrals are sums over a grid of 16 × 16 places in every quadrat.

use super::gibbs::Gibbs;
use super::window::Pattern;
use crate::{Error, Result};

/// Places along a side of a quadrat.
const PLACES: usize = 16;

/// How a point is weighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// By 1.
    Raw,
    /// By 1/λ.
    Inverse,
    /// By 1/√λ.
    Pearson,
}

impl Residual {
    fn weight(self, intensity: f64) -> f64 {
        match self {
            Self::Raw => 1.0,
            Self::Inverse => 1.0 / intensity,
            Self::Pearson => intensity.sqrt().recip(),
        }
    }

    /// Residuals of `side` × `side` quadrats, rows from the lowest.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a data point has intensity 0, or there is no quadrat.
    pub fn of_quadrats(self, model: &Gibbs, pattern: &Pattern, side: usize) -> Result<Vec<f64>> {
        if side == 0 {
            return Err(Error::invalid("quadrats", "at least 1 along a side", 0));
        }
        let window = pattern.window();
        let fine = side * PLACES;
        let cell = window.area() / (fine * fine) as f64;
        let places = window.grid(fine, fine);
        let mut sums = vec![0.0; side * side];
        for (number, intensity) in model.intensities(pattern, &places).into_iter().enumerate() {
            if intensity > 0.0 {
                let (row, column) = (number / fine / PLACES, number % fine / PLACES);
                sums[row * side + column] -= cell * intensity * self.weight(intensity);
            }
        }
        let (sides, lengths) = (window.sides(), window.lengths());
        for (&point, intensity) in pattern.points().iter().zip(model.intensities_of_points(pattern))
        {
            if intensity <= 0.0 {
                return Err(Error::invalid("λ of a data point", "positive", intensity));
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            let along = |axis: usize| {
                let share = (point[axis] - sides[axis][0]) / lengths[axis] * side as f64;
                share.clamp(0.0, (side - 1) as f64) as usize
            };
            sums[along(1) * side + along(0)] += self.weight(intensity);
        }
        Ok(sums)
    }
}

/// The raw residual measure smoothed by a Gaussian of standard deviation `bandwidth`, divided by the mass of
/// the kernel inside the window, at the middles of `side` × `side` cells.
pub fn smoothed_residual(
    model: &Gibbs,
    pattern: &Pattern,
    side: usize,
    bandwidth: f64,
) -> Vec<f64> {
    let window = pattern.window();
    let places = window.grid(side, side);
    let cell = window.area() / (side * side) as f64;
    let intensities = model.intensities(pattern, &places);
    let kernel = |a: [f64; 2], b: [f64; 2]| {
        let square = (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
        (-0.5 * square / (bandwidth * bandwidth)).exp()
    };
    places
        .iter()
        .map(|&u| {
            let (mut sum, mut mass) = (0.0, 0.0);
            for (&v, intensity) in places.iter().zip(&intensities) {
                let weight = kernel(u, v);
                sum -= weight * cell * intensity;
                mass += weight * cell;
            }
            sum += pattern.points().iter().map(|&x| kernel(u, x)).sum::<f64>();
            sum / mass
        })
        .collect()
}
