//! What the shards of a process hand in, part by part, and the thread that brings the means back.
//!
//! ```text
//! shard 0   ── a₀ ── b₀ ── c₀ ─ waits          ā b̄ c̄
//! shard 1     ── a₁ ── b₁ ──── c₁ ─ waits      ā b̄ c̄
//! courier           ā ──── b̄ ────── c̄          adds, and asks other processes
//! ```
//!
//! A part is complete when every shard of the process has handed it in; the courier then finds its mean while
//! the shards compute on. Every shard hands in the same parts in the same order, so that parts are complete in
//! that order in every process, and processes need not agree on what comes next. A part that failed ends the
//! round: what was handed in after it is of no use, and all shards leave their step with the same failure.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::tree::{self, Node, Number};
use super::{Failure, Ranks};
use crate::{Error, Result};

type Found<T> = std::result::Result<T, Failure>;

/// What a shard hands in.
pub(super) enum Handed {
    /// Gradients and new buffers, which may still be on their way from a GPU.
    Single(Box<dyn FnOnce() -> Result<Vec<f32>> + Send>),
    /// Numbers that are recorded or decided by.
    Double(Vec<f64>),
}

/// The mean of what all shards handed in.
#[derive(Debug)]
pub(super) enum Mean {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

/// A part of which every shard of the process has handed in its own.
struct Job {
    round: u64,
    number: u64,
    all: Vec<Found<Handed>>,
}

/// Where parts lie until all shards have taken their means.
pub(super) struct Table {
    own: Range<usize>,
    count: usize,
    /// The other processes, which have the other shards.
    ranks: Option<Arc<Ranks>>,
    state: Mutex<State>,
    has_news: Condvar,
}

#[derive(Default)]
struct State {
    /// How many parts have failed.
    round: u64,
    /// That of the part that ended the round before.
    failure: Option<Failure>,
    /// The number of the first of `parts`.
    first: u64,
    parts: VecDeque<Part>,
    /// How far each shard of this process is.
    progress: Vec<Progress>,
}

struct Part {
    handed: Vec<Option<Found<Handed>>>,
    num_handed: usize,
    mean: Option<Arc<Mean>>,
    num_taken: usize,
}

#[derive(Clone, Copy, Default)]
struct Progress {
    round: u64,
    /// The numbers of the parts that come next.
    handed: u64,
    taken: u64,
}

/// The shards' side of a [`Table`]; the courier ends with it.
pub(super) struct Counter {
    table: Arc<Table>,
    jobs: Sender<Job>,
}

impl fmt::Debug for Counter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Counter {{ own: {:?}, count: {} }}", self.table.own, self.table.count)
    }
}

/// Nothing is left half done where these are held.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counter {
    /// That of the shards `own` of `count`, with its courier.
    pub(super) fn open(own: Range<usize>, count: usize, ranks: Option<Arc<Ranks>>) -> Result<Self> {
        let progress = vec![Progress::default(); own.len()];
        let state = Mutex::new(State { progress, ..State::default() });
        let table = Arc::new(Table { own, count, ranks, state, has_news: Condvar::new() });
        let (jobs, received) = channel();
        let courier = Arc::clone(&table);
        let thread = thread::Builder::new().name("courier".into());
        thread.spawn(move || courier.serve(&received)).map_err(|error| {
            Error::failed(format!("cannot start the thread that adds up shards: {error}"))
                .with_help("let the process have more threads (ulimit -u)")
        })?;
        Ok(Self { table, jobs })
    }

    /// A shard begins a step: whatever was handed in before a failure is forgotten.
    pub(super) fn begin(&self, shard: usize) {
        let mut state = lock(&self.table.state);
        let (round, first) = (state.round, state.first);
        let progress = &mut state.progress[shard - self.table.own.start];
        if progress.round != round {
            *progress = Progress { round, handed: first, taken: first };
        }
    }

    /// Puts the next part of a shard down, and does not wait.
    pub(super) fn hand_in(&self, shard: usize, handed: Found<Handed>) {
        let place = shard - self.table.own.start;
        // Whoever completes a part has not handed in the next one, which so cannot overtake it.
        let job = lock(&self.table.state).put(place, handed);
        if let Some(job) = job
            && self.jobs.send(job).is_err()
        {
            let error = Error::failed("the thread that adds up shards has ended");
            self.table.say(Err(Failure::new("this process", &error)), 0);
        }
    }

    /// Waits for the means of all that a shard has handed in since it last did.
    pub(super) fn take_all(&self, shard: usize) -> Found<Vec<Arc<Mean>>> {
        let place = shard - self.table.own.start;
        let mut state = lock(&self.table.state);
        let mut means = Vec::new();
        loop {
            if let Some(failure) = state.ended(place) {
                return Err(failure);
            }
            if let Some(mean) = state.take(place) {
                means.push(mean);
            } else if state.progress[place].taken == state.progress[place].handed {
                return Ok(means);
            } else {
                let woken = self.table.has_news.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl State {
    /// Why the round of a shard is over, if it is.
    fn ended(&self, place: usize) -> Option<Failure> {
        if self.progress[place].round == self.round { None } else { self.failure.clone() }
    }

    fn part(&mut self, number: u64) -> Option<&mut Part> {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok())?;
        self.parts.get_mut(place)
    }

    fn put(&mut self, place: usize, handed: Found<Handed>) -> Option<Job> {
        let (round, count) = (self.round, self.progress.len());
        let progress = &mut self.progress[place];
        if progress.round != round {
            return None;
        }
        let number = progress.handed;
        progress.handed += 1;
        if self.part(number).is_none() {
            // Every shard hands in one part after the other, so that it is the next.
            let handed = std::iter::repeat_with(|| None).take(count).collect();
            self.parts.push_back(Part { handed, num_handed: 0, mean: None, num_taken: 0 });
        }
        let part = self.part(number)?;
        part.handed[place] = Some(handed);
        part.num_handed += 1;
        let is_complete = part.num_handed == count;
        is_complete.then(|| Job {
            round,
            number,
            all: part.handed.iter_mut().filter_map(Option::take).collect(),
        })
    }

    fn take(&mut self, place: usize) -> Option<Arc<Mean>> {
        let (number, count) = (self.progress[place].taken, self.progress.len());
        let part = self.part(number)?;
        let mean = Arc::clone(part.mean.as_ref()?);
        part.num_taken += 1;
        // Shards take in order: the part is the first.
        if part.num_taken == count {
            self.parts.pop_front();
            self.first += 1;
        }
        self.progress[place].taken += 1;
        Some(mean)
    }
}

impl Table {
    /// The work of the courier, until the counter is closed.
    fn serve(&self, jobs: &Receiver<Job>) {
        for Job { round, number, all } in jobs {
            if lock(&self.state).round != round {
                continue;
            }
            let found = catch_unwind(AssertUnwindSafe(|| self.mean(all))).unwrap_or_else(|_| {
                let error = Error::failed("the thread that adds up shards panicked");
                Err(Failure::new("this process", &error))
            });
            self.say(found, number);
        }
    }

    fn say(&self, found: Found<Mean>, number: u64) {
        let mut state = lock(&self.state);
        match found {
            Ok(mean) => {
                if let Some(part) = state.part(number) {
                    part.mean = Some(Arc::new(mean));
                }
            }
            Err(failure) => {
                state.round += 1;
                state.failure = Some(failure);
                state.parts.clear();
            }
        }
        drop(state);
        self.has_news.notify_all();
    }

    /// The mean over all shards, or the failure of the first that failed.
    fn mean(&self, all: Vec<Found<Handed>>) -> Found<Mean> {
        let (mut single, mut double) = (Vec::new(), Vec::new());
        for (shard, handed) in self.own.clone().zip(all) {
            match handed {
                Ok(Handed::Single(fetch)) => single.push(fetch().map_err(|error| {
                    self.fail(Failure::new(format!("shard {shard} of {}", self.count), &error))
                })?),
                Ok(Handed::Double(numbers)) => double.push(numbers),
                Err(failure) => return Err(self.fail(failure)),
            }
        }
        match (single.is_empty(), double.is_empty()) {
            (false, true) => self.mean_of(single).map(Mean::Single),
            (true, false) => self.mean_of(double).map(Mean::Double),
            _ => Err(self.fail(disagreement(self.count, "numbers of several kinds"))),
        }
    }

    /// Lets other processes know; what all of them leave the step with.
    fn fail(&self, failure: Failure) -> Failure {
        let Some(ranks) = &self.ranks else { return failure };
        ranks.sum::<f32>(self.count, Err(failure.clone())).err().unwrap_or(failure)
    }

    fn mean_of<N: Number>(&self, all: Vec<Vec<N>>) -> Found<Vec<N>> {
        if all.windows(2).any(|pair| pair[0].len() != pair[1].len()) {
            return Err(self.fail(disagreement(self.count, "different numbers of numbers")));
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
}

/// Shards of one step do different things.
pub(super) fn disagreement(count: usize, found: &str) -> Failure {
    let error = Error::invalid("shards", "at the same place of a step", found);
    Failure::new(format!("{count} shards"), &error)
}
