//! Where the shards of a process meet.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::courier::{Counter, Handed, Mean, disagreement, lock};
use super::{Failure, Ranks, Shard};
use crate::{Error, Result};

/// The meeting place of shards of a process.
#[derive(Debug)]
pub struct Circle {
    counter: Counter,
    batons: Vec<Baton>,
    /// How many replicas compute at the moment.
    at_work: Arc<AtomicUsize>,
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

/// The place of one shard in its circle.
#[derive(Debug)]
pub struct Seat {
    circle: Arc<Circle>,
    shard: Shard,
    replica: usize,
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
        let ranks = ranks.filter(|ranks| ranks.size() > 1);
        let circle = Arc::new(Self {
            at_work: ranks.as_ref().map_or_else(Arc::default, |ranks| ranks.at_work()),
            counter: Counter::open(own.clone(), count, ranks)?,
            batons: (0..num_replicas).map(|_| Baton::default()).collect(),
        });
        let all = own.len();
        own.enumerate()
            .map(|(place, index)| {
                let shard = Shard::new(index, count)?;
                let replica = place * num_replicas / all;
                Ok(Arc::new(Seat { circle: Arc::clone(&circle), shard, replica }))
            })
            .collect()
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

    /// Hands in the next f32 numbers of this shard and does not wait: they are fetched on another thread, once
    /// all shards of the process have handed in theirs, and travel while this one computes on.
    pub(crate) fn hand_in(&self, fetch: impl FnOnce() -> Result<Vec<f32>> + Send + 'static) {
        self.put(Ok(Handed::Single(Box::new(fetch))));
    }

    /// Waits for the means over shards of all that was handed in, and gives them to `read` one after the other.
    ///
    /// # Errors
    ///
    /// [`Error::Peer`] if a shard failed; this one must then leave the step. What `read` says.
    pub(crate) fn means(&self, mut read: impl FnMut(&[f32]) -> Result<()>) -> Result<()> {
        for mean in self.take_all()? {
            match &*mean {
                Mean::Single(numbers) => read(numbers)?,
                Mean::Double(_) => return Err(self.disagreement()),
            }
        }
        Ok(())
    }

    /// The mean over shards of f64 numbers.
    ///
    /// # Errors
    ///
    /// As [`means`](Self::means).
    pub(crate) fn mean_double(&self, numbers: Vec<f64>) -> Result<Vec<f64>> {
        self.put(Ok(Handed::Double(numbers)));
        match self.take_all()?.last().map(|mean| &**mean) {
            Some(Mean::Double(mean)) => Ok(mean.clone()),
            _ => Err(self.disagreement()),
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
        self.circle.counter.begin(self.shard.index());
        self.take_baton();
        let found = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(Error::failed(format!("it panicked: {}", text.unwrap_or_default())))
        });
        let said = match found {
            Err(error) => {
                // Of no use after a failure of all, which is what is taken then.
                self.put(Err(self.failure(&error)));
                self.take_all().map(|_| Vec::new())
            }
            Ok(record) => {
                let (names, numbers): (Vec<S>, Vec<f64>) = record.into_iter().unzip();
                self.mean_double(numbers).map(|means| names.into_iter().zip(means).collect())
            }
        };
        self.leave_baton();
        said
    }

    /// What others will call an error of this shard.
    fn failure(&self, error: &Error) -> Failure {
        Failure::new(format!("shard {} of {}", self.shard.index(), self.shard.count()), error)
    }

    fn disagreement(&self) -> Error {
        disagreement(self.shard.count(), "numbers of another kind").error()
    }

    fn take_baton(&self) {
        self.circle.batons[self.replica].take();
        self.circle.at_work.fetch_add(1, Ordering::Relaxed);
    }

    fn leave_baton(&self) {
        self.circle.at_work.fetch_sub(1, Ordering::Relaxed);
        self.circle.batons[self.replica].leave();
    }

    fn put(&self, handed: std::result::Result<Handed, Failure>) {
        self.circle.counter.hand_in(self.shard.index(), handed);
    }

    /// Lets other shards of the replica compute until all that this one handed in has come back.
    fn take_all(&self) -> Result<Vec<Arc<Mean>>> {
        self.leave_baton();
        let means = self.circle.counter.take_all(self.shard.index());
        self.take_baton();
        means.map_err(|failure| failure.error())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The mean over shards of numbers that are handed in at once.
    fn mean_single(seat: &Seat, numbers: Vec<f32>) -> Result<Vec<f32>> {
        seat.hand_in(move || Ok(numbers));
        let mut all = Vec::new();
        seat.means(|mean| {
            all.extend_from_slice(mean);
            Ok(())
        })?;
        Ok(all)
    }

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
                    let mean = mean_single(seat, vec![own, f32::from(round)])?;
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
                mean_single(seat, vec![1.0])?;
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
                mean_single(seat, vec![1.0; 2])?;
            } else {
                mean_single(seat, vec![1.0; 3])?;
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
                                let mean = mean_single(seat, vec![own; 5000])?;
                                Ok(vec![("mean", f64::from(mean[4999])), ("own", f64::from(own))])
                            });
                            let failure = seat.take_step::<&str>(|| match seat.shard().index() {
                                2 => Err(Error::failed("it broke")),
                                _ => mean_single(seat, vec![own]).map(|_| Vec::new()),
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

    /// Two processes of one shard each. The second part is fetched when the mean of the first has come, and no
    /// shard hands in the third before that: it travels while shards compute.
    #[test]
    fn parts_travel_while_shards_compute() {
        let found = super::super::ranks::tests::on_ranks(2, |ranks| {
            let seats = Circle::seats(2, 1, Some(Arc::new(ranks))).unwrap();
            let seat = &seats[0];
            let own = 1.0 + seat.shard().index() as f32;
            let mut means = Vec::new();
            let record = seat.take_step::<&str>(|| {
                let (fetched, is_fetched): (_, Receiver<()>) = channel();
                seat.hand_in(move || Ok(vec![own]));
                seat.hand_in(move || {
                    fetched.send(()).map_err(|_lost| Error::failed("nobody waits for it"))?;
                    Ok(vec![10.0 * own; 5000])
                });
                is_fetched.recv_timeout(Duration::from_mins(1)).expect("it is fetched");
                seat.hand_in(move || Ok(vec![100.0 * own]));
                seat.means(|mean| {
                    means.push((mean.len(), mean[0]));
                    Ok(())
                })?;
                Ok(Vec::new())
            });
            record.unwrap();
            means
        });
        for means in found {
            assert_eq!(means, [(1, 1.5), (5000, 15.0), (1, 150.0)]);
        }
    }

    /// The first part of a shard fails on its way, after the shard has handed in more; the step after it is
    /// not disturbed by what is left.
    #[test]
    fn what_was_handed_in_after_a_failure_is_forgotten() {
        let work = |seat: &Seat, is_bad: bool| {
            let own = seat.shard().index() as f32;
            let fails = is_bad && seat.shard().index() == 1;
            seat.take_step::<&str>(|| {
                let broken = || Error::failed("the copy broke");
                seat.hand_in(move || if fails { Err(broken()) } else { Ok(vec![own]) });
                seat.hand_in(move || Ok(vec![own; 3]));
                let mut lengths = Vec::new();
                seat.means(|mean| {
                    lengths.push((mean.len(), mean[0]));
                    Ok(())
                })?;
                assert_eq!(lengths, [(1, 1.5), (3, 1.5)]);
                Ok(Vec::new())
            })
        };
        let run = |ranks: Option<Arc<Ranks>>| {
            let seats = Circle::seats(4, 2, ranks).unwrap();
            thread::scope(|scope| {
                let steps = |seat: Arc<Seat>| {
                    move || {
                        let error = work(&seat, true).unwrap_err().to_string();
                        work(&seat, false).unwrap();
                        error
                    }
                };
                let all: Vec<_> = seats.into_iter().map(|seat| scope.spawn(steps(seat))).collect();
                all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            })
        };
        let expected = "shard 1 of 4: the copy broke";
        assert!(run(None).iter().all(|error| error == expected));
        let many = super::super::ranks::tests::on_ranks(2, |ranks| run(Some(Arc::new(ranks))));
        assert!(many.concat().iter().all(|error| error == expected), "{many:?}");
    }
}
