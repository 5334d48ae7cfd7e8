//! A learner and where its tasks come from: what training on curves and on pictures share.
//!
//! ```text
//! Tasks::batch (f32) ── Preparation ── Learner::learn_prepared     networks, a step ahead
//! Tasks::tasks (f64) ──────────────── Learner::learn               processes in closed form
//! ```

use std::fmt::Debug;
use std::sync::Arc;

use super::ahead::Ahead;
use super::{Record, Shardable, Step, Trainable};
use crate::Result;
use crate::batch::TaskBatch;
use crate::exchange::Seat;
use crate::process::{Learner, Preparation, Prepared, Task};
use crate::rng::Stream;
use crate::tensor::Tensors;

/// Draws the tasks of a step.
pub trait Tasks: Debug + Send + Sync + 'static {
    /// As networks read them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the source is wrong about itself.
    fn batch(&self, stream: Stream) -> Result<TaskBatch>;

    /// The same tasks with all their digits.
    ///
    /// # Errors
    ///
    /// As [`batch`](Self::batch).
    fn tasks(&self, stream: Stream) -> Result<Vec<Task>> {
        let batch = self.batch(stream)?;
        (0..batch.num_sets()).map(|set| Task::of_batch(&batch, set)).collect()
    }
}

/// A process and what it learns from.
#[derive(Debug)]
pub struct TaskTraining<L: ?Sized, T> {
    lessons: Arc<Lessons<T>>,
    process: Box<L>,
    ahead: Ahead<Lesson>,
}

/// Where tasks come from, and who makes batches of them.
#[derive(Debug)]
struct Lessons<T> {
    tasks: T,
    /// `None` if a step must see its tasks.
    preparation: Option<Preparation>,
}

/// What a step reads.
#[derive(Debug)]
enum Lesson {
    Tasks(Vec<Task>),
    Batch(Prepared),
}

/// The step that a learner takes within a step of training, whose first stream drew the tasks.
fn inner(step: &Step) -> Step {
    Step { stream: step.stream.child(1), ..*step }
}

impl<T: Tasks> Lessons<T> {
    fn make(&self, step: &Step) -> Result<Lesson> {
        let stream = step.stream.child(0);
        Ok(match &self.preparation {
            Some(preparation) => {
                Lesson::Batch(preparation.prepare(&self.tasks.batch(stream)?, &inner(step))?)
            }
            None => Lesson::Tasks(self.tasks.tasks(stream)?),
        })
    }
}

impl<L: Learner + ?Sized, T: Tasks> TaskTraining<L, T> {
    pub(super) fn of(process: Box<L>, tasks: T) -> Self {
        let preparation = process.preparation();
        let ahead = Ahead::new(process.learns_on_gpu());
        Self { process, lessons: Arc::new(Lessons { tasks, preparation }), ahead }
    }

    /// The process.
    pub fn process(&self) -> &L {
        &self.process
    }

    /// The process, to be changed.
    pub fn process_mut(&mut self) -> &mut L {
        &mut self.process
    }

    /// The process alone.
    pub fn into_process(self) -> Box<L> {
        self.process
    }
}

impl<L: Learner + ?Sized, T: Tasks> Trainable for TaskTraining<L, T> {
    fn step(&mut self, step: &Step) -> Result<Record> {
        match self.ahead.take_or(step, || self.lessons.make(step))? {
            Lesson::Tasks(tasks) => self.process.learn(&tasks, &inner(step)),
            Lesson::Batch(batch) => self.process.learn_prepared(batch, &inner(step)),
        }
    }

    fn foresee(&mut self, next: &Step) {
        let (lessons, next) = (Arc::clone(&self.lessons), *next);
        self.ahead.begin(next, move || lessons.make(&next));
    }

    fn prepare(&mut self, step: &Step) -> Result<()> {
        let lesson = self.lessons.make(step)?;
        self.ahead.keep(*step, lesson);
        Ok(())
    }

    fn state(&self) -> Result<Tensors> {
        self.process.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.process.restore(state)
    }
}

impl<L: Learner + ?Sized, T: Tasks> Shardable for TaskTraining<L, T> {
    fn join(&mut self, seat: &Arc<Seat>) -> Result<()> {
        self.process.join(seat)
    }
}
