//! The pairs cut into shares, so that several processes compute them, and put together again.
//!
//! ```text
//! share k of n   every n-th pair                          distances that every pair needs
//!                pairs of clouds i = k (mod n): Chamfer,  the exact earth mover's distance
//!                then the search for their neighbours
//! together       the whole search once more, which asks the parts before it computes
//! ```
//!
//! The search stops a pair early by what is known about others, and a process with a share knows less
//! than one with everything. So the parts keep for each pair not only how far it came but also the
//! highest bound that the solver looked at on the way: within a limit below it the whole search would
//! have stopped, within any other it would have found the same value. Answers, counts and gaps are
//! therefore those of one process, to the last bit. What no part can answer is computed.

use std::path::{Path, PathBuf};

use super::pairs::Pairs;
use super::store::{Known, PairStore, Record};
use crate::{Error, Result};

/// What is known about exact distances before a search begins.
#[derive(Debug)]
pub(super) struct Memory {
    known: Pairs,
    /// Of each pair the highest bound on the way, where searches with other limits found it.
    highest: Option<Pairs>,
}

impl Memory {
    /// From a run of the same search: it asks within the same limits.
    pub(super) fn of_same(known: Pairs) -> Self {
        Self { known, highest: None }
    }

    /// From searches with limits of their own.
    pub(super) fn of_others(known: Pairs, highest: Pairs) -> Self {
        Self { known, highest: Some(highest) }
    }

    /// What the search would find within `limit`, if that can be told.
    pub(super) fn answer(&self, (i, j): (usize, usize), limit: f64) -> Option<Known> {
        let known = self.known.get(i, j)?;
        let Some(highest) = &self.highest else { return Some(known) };
        let highest = highest.value(i, j).unwrap_or(f64::NEG_INFINITY);
        match known {
            _ if highest > limit => Some(Known::AtLeast(highest)),
            Known::Value(..) => Some(known),
            Known::AtLeast(_) => None,
        }
    }
}

/// The store of the highest bounds beside that of the distances `name`.
pub(super) fn bounds_name(name: &str) -> String {
    format!("{name}-bounds")
}

/// What a share's stores hold: only pairs of which both records arrived.
pub(super) fn own_records(
    values: Vec<Record>,
    bounds: &[Record],
    num_clouds: usize,
) -> Vec<Record> {
    let bounds = Pairs::new(num_clouds, bounds);
    let is_whole = |record: &Record| {
        let (first, second) = (record.first as usize, record.second as usize);
        first < second && second < num_clouds && bounds.get(first, second).is_some()
    };
    values.into_iter().filter(is_whole).collect()
}

/// The records of all parts, of each pair the one that says most.
pub(super) fn together(
    parts: &[PathBuf],
    name: &str,
    fingerprint: u64,
    num_clouds: usize,
) -> Result<Pairs> {
    let mut pairs = Pairs::new(num_clouds, &[]);
    for part in parts {
        if !PairStore::exists(part, name, fingerprint) {
            return Err(lacks(part, name));
        }
        for Record { first, second, known } in PairStore::read(part, name, fingerprint)? {
            let (i, j) = (first as usize, second as usize);
            if i >= j || j >= num_clouds {
                let reason = format!("it has a pair ({i}, {j}) of {num_clouds} clouds");
                return Err(Error::Damaged { path: part.clone(), reason });
            }
            let says_more = match (pairs.get(i, j), known) {
                (Some(Known::Value(..)), Known::AtLeast(_)) => false,
                // Of bounds the higher one; distances are the same in all parts.
                (Some(Known::AtLeast(a)), Known::AtLeast(b))
                | (Some(Known::Value(a, _)), Known::Value(b, _)) => b > a,
                (None, _) | (Some(Known::AtLeast(_)), Known::Value(..)) => true,
            };
            if says_more {
                pairs.set(i, j, known);
            }
        }
    }
    Ok(pairs)
}

/// Whether every part has a store of that name; an error where only some do.
pub(super) fn all_have(parts: &[PathBuf], name: &str, fingerprint: u64) -> Result<bool> {
    let has = |part: &PathBuf| PairStore::exists(part, name, fingerprint);
    match parts.iter().position(|part| !has(part)) {
        None => Ok(true),
        Some(lacking) if parts.iter().any(has) => Err(lacks(&parts[lacking], name)),
        Some(_) => Ok(false),
    }
}

/// A part without distances that others have.
fn lacks(part: &Path, name: &str) -> Error {
    Error::refused(format!("`{}` has no distances `{name}` of these sets", part.display()))
        .with_help("parts belong together if they were made by one command from the same files, all on a GPU or none")
}
