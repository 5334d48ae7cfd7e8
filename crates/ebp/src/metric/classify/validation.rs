//! Cross-validation: every item is predicted by a machine that has not seen it.
//!
//! Folds are stratified: each holds its share of every class, to within one item. Where C is chosen
//! by cross-validation too, it is chosen from the training items of each fold alone, so that the
//! accuracy stays that of items never seen.

use rayon::prelude::*;

use crate::rng::Stream;
use crate::{Error, Result};

use super::confusion::Confusion;
use super::features::Labelled;
use super::svm::{LinearSvm, SvmConfig, fit_paths};

/// The values of C among which cross-validation chooses: powers of ten, as features of trained
/// encoders are anywhere between 10⁻² and 10² long.
pub const COSTS: [f64; 6] = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0];

/// Where C comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cost {
    /// This one.
    Fixed(f64),
    /// The best of [`COSTS`] by cross-validation over as many folds of the training items; the
    /// smallest of equals.
    CrossValidated(usize),
}

/// A machine and the C it was fitted with.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The machine, fitted on all training items.
    pub svm: LinearSvm,
    /// C.
    pub cost: f64,
    /// The accuracy in cross-validation at each of [`COSTS`]; empty if C was fixed.
    pub accuracies: Vec<f64>,
}

/// What cross-validation found.
#[derive(Clone, Debug)]
pub struct CrossValidation {
    /// Counts over all items, each predicted once.
    pub confusion: Confusion,
    /// The accuracy of each fold.
    pub fold_accuracies: Vec<f64>,
    /// The C of each fold.
    pub costs: Vec<f64>,
    /// The class predicted for every item.
    pub predicted: Vec<usize>,
    /// The largest gap of any machine: see [`LinearSvm::gap`].
    pub gap: f64,
}

/// The fold, from 0, of each of `rows`.
///
/// # Errors
///
/// [`Error::InvalidValue`] if there are fewer than two folds or fewer rows than folds.
pub fn stratified_folds(
    data: &Labelled,
    rows: &[usize],
    num_folds: usize,
    stream: Stream,
) -> Result<Vec<usize>> {
    if num_folds < 2 || num_folds > rows.len() {
        let expected = format!("at least 2 and at most the number of items, {}", rows.len());
        return Err(Error::invalid("folds", expected, num_folds));
    }
    // Class after class in random order, dealt like cards; the next class goes on where the last one
    // ended, so that the folds' sizes differ by at most one as well.
    let mut order = stream.permutation(rows.len());
    order.sort_by_key(|&place| data.labels()[rows[place]]);
    let mut folds = vec![0; rows.len()];
    for (card, place) in order.into_iter().enumerate() {
        folds[place] = card % num_folds;
    }
    Ok(folds)
}

/// Fits a machine on the given rows, with C fixed or chosen.
///
/// # Errors
///
/// [`Error::InvalidValue`] if a setting is out of range or there are too few rows.
pub fn fit_choosing(
    data: &Labelled,
    rows: &[usize],
    cost: Cost,
    config: &SvmConfig,
    stream: Stream,
) -> Result<Chosen> {
    let (cost, accuracies) = match cost {
        Cost::Fixed(cost) => (cost, Vec::new()),
        Cost::CrossValidated(num_folds) => {
            let accuracies = accuracies(data, rows, num_folds, config, stream.child(0))?;
            let better = |best: usize, new: usize| {
                if accuracies[new] > accuracies[best] { new } else { best }
            };
            (COSTS[(1..COSTS.len()).fold(0, better)], accuracies)
        }
    };
    let svm = LinearSvm::fit(data, rows, &SvmConfig { cost, ..*config }, stream.child(1))?;
    Ok(Chosen { svm, cost, accuracies })
}

/// The accuracy at each of [`COSTS`], by cross-validation.
fn accuracies(
    data: &Labelled,
    rows: &[usize],
    num_folds: usize,
    config: &SvmConfig,
    stream: Stream,
) -> Result<Vec<f64>> {
    let folds = stratified_folds(data, rows, num_folds, stream)?;
    let correct: Vec<Vec<usize>> = (0..num_folds)
        .into_par_iter()
        .map(|fold| {
            let (training, held_out) = split(rows, &folds, fold);
            let stream = stream.child(1 + fold as u64);
            let machines = fit_paths(data, &training, &COSTS, config, stream)?;
            let hits = |machine: &LinearSvm| -> Result<usize> {
                let predicted = machine.predict(data.features(), &held_out)?;
                let is_hit = |&(&row, &class): &(&usize, &usize)| data.labels()[row] == class;
                Ok(held_out.iter().zip(&predicted).filter(is_hit).count())
            };
            machines.iter().map(hits).collect()
        })
        .collect::<Result<_>>()?;
    let share = |place: usize| {
        correct.iter().map(|fold| fold[place]).sum::<usize>() as f64 / rows.len() as f64
    };
    Ok((0..COSTS.len()).map(share).collect())
}

/// Predicts every item from the other folds.
///
/// # Errors
///
/// As [`fit_choosing`] and [`stratified_folds`].
pub fn cross_validate(
    data: &Labelled,
    num_folds: usize,
    cost: Cost,
    config: &SvmConfig,
    stream: Stream,
) -> Result<CrossValidation> {
    let rows: Vec<usize> = (0..data.features().len()).collect();
    let folds = stratified_folds(data, &rows, num_folds, stream)?;
    let outcomes: Vec<(Vec<usize>, Vec<usize>, Chosen)> = (0..num_folds)
        .into_par_iter()
        .map(|fold| {
            let (training, held_out) = split(&rows, &folds, fold);
            let stream = stream.child(1 + fold as u64);
            let chosen = fit_choosing(data, &training, cost, config, stream)?;
            let predicted = chosen.svm.predict(data.features(), &held_out)?;
            Ok((held_out, predicted, chosen))
        })
        .collect::<Result<_>>()?;
    let mut found = CrossValidation {
        confusion: Confusion::new(data.num_classes()),
        fold_accuracies: Vec::new(),
        costs: Vec::new(),
        predicted: vec![0; rows.len()],
        gap: 0.0,
    };
    for (held_out, predicted, chosen) in outcomes {
        let truths = held_out.iter().map(|&row| data.labels()[row]);
        let mut fold = Confusion::new(data.num_classes());
        fold.add(truths.clone().zip(predicted.iter().copied()))?;
        found.confusion.add(truths.zip(predicted.iter().copied()))?;
        found.fold_accuracies.push(fold.accuracy());
        found.costs.push(chosen.cost);
        found.gap = found.gap.max(chosen.svm.gap());
        for (row, class) in held_out.into_iter().zip(predicted) {
            found.predicted[row] = class;
        }
    }
    Ok(found)
}

/// Rows outside and inside a fold.
fn split(rows: &[usize], folds: &[usize], fold: usize) -> (Vec<usize>, Vec<usize>) {
    let pick = |is_inside: bool| {
        let chosen = rows.iter().zip(folds).filter(|&(_, &f)| (f == fold) == is_inside);
        chosen.map(|(&row, _)| row).collect()
    };
    (pick(false), pick(true))
}
