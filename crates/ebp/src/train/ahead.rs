//! What the next step reads, made while this one computes.
//!
//! A step's batch is a function of its number and stream, so that it may be made at any time and on
//! any thread. What was made for a step that never comes (after a rollback) is dropped.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::Step;
use crate::Result;

/// Batches under way, the oldest first.
pub(super) struct Ahead<T> {
    /// Threads of its own: what they do must not stand in the way of the step at hand. `None` where
    /// there is one thread in all, or none could be started.
    threads: Option<ThreadPool>,
    waiting: VecDeque<(Step, Receiver<Result<T>>)>,
}

impl<T> std::fmt::Debug for Ahead<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Ahead {{ waiting: {} }}", self.waiting.len())
    }
}

impl<T: Send + 'static> Ahead<T> {
    /// Half as many threads as compute, or all but one where steps are taken on a device.
    pub(super) fn new(is_device: bool) -> Self {
        let all = rayon::current_num_threads();
        let count = if is_device { all - 1 } else { all / 2 };
        let start = || {
            let threads = ThreadPoolBuilder::new().num_threads(count);
            // A panic is repeated on the thread of the step, which then makes its own batch.
            threads.panic_handler(|_| {}).build().ok()
        };
        Self { threads: if count == 0 { None } else { start() }, waiting: VecDeque::new() }
    }

    /// Begins to make what `step` reads.
    pub(super) fn begin(&mut self, step: Step, make: impl FnOnce() -> Result<T> + Send + 'static) {
        let Some(threads) = &self.threads else { return };
        let (sender, receiver) = sync_channel(1);
        // Nobody listens any more if the batch was dropped, which is no mistake.
        threads.spawn(move || drop(sender.send(make())));
        self.waiting.push_back((step, receiver));
    }

    /// Keeps what `step` reads, which was made already.
    pub(super) fn keep(&mut self, step: Step, made: T) {
        let (sender, receiver) = sync_channel(1);
        // The channel has room for one, and its other end is here.
        drop(sender.send(Ok(made)));
        self.waiting.push_back((step, receiver));
    }

    /// What was made for `step`, or is made now.
    pub(super) fn take_or(&mut self, step: &Step, make: impl FnOnce() -> Result<T>) -> Result<T> {
        self.take(step).unwrap_or_else(make)
    }

    /// What was made for `step`; `None` if nothing was, or its thread died.
    fn take(&mut self, step: &Step) -> Option<Result<T>> {
        let is_same = |made_for: &Step| {
            made_for.number == step.number
                && made_for.num_steps == step.num_steps
                && made_for.stream == step.stream
        };
        let place = self.waiting.iter().position(|(made_for, _)| is_same(made_for));
        let found = place.and_then(|place| self.waiting.remove(place));
        // Only the one after this step can still be wanted.
        self.waiting.retain(|(made_for, _)| made_for.number == step.number + 1);
        found.and_then(|(_, receiver)| receiver.recv().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn step(number: u64, name: &str) -> Step {
        let stream = Stream::new(1, name).child(number);
        Step { number, num_steps: 100, stream, learning_rate_factor: 1.0 }
    }

    fn taken(ahead: &mut Ahead<u64>, step: &Step) -> Option<u64> {
        ahead.take(step).map(Result::unwrap)
    }

    #[test]
    fn only_what_was_made_for_a_step_is_taken() {
        let threads = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let mut ahead = threads.install(|| Ahead::new(false));
        let begin = |ahead: &mut Ahead<u64>, number: u64, name: &str| {
            ahead.begin(step(number, name), move || Ok(number));
        };
        begin(&mut ahead, 1, "train");
        assert_eq!(taken(&mut ahead, &step(0, "train")), None);
        begin(&mut ahead, 2, "train");
        assert_eq!(taken(&mut ahead, &step(1, "train")), Some(1));
        // Step 2 is rolled back to step 1, with another stream.
        begin(&mut ahead, 2, "rollback");
        assert_eq!(taken(&mut ahead, &step(1, "rollback")), None);
        begin(&mut ahead, 3, "rollback");
        assert_eq!(taken(&mut ahead, &step(2, "rollback")), Some(2));
        assert_eq!(ahead.waiting.len(), 1);
    }

    #[test]
    fn what_was_made_already_is_taken_even_where_no_thread_prepares() {
        let threads = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut ahead = threads.install(|| Ahead::<u64>::new(false));
        ahead.keep(step(5, "train"), 50);
        assert_eq!(taken(&mut ahead, &step(5, "train")), Some(50));
        assert_eq!(taken(&mut ahead, &step(5, "train")), None);
    }

    #[test]
    fn errors_arrive_with_the_step_and_a_dead_thread_makes_nothing() {
        let threads = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let mut ahead = threads.install(|| Ahead::<u64>::new(true));
        ahead.begin(step(1, "train"), || Err(crate::Error::invalid("sets", "some", "none")));
        assert!(ahead.take(&step(1, "train")).unwrap().is_err());
        ahead.begin(step(2, "train"), || std::panic::resume_unwind(Box::new("dead")));
        assert!(ahead.take(&step(2, "train")).is_none());
    }
}
