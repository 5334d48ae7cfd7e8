//! Clouds to learn from or to judge, wherever they lie: in memory, or in a cache that is read from
//! its map set by set.
//!
//! ```text
//! file or folder ── Clouds ─┐
//!                           ├─ CloudSource ── select, splits ── standardised ── SetView of a set
//! cache (.ebp) ──── Cache ──┘   (shared)      (members)         (c, s)          z = (x − c)/s
//! ```
//!
//! The points themselves are never copied: a part of a source is a list of members, and centre and
//! scale (those of a cache first, then those asked for) are applied to what is read, when it is
//! read. So a cache that is larger than the memory can be learned from.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::cache::{Cache, Kind, Split};
use super::cloud::{Clouds, read_cloud_files};
use super::normalise::{Affine, Moments};
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// Clouds of one dimension and any sizes. Cloning shares the points.
#[derive(Clone, Debug)]
pub struct CloudSource {
    store: Arc<Store>,
    /// Which sets of the store, in their order.
    members: Arc<[usize]>,
    /// What is applied after the store's own normalisation.
    affine: Option<Affine>,
}

#[derive(Debug)]
enum Store {
    Memory(Clouds),
    Mapped(Box<Cache>),
}

/// What one pass over all points of a source finds.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudStatistics {
    /// The mean of every axis, and the standard deviation of all coordinates together.
    pub affine: Affine,
    /// The largest absolute value of a coordinate that [`affine`](Self::affine) was applied to.
    pub largest: f32,
}

/// One set as it lies in its source, with what brings it into the units that were asked for.
#[derive(Clone, Copy, Debug)]
pub struct SetView<'a> {
    points: &'a [f32],
    affines: [Option<&'a Affine>; 2],
}

impl<'a> From<&'a [f32]> for SetView<'a> {
    fn from(points: &'a [f32]) -> Self {
        Self { points, affines: [None; 2] }
    }
}

impl<'a> SetView<'a> {
    /// The points `[n, d]` before anything is applied to them.
    pub fn stored(&self) -> &'a [f32] {
        self.points
    }

    /// Brings points that were copied from [`stored`](Self::stored) into the units of the source.
    pub fn apply(&self, points: &mut [f32]) {
        for affine in self.affines.into_iter().flatten() {
            affine.apply(points);
        }
    }
}

impl From<Clouds> for CloudSource {
    fn from(clouds: Clouds) -> Self {
        let members = (0..clouds.num_clouds()).collect();
        Self { store: Arc::new(Store::Memory(clouds)), members, affine: None }
    }
}

impl CloudSource {
    /// The sets of a cache, with its normalisation applied.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if it does not hold clouds.
    pub fn mapped(cache: Cache) -> Result<Self> {
        if cache.meta().kind != Kind::Clouds {
            return Err(Error::invalid("cache", "of clouds", format!("{:?}", cache.meta().kind)));
        }
        let members = (0..cache.len()).collect();
        Ok(Self { store: Arc::new(Store::Mapped(Box::new(cache))), members, affine: None })
    }

    /// A cache, which stays where it is, or the clouds of a file or folder of any other format.
    ///
    /// # Errors
    ///
    /// As [`Cache::open`] and [`read_clouds`](super::read_clouds).
    pub fn open(path: &Path) -> Result<Self> {
        if Cache::is_cache(path) {
            return Self::mapped(Cache::open(path)?);
        }
        Ok(read_cloud_files(path)?.into())
    }

    /// Numbers of a point.
    pub fn dim(&self) -> usize {
        match &*self.store {
            Store::Memory(clouds) => clouds.dim(),
            Store::Mapped(cache) => cache.meta().dim,
        }
    }

    /// How many sets.
    pub fn num_sets(&self) -> usize {
        self.members.len()
    }

    fn offsets(&self) -> &SetOffsets {
        match &*self.store {
            Store::Memory(clouds) => clouds.offsets(),
            Store::Mapped(cache) => cache.offsets(),
        }
    }

    /// Points of set `index`.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn size(&self, index: usize) -> usize {
        self.offsets().size(self.members[index])
    }

    /// What set `index` is called: in a cache of classes, `class/name`.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn name(&self, index: usize) -> String {
        let member = self.members[index];
        match &*self.store {
            Store::Memory(clouds) => clouds.names()[member].clone(),
            Store::Mapped(cache) => {
                let label = cache.label(member);
                let class = label.and_then(|label| cache.meta().classes.get(label as usize));
                let name = &cache.names()[member];
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
        let found: Option<Arc<[usize]>> =
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
        let split_of = |member: usize| match &*self.store {
            Store::Memory(_) => Split::Train,
            Store::Mapped(cache) => cache.split(member),
        };
        (0..self.num_sets()).filter(|&index| split_of(self.members[index]) == split).collect()
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
        let count = self.num_sets();
        if held_out == 0 || held_out >= count {
            let expected = format!("at least 1 and below {count}, the number of clouds");
            return Err(Error::invalid("held_out", expected, held_out));
        }
        let order = stream.permutation(count);
        Ok((self.select(&order[held_out..])?, self.select(&order[..held_out])?))
    }

    /// The same sets as (x − c)/s of what is handed out now. It replaces an earlier one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `affine` does not fit.
    pub fn standardised(mut self, affine: Affine) -> Result<Self> {
        affine.check(self.dim())?;
        self.affine = Some(affine);
        Ok(self)
    }

    /// A set as it lies in the source. Say [`was_read`](Self::was_read) when it is done with.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn view(&self, index: usize) -> SetView<'_> {
        let member = self.members[index];
        let (points, own) = match &*self.store {
            Store::Memory(clouds) => (clouds.cloud(member), None),
            Store::Mapped(cache) => (cache.set(member), cache.affine(member)),
        };
        SetView { points, affines: [own, self.affine.as_ref()] }
    }

    /// Says that set `index` is not needed any more: pages of a map may be given back.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn was_read(&self, index: usize) {
        if let Store::Mapped(cache) = &*self.store {
            cache.was_read(self.members[index]);
        }
    }

    /// Puts the points of set `index` in the place of what `points` held.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn read_into(&self, index: usize, points: &mut Vec<f32>) {
        points.clear();
        let view = self.view(index);
        points.extend_from_slice(view.stored());
        view.apply(points);
        self.was_read(index);
    }

    /// The points of set `index`, `[n, d]`: borrowed where they lie in memory as they are wanted.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn set(&self, index: usize) -> Cow<'_, [f32]> {
        let view = self.view(index);
        if let Store::Memory(_) = &*self.store
            && self.affine.is_none()
        {
            return Cow::Borrowed(view.stored());
        }
        let mut points = Vec::new();
        self.read_into(index, &mut points);
        Cow::Owned(points)
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
        let mut moments: Option<Moments> = None;
        let (mut low, mut high) = (vec![f32::INFINITY; dim], vec![f32::NEG_INFINITY; dim]);
        for index in 0..self.num_sets() {
            let points = self.set(index);
            self.check_set(index, &points)?;
            moments.get_or_insert_with(|| Moments::new(&points, dim)).add(&points);
            for point in points.chunks_exact(dim) {
                for ((low, high), &x) in low.iter_mut().zip(&mut high).zip(point) {
                    *low = low.min(x);
                    *high = high.max(x);
                }
            }
        }
        let affine = moments.map_or_else(|| Affine::identity(dim), |moments| moments.affine());
        // Rounding keeps the order of numbers: the farthest ones are still so when standardised.
        for ends in [&mut low, &mut high] {
            affine.apply(ends);
        }
        let largest = low.iter().chain(&high).fold(0.0_f32, |largest, x| largest.max(x.abs()));
        Ok(CloudStatistics { affine, largest })
    }
}
