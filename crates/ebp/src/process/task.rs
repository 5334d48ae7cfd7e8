//! What processes learn from: sets cut in two.

use std::ops::RangeInclusive;

use crate::batch::{SetBatch, TaskBatch};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// A set cut in two: what is observed, and what is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The observed elements; may be empty.
    pub context: IndexedSet,
    /// The elements to predict, none of them in the context; at least one.
    pub target: IndexedSet,
}

impl Task {
    /// Cuts a set at random into a context, whose size is uniform on `num_context`, and the rest.
    /// The size is lowered where no element would be left to predict.
    ///
    /// ```
    /// use ebp::IndexedSet;
    /// use ebp::process::Task;
    /// use ebp::rng::Stream;
    ///
    /// let set = IndexedSet::new(1, 1, vec![0.0, 1.0, 2.0], vec![5.0, 6.0, 7.0])?;
    /// let task = Task::split(&set, 1..=2, Stream::new(0, "split"))?;
    /// assert_eq!(task.context.len() + task.target.len(), 3);
    /// # Ok::<(), ebp::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the set or the range is empty.
    pub fn split(
        set: &IndexedSet,
        num_context: RangeInclusive<usize>,
        stream: Stream,
    ) -> Result<Self> {
        if num_context.is_empty() {
            let found = format!("{num_context:?}");
            return Err(Error::invalid("num_context", "a range that is not empty", found));
        }
        if set.is_empty() {
            return Err(Error::invalid("set", "at least one element to predict", "none"));
        }
        let order = stream.permutation(set.len());
        // The permutation uses the numbers before this one.
        let mut uniform = [0.0];
        stream.fill_uniform(0, set.len() as u64, &mut uniform);
        let span = num_context.end() - num_context.start() + 1;
        let size = num_context.start() + below(uniform[0], span);
        let (context, target) = order.split_at(size.min(set.len() - 1));
        Ok(Self { context: set.select(context), target: set.select(target) })
    }

    /// The numbers of all tasks as networks read them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no task or their dimensions differ.
    pub fn batch(tasks: &[Self]) -> Result<TaskBatch> {
        let Some(Self { target, .. }) = tasks.first() else {
            return Err(Error::invalid("tasks", "at least one", 0));
        };
        let (dt, dx) = (target.location_dim(), target.value_dim());
        Ok(TaskBatch {
            context: SetBatch::from_sets(dt, dx, tasks.iter().map(|task| &task.context))?,
            target: SetBatch::from_sets(dt, dx, tasks.iter().map(|task| &task.target))?,
        })
    }

    /// A set of a batch in f64.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a number is not finite.
    pub fn of_batch(batch: &TaskBatch, set: usize) -> Result<Self> {
        let wide = |numbers: &[f32]| numbers.iter().map(|&x| f64::from(x)).collect();
        let part = |sets: &SetBatch| {
            let (dt, dx) = (sets.location_dim(), sets.value_dim());
            IndexedSet::new(dt, dx, wide(sets.locations(set)), wide(sets.values(set)))
        };
        Ok(Self { context: part(&batch.context)?, target: part(&batch.target)? })
    }

    /// Context and target together.
    pub(crate) fn union(&self) -> Result<IndexedSet> {
        let (context, target) = (&self.context, &self.target);
        IndexedSet::new(
            target.location_dim(),
            target.value_dim(),
            [context.locations(), target.locations()].concat(),
            [context.values(), target.values()].concat(),
        )
    }
}

/// Checks that a set has the dimensions of a process.
pub(super) fn check_dimensions(
    field: &str,
    set: &IndexedSet,
    location_dim: usize,
    value_dim: usize,
) -> Result<()> {
    let found = (set.location_dim(), set.value_dim());
    if found == (location_dim, value_dim) {
        return Ok(());
    }
    let show = |(t, x): (usize, usize)| format!("locations of {t} and values of {x} numbers");
    Err(Error::invalid(field, show((location_dim, value_dim)), show(found)))
}

/// Checks that flat locations are whole rows, and counts them.
pub(super) fn count_locations(locations: &[f64], location_dim: usize) -> Result<usize> {
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
            let task = Task::split(&set, 0..=9, Stream::new(number, "split")).unwrap();
            let mut all = task.union().unwrap().values().to_vec();
            all.sort_by(f64::total_cmp);
            assert_eq!(all, set.values());
            sizes.push(task.context.len());
        }
        // 0..=9 lowered to at most 5 of 6; the chance to miss 0 in 60 draws is 0.9⁶⁰ = 0.2 %.
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&0), Some(&5)));
    }

    #[test]
    fn wrong_tasks_are_refused() {
        let (one, two) = (IndexedSet::empty(1, 1).unwrap(), IndexedSet::empty(2, 1).unwrap());
        let filled = IndexedSet::new(1, 1, vec![1.0], vec![2.0]).unwrap();
        let refusal = |tasks: &[Task]| {
            let checked = Task::batch(tasks).and_then(|batch| batch.check(1, 1));
            checked.unwrap_err().to_string()
        };
        assert!(refusal(&[]).contains("at least one"));
        let task = Task { context: filled.clone(), target: one.clone() };
        assert!(refusal(&[task]).contains("tasks[0].target"));
        let task = Task { context: two, target: filled };
        let found = refusal(&[task]);
        assert!(found.contains("found 2 and 1 numbers"), "{found}");
        assert!(Task::split(&one, 0..=1, Stream::new(0, "a")).is_err());
        assert!(count_locations(&[1.0, 2.0, 3.0], 2).is_err());
    }
}
