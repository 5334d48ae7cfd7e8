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

/// How values drawn in rounds are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// As they were drawn.
    Drawn,
    /// As means: the last portion as the mean of its law, and every other one, once all are there, as the
    /// mean of its law given all the others. What the draws decided stays, their grain goes.
    Means,
}

/// Values at `targets`' locations, `[m, d_x]`, drawn portion by portion, with one draw of the latent for
/// each. What stands at `targets` is not looked at.
///
/// # Errors
///
/// As [`LatentProcess::hypotheses`].
pub(crate) fn draw_in_rounds(
    process: &dyn LatentProcess,
    (context, targets): (&IndexedSet, &IndexedSet),
    cell: f64,
    (rounds, finish): (usize, Finish),
    stream: Stream,
) -> Result<Vec<f64>> {
    let dims = targets.value_dim();
    let plan = Rounds::new(context.len(), targets.len(), rounds, stream.child(0))?;
    let (mut known, mut values) = (context.clone(), vec![0.0; targets.len() * dims]);
    let portions: Vec<&[usize]> = plan.portions().collect();
    let mean = |known: &IndexedSet, asked: &IndexedSet, stream| -> Result<Vec<f64>> {
        Ok(process.hypotheses(known, asked, cell, 1, stream)?.mean)
    };
    for (round, portion) in portions.iter().enumerate() {
        let asked = targets.select(portion);
        let stream = stream.child(1 + round as u64);
        let drawn = if finish == Finish::Means && round + 1 == portions.len() {
            mean(&known, &asked, stream)?
        } else {
            process.condition(&known)?.sample(asked.locations(), 1, stream)?
        };
        put(&mut values, portion, &drawn);
        known = joined(&known, &with_values(&asked, &drawn)?)?;
    }
    if finish == Finish::Means {
        for round in (0..portions.len().saturating_sub(1)).rev() {
            let mut others = context.clone();
            for (_, portion) in portions.iter().enumerate().filter(|(other, _)| *other != round) {
                let there: Vec<f64> =
                    portion.iter().flat_map(|&at| &values[at * dims..][..dims]).copied().collect();
                others = joined(&others, &with_values(&targets.select(portion), &there)?)?;
            }
            let stream = stream.child((1 + portions.len() + round) as u64);
            let shown = mean(&others, &targets.select(portions[round]), stream)?;
            put(&mut values, portions[round], &shown);
        }
    }
    Ok(values)
}

/// Writes the values of a portion to their places.
fn put(values: &mut [f64], portion: &[usize], found: &[f64]) {
    let dims = found.len() / portion.len().max(1);
    for (&index, value) in portion.iter().zip(found.chunks_exact(dims.max(1))) {
        values[index * dims..][..dims].copy_from_slice(value);
    }
}

/// The set's locations with other values. A Gaussian may leave the values' domain, in which no context
/// may lie.
fn with_values(set: &IndexedSet, values: &[f64]) -> Result<IndexedSet> {
    let kept = values.iter().map(|x| x.clamp(-1.0, 1.0)).collect();
    IndexedSet::new(set.location_dim(), set.value_dim(), set.locations().to_vec(), kept)
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
    use super::super::{Hypotheses, LogDensity, Predictive, Process};
    use super::*;

    /// Draws ones, and takes the mean of what is known for the mean of the rest.
    #[derive(Debug)]
    struct MeanOfKnown;

    impl Process for MeanOfKnown {
        fn name(&self) -> &'static str {
            "mean-of-known"
        }

        fn condition<'a>(&'a self, _: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
            Ok(Box::new(Self))
        }
    }

    impl Predictive for MeanOfKnown {
        fn log_density(&self, _: &IndexedSet) -> Result<Vec<LogDensity>> {
            Ok(Vec::new())
        }

        fn sample(&self, locations: &[f64], _: usize, _: Stream) -> Result<Vec<f64>> {
            Ok(vec![1.0; locations.len()])
        }
    }

    impl LatentProcess for MeanOfKnown {
        fn hypotheses(
            &self,
            context: &IndexedSet,
            targets: &IndexedSet,
            _: f64,
            _: usize,
            _: Stream,
        ) -> Result<Hypotheses> {
            let mean = context.values().iter().sum::<f64>() / context.len() as f64;
            let (log_mass, log_density) = (Vec::new(), Vec::new());
            Ok(Hypotheses { log_mass, log_density, mean: vec![mean; targets.len()] })
        }
    }

    #[test]
    fn means_given_the_others_take_the_grain_of_draws_away() {
        let context = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![0.0; 2]).unwrap();
        let targets = IndexedSet::new(1, 1, (2..8).map(f64::from).collect(), vec![0.5; 6]).unwrap();
        let draw = |finish| {
            let sets = (&context, &targets);
            let stream = Stream::new(3, "draws");
            let mut found = draw_in_rounds(&MeanOfKnown, sets, 0.1, (3, finish), stream).unwrap();
            found.sort_by(f64::total_cmp);
            found
        };
        assert_eq!(draw(Finish::Drawn), [1.0; 6]);
        // Portions of 1, 2 and 3. The last: three ones among five known. Then the second, given two
        // zeros, a one and the last; then the first.
        let last = 3.0 / 5.0;
        let second = (1.0 + 3.0 * last) / 6.0;
        let first = (2.0 * second + 3.0 * last) / 7.0;
        let expected = [first, second, second, last, last, last];
        for (found, expected) in draw(Finish::Means).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

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
