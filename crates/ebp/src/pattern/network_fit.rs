//! Potentials that networks write, fitted by maximum pseudolikelihood.
//!
//! ```text
//! maximise  log PL(α, w) − ½ decay ‖w‖²
//! ```
//!
//! by L-BFGS with gradients in closed form. Standard errors are the jackknife's, leaving out patterns, or
//! blocks of the window where there are few patterns.

use rayon::prelude::*;

use super::draws::Draws;
use super::gibbs::Gibbs;
use super::likelihood::Likelihood;
use crate::process::{Evaluation, Limits, minimise};
use crate::rng::Stream;
use crate::{Error, Result};

/// A step that brings less, as a share of log PL, is the last one; less will do where data are left out.
const TOLERANCES: [f64; 2] = [1e-9, 1e-7];
/// Patterns from which on the jackknife leaves out whole ones.
const MANY_PATTERNS: usize = 6;
/// Parts that are left out at most where there are so many.
const MOST_GROUPS: usize = 10;

/// A process whose potential is written by networks: α and their weights stand in one vector.
pub trait NetworkLaw: Likelihood {
    /// log PL and its gradient by (α, w), over the data without those of one group.
    fn pseudolikelihood(&self, at: &[f64], left_out: Option<usize>) -> (f64, Vec<f64>);

    /// Groups of data that the jackknife leaves out.
    fn num_groups(&self) -> usize;

    /// Data points that count.
    fn num_points(&self) -> usize;

    /// Where a climb begins.
    fn start(&self, stream: Stream) -> Vec<f64>;
}

/// A fitted potential.
#[derive(Clone, Debug)]
pub struct NetworkFit {
    /// At the maximum.
    pub model: Gibbs,
    /// (α, w).
    pub parameters: Vec<f64>,
    /// log PL at the maximum, without the penalty.
    pub log_pseudolikelihood: f64,
    /// Data points that counted.
    pub num_points: usize,
}

/// Fits the networks of a process.
///
/// # Errors
///
/// [`Error::NonFinite`] if the pseudolikelihood is not finite where the climb begins.
pub fn fit_network(law: &dyn NetworkLaw, stream: Stream) -> Result<NetworkFit> {
    let parameters = climb(law, &law.start(stream), None)?;
    Ok(NetworkFit {
        log_pseudolikelihood: law.pseudolikelihood(&parameters, None).0,
        model: law.model(&parameters)?,
        num_points: law.num_points(),
        parameters,
    })
}

/// What is found with one part of the data left out after the other.
#[derive(Clone, Debug)]
pub struct Jackknife {
    left_out: Vec<Gibbs>,
}

impl Jackknife {
    /// Climbs from what was found with all data.
    ///
    /// # Errors
    ///
    /// As [`fit_network`].
    pub fn new(law: &dyn NetworkLaw, found: &NetworkFit) -> Result<Self> {
        let fit = |left| law.model(&climb(law, &found.parameters, Some(left))?);
        let left_out = (0..law.num_groups()).into_par_iter().map(fit).collect::<Result<_>>()?;
        Ok(Self { left_out })
    }

    /// The standard error of a number of the process.
    pub fn error(&self, number: impl Fn(&Gibbs) -> f64) -> f64 {
        let parts: Vec<f64> = self.left_out.iter().map(number).collect();
        let count = parts.len() as f64;
        let mean = parts.iter().sum::<f64>() / count;
        let square: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
        ((count - 1.0) / count * square).sqrt()
    }
}

fn climb(law: &dyn NetworkLaw, start: &[f64], left_out: Option<usize>) -> Result<Vec<f64>> {
    let limits = Limits {
        bounds: [-50.0, 50.0],
        max_evaluations: 600,
        gradient_tolerance: 1e-4,
        value_tolerance: TOLERANCES[usize::from(left_out.is_some())],
    };
    let decay = law.decay();
    let found = minimise(start, &limits, |at| {
        let (value, mut gradient) = law.pseudolikelihood(at, left_out);
        let penalty: f64 = at[1..].iter().map(|w| 0.5 * decay * w * w).sum();
        for slope in &mut gradient {
            *slope = -*slope;
        }
        gradient[1..].iter_mut().zip(&at[1..]).for_each(|(slope, w)| *slope += decay * w);
        Ok(Evaluation { value: penalty - value, gradient, jitter: 0.0 })
    })?;
    Ok(found.parameters)
}

/// Which part of the jackknife something belongs to: its pattern and every tenth after it, or its block of a
/// pattern.
pub(super) fn group(num_patterns: usize, pattern: usize, block: usize) -> usize {
    if num_patterns >= MANY_PATTERNS { pattern % MOST_GROUPS } else { 9 * pattern + block }
}

/// α and weights to begin with, the intensity being that of so many points under a total weight.
pub(super) fn first_parameters(
    (num_points, total): (usize, f64),
    stream: Stream,
    weights: impl FnOnce(&mut Draws) -> Vec<f64>,
) -> Vec<f64> {
    let mut start = vec![(num_points as f64 / total).ln()];
    start.extend(weights(&mut Draws::new(stream)));
    start
}

/// Refuses penalties that mean nothing.
pub(super) fn check_decay(decay: f64) -> Result<()> {
    let is_right = decay >= 0.0 && decay.is_finite();
    is_right.then_some(()).ok_or_else(|| Error::invalid("decay", "0 or more and finite", decay))
}
