//! A cache of clouds in many files: a folder with an index, written in parallel and gone on with.
//!
//! ```text
//! OUT/shard-00000.ebp    a cache like any other, whole or absent
//! OUT/shard-00000.json   what it was made of: written after it, so that a killed import keeps it
//! OUT/index.json         the shards in their order, and what belongs to all of them: written last
//! ```
//!
//! The sets of all shards in their order are one collection, the same as that of one file: splits are drawn
//! over all of them, and centre and scale are those of all training sets, added up set by set in the same
//! order. Both stand in the index, in the place of what a shard says of itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Cache, Kind, Split, random_splits};
use crate::data::normalise::{Affine, Moments, NormaliseBy};
use crate::files::{create_folder, entries, read_json, remove_leftovers, write_json};
use crate::{Error, Result};

const INDEX_FILE: &str = "index.json";
/// Of what is written here.
const FORMAT: u32 = 1;
/// Sets whose moments are held at a time.
const AT_ONCE: usize = 4096;

/// What belongs to all shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    /// Version of the format; its name says what the file is.
    ebp_shards: u32,
    num_sets: usize,
    num_elements: usize,
    dim: usize,
    source: String,
    normalised_by: NormaliseBy,
    /// Where all sets share one.
    affine: Option<Affine>,
    /// How splits were drawn, where the source has none of its own.
    drawn_splits: Option<DrawnSplits>,
    shards: Vec<Entry>,
}

/// See [`random_splits`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DrawnSplits {
    validation: f64,
    test: f64,
    seed: u64,
}

impl DrawnSplits {
    fn draw(&self, count: usize) -> Result<Vec<Split>> {
        random_splits(count, self.validation, self.test, self.seed)
    }
}

/// By what a shard is known again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    file: String,
    num_sets: usize,
    num_elements: usize,
    bytes: u64,
    /// CRC-32C of everything behind the elements.
    tail: u32,
}

/// What a shard was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Origin {
    inputs: Vec<String>,
    settings: String,
    entry: Entry,
}

/// What is to be written.
#[derive(Clone, Debug)]
pub struct ShardPlan {
    /// Of each shard what it is made of, in words that change when it does, such as names, sizes and
    /// times of files.
    pub inputs: Vec<Vec<String>>,
    /// Whatever else decides the numbers of a shard.
    pub settings: String,
    /// Where the data came from, in words.
    pub source: String,
    /// How clouds are to be normalised.
    pub normalise_by: NormaliseBy,
    /// Shares of the sets for validation and test, drawn where the source has no splits, and their seed.
    pub validation: f64,
    /// See `validation`.
    pub test: f64,
    /// See `validation`.
    pub seed: u64,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardReport {
    /// Sets of all shards.
    pub num_sets: usize,
    /// Their points.
    pub num_elements: usize,
    /// Shards.
    pub num_shards: usize,
    /// Those of them that were there from an earlier import.
    pub num_kept: usize,
}

/// Whether a path is that of a cache in shards, whole, damaged or not finished yet.
pub fn is_sharded(path: &Path) -> bool {
    let first = path.join(file_of(0));
    let marker = b"\"ebp_shards\"";
    let is_index = |bytes: Vec<u8>| bytes.windows(marker.len()).any(|window| window == marker);
    first.is_file() || fs::read(path.join(INDEX_FILE)).is_ok_and(is_index)
}

/// Whether a cache in shards was written to its end.
pub fn is_finished_sharded(path: &Path) -> bool {
    path.join(INDEX_FILE).is_file()
}

/// Whether a folder holds nothing but shards: an import that was interrupted, or a finished one.
fn strange_entry(folder: &Path) -> Result<Option<String>> {
    let is_ours = |name: &str| {
        let stem =
            name.strip_prefix("shard-").map(|rest| rest.trim_start_matches(char::is_numeric));
        matches!(stem, Some(".ebp" | ".json" | ".ebp.part"))
            || name == INDEX_FILE
            || crate::files::is_leftover(name)
    };
    Ok(entries(folder)?.into_iter().find(|name| !is_ours(name)))
}

/// Writes a cache in shards. `fill` is called for each shard that is not there yet, on all threads, with
/// its number and the path of the cache to write; `watch` with the number of shards that are done.
///
/// # Errors
///
/// [`Error::Refused`] if `out` holds something else, [`Error::InvalidValue`] if the shards' dimensions
/// differ, as `fill`, and what the disk says.
pub fn write_shards(
    out: &Path,
    plan: &ShardPlan,
    fill: &(dyn Fn(usize, &Path) -> Result<()> + Sync),
    watch: &(dyn Fn(usize) + Sync),
) -> Result<ShardReport> {
    create_folder(out)?;
    if let Some(name) = strange_entry(out)? {
        let message = format!("`{}` must be new or hold a cache in shards", out.display());
        return Err(Error::refused(format!("{message}, but there is `{name}`"))
            .with_help("name another folder"));
    }
    if plan.inputs.is_empty() {
        return Err(Error::invalid("shards", "at least one", 0));
    }
    remove_leftovers(out)?;
    // A folder without an index is not taken for a cache while it changes.
    let index = out.join(INDEX_FILE);
    if index.exists() {
        fs::remove_file(&index).map_err(Error::io("remove", &index))?;
    }
    let num_done = AtomicUsize::new(0);
    let made: Vec<Result<(Entry, bool)>> = (0..plan.inputs.len())
        .into_par_iter()
        .map(|number| {
            let made = shard(out, plan, number, fill)?;
            watch(1 + num_done.fetch_add(1, Ordering::Relaxed));
            Ok(made)
        })
        .collect();
    let made = made.into_iter().collect::<Result<Vec<_>>>()?;
    let num_kept = made.iter().filter(|(_, is_kept)| *is_kept).count();
    let shards: Vec<Entry> = made.into_iter().map(|(entry, _)| entry).collect();
    remove_others(out, shards.len())?;
    let index = index_of(out, plan, shards)?;
    write_json(&out.join(INDEX_FILE), &index)?;
    let Index { num_sets, num_elements, ref shards, .. } = index;
    Ok(ShardReport { num_sets, num_elements, num_shards: shards.len(), num_kept })
}

fn file_of(number: usize) -> String {
    format!("shard-{number:05}.ebp")
}

/// One shard: the one that is there if it was made of the same, or written now.
fn shard(
    out: &Path,
    plan: &ShardPlan,
    number: usize,
    fill: &(dyn Fn(usize, &Path) -> Result<()> + Sync),
) -> Result<(Entry, bool)> {
    let file = file_of(number);
    let (path, record) = (out.join(&file), out.join(&file).with_extension("json"));
    let (inputs, settings) = (&plan.inputs[number], &plan.settings);
    if let Some(known) = read_json::<Origin>(&record)
        && (&known.inputs, &known.settings) == (inputs, settings)
        && entry_of(&path, &file).is_ok_and(|(entry, _)| entry == known.entry)
    {
        return Ok((known.entry, true));
    }
    if record.exists() {
        fs::remove_file(&record).map_err(Error::io("remove", &record))?;
    }
    fill(number, &path)?;
    let (entry, _) = entry_of(&path, &file)?;
    let (inputs, settings) = (inputs.clone(), settings.clone());
    write_json(&record, &Origin { inputs, settings, entry: entry.clone() })?;
    Ok((entry, false))
}

/// A shard, opened, and what it is known by.
fn entry_of(path: &Path, file: &str) -> Result<(Entry, Cache)> {
    let cache = Cache::open(path)?;
    if cache.meta().kind != Kind::Clouds {
        let field = format!("cache `{}`", path.display());
        return Err(Error::invalid(field, "of clouds", format!("{:?}", cache.meta().kind)));
    }
    let entry = Entry {
        file: file.to_owned(),
        num_sets: cache.len(),
        num_elements: cache.meta().num_elements,
        bytes: cache.num_bytes(),
        tail: cache.tail_checksum(),
    };
    Ok((entry, cache))
}

/// Removes shards of an earlier import that had more of them.
fn remove_others(out: &Path, count: usize) -> Result<()> {
    for name in entries(out)? {
        let number = name.strip_prefix("shard-").and_then(|rest| rest.split('.').next());
        let number = number.and_then(|number| number.parse::<usize>().ok());
        if number.is_some_and(|number| number >= count) || name.rsplit('.').next() == Some("part") {
            let path = out.join(name);
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

/// What belongs to all shards: splits, and the normalisation of all training sets.
fn index_of(out: &Path, plan: &ShardPlan, shards: Vec<Entry>) -> Result<Index> {
    let mut index = Index {
        ebp_shards: FORMAT,
        num_sets: shards.iter().map(|entry| entry.num_sets).sum(),
        num_elements: shards.iter().map(|entry| entry.num_elements).sum(),
        dim: 0,
        source: plan.source.clone(),
        normalised_by: plan.normalise_by,
        affine: None,
        drawn_splits: None,
        shards,
    };
    let caches = index.open_files(out)?;
    for cache in &caches {
        let first = (&caches[0].meta().dim, &index.shards[0].file);
        if cache.meta().dim != *first.0 {
            let expected = format!("of {} numbers a point, as in {}", first.0, first.1);
            return Err(Error::invalid("clouds", expected, cache.meta().dim));
        }
        index.dim = cache.meta().dim;
    }
    let all = |split| caches.iter().map(|cache| cache.members(split).len()).sum::<usize>();
    if plan.validation + plan.test > 0.0 && all(Split::Train) == index.num_sets {
        let ShardPlan { validation, test, seed, .. } = *plan;
        index.drawn_splits = Some(DrawnSplits { validation, test, seed });
    }
    if plan.normalise_by == NormaliseBy::Global {
        index.affine = global(&index.adopted(caches)?);
    }
    Ok(index)
}

/// Centre and scale of all training sets, as `CacheWriter` finds them for one file.
fn global(caches: &[Cache]) -> Option<Affine> {
    let dim = caches.first()?.meta().dim;
    let empty = Moments::new(caches.first()?.set(0), dim);
    let mut all = empty.emptied();
    for cache in caches {
        let members = cache.members(Split::Train);
        for members in members.chunks(AT_ONCE) {
            let found: Vec<Moments> = members
                .par_iter()
                .map(|&set| {
                    let mut moments = empty.emptied();
                    moments.add(cache.set(set));
                    cache.was_read(set);
                    moments
                })
                .collect();
            for moments in &found {
                all.merge(moments);
            }
        }
    }
    Some(all.affine())
}

impl Index {
    fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(INDEX_FILE);
        if !path.exists() {
            let message = format!("`{}` has shards, but no {INDEX_FILE} yet", folder.display());
            return Err(Error::refused(message).with_help(
                "its import is under way or was interrupted: the same command goes on",
            ));
        }
        let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
        let damaged = |reason: String| Error::Damaged { path: path.clone(), reason };
        let index: Self =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if index.ebp_shards != FORMAT {
            let found = index.ebp_shards;
            return Err(damaged(format!("`ebp_shards` must be {FORMAT}, found {found}")));
        }
        let is_plain = |entry: &Entry| {
            Path::new(&entry.file).file_name().is_some_and(|name| name == entry.file.as_str())
        };
        if index.shards.is_empty() || !index.shards.iter().all(is_plain) {
            return Err(damaged("it must name files beside it, at least one".into()));
        }
        let total =
            index.shards.iter().try_fold(0_usize, |sum, entry| sum.checked_add(entry.num_sets));
        if total != Some(index.num_sets) {
            return Err(damaged("its shards have not as many sets as it says".into()));
        }
        if let Some(affine) = &index.affine {
            affine.check(index.dim).map_err(|error| damaged(error.to_string()))?;
        }
        Ok(index)
    }

    /// The shards, each compared with what is said of it.
    fn open_files(&self, folder: &Path) -> Result<Vec<Cache>> {
        let open = |entry: &Entry| {
            let path: PathBuf = folder.join(&entry.file);
            let (found, cache) = entry_of(&path, &entry.file)?;
            if found == *entry {
                return Ok(cache);
            }
            let said = |entry: &Entry| {
                let Entry { num_sets, num_elements, bytes, tail, .. } = entry;
                format!(
                    "{num_sets} sets, {num_elements} points, {bytes} bytes, checksum {tail:08x}"
                )
            };
            let reason = format!(
                "it is not the shard that {INDEX_FILE} describes: {}, found {}",
                said(entry),
                said(&found)
            );
            Err(Error::Damaged { path, reason })
        };
        self.shards.par_iter().map(open).collect::<Vec<_>>().into_iter().collect()
    }

    /// The shards with what the index says in the place of what they say.
    fn adopted(&self, mut caches: Vec<Cache>) -> Result<Vec<Cache>> {
        let splits = self.drawn_splits.map(|drawn| drawn.draw(self.num_sets)).transpose()?;
        let (mut first, count) = (0, caches.len());
        for cache in &mut caches {
            let end = first + cache.len();
            let splits = splits.as_ref().map(|splits| &splits[first..end]);
            cache.become_shard(self.affine.clone(), splits, count);
            first = end;
        }
        Ok(caches)
    }
}

/// The shards of a cache, in their order, each compared with what the index says of it.
///
/// # Errors
///
/// [`Error::Io`] if one cannot be read, [`Error::Damaged`] if one is not what the index says.
pub fn open_sharded(folder: &Path) -> Result<Vec<Cache>> {
    let index = Index::read(folder)?;
    let caches = index.open_files(folder)?;
    if let Some(place) = caches.iter().position(|cache| cache.meta().dim != index.dim) {
        let reason = format!("its points must have {} numbers", index.dim);
        return Err(Error::Damaged { path: folder.join(&index.shards[place].file), reason });
    }
    index.adopted(caches)
}
