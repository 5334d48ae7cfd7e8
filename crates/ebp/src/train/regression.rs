//! Training of processes: tasks from built-in curves or from sets of one's own.

use serde::{Deserialize, Serialize};

use super::tasks::{TaskTraining, Tasks};
use crate::batch::TaskBatch;
use crate::data::CurveFamily;
use crate::process::{Learner, Task};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// What a step learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskConfig {
    /// Sets per step.
    pub num_sets: usize,
    /// Elements of each set, context and target together; smaller sets are taken whole.
    pub set_size: usize,
    /// The fewest context elements.
    pub min_context: usize,
    /// The most.
    pub max_context: usize,
}

impl Default for TaskConfig {
    /// 8 sets of 60 elements, of which 3 to 32 are context.
    fn default() -> Self {
        Self { num_sets: 8, set_size: 60, min_context: 3, max_context: 32 }
    }
}

impl TaskConfig {
    fn check(&self) -> Result<()> {
        if self.num_sets == 0 {
            return Err(Error::invalid("num_sets", "at least 1", self.num_sets));
        }
        if self.min_context > self.max_context {
            let expected = format!("at most max_context = {}", self.max_context);
            return Err(Error::invalid("min_context", expected, self.min_context));
        }
        if self.set_size <= self.max_context {
            let expected = format!("above max_context = {}", self.max_context);
            return Err(Error::invalid("set_size", expected, self.set_size));
        }
        Ok(())
    }
}

/// Where the sets come from.
#[derive(Clone, Debug)]
pub enum TaskSource {
    /// Fresh sets of a family in every step.
    Curves(CurveFamily),
    /// Random parts of random sets among these.
    Sets(Vec<IndexedSet>),
}

/// A process and the sets it learns from.
pub type Regression = TaskTraining<dyn Learner, CurveTasks>;

/// Tasks of sets.
#[derive(Debug)]
pub struct CurveTasks {
    source: TaskSource,
    config: TaskConfig,
}

impl Regression {
    /// Sets of one element have nothing to predict it from, but may be learned from all the same.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is outside its range, or there is no set or an empty
    /// one.
    pub fn new(process: Box<dyn Learner>, source: TaskSource, config: TaskConfig) -> Result<Self> {
        config.check()?;
        if let TaskSource::Sets(sets) = &source
            && (sets.is_empty() || sets.iter().any(IndexedSet::is_empty))
        {
            return Err(Error::invalid("sets", "at least one, none of them empty", sets.len()));
        }
        Ok(Self::of(process, CurveTasks { source, config }))
    }
}

impl Tasks for CurveTasks {
    fn batch(&self, stream: Stream) -> Result<TaskBatch> {
        Task::batch(&self.tasks(stream)?)
    }

    fn tasks(&self, stream: Stream) -> Result<Vec<Task>> {
        let TaskConfig { num_sets, set_size, min_context, max_context } = self.config;
        (0..num_sets as u64)
            .map(|number| {
                let set = match &self.source {
                    TaskSource::Curves(family) => family.draw(stream, number, set_size)?.set,
                    TaskSource::Sets(sets) => part(sets, set_size, stream.child(number)),
                };
                Task::split(&set, min_context..=max_context, stream.child(number).child(9))
            })
            .collect()
    }
}

/// `size` random elements of a random set.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "u in [0, 1) times a count is one of the numbers below it"
)]
fn part(sets: &[IndexedSet], size: usize, stream: Stream) -> IndexedSet {
    let mut uniform = [0.0];
    stream.child(0).fill_uniform(0, 0, &mut uniform);
    let set = &sets[((f64::from(uniform[0]) * sets.len() as f64) as usize).min(sets.len() - 1)];
    let mut order = stream.child(1).permutation(set.len());
    order.truncate(size);
    set.select(&order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_random_elements_of_random_sets() {
        let set = |from: u8| {
            let values: Vec<f64> = (from..from + 10).map(f64::from).collect();
            IndexedSet::new(1, 1, values.clone(), values).unwrap()
        };
        let sets = [set(0), set(100)];
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..40 {
            let part = part(&sets, 4, Stream::new(number, "part"));
            assert_eq!(part.len(), 4);
            let mut values = part.values().to_vec();
            values.dedup();
            assert_eq!(values.len(), 4);
            #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
            seen.extend(values.iter().map(|v| *v as i64));
        }
        // 160 draws of 20 elements: the chance to miss one is 20 · 0.8⁴⁰ = 0.3 %.
        assert_eq!(seen.len(), 20);
        assert_eq!(part(&sets, 99, Stream::new(1, "part")).len(), 10);
    }
}
