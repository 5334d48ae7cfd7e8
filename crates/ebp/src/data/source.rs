//! Clouds to learn from or to judge, wherever they lie: in memory, or in a cache that is read from
//! its map set by set.
//!
//! ```text
//! file or folder ── Clouds ─┐
//!                           ├─ CloudSource ── select, splits ── standardised ── points of a set
//! cache (.ebp) ──── Cache ──┤   (shared)      (members)         (c, s)          z = (x − c)/s
//! cache in shards ─ Caches ─┘
//! ```
//!
//! The points themselves are never copied: a part of a source is a list of members, and centre and
//! scale (those of a cache first, then those asked for) are applied to what is read, when it is
//! read. So a cache that is larger than the memory can be learned from.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::cache::{Cache, Kind, Split, is_sharded, open_sharded};
use super::cloud::{Clouds, read_cloud_files};
use super::normalise::{Affine, Moments};
use super::parts::share_of;
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// Sets whose statistics are held at a time.
const MEASURED_AT_ONCE: usize = 4096;

/// Clouds of one dimension and any sizes. Cloning shares the points.
#[derive(Clone, Debug)]
pub struct CloudSource {
    /// At least one, all of one dimension.
    stores: Arc<[Store]>,
    /// Which sets of the stores, in their order.
    members: Arc<[Member]>,
    /// What is applied after the stores' own normalisation.
    affine: Option<Affine>,
    /// Whether a pass has shown that every number that is handed out is finite.
    is_finite: bool,
}

/// A set by its store and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    store: usize,
    set: usize,
}

#[derive(Debug)]
enum Store {
    Memory(Clouds),
    Mapped(Box<Cache>),
}

impl Store {
    /// A cache, which stays where it is, in one file or in shards, or the clouds of a file or folder of
    /// any other format.
    fn open(path: &Path) -> Result<Vec<Self>> {
        if is_sharded(path) {
            let shards = open_sharded(path)?.into_iter();
            return Ok(shards.map(|cache| Self::Mapped(Box::new(cache))).collect());
        }
        if !Cache::is_cache(path) {
            return Ok(vec![Self::Memory(read_cloud_files(path)?)]);
        }
        let cache = Cache::open(path)?;
        match cache.meta().kind {
            Kind::Clouds => Ok(vec![Self::Mapped(Box::new(cache))]),
            kind => {
                let field = format!("cache `{}`", path.display());
                Err(Error::invalid(field, "of clouds", format!("{kind:?}")))
            }
        }
    }

    fn dim(&self) -> usize {
        match self {
            Self::Memory(clouds) => clouds.dim(),
            Self::Mapped(cache) => cache.meta().dim,
        }
    }

    fn offsets(&self) -> &SetOffsets {
        match self {
            Self::Memory(clouds) => clouds.offsets(),
            Self::Mapped(cache) => cache.offsets(),
        }
    }
}

/// What one pass over all points of a source finds.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudStatistics {
    /// The mean of every axis, and the standard deviation of all coordinates together.
    pub affine: Affine,
    /// The largest absolute value of a coordinate that [`affine`](Self::affine) was applied to.
    pub largest: f32,
}

impl From<Clouds> for CloudSource {
    fn from(clouds: Clouds) -> Self {
        Self::of(vec![Store::Memory(clouds)])
    }
}

impl CloudSource {
    fn of(stores: Vec<Store>) -> Self {
        let of_store = |(store, sets): (usize, &Store)| {
            (0..sets.offsets().num_sets()).map(move |set| Member { store, set })
        };
        let members = stores.iter().enumerate().flat_map(of_store).collect();
        Self { stores: stores.into(), members, affine: None, is_finite: false }
    }

    /// A cache, which stays where it is and whose normalisation is applied, or the clouds of a file or
    /// folder of any other format.
    ///
    /// # Errors
    ///
    /// As [`Cache::open`] and [`read_clouds`](super::read_clouds); [`Error::InvalidValue`] if a cache
    /// does not hold clouds.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self::of(Store::open(path)?))
    }

    /// All clouds of several caches, files and folders, one after the other.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`Error::InvalidValue`] if there is no path or the clouds'
    /// dimensions differ.
    pub fn open_all<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let mut stores: Vec<Store> = Vec::new();
        for path in paths {
            let path = path.as_ref();
            let more = Store::open(path)?;
            let dims = stores.first().zip(more.first()).map(|(a, b)| (a.dim(), b.dim()));
            if let Some((dim, found)) = dims.filter(|(dim, found)| dim != found) {
                let first = paths[0].as_ref().display();
                let expected = format!("clouds of {dim} numbers a point, as `{first}`");
                let found = format!("{found} in `{}`", path.display());
                return Err(Error::invalid("paths", expected, found));
            }
            stores.extend(more);
        }
        if stores.is_empty() {
            return Err(Error::invalid("paths", "at least one of clouds", "none"));
        }
        Ok(Self::of(stores))
    }

    /// Numbers of a point.
    pub fn dim(&self) -> usize {
        self.stores[0].dim()
    }

    /// How many sets.
    pub fn num_sets(&self) -> usize {
        self.members.len()
    }

    /// Where set `index` lies, and its number there.
    fn place(&self, index: usize) -> (&Store, usize) {
        let Member { store, set } = self.members[index];
        (&self.stores[store], set)
    }

    /// Points of set `index`.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn size(&self, index: usize) -> usize {
        let (store, set) = self.place(index);
        store.offsets().size(set)
    }

    /// What set `index` is called: in a cache of classes, `class/name`.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn name(&self, index: usize) -> String {
        match self.place(index) {
            (Store::Memory(clouds), set) => clouds.names()[set].clone(),
            (Store::Mapped(cache), set) => {
                let label = cache.label(set);
                let class = label.and_then(|label| cache.meta().classes.get(label as usize));
                let name = &cache.names()[set];
                class.map_or_else(|| name.clone(), |class| format!("{class}/{name}"))
            }
        }
    }

    /// Some of the sets, by their numbers here, in the order given.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is none, or no such set.
    pub fn select(&self, members: &[usize]) -> Result<Self> {
        let found: Option<Arc<[Member]>> =
            members.iter().map(|&index| self.members.get(index).copied()).collect();
        let Some(found) = found.filter(|found| !found.is_empty()) else {
            let expected = format!("some numbers below {}", self.num_sets());
            let found = members.iter().max().map_or("none".to_owned(), usize::to_string);
            return Err(Error::invalid("members", expected, found));
        };
        Ok(Self { members: found, ..self.clone() })
    }

    /// The numbers here of the sets of a split. Without a cache every set is for training.
    pub fn members(&self, split: Split) -> Vec<usize> {
        let split_of = |index: usize| match self.place(index) {
            (Store::Memory(_), _) => Split::Train,
            (Store::Mapped(cache), set) => cache.split(set),
        };
        (0..self.num_sets()).filter(|&index| split_of(index) == split).collect()
    }

    /// What is learned from and what is held out: by the splits of a cache (validation, then test)
    /// or, where it has none, the first `held_out` of a drawn order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless at least one set is held out and one learned from.
    pub fn hold_out(&self, held_out: usize, stream: Stream) -> Result<(Self, Self)> {
        let train = self.members(Split::Train);
        if train.len() < self.num_sets() {
            let others = [self.members(Split::Validation), self.members(Split::Test)].concat();
            return Ok((self.select(&train)?, self.select(&others)?));
        }
        let held_out = share_of(held_out, self.num_sets())?;
        let order = stream.permutation(self.num_sets());
        Ok((self.select(&order[held_out..])?, self.select(&order[..held_out])?))
    }

    /// The same sets as (x − c)/s of what is handed out now. It replaces an earlier one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `affine` does not fit.
    pub fn standardised(mut self, affine: Affine) -> Result<Self> {
        affine.check(self.dim())?;
        (self.affine, self.is_finite) = (Some(affine), false);
        Ok(self)
    }

    /// The same by their own statistics: what is far out is known, so that no further pass has to show
    /// that the numbers are finite.
    ///
    /// # Errors
    ///
    /// As [`statistics`](Self::statistics).
    pub fn standardised_by_itself(self) -> Result<(Self, CloudStatistics)> {
        // An affine of its own would be replaced, and what was measured is what it gives.
        let is_plain = self.affine.is_none();
        let statistics = self.statistics()?;
        let mut standardised = self.standardised(statistics.affine.clone())?;
        standardised.is_finite = is_plain && statistics.largest.is_finite();
        Ok((standardised, statistics))
    }

    /// The points of set `index`, `[n, d]`: borrowed where they lie in memory as they are wanted.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn set(&self, index: usize) -> Cow<'_, [f32]> {
        let points = match self.place(index) {
            (Store::Memory(clouds), set) => Cow::Borrowed(clouds.cloud(set)),
            (Store::Mapped(cache), set) => Cow::Owned(cache.normalised(set)),
        };
        match &self.affine {
            None => points,
            Some(affine) => {
                let mut points = points.into_owned();
                affine.apply(&mut points);
                Cow::Owned(points)
            }
        }
    }

    /// The first `count` sets, or all there are, as the points of each.
    pub fn first_sets(&self, count: usize) -> Vec<Cow<'_, [f32]>> {
        (0..self.num_sets().min(count)).map(|index| self.set(index)).collect()
    }

    /// Everything in memory.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no set.
    pub fn to_clouds(&self) -> Result<Clouds> {
        let sizes = (0..self.num_sets()).map(|index| self.size(index));
        let offsets = SetOffsets::from_sizes(sizes)?;
        let mut points = Vec::with_capacity(offsets.num_elements() * self.dim());
        for index in 0..self.num_sets() {
            points.extend_from_slice(&self.set(index));
        }
        let names = (0..self.num_sets()).map(|index| self.name(index)).collect();
        Clouds::new(self.dim(), points, offsets, names)
    }

    /// That every number is finite, in one pass.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] with the name of the cloud and the number of the point otherwise.
    pub fn check_finite(&self) -> Result<()> {
        if self.is_finite {
            return Ok(());
        }
        let check = |index: usize| self.check_set(index, &self.set(index)).err();
        (0..self.num_sets()).into_par_iter().find_map_first(check).map_or(Ok(()), Err)
    }

    fn check_set(&self, index: usize, points: &[f32]) -> Result<()> {
        match points.iter().position(|number| !number.is_finite()) {
            None => Ok(()),
            Some(place) => {
                let field = format!("point {} of `{}`", place / self.dim(), self.name(index));
                Err(Error::invalid(field, "finite", points[place]))
            }
        }
    }

    /// Mean, spread and extent of all points, in one pass that also checks that they are finite.
    ///
    /// # Errors
    ///
    /// As [`check_finite`](Self::check_finite).
    pub fn statistics(&self) -> Result<CloudStatistics> {
        let dim = self.dim();
        // In the order in which they lie, which disks like; about one origin, and added up set by set,
        // whatever threads looked at them.
        let mut order: Vec<usize> = (0..self.num_sets()).collect();
        order.sort_unstable_by_key(|&index| self.members[index]);
        let mut moments = Moments::new(&self.set(order[0]), dim);
        let empty = moments.emptied();
        let (mut low, mut high) = (vec![f32::INFINITY; dim], vec![f32::NEG_INFINITY; dim]);
        let look = |index: usize| {
            let points = self.set(index);
            self.check_set(index, &points)?;
            let mut moments = empty.emptied();
            moments.add(&points);
            let (mut low, mut high) = (vec![f32::INFINITY; dim], vec![f32::NEG_INFINITY; dim]);
            for point in points.chunks_exact(dim) {
                for ((low, high), &x) in low.iter_mut().zip(&mut high).zip(point) {
                    *low = low.min(x);
                    *high = high.max(x);
                }
            }
            Ok((moments, low, high))
        };
        for sets in order.chunks(MEASURED_AT_ONCE) {
            let found: Vec<Result<_>> = sets.par_iter().map(|&index| look(index)).collect();
            for found in found {
                let (of_set, lowest, highest) = found?;
                moments.merge(&of_set);
                for axis in 0..dim {
                    low[axis] = low[axis].min(lowest[axis]);
                    high[axis] = high[axis].max(highest[axis]);
                }
            }
        }
        let affine = moments.affine();
        // Rounding keeps the order of numbers: the farthest ones are still so when standardised.
        for ends in [&mut low, &mut high] {
            affine.apply(ends);
        }
        let largest = low.iter().chain(&high).fold(0.0_f32, |largest, x| largest.max(x.abs()));
        Ok(CloudStatistics { affine, largest })
    }
}
