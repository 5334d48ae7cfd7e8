//! L-BFGS within bounds: minimises a smooth function of a few parameters from its gradients.
//!
//! ```text
//! x' = clamp(x − step · H g),   H from the last ten pairs (x' − x, g' − g)
//! ```
//!
//! Parameters at a bound whose gradient points outward stand still. A step is accepted when it
//! brings at least 10⁻⁴ of what the slope promises (Armijo); it starts at 1 and is shortened by
//! interpolation, and no step moves a parameter by more than 3 (a factor of e³ for logarithms).
//! Where the function cannot be evaluated the step is shortened too.

use std::collections::VecDeque;

use crate::Result;

/// Pairs of steps and gradient changes that are remembered.
const MEMORY: usize = 10;
/// The share of the promised decrease that a step must bring.
const SUFFICIENT: f64 = 1e-4;
/// The farthest a parameter moves in one step.
const FARTHEST: f64 = 3.0;
/// How often a step is shortened before the search gives up.
const SHORTENINGS: usize = 20;

/// Why a fit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No component of the gradient exceeds `gradient_tolerance`, bounds taken into account.
    Gradient,
    /// The last step brought less than `value_tolerance`.
    Value,
    /// `max_evaluations` were spent.
    Evaluations,
    /// No step along the search direction brought anything: rounding rules.
    LineSearch,
}

/// A function value with its gradient, and a note that the caller wants back.
#[derive(Clone, Debug)]
pub(crate) struct Evaluation {
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
    pub(crate) jitter: f64,
}

/// Where the minimiser stopped.
#[derive(Clone, Debug)]
pub(crate) struct Minimum {
    pub(crate) parameters: Vec<f64>,
    pub(crate) evaluation: Evaluation,
    pub(crate) num_evaluations: usize,
    pub(crate) num_steps: usize,
    pub(crate) stop: Stop,
}

/// Where the search may go, and when it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The least and the greatest value of every parameter.
    pub(crate) bounds: [f64; 2],
    pub(crate) max_evaluations: usize,
    /// No component of the gradient exceeds this at the end.
    pub(crate) gradient_tolerance: f64,
    /// A step that brings less, relative to max(1, |value|), is the last one.
    pub(crate) value_tolerance: f64,
}

/// Minimises `evaluate` from `start`. An error at the start is returned; later ones only shorten
/// the step.
pub(crate) fn minimise(
    start: &[f64],
    limits: &Limits,
    mut evaluate: impl FnMut(&[f64]) -> Result<Evaluation>,
) -> Result<Minimum> {
    let clamp = |value: f64| value.clamp(limits.bounds[0], limits.bounds[1]);
    let parameters: Vec<f64> = start.iter().map(|&value| clamp(value)).collect();
    let evaluation = evaluate(&parameters)?;
    let mut at =
        Minimum { parameters, evaluation, num_evaluations: 1, num_steps: 0, stop: Stop::Gradient };
    let mut memory = Memory::default();
    loop {
        // The gradient without the components that push out of the box.
        let gradient: Vec<f64> = at
            .parameters
            .iter()
            .zip(&at.evaluation.gradient)
            .map(|(&x, &g)| if clamp(x - g.signum()).to_bits() == x.to_bits() { 0.0 } else { g })
            .collect();
        let largest = gradient.iter().fold(0.0_f64, |max, g| max.max(g.abs()));
        if largest <= limits.gradient_tolerance {
            return Ok(Minimum { stop: Stop::Gradient, ..at });
        }
        let direction = memory.direction(&gradient);
        let mut step = if memory.pairs.is_empty() { 1.0 / largest.max(1.0) } else { 1.0 };
        step = step.min(FARTHEST / direction.iter().fold(0.0_f64, |max, d| max.max(d.abs())));
        let mut accepted = None;
        for _ in 0..SHORTENINGS {
            if at.num_evaluations >= limits.max_evaluations {
                return Ok(Minimum { stop: Stop::Evaluations, ..at });
            }
            let trial: Vec<f64> =
                at.parameters.iter().zip(&direction).map(|(x, d)| clamp(x + step * d)).collect();
            let moved = difference(&trial, &at.parameters);
            let slope = dot(&at.evaluation.gradient, &moved);
            at.num_evaluations += 1;
            let outcome = evaluate(&trial).ok().filter(|found| found.value.is_finite());
            let Some(found) = outcome else {
                step *= 0.25;
                continue;
            };
            let rise = found.value - at.evaluation.value;
            if rise <= SUFFICIENT * slope {
                accepted = Some((trial, moved, found));
                break;
            }
            // The minimum of the parabola through both values and the slope.
            step *= (-0.5 * slope / (rise - slope)).clamp(0.1, 0.5);
        }
        let Some((trial, moved, found)) = accepted else {
            if memory.pairs.is_empty() {
                return Ok(Minimum { stop: Stop::LineSearch, ..at });
            }
            // The remembered curvature may be stale: once more, straight downhill.
            memory.pairs.clear();
            continue;
        };
        let gain = at.evaluation.value - found.value;
        memory.remember(moved, difference(&found.gradient, &at.evaluation.gradient));
        (at.parameters, at.evaluation) = (trial, found);
        at.num_steps += 1;
        if gain <= limits.value_tolerance * at.evaluation.value.abs().max(1.0) {
            return Ok(Minimum { stop: Stop::Value, ..at });
        }
    }
}

/// The last pairs s = x' − x, y = g' − g, with 1/(s·y).
#[derive(Debug, Default)]
struct Memory {
    pairs: VecDeque<(Vec<f64>, Vec<f64>, f64)>,
}

impl Memory {
    fn remember(&mut self, s: Vec<f64>, y: Vec<f64>) {
        let curvature = dot(&s, &y);
        // Only positive curvature keeps H positive definite.
        if curvature <= 1e-10 * dot(&y, &y) {
            return;
        }
        if self.pairs.len() == MEMORY {
            self.pairs.pop_front();
        }
        self.pairs.push_back((s, y, 1.0 / curvature));
    }

    /// −H g by the two-loop recursion (Nocedal and Wright, algorithm 7.4), in the subspace of
    /// those components of g that are not zero; −g where that does not lead downhill.
    fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut factors = Vec::new();
        for (s, y, inverse) in self.pairs.iter().rev() {
            let factor = inverse * dot(s, &direction);
            direction.iter_mut().zip(y).for_each(|(d, y)| *d -= factor * y);
            factors.push(factor);
        }
        if let Some((_, y, inverse)) = self.pairs.back() {
            let scale = 1.0 / (inverse * dot(y, y));
            for d in &mut direction {
                *d *= scale;
            }
        }
        for ((s, y, inverse), factor) in self.pairs.iter().zip(factors.into_iter().rev()) {
            let correction = factor - inverse * dot(y, &direction);
            direction.iter_mut().zip(s).for_each(|(d, s)| *d += correction * s);
        }
        for (d, g) in direction.iter_mut().zip(gradient) {
            if *g == 0.0 {
                *d = 0.0;
            }
        }
        if dot(&direction, gradient) < 0.0 {
            return direction;
        }
        gradient.iter().map(|g| -g).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    const LIMITS: Limits = Limits {
        bounds: [-11.5, 11.5],
        max_evaluations: 200,
        gradient_tolerance: 1e-5,
        value_tolerance: 1e-10,
    };

    fn rosenbrock(x: &[f64]) -> Evaluation {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        let gradient = vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b];
        Evaluation { value: a * a + 100.0 * b * b, gradient, jitter: 0.0 }
    }

    #[test]
    fn finds_the_minimum_of_a_curved_valley() {
        let limits = Limits { value_tolerance: 0.0, ..LIMITS };
        let minimum = minimise(&[-1.2, 1.0], &limits, |x| Ok(rosenbrock(x))).unwrap();
        assert_eq!(minimum.stop, Stop::Gradient);
        assert!(minimum.parameters.iter().all(|x| (x - 1.0).abs() < 1e-4), "{minimum:?}");
        assert!(minimum.num_evaluations < 100, "{}", minimum.num_evaluations);
    }

    /// The minimum (1, 1) lies outside x ≤ ½: on that edge the best x₁ is x₀² = ¼.
    #[test]
    fn stops_at_bounds() {
        let limits = Limits { bounds: [-11.5, 0.5], ..LIMITS };
        let minimum = minimise(&[-0.5, 0.3], &limits, |x| Ok(rosenbrock(x))).unwrap();
        assert!((minimum.parameters[0] - 0.5).abs() < 1e-12, "{minimum:?}");
        assert!((minimum.parameters[1] - 0.25).abs() < 1e-4, "{minimum:?}");
    }

    #[test]
    fn goes_around_places_without_a_value_and_counts_evaluations() {
        let mut calls = 0;
        let refuse = |x: &[f64]| {
            calls += 1;
            if x[0] > 1.5 {
                return Err(Error::invalid("x", "small", x[0]));
            }
            Ok(Evaluation {
                value: (x[0] - 1.4).powi(2),
                gradient: vec![2.0 * (x[0] - 1.4)],
                jitter: 0.0,
            })
        };
        let minimum = minimise(&[-3.0], &LIMITS, refuse).unwrap();
        assert!((minimum.parameters[0] - 1.4).abs() < 1e-4);
        assert_eq!(minimum.num_evaluations, calls);
        let limits = Limits { max_evaluations: 7, value_tolerance: 0.0, ..LIMITS };
        let minimum = minimise(&[-1.2, 1.0], &limits, |x| Ok(rosenbrock(x))).unwrap();
        assert_eq!((minimum.num_evaluations, minimum.stop), (7, Stop::Evaluations));
    }
}
