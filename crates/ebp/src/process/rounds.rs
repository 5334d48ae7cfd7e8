//! Unknown elements in rounds: later ones see earlier ones.
//!
//! ```text
//! p(x_T | C) = Π_r p(x_{T_r} | C, x_{T_1}, …, x_{T_{r−1}}),    T_1, T_2, … portions in random order
//! ```
//!
//! Every factor is the law of a portion of which some is known, so the product is a joint law, whatever
//! the process: one that knows no dependence between targets gets one (Bruinsma et al., 2023). Portions
//! grow with what is known, by the same factor in every round: the first elements say most.

use super::LatentProcess;
use crate::linalg::log_sum_exp;
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// Unknown elements in the order in which they become known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rounds {
    order: Vec<usize>,
    /// Where each portion ends in the order.
    ends: Vec<usize>,
}

impl Rounds {
    /// `count` portions of `unknown` elements beside `known` others, no more than there are elements.
    pub(crate) fn new(known: usize, unknown: usize, count: usize, stream: Stream) -> Result<Self> {
        if count == 0 {
            return Err(Error::invalid("rounds", "at least 1", count));
        }
        // (known + end_r) / (known + end_{r−1}) is the same for all r.
        let start = known.max(1) as f64;
        let growth = (start + unknown as f64) / start;
        let mut ends = Vec::with_capacity(count);
        for round in 1..=count {
            let share = round as f64 / count as f64;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let end = (start * (growth.powf(share) - 1.0)).round() as usize;
            let before = ends.last().copied().unwrap_or(0);
            let end = if round == count { unknown } else { end.max(before + 1).min(unknown) };
            if end > before {
                ends.push(end);
            }
        }
        Ok(Self { order: stream.permutation(unknown), ends })
    }

    /// The portions, first to last.
    pub(crate) fn portions(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        (0..self.ends.len()).map(|round| {
            let start = if round == 0 { 0 } else { self.ends[round - 1] };
            &self.order[start..self.ends[round]]
        })
    }
}

/// log p of the cells of all `targets`, portion by portion, each by `num_draws` draws of the latent: a
/// lower bound in expectation, as the mean over draws stands within the logarithm.
///
/// # Errors
///
/// As [`LatentProcess::hypotheses`].
pub(crate) fn log_mass_in_rounds(
    process: &dyn LatentProcess,
    (context, targets): (&IndexedSet, &IndexedSet),
    (cell, num_draws): (f64, usize),
    rounds: usize,
    stream: Stream,
) -> Result<f64> {
    let plan = Rounds::new(context.len(), targets.len(), rounds, stream.child(0))?;
    let (mut known, mut total) = (context.clone(), 0.0);
    for (round, portion) in plan.portions().enumerate() {
        let asked = targets.select(portion);
        let stream = stream.child(1 + round as u64);
        let found = process.hypotheses(&known, &asked, cell, num_draws, stream)?;
        let sums: Vec<f64> =
            found.log_mass.chunks_exact(asked.len()).map(|draw| draw.iter().sum()).collect();
        total += log_sum_exp(&sums) - (num_draws as f64).ln();
        known = joined(&known, &asked)?;
    }
    Ok(total)
}

/// Values at `targets`' locations, `[m, d_x]`: drawn portion by portion, the last one as the mean of its
/// law given a draw of the latent. What stands at `targets` is not looked at.
///
/// # Errors
///
/// As [`LatentProcess::hypotheses`].
pub(crate) fn draw_in_rounds(
    process: &dyn LatentProcess,
    (context, targets): (&IndexedSet, &IndexedSet),
    cell: f64,
    (rounds, shows_mean): (usize, bool),
    stream: Stream,
) -> Result<Vec<f64>> {
    let dims = targets.value_dim();
    let plan = Rounds::new(context.len(), targets.len(), rounds, stream.child(0))?;
    let (mut known, mut values) = (context.clone(), vec![0.0; targets.len() * dims]);
    let count = plan.portions().len();
    for (round, portion) in plan.portions().enumerate() {
        let asked = targets.select(portion);
        let stream = stream.child(1 + round as u64);
        let drawn = if shows_mean && round + 1 == count {
            process.hypotheses(&known, &asked, cell, 1, stream)?.mean
        } else {
            process.condition(&known)?.sample(asked.locations(), 1, stream)?
        };
        for (&index, value) in portion.iter().zip(drawn.chunks_exact(dims)) {
            values[index * dims..][..dims].copy_from_slice(value);
        }
        // A Gaussian may leave the values' domain, in which no context may lie.
        let kept = drawn.iter().map(|x| x.clamp(-1.0, 1.0)).collect();
        let drawn = IndexedSet::new(asked.location_dim(), dims, asked.locations().to_vec(), kept)?;
        known = joined(&known, &drawn)?;
    }
    Ok(values)
}

fn joined(a: &IndexedSet, b: &IndexedSet) -> Result<IndexedSet> {
    IndexedSet::new(
        a.location_dim(),
        a.value_dim(),
        [a.locations(), b.locations()].concat(),
        [a.values(), b.values()].concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_grow_with_what_is_known_and_hold_every_element_once() {
        let rounds = |known, unknown, count| {
            let plan = Rounds::new(known, unknown, count, Stream::new(1, "order")).unwrap();
            let mut all: Vec<usize> = plan.portions().flatten().copied().collect();
            all.sort_unstable();
            assert_eq!(all, (0..unknown).collect::<Vec<_>>());
            plan.portions().map(<[usize]>::len).collect::<Vec<_>>()
        };
        // 10 known become 20, 40, 80.
        assert_eq!(rounds(10, 70, 3), [10, 20, 40]);
        assert_eq!(rounds(0, 7, 3), [1, 2, 4]);
        assert_eq!(rounds(100, 3, 8), [1, 1, 1]);
        assert_eq!(rounds(5, 4, 1), [4]);
        assert!(Rounds::new(1, 1, 0, Stream::new(1, "order")).is_err());
    }
}
