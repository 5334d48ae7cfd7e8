//! A pair potential by a small network of the distance, fitted by maximum pseudolikelihood.
//!
//! ```text
//! log λ(u | X) = α + Σ_x φ(‖u − x‖),   φ(d) = c · tanh(B tanh(a d + a₀) + b₀) + c₀   for d below the reach
//! maximise  log PL(α, φ) − ½ decay ‖w‖²
//! ```
//!
//! φ is linear between knots, where the network is read: the model is [`Interaction::Pairwise`] whose
//! coefficients the network writes, so that simulation, residuals and errors are those of every other Gibbs
//! process, and a step costs the same for any network. Gradients are written out by hand and followed by
//! L-BFGS. Standard errors are the jackknife's, leaving out patterns, or blocks of the window where there
//! are few patterns.

use rayon::prelude::*;

use super::draws::Draws;
use super::fit::{Regression, joint_design};
use super::gibbs::{Family, Gibbs, Trend};
use super::interaction::Interaction;
use super::quadrature::Design;
use super::window::Pattern;
use crate::process::{Evaluation, Limits, minimise};
use crate::rng::Stream;
use crate::{Error, Result};

/// Patterns from which on the jackknife leaves out whole ones.
const MANY_PATTERNS: usize = 6;

/// The network and its fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairNetworkSettings {
    /// Where the potential ends.
    pub reach: f64,
    /// Where the network is read.
    pub num_knots: usize,
    /// Units of each of both hidden layers.
    pub width: usize,
    /// Of the squared weights.
    pub decay: f64,
}

/// A fitted potential.
#[derive(Clone, Debug)]
pub struct PairNetworkFit {
    /// With the potential at the knots as its coefficients.
    pub model: Gibbs,
    /// log PL at the maximum, without the penalty.
    pub log_pseudolikelihood: f64,
    /// Data points that counted.
    pub num_points: usize,
    /// The coefficients with one part of the data left out, for [`jackknife`](Self::jackknife).
    pub left_out: Vec<Vec<f64>>,
}

impl PairNetworkFit {
    /// A number made of the coefficients (α, φ at the knots), and its standard error.
    pub fn jackknife(&self, number: impl Fn(&[f64]) -> f64) -> (f64, f64) {
        let all = number(self.model.coefficients());
        let parts: Vec<f64> = self.left_out.iter().map(|c| number(c)).collect();
        let count = parts.len() as f64;
        let mean = parts.iter().sum::<f64>() / count;
        let square: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
        (all, ((count - 1.0) / count * square).sqrt())
    }

    /// The mean of φ over pairs closer than `radius`, as they are spread without interaction.
    pub fn mean_potential(&self, coefficients: &[f64], radius: f64) -> f64 {
        let Interaction::Pairwise { reach, num_knots } = self.model.family().interaction else {
            return 0.0;
        };
        let knots = (0..num_knots).map(|k| (k as f64 + 0.5) * reach / num_knots as f64);
        let inside = knots.zip(&coefficients[1..]).filter(|(d, _)| *d < radius);
        let (sum, total) =
            inside.fold((0.0, 0.0), |(sum, total), (d, phi)| (sum + d * phi, total + d));
        sum / total
    }
}

/// Fits the network to patterns.
///
/// # Errors
///
/// As [`fit`](super::fit()); [`Error::InvalidValue`] for settings that mean nothing.
pub fn fit_pair_network(
    settings: &PairNetworkSettings,
    patterns: &[Pattern],
    stream: Stream,
) -> Result<PairNetworkFit> {
    let &PairNetworkSettings { reach, num_knots, width, decay } = settings;
    if !((1..=256).contains(&width) && decay >= 0.0 && decay.is_finite()) {
        let found = format!("width {width} and decay {decay}");
        return Err(Error::invalid("network", "1 to 256 wide, decay of 0 or more", found));
    }
    let interaction = Interaction::Pairwise { reach, num_knots };
    let family = Family { trend: Trend::Constant, interaction };
    let design = joint_design(&family, patterns, Regression::Pseudolikelihood)?;
    let network = Network { num_knots, width };
    let total: f64 = design.weights.iter().sum();
    let mut draws = Draws::new(stream);
    let mut start = vec![(design.num_data() as f64 / total).ln()];
    start.extend((0..network.num_weights()).map(|number| network.start(number, &mut draws)));
    let everything = |_: usize| true;
    let weights = climb(&network, &design, decay, &start, &everything)?;
    let coefficients = network.coefficients(&weights);
    let window = patterns.first().map_or_else(super::Window::unit, Pattern::window);
    let groups = groups(&design, patterns.len());
    let num_groups = groups.iter().max().map_or(0, |last| last + 1);
    let left_out = (0..num_groups)
        .into_par_iter()
        .map(|left| {
            let kept = |row: usize| groups[row] != left;
            Ok(network.coefficients(&climb(&network, &design, decay, &weights, &kept)?))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(PairNetworkFit {
        log_pseudolikelihood: objective(&design, &coefficients, &everything).0,
        model: Gibbs::new(family, window, coefficients)?,
        num_points: design.num_data(),
        left_out,
    })
}

/// Which part of the jackknife a row belongs to: its pattern, or its block of a pattern.
fn groups(design: &Design, num_patterns: usize) -> Vec<usize> {
    let parts = design.patterns.iter().zip(&design.blocks);
    if num_patterns >= MANY_PATTERNS {
        return parts.map(|(&pattern, _)| pattern).collect();
    }
    parts.map(|(&pattern, &block)| 9 * pattern + block).collect()
}

fn climb(
    network: &Network,
    design: &Design,
    decay: f64,
    start: &[f64],
    kept: &(dyn Fn(usize) -> bool + Sync),
) -> Result<Vec<f64>> {
    let limits = Limits {
        bounds: [-50.0, 50.0],
        max_evaluations: 600,
        gradient_tolerance: 1e-4,
        value_tolerance: 1e-9,
    };
    let found = minimise(start, &limits, |at| {
        let (value, slopes) = objective(design, &network.coefficients(at), kept);
        let penalty: f64 = at[1..].iter().map(|w| 0.5 * decay * w * w).sum();
        let mut gradient = vec![-slopes[0]];
        gradient.extend(network.backward(at, &slopes[1..]).iter().map(|g| -g));
        gradient[1..].iter_mut().zip(&at[1..]).for_each(|(g, w)| *g += decay * w);
        Ok(Evaluation { value: penalty - value, gradient, jitter: 0.0 })
    })?;
    Ok(found.parameters)
}

/// log PL over the rows that are kept, and its gradient by the coefficients.
fn objective(design: &Design, at: &[f64], kept: &dyn Fn(usize) -> bool) -> (f64, Vec<f64>) {
    let (mut value, mut gradient) = (0.0, vec![0.0; design.dim]);
    for (number, (row, weight, is_data)) in design.rows().enumerate() {
        if !kept(number) {
            continue;
        }
        let log_intensity: f64 = row.iter().zip(at).map(|(t, c)| t * c).sum();
        let mass = weight * log_intensity.exp();
        value += if is_data { log_intensity - mass } else { -mass };
        let slope = f64::from(u8::from(is_data)) - mass;
        gradient.iter_mut().zip(row).for_each(|(g, t)| *g += slope * t);
    }
    (value, gradient)
}

/// Two hidden layers of tanh; weights a, a₀, B, b₀, c, c₀ behind α in one vector.
#[derive(Clone, Copy, Debug)]
struct Network {
    num_knots: usize,
    width: usize,
}

impl Network {
    fn num_weights(&self) -> usize {
        let h = self.width;
        2 * h + h * h + h + h + 1
    }

    /// Normal weights of the usual sizes; the potential starts near 0.
    fn start(&self, number: usize, draws: &mut Draws) -> f64 {
        let h = self.width;
        let scale = match number {
            _ if number < 2 * h => 1.5,
            _ if number < 2 * h + h * h => (h as f64).sqrt().recip(),
            _ if number < 3 * h + h * h => 0.1,
            _ => 0.01,
        };
        scale * draws.normal()
    }

    /// −1 to 1 from distance 0 to the reach.
    fn input(&self, knot: usize) -> f64 {
        2.0 * (knot as f64 + 0.5) / self.num_knots as f64 - 1.0
    }

    /// Both hidden layers at a knot.
    fn hidden(&self, weights: &[f64], knot: usize) -> (Vec<f64>, Vec<f64>) {
        let (h, x) = (self.width, 3.0 * self.input(knot));
        let (first, rest) = weights.split_at(2 * h);
        let one: Vec<f64> = (0..h).map(|i| (first[i] * x + first[h + i]).tanh()).collect();
        let two = (0..h)
            .map(|i| {
                let sum: f64 = rest[i * h..][..h].iter().zip(&one).map(|(w, u)| w * u).sum();
                (sum + rest[h * h + i]).tanh()
            })
            .collect();
        (one, two)
    }

    /// (α, φ at the knots).
    fn coefficients(&self, at: &[f64]) -> Vec<f64> {
        let (weights, h) = (&at[1..], self.width);
        let out = &weights[3 * h + h * h..];
        let value = |knot: usize| {
            let (_, two) = self.hidden(weights, knot);
            out[h] + two.iter().zip(out).map(|(u, c)| u * c).sum::<f64>()
        };
        std::iter::once(at[0]).chain((0..self.num_knots).map(value)).collect()
    }

    /// Gradient by the weights of Σ_k slope_k φ_k.
    fn backward(&self, at: &[f64], slopes: &[f64]) -> Vec<f64> {
        let (weights, h) = (&at[1..], self.width);
        let mut gradient = vec![0.0; weights.len()];
        let (inner, outer) = (2 * h, 3 * h + h * h);
        for (knot, &slope) in slopes.iter().enumerate() {
            let (one, two) = self.hidden(weights, knot);
            let x = 3.0 * self.input(knot);
            let mut back = vec![0.0; h];
            for (i, &unit) in two.iter().enumerate() {
                gradient[outer + i] += slope * unit;
                let delta = slope * weights[outer + i] * (1.0 - unit * unit);
                gradient[inner + h * h + i] += delta;
                let row = inner + i * h;
                for (j, &below) in one.iter().enumerate() {
                    gradient[row + j] += delta * below;
                    back[j] += delta * weights[row + j];
                }
            }
            gradient[outer + h] += slope;
            for (j, (&below, &slope)) in one.iter().zip(&back).enumerate() {
                let delta = slope * (1.0 - below * below);
                gradient[j] += delta * x;
                gradient[h + j] += delta;
            }
        }
        gradient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central differences of step 10⁻⁵ are good to 10⁻¹⁰ of values of order 1.
    #[test]
    fn the_gradient_is_the_slope() {
        let network = Network { num_knots: 7, width: 4 };
        let mut draws = Draws::new(Stream::new(1, "network"));
        let at: Vec<f64> = (0..=network.num_weights()).map(|_| draws.normal()).collect();
        let slopes: Vec<f64> = (0..7).map(|_| draws.normal()).collect();
        let value = |at: &[f64]| {
            let all = network.coefficients(at);
            all[1..].iter().zip(&slopes).map(|(phi, s)| phi * s).sum::<f64>()
        };
        for (j, expected) in network.backward(&at, &slopes).into_iter().enumerate() {
            let [mut high, mut low] = [at.clone(), at.clone()];
            high[j + 1] += 1e-5;
            low[j + 1] -= 1e-5;
            let found = (value(&high) - value(&low)) / 2e-5;
            assert!(
                (found - expected).abs() < 1e-8 * (1.0 + expected.abs()),
                "{j}: {found} {expected}"
            );
        }
    }
}
