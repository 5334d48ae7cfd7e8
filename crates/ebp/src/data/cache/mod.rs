//! A cache: data of any origin as one file that is mapped into memory.
//!
//! Sets are ragged rows of one array, with names, labels, splits and the normalisation. The
//! numbers in the file are those of the source; [`Cache::normalised`] and
//! [`CloudSource`](super::CloudSource) hand them out by the recorded centre and scale, which can
//! always be undone. Whoever learns or measures reads them so; [`Cache::set`] is for looking at the
//! source. Opening checks every length and size
//! against the file; a damaged file is an error, not a wrong number of points.

mod map;
mod meta;
mod sharded;
mod write;

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

use super::mesh::shuffled;
use super::normalise::{Affine, NormaliseBy};

pub use meta::{Kind, Meta, Numbers};
pub use sharded::{
    ShardPlan, ShardReport, is_finished_sharded, is_sharded, open_sharded, write_shards,
};
pub use write::{CacheOptions, CacheWriter, SetInfo};

use map::Map;
use meta::{MAGIC, NO_LABEL, START};

/// The part of the data that a set belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// What models are fitted to.
    #[default]
    Train,
    /// What settings are chosen by.
    Validation,
    /// What results are reported on.
    Test,
}

impl Split {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Train => 0,
            Self::Validation => 1,
            Self::Test => 2,
        }
    }

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|split| split.code() == code)
    }
}

/// A mapped cache.
#[derive(Debug)]
pub struct Cache {
    map: Map,
    meta: Meta,
    offsets: SetOffsets,
    labels: Vec<u32>,
    splits: Vec<Split>,
    affines: Vec<Affine>,
    names: Vec<String>,
}

impl Cache {
    /// Maps a cache and checks it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be read, [`Error::Damaged`] if it is no cache or does not hold
    /// what it says.
    pub fn open(path: &Path) -> Result<Self> {
        if cfg!(target_endian = "big") {
            return Err(Error::invalid("machine", "little-endian", "big-endian"));
        }
        let map = Map::open(path)?;
        Self::parse(map).map_err(|reason| Error::Damaged { path: PathBuf::from(path), reason })
    }

    fn parse(map: Map) -> std::result::Result<Self, String> {
        let bytes = map.bytes();
        let length = bytes.len();
        let end = length.checked_sub(16).filter(|&end| end >= START).ok_or("it is too short")?;
        if !bytes.starts_with(MAGIC) || !bytes.ends_with(MAGIC) {
            return Err("it does not begin and end as a cache".into());
        }
        let json = le_u64(&bytes[end..]);
        let json = usize::try_from(json).ok().and_then(|json| end.checked_sub(json));
        let json = json.filter(|&start| start >= START).ok_or("its description is too long")?;
        let meta: Meta =
            serde_json::from_slice(&bytes[json..end]).map_err(|error| error.to_string())?;
        let per_cloud = matches!(meta.normalised_by, NormaliseBy::Shape | NormaliseBy::Sphere);
        let affine = if per_cloud { meta.dim.saturating_add(1).saturating_mul(4) } else { 0 };
        // Every section's length by what the description says; together they must fill the file.
        let numbers = meta.num_elements.checked_mul(meta.dim);
        let elements = numbers.and_then(|count| count.checked_mul(meta.numbers.size()));
        let sections = [
            elements,
            meta.num_sets.checked_mul(4),
            meta.num_sets.checked_mul(4),
            Some(meta.num_sets),
            meta.num_sets.checked_mul(affine),
            Some(meta.names_length),
        ];
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut start = START;
        for section in sections {
            let stop = section.and_then(|section| start.checked_add(section));
            let stop = stop.filter(|&stop| stop <= json).ok_or("its sizes do not fit the file")?;
            ranges.push(start..stop);
            start = stop;
        }
        if start != json || meta.value_dim == 0 || meta.value_dim > meta.dim {
            return Err("its sizes do not fit the file".into());
        }
        let section = |index: usize| &bytes[ranges[index].clone()];
        let offsets =
            SetOffsets::from_sizes(section(1).chunks_exact(4).map(|raw| le_u32(raw) as usize))
                .map_err(|error| error.to_string())?;
        if offsets.num_elements() != meta.num_elements {
            return Err("its sizes do not add up".into());
        }
        let labels: Vec<u32> = section(2).chunks_exact(4).map(le_u32).collect();
        if labels.iter().any(|&label| label != NO_LABEL && label as usize >= meta.classes.len()) {
            return Err("it has labels without a class".into());
        }
        let splits: Option<Vec<Split>> =
            section(3).iter().map(|&code| Split::of_code(code)).collect();
        let names = std::str::from_utf8(section(5)).map_err(|error| error.to_string())?;
        let names: Vec<String> = names.lines().map(str::to_owned).collect();
        if names.len() != meta.num_sets {
            return Err("it has not one name for each set".into());
        }
        let mut affines = Vec::new();
        if per_cloud {
            for raw in section(4).chunks_exact(affine) {
                let mut numbers: Vec<f32> =
                    raw.chunks_exact(4).map(|raw| f32::from_bits(le_u32(raw))).collect();
                let scale = numbers.pop().unwrap_or(1.0);
                affines.push(Affine { centre: numbers, scale });
            }
        }
        for affine in affines.iter().chain(&meta.affine) {
            affine.check(meta.dim).map_err(|error| error.to_string())?;
        }
        if meta.numbers == Numbers::F32 && map::floats(section(0)).is_none() {
            return Err("its numbers are not aligned".into());
        }
        let splits = splits.ok_or("it has an unknown split")?;
        Ok(Self { map, meta, offsets, labels, splits, affines, names })
    }

    /// What the cache says about itself.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// How many sets.
    pub fn len(&self) -> usize {
        self.offsets.num_sets()
    }

    /// Whether there is no set; a cache always has some.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each set begins and ends.
    pub fn offsets(&self) -> &SetOffsets {
        &self.offsets
    }

    /// What each set is called.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The class of set `index`, by its number in [`Meta::classes`].
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn label(&self, index: usize) -> Option<u32> {
        Some(self.labels[index]).filter(|&label| label != NO_LABEL)
    }

    /// The split of set `index`.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn split(&self, index: usize) -> Split {
        self.splits[index]
    }

    /// The numbers of all sets of a split, in the order of the cache.
    pub fn members(&self, split: Split) -> Vec<usize> {
        (0..self.len()).filter(|&index| self.splits[index] == split).collect()
    }

    /// All elements `[total, dim]` as in the source; empty for pictures.
    pub fn elements(&self) -> &[f32] {
        let length = self.meta.num_elements * self.meta.dim * 4;
        match self.meta.numbers {
            Numbers::F32 => map::floats(&self.map.bytes()[START..START + length]).unwrap_or(&[]),
            Numbers::U8 => &[],
        }
    }

    /// All pixels `[total, dim]`; empty for anything else.
    pub fn pixels(&self) -> &[u8] {
        match self.meta.numbers {
            Numbers::F32 => &[],
            Numbers::U8 => &self.map.bytes()[START..START + self.meta.num_elements * self.meta.dim],
        }
    }

    /// The elements of set `index` as in the source; empty for pictures.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn set(&self, index: usize) -> &[f32] {
        let rows = self.offsets.range(index);
        self.elements().get(rows.start * self.meta.dim..rows.end * self.meta.dim).unwrap_or(&[])
    }

    /// The pixels of picture `index`; empty for anything else.
    ///
    /// # Panics
    ///
    /// If there is no such picture, as slice indexing does.
    pub fn picture(&self, index: usize) -> &[u8] {
        let rows = self.offsets.range(index);
        self.pixels().get(rows.start * self.meta.dim..rows.end * self.meta.dim).unwrap_or(&[])
    }

    /// The normalisation of set `index`; `None` where the numbers are handed out as they are.
    pub fn affine(&self, index: usize) -> Option<&Affine> {
        self.affines.get(index).or(self.meta.affine.as_ref())
    }

    /// The elements of set `index` as they are meant to be used: normalised. Empty for pictures.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn normalised(&self, index: usize) -> Vec<f32> {
        let mut elements = self.set(index).to_vec();
        if let Some(affine) = self.affine(index) {
            affine.apply(&mut elements);
        }
        self.was_read(index);
        elements
    }

    /// Says that set `index` was read and is not needed any more, so that its memory may be given
    /// back; it can be read again at any time.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn was_read(&self, index: usize) {
        self.map.was_read(self.offsets.size(index) * self.meta.dim * self.meta.numbers.size());
    }

    /// Length of the file.
    fn num_bytes(&self) -> u64 {
        self.map.bytes().len() as u64
    }

    /// CRC-32C of everything behind the elements: sizes, labels, splits, names and the description.
    fn tail_checksum(&self) -> u32 {
        let elements = self.meta.num_elements * self.meta.dim * self.meta.numbers.size();
        crc32c::crc32c(&self.map.bytes()[START + elements..])
    }

    /// Takes what belongs to all of `count` shards in the place of what it says of itself.
    fn become_shard(&mut self, affine: Option<Affine>, splits: Option<&[Split]>, count: usize) {
        self.meta.affine = affine.or(self.meta.affine.take());
        if let Some(splits) = splits {
            self.splits.copy_from_slice(splits);
        }
        self.map.share_memory(count);
    }

    /// Whether a file begins as a cache does.
    pub fn is_cache(path: &Path) -> bool {
        let mut start = [0; MAGIC.len()];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == *MAGIC
    }

    /// Writes a copy with other splits, and with the global normalisation of its new training sets
    /// where one was asked for. `split_of` gets the number of a set.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and [`Error::InvalidValue`] as [`CacheWriter::push`].
    pub fn rewrite(
        &self,
        path: &Path,
        normalise_by: NormaliseBy,
        split_of: impl Fn(usize) -> Split,
    ) -> Result<()> {
        let options = CacheOptions {
            kind: self.meta.kind,
            dim: self.meta.dim,
            value_dim: self.meta.value_dim,
            picture_size: self.meta.picture_size,
            source: self.meta.source.clone(),
            normalise_by,
        };
        let mut writer = CacheWriter::create(path, options)?;
        for index in 0..self.len() {
            let class = self.label(index).and_then(|label| self.meta.classes.get(label as usize));
            let info = SetInfo {
                name: self.names[index].clone(),
                class: class.cloned(),
                split: split_of(index),
            };
            match self.meta.numbers {
                Numbers::F32 => writer.push(self.set(index), info)?,
                Numbers::U8 => writer.push_bytes(self.picture(index), info)?,
            }
            self.was_read(index);
        }
        writer.finish()
    }
}

/// A split for each of `count` sets: the sets in a drawn order, first those of the test, then those
/// of the validation, the rest for training; the numbers are rounded.
///
/// # Errors
///
/// [`Error::InvalidValue`] unless the shares are from 0 to 1 and leave something for training.
pub fn random_splits(count: usize, validation: f64, test: f64, seed: u64) -> Result<Vec<Split>> {
    let is_share = |share: f64| (0.0..1.0).contains(&share);
    if !is_share(validation) || !is_share(test) || validation + test >= 1.0 {
        let found = format!("{validation} and {test}");
        return Err(Error::invalid("validation and test", "shares below 1 together", found));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of count")]
    let number = |share: f64| (share * count as f64).round() as usize;
    let (num_test, num_validation) = (number(test), number(validation));
    let mut splits = vec![Split::Train; count];
    for (place, set) in shuffled(count, Stream::new(seed, "split")).into_iter().enumerate() {
        if place < num_test {
            splits[set] = Split::Test;
        } else if place < num_test + num_validation {
            splits[set] = Split::Validation;
        }
    }
    Ok(splits)
}

fn le_u32(raw: &[u8]) -> u32 {
    raw.first_chunk().map_or(0, |raw| u32::from_le_bytes(*raw))
}

fn le_u64(raw: &[u8]) -> u64 {
    raw.first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw))
}
