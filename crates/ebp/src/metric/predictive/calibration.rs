//! Whether a model's intervals hold what they promise.
//!
//! If x comes from the density q, the position u = ∫_{−∞}^x q(y) dy is uniform on (0, 1), and the
//! central interval of level c holds x when |u − ½| ≤ c/2. A model that is too sure of itself
//! covers less than c, one that is too wary covers more.

use crate::process::Process;
use crate::{IndexedSet, Result};

use super::{Evaluation, log_densities, mean_and_error};

/// Cells over the family's range of values: about a tenth of σ each for most families.
const NUM_CELLS: usize = 401;

/// How often central intervals of one level hold the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// The level c.
    pub nominal: f64,
    /// The share of fresh elements inside.
    pub actual: f64,
    /// Its standard error over sets.
    pub std_error: f64,
}

/// The coverage of the model's central intervals at each of `levels`, over `num_locations` fresh
/// elements of each set. The model's density is integrated over the family's range of values and
/// what lies outside is left out.
///
/// # Errors
///
/// As [`held_out`](super::held_out).
pub fn coverage(
    process: &dyn Process,
    evaluation: &Evaluation,
    levels: &[f64],
) -> Result<Vec<Coverage>> {
    evaluation.check()?;
    let mut positions = Vec::with_capacity(evaluation.num_sets);
    for number in 0..evaluation.num_sets {
        let (_, context, fresh) = evaluation.set(number)?;
        positions.push(set_positions(process, evaluation, &context, &fresh)?);
    }
    let share = |level: f64| {
        let inside: Vec<f64> = positions
            .iter()
            .map(|set| {
                let count = set.iter().filter(|&u| (u - 0.5).abs() <= 0.5 * level).count();
                count as f64 / set.len() as f64
            })
            .collect();
        let (actual, std_error) = mean_and_error(&inside);
        Coverage { nominal: level, actual, std_error }
    };
    Ok(levels.iter().map(|&level| share(level)).collect())
}

/// u of every fresh element.
fn set_positions(
    process: &dyn Process,
    evaluation: &Evaluation,
    context: &IndexedSet,
    fresh: &IndexedSet,
) -> Result<Vec<f64>> {
    let (low, high) = evaluation.family.value_range();
    let cell = (high - low) / NUM_CELLS as f64;
    let centres = || (0..NUM_CELLS).map(move |k| low + cell * (k as f64 + 0.5));
    let locations =
        fresh.locations().iter().flat_map(|&t| std::iter::repeat_n(t, NUM_CELLS)).collect();
    let values = fresh.locations().iter().flat_map(|_| centres()).collect();
    let answers = log_densities(process, context, &IndexedSet::new(1, 1, locations, values)?)?;
    let position = |(&x, cells): (&f64, &[crate::process::LogDensity])| {
        // ∫_{−∞}^x q / ∫ q, with the cell that holds x counted in part
        let (mut below, mut total) = (0.0, 0.0);
        for (centre, q) in centres().zip(cells) {
            let mass = q.value.exp();
            below += mass * ((x - centre) / cell + 0.5).clamp(0.0, 1.0);
            total += mass;
        }
        if total > 0.0 { below / total } else { f64::from(u8::from(x > 0.0)) }
    };
    Ok(fresh.values().iter().zip(answers.chunks_exact(NUM_CELLS)).map(position).collect())
}
