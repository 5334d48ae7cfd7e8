//! Linear support vector machines: one weight vector per class, each fitted against the rest.
//!
//! The decision for class c is w_c·x + b_c, and the largest one wins. The intercept b_c is the weight
//! of a feature that is always 1 and is regularised like the others, as LIBLINEAR and scikit-learn's
//! `LinearSVC` have it. Features are not scaled.

use rayon::prelude::*;

use crate::rng::Stream;
use crate::{Error, Result};

use super::dual::{DualState, Problem, products};
use super::features::{Features, LANES, Labelled};

/// How a machine is fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SvmConfig {
    /// C: the price of violated margins. Above 0.
    pub cost: f64,
    /// Where to stop: no dual gradient is larger. Above 0.
    pub tolerance: f64,
    /// Passes over the rows before the search is given up; the gap says what that left undone.
    pub max_passes: usize,
}

impl Default for SvmConfig {
    /// C = 1 as in scikit-learn, and a tolerance that settles four digits of the decisions.
    fn default() -> Self {
        Self { cost: 1.0, tolerance: 1e-4, max_passes: 1000 }
    }
}

impl SvmConfig {
    pub(super) fn check(&self) -> Result<()> {
        for (field, value) in [("cost", self.cost), ("tolerance", self.tolerance)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::invalid(field, "a finite number above 0", value));
            }
        }
        Ok(())
    }
}

/// A fitted machine.
#[derive(Clone, Debug)]
pub struct LinearSvm {
    dim: usize,
    weights: Vec<Vec<[f64; LANES]>>,
    gap: f64,
}

impl LinearSvm {
    /// Fits one machine per class on the given `rows` of `data`, on all threads.
    ///
    /// ```
    /// use ebp::metric::classify::{Features, Labelled, LinearSvm, SvmConfig};
    /// use ebp::rng::Stream;
    ///
    /// let features = Features::new(1, &[-2.0, -1.0, 1.0, 2.0])?;
    /// let data = Labelled::new(&features, &[0, 0, 1, 1], 2)?;
    /// let svm = LinearSvm::fit(&data, &[0, 1, 2, 3], &SvmConfig::default(), Stream::new(0, "svm"))?;
    /// assert_eq!(svm.predict(&features, &[0, 1, 2, 3])?, [0, 0, 1, 1]);
    /// assert!(svm.gap() < 1e-4);
    /// # Ok::<(), ebp::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is out of range or there are no rows.
    pub fn fit(
        data: &Labelled,
        rows: &[usize],
        config: &SvmConfig,
        stream: Stream,
    ) -> Result<Self> {
        let paths = fit_paths(data, rows, &[config.cost], config, stream)?;
        let mut paths = paths.into_iter();
        paths.next().ok_or_else(|| Error::invalid("costs", "at least one", 0))
    }

    /// The largest (P − D)/P of any class: how much smaller the objective can still become, as a
    /// share.
    pub fn gap(&self) -> f64 {
        self.gap
    }

    /// Weights `[dim]` and intercept of a class.
    ///
    /// # Panics
    ///
    /// If there is no such class, as slice indexing does.
    pub fn weights(&self, class: usize) -> (&[f64], f64) {
        let all = self.weights[class].as_flattened();
        (&all[..self.dim], all[self.dim])
    }

    /// w_c·x + b_c of the given rows, `[rows, num_classes]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the features have another dimension than those fitted.
    pub fn decisions(&self, features: &Features, rows: &[usize]) -> Result<Vec<f64>> {
        if features.dim() != self.dim {
            let expected = format!("of dimension {}", self.dim);
            return Err(Error::invalid("features", expected, features.dim()));
        }
        let by_class: Vec<Vec<f64>> =
            self.weights.par_iter().map(|weights| products(features, rows, weights)).collect();
        Ok((0..rows.len()).flat_map(|row| by_class.iter().map(move |class| class[row])).collect())
    }

    /// The class with the largest decision for each of the given rows; the first of equals.
    ///
    /// # Errors
    ///
    /// As [`decisions`](Self::decisions).
    pub fn predict(&self, features: &Features, rows: &[usize]) -> Result<Vec<usize>> {
        let decisions = self.decisions(features, rows)?;
        Ok(decisions.chunks_exact(self.weights.len()).map(largest).collect())
    }
}

fn largest(decisions: &[f64]) -> usize {
    let better = |best: usize, class: usize| {
        if decisions[class] > decisions[best] { class } else { best }
    };
    (1..decisions.len()).fold(0, better)
}

/// One machine for each of `costs`, in their order; each starts from the one before it, so rising
/// costs save work.
pub(super) fn fit_paths(
    data: &Labelled,
    rows: &[usize],
    costs: &[f64],
    config: &SvmConfig,
    stream: Stream,
) -> Result<Vec<LinearSvm>> {
    for &cost in costs {
        SvmConfig { cost, ..*config }.check()?;
    }
    if rows.is_empty() {
        return Err(Error::invalid("rows", "at least one", 0));
    }
    let squares: Vec<f64> = rows
        .iter()
        .map(|&row| {
            let values = data.features().row(row).as_flattened();
            values.iter().map(|&value| f64::from(value).powi(2)).sum()
        })
        .collect();
    // Two classes are each other's mirror image: one problem answers both.
    let num_problems = if data.num_classes() == 2 { 1 } else { data.num_classes() };
    let solved: Vec<Vec<(DualState, f64)>> = (0..num_problems)
        .into_par_iter()
        .map(|number| {
            let class = if num_problems == 1 { 1 } else { number };
            let sign = |&row: &usize| if data.labels()[row] == class { 1.0 } else { -1.0 };
            let problem = Problem {
                features: data.features(),
                rows,
                signs: rows.iter().map(sign).collect(),
                squares: &squares,
            };
            let mut state = problem.start();
            let solve = |(step, &cost): (usize, &f64)| {
                let stream = stream.child(number as u64).child(step as u64);
                let config = SvmConfig { cost, ..*config };
                let gap = problem.solve(&mut state, &config, stream);
                (state.clone(), gap)
            };
            costs.iter().enumerate().map(solve).collect()
        })
        .collect();
    let machine = |step: usize| {
        let mut weights: Vec<Vec<[f64; LANES]>> =
            solved.iter().map(|path| path[step].0.weights.clone()).collect();
        if num_problems == 1 {
            let mirrored = weights[0].iter().map(|block| block.map(|w| -w)).collect();
            weights.insert(0, mirrored);
        }
        let gap = solved.iter().map(|path| path[step].1).fold(0.0, f64::max);
        LinearSvm { dim: data.features().dim(), weights, gap }
    };
    Ok((0..costs.len()).map(machine).collect())
}
