//! Where the shards of a process meet.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::tree::{self, Node, Number};
use super::{Failure, Ranks, Shard};
use crate::{Error, Result};

/// What a shard hands in, and what all get.
#[derive(Clone, Debug)]
enum Handed {
    /// Gradients and new buffers.
    Single(Vec<f32>),
    /// Numbers that are recorded or decided by.
    Double(Vec<f64>),
}

type Outcome = std::result::Result<Handed, Failure>;

/// The meeting place of the shards `own` of `count`.
#[derive(Debug)]
pub struct Circle {
    own: Range<usize>,
    count: usize,
    /// The other processes, which have the other shards.
    ranks: Option<Arc<Ranks>>,
    meeting: Mutex<Meeting>,
    has_ended: Condvar,
    batons: Vec<Baton>,
}

/// The meeting under way, and what the last one said.
#[derive(Debug)]
struct Meeting {
    number: u64,
    handed: Vec<Option<Outcome>>,
    num_handed: usize,
    /// Kept until the next meeting ends, which nobody can miss: it waits for all.
    said: Option<Arc<Outcome>>,
}

/// The right to compute on a replica, which its shards hand on.
#[derive(Debug, Default)]
struct Baton {
    is_taken: Mutex<bool>,
    is_free: Condvar,
}

impl Baton {
    fn take(&self) {
        let mut is_taken = lock(&self.is_taken);
        while *is_taken {
            is_taken = self.is_free.wait(is_taken).unwrap_or_else(PoisonError::into_inner);
        }
        *is_taken = true;
    }

    fn leave(&self) {
        *lock(&self.is_taken) = false;
        self.is_free.notify_one();
    }
}

/// Nothing is left half done where these are held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of one shard in its circle.
#[derive(Debug)]
pub struct Seat {
    circle: Arc<Circle>,
    shard: Shard,
    replica: usize,
    /// Whether a meeting of this step ended in a failure: nobody comes to another.
    is_over: AtomicBool,
}

impl Circle {
    /// The seats of this process's part of `count` shards, on `num_replicas` replicas that each have about as
    /// many. Other processes have the other shards, if there are any.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no shard for a replica or a process.
    pub fn seats(
        count: usize,
        num_replicas: usize,
        ranks: Option<Arc<Ranks>>,
    ) -> Result<Vec<Arc<Seat>>> {
        let own = match &ranks {
            Some(ranks) => ranks.own(count)?,
            None => 0..count,
        };
        if num_replicas == 0 || own.len() < num_replicas {
            let expected = format!("from 1 to {}, one shard for each at least", own.len());
            return Err(Error::invalid("replicas", expected, num_replicas));
        }
        let handed = vec![None; own.len()];
        let meeting = Meeting { number: 0, handed, num_handed: 0, said: None };
        let circle = Arc::new(Self {
            own: own.clone(),
            count,
            ranks: ranks.filter(|ranks| ranks.size() > 1),
            meeting: Mutex::new(meeting),
            has_ended: Condvar::new(),
            batons: (0..num_replicas).map(|_| Baton::default()).collect(),
        });
        let all = own.len();
        own.enumerate()
            .map(|(place, index)| {
                let shard = Shard::new(index, count)?;
                let replica = place * num_replicas / all;
                let is_over = AtomicBool::new(false);
                Ok(Arc::new(Seat { circle: Arc::clone(&circle), shard, replica, is_over }))
            })
            .collect()
    }

    /// Hands in, waits for all, and says what they said together.
    fn meet(&self, index: usize, handed: Outcome) -> Arc<Outcome> {
        let mut meeting = lock(&self.meeting);
        let number = meeting.number;
        meeting.handed[index - self.own.start] = Some(handed);
        meeting.num_handed += 1;
        if meeting.num_handed == self.own.len() {
            // All others wait, so that nobody else asks for the lock.
            let all = meeting.handed.iter_mut().filter_map(Option::take).collect();
            let said = Arc::new(self.mean(all));
            meeting.said = Some(Arc::clone(&said));
            meeting.num_handed = 0;
            meeting.number += 1;
            self.has_ended.notify_all();
            return said;
        }
        while meeting.number == number {
            meeting = self.has_ended.wait(meeting).unwrap_or_else(PoisonError::into_inner);
        }
        match &meeting.said {
            Some(said) => Arc::clone(said),
            None => Arc::new(Err(self.disagreement("nothing"))),
        }
    }

    /// The mean over all shards, or the failure of the first that failed.
    fn mean(&self, all: Vec<Outcome>) -> Outcome {
        let all = match all.into_iter().collect::<std::result::Result<Vec<_>, _>>() {
            Ok(all) => all,
            Err(failure) => return Err(self.fail(failure)),
        };
        let (mut single, mut double) = (Vec::new(), Vec::new());
        for handed in all {
            match handed {
                Handed::Single(numbers) => single.push(numbers),
                Handed::Double(numbers) => double.push(numbers),
            }
        }
        match (single.is_empty(), double.is_empty()) {
            (false, true) => self.mean_of(single).map(Handed::Single),
            (true, false) => self.mean_of(double).map(Handed::Double),
            _ => Err(self.fail(self.disagreement("numbers of several kinds"))),
        }
    }

    /// Lets other processes know; what all of them leave the step with.
    fn fail(&self, failure: Failure) -> Failure {
        let Some(ranks) = &self.ranks else { return failure };
        ranks.sum::<f32>(self.count, Err(failure.clone())).err().unwrap_or(failure)
    }

    fn mean_of<N: Number>(&self, all: Vec<Vec<N>>) -> std::result::Result<Vec<N>, Failure> {
        if all.windows(2).any(|pair| pair[0].len() != pair[1].len()) {
            return Err(self.fail(self.disagreement("different numbers of numbers")));
        }
        let mut parts: VecDeque<Node<N>> =
            self.own.clone().zip(all).map(|(shard, numbers)| (shard..shard + 1, numbers)).collect();
        let mut mean = match &self.ranks {
            None => tree::sum(0..self.count, &mut parts),
            Some(ranks) => {
                let nodes = tree::cover(&self.own, self.count).into_iter();
                let nodes = nodes.map(|node| (node.clone(), tree::sum(node, &mut parts)));
                ranks.sum(self.count, Ok(nodes.collect()))?
            }
        };
        for number in &mut mean {
            *number = number.over(self.count);
        }
        Ok(mean)
    }

    fn disagreement(&self, found: &str) -> Failure {
        let error = Error::invalid("shards", "at the same place of a step", found);
        Failure::new(format!("{} shards", self.count), &error)
    }
}

impl Seat {
    /// Whose it is.
    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// Which replica of its process computes it.
    pub fn replica(&self) -> usize {
        self.replica
    }

    /// The mean over shards of f32 numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Peer`] if a shard failed; this one must then leave the step.
    pub(crate) fn mean_single(&self, numbers: Vec<f32>) -> Result<Vec<f32>> {
        match self.meet(Ok(Handed::Single(numbers)))? {
            Handed::Single(mean) => Ok(mean),
            Handed::Double(_) => Err(self.circle.disagreement("numbers of another kind").error()),
        }
    }

    /// The mean over shards of f64 numbers.
    ///
    /// # Errors
    ///
    /// As [`mean_single`](Self::mean_single).
    pub(crate) fn mean_double(&self, numbers: Vec<f64>) -> Result<Vec<f64>> {
        match self.meet(Ok(Handed::Double(numbers)))? {
            Handed::Double(mean) => Ok(mean),
            Handed::Single(_) => Err(self.circle.disagreement("numbers of another kind").error()),
        }
    }

    /// Takes a step: computes when it is this shard's turn and ends in a meeting, whatever happens. The
    /// numbers of the step are means over shards.
    ///
    /// # Errors
    ///
    /// [`Error::Peer`] with the failure of the first shard that failed, the same in all of them.
    pub(crate) fn take_step<S: Copy>(
        &self,
        work: impl FnOnce() -> Result<Vec<(S, f64)>>,
    ) -> Result<Vec<(S, f64)>> {
        self.is_over.store(false, Ordering::Relaxed);
        self.baton().take();
        let found = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(Error::failed(format!("it panicked: {}", text.unwrap_or_default())))
        });
        let said = match found {
            // The meeting that failed was the last of the step.
            Err(error) if self.is_over.load(Ordering::Relaxed) => Err(error),
            Err(error) => self.meet(Err(self.failure(&error))).map(|_| Vec::new()),
            Ok(record) => {
                let (names, numbers): (Vec<S>, Vec<f64>) = record.into_iter().unzip();
                self.mean_double(numbers).map(|means| names.into_iter().zip(means).collect())
            }
        };
        self.baton().leave();
        said
    }

    /// What others will call an error of this shard.
    fn failure(&self, error: &Error) -> Failure {
        Failure::new(format!("shard {} of {}", self.shard.index(), self.shard.count()), error)
    }

    fn baton(&self) -> &Baton {
        &self.circle.batons[self.replica]
    }

    fn meet(&self, handed: Outcome) -> Result<Handed> {
        self.baton().leave();
        let said = self.circle.meet(self.shard.index(), handed);
        self.baton().take();
        (*said).clone().map_err(|failure| {
            self.is_over.store(true, Ordering::Relaxed);
            failure.error()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// What every shard of `count` on `num_replicas` gets of a step.
    fn steps(
        (count, num_replicas): (usize, usize),
        work: impl Fn(&Seat) -> Result<Vec<(&'static str, f64)>> + Sync,
    ) -> Vec<Result<Vec<(&'static str, f64)>>> {
        let seats = Circle::seats(count, num_replicas, None).unwrap();
        thread::scope(|scope| {
            let work = &work;
            let all: Vec<_> = seats
                .iter()
                .map(|seat| scope.spawn(move || seat.take_step(|| work(seat))))
                .collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn everybody_gets_the_same_mean_for_any_number_of_replicas() {
        for num_replicas in [1, 2, 3, 4] {
            let found = steps((4, num_replicas), |seat| {
                let own = seat.shard().index() as f32;
                for round in 0..20_u8 {
                    let mean = seat.mean_single(vec![own, f32::from(round)])?;
                    assert_eq!(mean, [1.5, f32::from(round)]);
                }
                Ok(vec![("own", f64::from(own))])
            });
            for record in found {
                assert_eq!(record.unwrap(), [("own", 1.5)]);
            }
        }
    }

    #[test]
    fn the_failure_of_the_first_ends_the_step_of_all() {
        // One fails before a meeting, one after it, one by a panic.
        for (place, words) in [(0, "`a` must be b, found c"), (1, "panicked: on purpose")] {
            let found = steps((3, 2), |seat| {
                let fail = || match seat.shard().index() {
                    0 => Ok(()),
                    _ if place == 0 => Err(Error::invalid("a", "b", "c")),
                    _ => std::panic::resume_unwind(Box::new("on purpose")),
                };
                if place == 0 {
                    fail()?;
                }
                seat.mean_single(vec![1.0])?;
                fail()?;
                Ok(Vec::new())
            });
            for error in found.into_iter().map(Result::unwrap_err) {
                let text = error.to_string();
                assert!(text.starts_with("shard 1 of 3: ") && text.contains(words), "{text}");
            }
        }
    }

    #[test]
    fn shards_of_a_replica_take_turns() {
        let at_work = Mutex::new(0);
        let found = steps((4, 1), |seat| {
            for _ in 0..50 {
                *lock(&at_work) += 1;
                thread::yield_now();
                assert_eq!(*lock(&at_work), 1);
                *lock(&at_work) -= 1;
                seat.mean_double(vec![0.0])?;
            }
            Ok(Vec::new())
        });
        assert!(found.into_iter().all(|record| record.is_ok()));
    }

    #[test]
    fn shards_at_different_places_are_told_so() {
        let found = steps((2, 2), |seat| {
            if seat.shard().index() == 0 {
                seat.mean_single(vec![1.0; 2])?;
            } else {
                seat.mean_single(vec![1.0; 3])?;
            }
            Ok(Vec::new())
        });
        for error in found.into_iter().map(Result::unwrap_err) {
            assert!(error.to_string().contains("at the same place"), "{error}");
        }
        assert!(Circle::seats(2, 3, None).is_err());
    }

    /// Two processes with two shards each, as four threads of one: the same means, and one failure for all.
    #[test]
    fn processes_meet_as_threads_do() {
        let run = |ranks: Option<Arc<Ranks>>| {
            let seats = Circle::seats(4, 1, ranks).unwrap();
            thread::scope(|scope| {
                let all: Vec<_> = seats
                    .iter()
                    .map(|seat| {
                        scope.spawn(move || {
                            let own = 1.0 / (3 + seat.shard().index()) as f32;
                            let mean = seat.take_step(|| {
                                let mean = seat.mean_single(vec![own; 5000])?;
                                Ok(vec![("mean", f64::from(mean[4999])), ("own", f64::from(own))])
                            });
                            let failure = seat.take_step::<&str>(|| match seat.shard().index() {
                                2 => Err(Error::failed("it broke")),
                                _ => seat.mean_single(vec![own]).map(|_| Vec::new()),
                            });
                            (mean.unwrap(), failure.unwrap_err().to_string())
                        })
                    })
                    .collect();
                all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            })
        };
        let alone = run(None);
        assert_eq!(alone[0].1, "shard 2 of 4: it broke");
        let many = super::super::ranks::tests::on_ranks(2, |ranks| run(Some(Arc::new(ranks))));
        assert!(many.concat().iter().chain(&alone).all(|found| *found == alone[0]));
    }
}
