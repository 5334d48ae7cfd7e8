//! What neural processes are trained on: pairs of a context and the targets to predict from it.

use std::ops::RangeInclusive;

use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// A batch of tasks, borrowed: `targets[s]` is to be predicted from `contexts[s]`.
#[derive(Clone, Copy, Debug)]
pub struct TaskBatch<'a> {
    /// What is known; any of them may be empty.
    pub contexts: &'a [IndexedSet],
    /// What is asked for: elements that are not in the context, at least one per task.
    pub targets: &'a [IndexedSet],
}

impl TaskBatch<'_> {
    /// Checks that there is a context for each target, and all dimensions.
    pub(crate) fn check(&self, location_dim: usize, value_dim: usize) -> Result<()> {
        if self.targets.is_empty() || self.contexts.len() != self.targets.len() {
            return Err(Error::invalid(
                "contexts",
                format!("one for each of {} targets, of which there is one", self.targets.len()),
                self.contexts.len(),
            ));
        }
        let check = |set| check_dimensions(set, location_dim, value_dim);
        self.contexts.iter().chain(self.targets).try_for_each(check)
    }

    /// Context and target of each task together.
    pub(crate) fn unions(&self) -> Result<Vec<IndexedSet>> {
        let union = |(context, target): (&IndexedSet, &IndexedSet)| {
            IndexedSet::new(
                target.location_dim(),
                target.value_dim(),
                [context.locations(), target.locations()].concat(),
                [context.values(), target.values()].concat(),
            )
        };
        self.contexts.iter().zip(self.targets).map(union).collect()
    }
}

/// Checks that a set has the dimensions of a process.
pub(crate) fn check_dimensions(
    set: &IndexedSet,
    location_dim: usize,
    value_dim: usize,
) -> Result<()> {
    if (set.location_dim(), set.value_dim()) == (location_dim, value_dim) {
        return Ok(());
    }
    Err(Error::invalid(
        "set",
        format!("of locations of {location_dim} and values of {value_dim} numbers"),
        format!("{} and {}", set.location_dim(), set.value_dim()),
    ))
}

/// Checks that flat locations are whole rows, and counts them.
pub(crate) fn count_locations(locations: &[f64], location_dim: usize) -> Result<usize> {
    let count = locations.len() / location_dim;
    if count * location_dim == locations.len() {
        return Ok(count);
    }
    Err(Error::invalid(
        "locations",
        format!("whole rows of {location_dim} numbers"),
        format!("{} numbers", locations.len()),
    ))
}

/// A batch of tasks that owns its sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Tasks {
    /// What is known.
    pub contexts: Vec<IndexedSet>,
    /// What is asked for.
    pub targets: Vec<IndexedSet>,
}

impl Tasks {
    /// Cuts each set at random into a context, whose size is uniform on `num_context`, and the
    /// rest. Sizes are lowered where a set would have no element left to predict.
    ///
    /// ```
    /// use ebp::IndexedSet;
    /// use ebp::process::neural::Tasks;
    /// use ebp::rng::Stream;
    ///
    /// let set = IndexedSet::new(1, 1, vec![0.0, 1.0, 2.0], vec![5.0, 6.0, 7.0])?;
    /// let tasks = Tasks::split(&[set], 1..=2, Stream::new(0, "split"))?;
    /// assert_eq!(tasks.contexts[0].len() + tasks.targets[0].len(), 3);
    /// # Ok::<(), ebp::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a set or the range is empty.
    pub fn split(
        sets: &[IndexedSet],
        num_context: RangeInclusive<usize>,
        stream: Stream,
    ) -> Result<Self> {
        if num_context.is_empty() {
            return Err(Error::invalid(
                "num_context",
                "a range that is not empty",
                format!("{num_context:?}"),
            ));
        }
        let mut tasks = Self { contexts: Vec::new(), targets: Vec::new() };
        for (number, set) in sets.iter().enumerate() {
            if set.is_empty() {
                let expected = "a set with an element to predict";
                return Err(Error::invalid(format!("sets[{number}]"), expected, "none"));
            }
            let stream = stream.child(number as u64);
            let mut uniform = vec![0.0; set.len() + 1];
            stream.fill_uniform(0, 0, &mut uniform);
            // Sorting by random keys is a random permutation; 24 bits may tie, then by index.
            let mut order: Vec<usize> = (0..set.len()).collect();
            order.sort_by(|&a, &b| uniform[a].total_cmp(&uniform[b]));
            let span = num_context.end() - num_context.start() + 1;
            let size = num_context.start() + below(uniform[set.len()], span);
            let (context, target) = order.split_at(size.min(set.len() - 1));
            tasks.contexts.push(set.select(context));
            tasks.targets.push(set.select(target));
        }
        Ok(tasks)
    }

    /// The same, borrowed.
    pub fn batch(&self) -> TaskBatch<'_> {
        TaskBatch { contexts: &self.contexts, targets: &self.targets }
    }
}

/// ⌊u · count⌋, below `count`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number in [0, count) is rounded down"
)]
fn below(uniform: f32, count: usize) -> usize {
    ((f64::from(uniform) * count as f64) as usize).min(count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_keeps_every_element_and_reaches_both_ends_of_the_range() {
        let locations: Vec<f64> = (0..6_u8).map(f64::from).collect();
        let set = IndexedSet::new(1, 1, locations.clone(), locations).unwrap();
        let mut sizes = Vec::new();
        for number in 0..60 {
            let stream = Stream::new(number, "split");
            let tasks = Tasks::split(std::slice::from_ref(&set), 0..=9, stream).unwrap();
            let mut all = [tasks.contexts[0].values(), tasks.targets[0].values()].concat();
            all.sort_by(f64::total_cmp);
            assert_eq!(all, set.values());
            sizes.push(tasks.contexts[0].len());
        }
        // 0..=9 lowered to at most 5 of 6; the chance to miss 0 in 60 draws is 0.9⁶⁰ = 0.2 %.
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&0), Some(&5)));
    }

    #[test]
    fn wrong_tasks_are_refused() {
        let (one, two) = (IndexedSet::empty(1, 1).unwrap(), IndexedSet::empty(2, 1).unwrap());
        let sets = [one, two];
        let batch = TaskBatch { contexts: &sets[..1], targets: &sets };
        assert!(batch.check(1, 1).unwrap_err().to_string().contains("one for each of 2 targets"));
        let batch = TaskBatch { contexts: &sets[..1], targets: &sets[1..] };
        assert!(batch.check(1, 1).unwrap_err().to_string().contains("found 2 and 1"));
        assert!(Tasks::split(&sets, 0..=1, Stream::new(0, "a")).is_err());
        assert!(count_locations(&[1.0, 2.0, 3.0], 2).is_err());
    }
}
