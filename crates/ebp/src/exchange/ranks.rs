//! The processes of a training, each with a range of the shards.
//!
//! Everything begins with a header of every rank, what it wants and how much of it, or that it failed: then all
//! get the failure of the first that did. Sums travel in slices:
//!
//! ```text
//! every rank        Σ over the nodes of the tree that lie within its shards
//! scatter           slice j of every node goes to rank j, which adds the nodes in the order of the tree
//! gather            the slices of the sum go to all
//! ```
//!
//! Bytes that a rank of N sends and receives per optimiser step of P parameters, one node a rank: 8 P (N − 1)/N.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Failure;
use super::tree::{self, Node, Number};
use crate::{Error, Result};

/// Sums of fewer numbers go to all at once: latency is all they cost.
const FEW: usize = 4096;

/// How bytes get to other ranks. Calls are made by one thread at a time, the same by all ranks; the thread waits,
/// and others compute meanwhile.
pub(super) trait Wire: Debug + Send {
    /// This rank, and how many there are.
    fn place(&self) -> (usize, usize);

    /// Tells how many replicas of this process compute: whoever waits must leave them their cores.
    fn heed(&mut self, _at_work: Arc<AtomicUsize>) {}

    /// A few words of every rank.
    fn headers(&mut self, own: [u64; 3]) -> Result<Vec<[u64; 3]>>;

    /// The bytes of all ranks, one after the other; rank i has `lengths[i]`.
    fn gather(&mut self, own: &[u8], lengths: &[usize]) -> Result<Vec<u8>>;

    /// Sends `sent[j]` bytes of `own` to rank j and receives `received[i]` from rank i.
    fn scatter(&mut self, own: &[u8], sent: &[usize], received: &[usize]) -> Result<Vec<u8>>;

    /// The name of the machine.
    fn host(&self) -> String;

    /// Ends the work with the others, who must do the same.
    fn close(&mut self) -> Result<()>;
}

/// What a rank wants of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Sum = 1,
    Share = 2,
    Any = 3,
    Leave = 4,
}

/// This process among all of a training.
#[derive(Debug)]
pub struct Ranks {
    rank: usize,
    size: usize,
    host: String,
    /// How many replicas of this process compute.
    at_work: Arc<AtomicUsize>,
    link: Mutex<Link>,
}

#[derive(Debug)]
struct Link {
    wire: Box<dyn Wire>,
    /// Why nobody listens any more.
    gone: Option<Failure>,
    /// Whether that is because the others cannot be reached.
    is_cut: bool,
}

type Agreed<T> = std::result::Result<T, Failure>;

impl Ranks {
    pub(super) fn new(mut wire: Box<dyn Wire>) -> Self {
        let ((rank, size), host) = (wire.place(), wire.host());
        let at_work = Arc::default();
        wire.heed(Arc::clone(&at_work));
        let link = Mutex::new(Link { wire, gone: None, is_cut: false });
        Self { rank, size, host, at_work, link }
    }

    /// This process, from 0. The first keeps the run.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The name of this machine.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Where this process counts its replicas that compute.
    pub(super) fn at_work(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.at_work)
    }

    /// The shards of this process among `count`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are fewer shards than processes.
    pub fn own(&self, count: usize) -> Result<Range<usize>> {
        if count < self.size {
            let expected = format!("at least {}, one for each process", self.size);
            return Err(Error::invalid("train.shards", expected, count));
        }
        Ok(self.shards_of(self.rank, count))
    }

    fn shards_of(&self, rank: usize, count: usize) -> Range<usize> {
        rank * count / self.size..(rank + 1) * count / self.size
    }

    /// What the first rank has to say, on all of them: it gives `Some`, the others are not heard.
    ///
    /// # Errors
    ///
    /// [`Error::Peer`] if another rank failed, [`Error::Failed`] if the ranks cannot reach each other.
    pub fn share(&self, own: Option<Vec<u8>>) -> Result<Vec<u8>> {
        let own = own.filter(|_| self.rank == 0).unwrap_or_default();
        let mut link = self.link();
        let lengths = link.agree(Wish::Share, Ok(own.len())).map_err(|failure| failure.error())?;
        link.gather(&own, &lengths).map_err(|failure| failure.error())
    }

    /// Whether any rank wishes it.
    ///
    /// # Errors
    ///
    /// As [`share`](Self::share).
    pub fn any(&self, is_wished: bool) -> Result<bool> {
        let wishes = self.link().agree(Wish::Any, Ok(usize::from(is_wished)));
        Ok(wishes.map_err(|failure| failure.error())?.iter().any(|&wish| wish > 0))
    }

    /// Σ over all shards of numbers, of which this rank hands in its nodes of the tree, or why it cannot.
    pub(super) fn sum<N: Number>(
        &self,
        count: usize,
        own: std::result::Result<Vec<Node<N>>, Failure>,
    ) -> Agreed<Vec<N>> {
        let mut link = self.link();
        let nodes = match own {
            Ok(nodes) => nodes,
            Err(failure) => {
                return Err(link.agree(Wish::Sum, Err(&failure)).err().unwrap_or(failure));
            }
        };
        let length = nodes.first().map_or(0, |(_, numbers)| numbers.len());
        let lengths = link.agree(Wish::Sum, Ok(length))?;
        if lengths.iter().any(|&found| found != length) {
            let found = format!("{lengths:?}");
            let error = Error::invalid("numbers of a step", "as many on every process", found);
            return Err(link.lose(&error));
        }
        // Few numbers are one slice for everybody.
        let slices = if length < FEW { 1 } else { self.size };
        let slice = |part: usize| part * length / slices..(part + 1) * length / slices;
        let covers: Vec<Vec<Range<usize>>> =
            (0..self.size).map(|rank| tree::cover(&self.shards_of(rank, count), count)).collect();
        let mut sent = Vec::new();
        for part in 0..slices {
            for (_, numbers) in &nodes {
                N::write(&numbers[slice(part)], &mut sent);
            }
        }
        let own_slice = if slices == 1 { 0..length } else { slice(self.rank) };
        let received: Vec<usize> =
            covers.iter().map(|cover| cover.len() * own_slice.len() * size_of::<N>()).collect();
        let bytes = if slices == 1 {
            link.gather(&sent, &received)?
        } else {
            let nodes = nodes.len();
            let sizes: Vec<usize> =
                (0..slices).map(|part| nodes * slice(part).len() * size_of::<N>()).collect();
            link.scatter(&sent, &sizes, &received)?
        };
        drop((sent, nodes));
        let mut numbers = N::read(&bytes);
        let mut parts: VecDeque<Node<N>> = VecDeque::new();
        for node in covers.into_iter().flatten() {
            let rest = numbers.split_off(own_slice.len().min(numbers.len()));
            parts.push_back((node, std::mem::replace(&mut numbers, rest)));
        }
        let sum = tree::sum(0..count, &mut parts);
        if slices == 1 {
            return Ok(sum);
        }
        let mut own = Vec::new();
        N::write(&sum, &mut own);
        let sizes: Vec<usize> =
            (0..slices).map(|part| slice(part).len() * size_of::<N>()).collect();
        Ok(N::read(&link.gather(&own, &sizes)?))
    }

    /// Tells all others that this one ends and why; nothing if they know of a failure already. Nobody
    /// waits for it from then on.
    pub fn leave(&self, error: &Error) {
        let failure = Failure::new(format!("rank {}", self.rank), error);
        let mut link = self.link();
        if link.gone.is_none() {
            // Whatever comes of it: this one is leaving.
            drop(link.agree(Wish::Leave, Err(&failure)));
        }
    }

    /// Whether the others could not be reached: one of them may be gone.
    pub fn is_cut(&self) -> bool {
        self.link().is_cut
    }

    /// Ends the work of all ranks together.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if the library says so.
    pub fn close(&self) -> Result<()> {
        self.link().wire.close()
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    /// What every rank has of something that all wish for, or the failure of the first that has none.
    fn agree(
        &mut self,
        wish: Wish,
        own: std::result::Result<usize, &Failure>,
    ) -> Agreed<Vec<usize>> {
        if let Some(failure) = &self.gone {
            return Err(failure.clone());
        }
        let failed = match own {
            Ok(_) => Vec::new(),
            Err(failure) => serde_json::to_vec(failure).unwrap_or_default(),
        };
        let length = own.unwrap_or(failed.len()) as u64;
        let headers = self.wire.headers([wish as u64, u64::from(own.is_err()), length]);
        let headers = headers.map_err(|error| self.lose(&error))?;
        #[expect(clippy::cast_possible_truncation, reason = "they were lengths")]
        let lengths = |of: &dyn Fn(&[u64; 3]) -> bool| -> Vec<usize> {
            headers.iter().map(|header| if of(header) { header[2] as usize } else { 0 }).collect()
        };
        let Some(first) = headers.iter().position(|header| header[1] != 0) else {
            if headers.iter().any(|header| header[0] != wish as u64) {
                let found = format!("{headers:?}");
                let error = Error::invalid("processes", "at the same place of a training", found);
                return Err(self.lose(&error));
            }
            return Ok(lengths(&|_| true));
        };
        let lengths = lengths(&|header| header[1] != 0);
        let all = self.wire.gather(&failed, &lengths).map_err(|error| self.lose(&error))?;
        let start: usize = lengths[..first].iter().sum();
        let failure: Failure = serde_json::from_slice(&all[start..start + lengths[first]])
            .unwrap_or_else(|error| {
                let error =
                    Error::failed(format!("it failed with words that cannot be read: {error}"));
                Failure::new(format!("rank {first}"), &error)
            });
        if headers.iter().any(|header| header[1] != 0 && header[0] == Wish::Leave as u64) {
            self.gone = Some(failure.clone());
        }
        Err(failure)
    }

    fn gather(&mut self, own: &[u8], lengths: &[usize]) -> Agreed<Vec<u8>> {
        self.wire.gather(own, lengths).map_err(|error| self.lose(&error))
    }

    fn scatter(&mut self, own: &[u8], sent: &[usize], received: &[usize]) -> Agreed<Vec<u8>> {
        self.wire.scatter(own, sent, received).map_err(|error| self.lose(&error))
    }

    /// Nothing can be agreed on any more.
    fn lose(&mut self, error: &Error) -> Failure {
        self.is_cut = true;
        let (rank, _) = self.wire.place();
        let failure = Failure::new(format!("rank {rank}"), error);
        self.gone.get_or_insert(failure).clone()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Barrier};
    use std::thread;

    use super::*;

    /// Ranks that are threads of one process.
    #[derive(Debug)]
    struct Threads {
        rank: usize,
        size: usize,
        table: Arc<(Barrier, Mutex<Vec<Vec<u8>>>)>,
    }

    impl Threads {
        fn all(&self, own: Vec<u8>) -> Vec<Vec<u8>> {
            let (barrier, table) = &*self.table;
            table.lock().unwrap()[self.rank] = own;
            barrier.wait();
            let all = table.lock().unwrap().clone();
            barrier.wait();
            all
        }
    }

    impl Wire for Threads {
        fn place(&self) -> (usize, usize) {
            (self.rank, self.size)
        }

        fn headers(&mut self, own: [u64; 3]) -> Result<Vec<[u64; 3]>> {
            let all = self.all(own.iter().flat_map(|word| word.to_le_bytes()).collect());
            let words = |bytes: &Vec<u8>| -> Vec<u64> {
                bytes.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect()
            };
            Ok(all.iter().map(|bytes| words(bytes).try_into().unwrap()).collect())
        }

        fn gather(&mut self, own: &[u8], lengths: &[usize]) -> Result<Vec<u8>> {
            assert_eq!(own.len(), lengths[self.rank]);
            Ok(self.all(own.to_vec()).concat())
        }

        fn scatter(&mut self, own: &[u8], sent: &[usize], received: &[usize]) -> Result<Vec<u8>> {
            assert_eq!(own.len(), sent.iter().sum::<usize>());
            let starts: Vec<u8> = sent.iter().flat_map(|&n| (n as u64).to_le_bytes()).collect();
            let (starts, all) = (self.all(starts), self.all(own.to_vec()));
            let mut found = Vec::new();
            for (rank, bytes) in all.iter().enumerate() {
                let sizes: Vec<usize> = starts[rank]
                    .as_chunks()
                    .0
                    .iter()
                    .map(|&bytes| usize::try_from(u64::from_le_bytes(bytes)).unwrap())
                    .collect();
                let start: usize = sizes[..self.rank].iter().sum();
                assert_eq!(sizes[self.rank], received[rank]);
                found.extend_from_slice(&bytes[start..start + received[rank]]);
            }
            Ok(found)
        }

        fn host(&self) -> String {
            "here".into()
        }

        fn close(&mut self) -> Result<()> {
            Ok(())
        }
    }

    /// What every rank of `size` makes of `work`.
    pub(in crate::exchange) fn on_ranks<R: Send>(
        size: usize,
        work: impl Fn(Ranks) -> R + Sync,
    ) -> Vec<R> {
        let table = Arc::new((Barrier::new(size), Mutex::new(vec![Vec::new(); size])));
        thread::scope(|scope| {
            let all: Vec<_> = (0..size)
                .map(|rank| {
                    let wire = Threads { rank, size, table: Arc::clone(&table) };
                    let work = &work;
                    scope.spawn(move || work(Ranks::new(Box::new(wire))))
                })
                .collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn sums_are_those_of_one_process_however_long() {
        for (count, length) in [(4, 3), (4, 2 * FEW + 5), (5, FEW), (3, 1)] {
            let numbers = |shard: usize| -> Vec<f32> {
                (0..length).map(|i| 1.0 / (1 + i * 7 + shard * 13) as f32).collect()
            };
            let parts = |range: Range<usize>| -> VecDeque<Node<f32>> {
                range.map(|shard| (shard..shard + 1, numbers(shard))).collect()
            };
            let whole = tree::sum(0..count, &mut parts(0..count));
            for size in 1..=count {
                let found = on_ranks(size, |ranks| {
                    let own = ranks.own(count).unwrap();
                    let nodes = tree::cover(&own, count);
                    let nodes = nodes.into_iter().map(|node| {
                        let sum = tree::sum(node.clone(), &mut parts(node.clone()));
                        (node, sum)
                    });
                    ranks.sum(count, Ok(nodes.collect())).unwrap()
                });
                assert!(found.iter().all(|sum| *sum == whole), "{count} {length} {size}");
            }
        }
    }

    #[test]
    fn the_first_is_heard_by_all_and_wishes_count() {
        let found = on_ranks(3, |ranks| {
            let words = (ranks.rank() == 0).then(|| b"hello".to_vec());
            let heard = ranks.share(words).unwrap();
            (heard, ranks.any(ranks.rank() == 2).unwrap(), ranks.any(false).unwrap())
        });
        assert!(found.iter().all(|all| *all == (b"hello".to_vec(), true, false)));
        on_ranks(2, |ranks| assert!(ranks.own(1).is_err()));
    }

    #[test]
    fn whoever_leaves_is_missed_once_and_nobody_waits() {
        let found = on_ranks(3, |ranks| {
            if ranks.rank() == 1 {
                let full = Error::failed("the disk is full");
                ranks.leave(&full);
                return full.to_string();
            }
            let first = ranks.any(false).unwrap_err().to_string();
            ranks.leave(&Error::failed("not told any more"));
            assert_eq!(ranks.share(None).unwrap_err().to_string(), first);
            first
        });
        assert_eq!(
            found,
            ["rank 1: the disk is full", "the disk is full", "rank 1: the disk is full"]
        );
    }

    #[test]
    fn a_step_that_fails_on_one_rank_fails_on_all_and_can_be_repeated() {
        let found = on_ranks(2, |ranks| {
            let failure = Failure::new("shard 1 of 2", &Error::failed("it broke"));
            let own = || vec![(ranks.rank()..ranks.rank() + 1, vec![1.0_f64])];
            let first = ranks.sum(2, if ranks.rank() == 1 { Err(failure) } else { Ok(own()) });
            (first.unwrap_err().error().to_string(), ranks.sum(2, Ok(own())).unwrap())
        });
        let expected = ("shard 1 of 2: it broke".to_owned(), vec![2.0]);
        assert!(found.iter().all(|all| *all == expected), "{found:?}");
    }

    #[test]
    fn ranks_at_different_places_are_told_so() {
        let found = on_ranks(2, |ranks| match ranks.rank() {
            0 => ranks.any(true).unwrap_err().to_string(),
            _ => ranks.share(None).unwrap_err().to_string(),
        });
        assert!(found.iter().all(|text| text.contains("at the same place")), "{found:?}");
    }
}
