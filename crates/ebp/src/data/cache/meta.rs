//! What a cache says about itself, at its end:
//!
//! ```text
//! "EBPDATA1", zeros up to byte 64
//! elements  [total, dim] f32 or u8
//! sizes     [sets] u32
//! labels    [sets] u32, 2³² − 1 for none
//! splits    [sets] u8: 0 train, 1 validation, 2 test
//! affines   [sets, dim + 1] f32, where clouds are normalised one by one
//! names     a line for each set
//! meta      JSON, see `Meta`
//! length of the JSON, u64; "EBPDATA1"
//! ```
//!
//! Numbers are little-endian. The elements come first, so that they can be written while they are
//! read from elsewhere; everything else is small.

use serde::{Deserialize, Serialize};

use crate::data::normalise::{Affine, NormaliseBy};

pub(super) const MAGIC: &[u8; 8] = b"EBPDATA1";
/// Where the elements start.
pub(super) const START: usize = 64;
/// The label of a set without one.
pub(super) const NO_LABEL: u32 = u32::MAX;

/// What the sets of a cache are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Points, coordinates as values, no locations.
    Clouds,
    /// Pixels of pictures of one size, row by row; their place is their location.
    Images,
    /// Rows `[value, location]` of a table.
    Table,
    /// Words with their counts: `[word, count]`.
    Words,
}

/// The type of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Numbers {
    /// 32-bit floats.
    F32,
    /// Bytes.
    U8,
}

impl Numbers {
    pub(super) fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::U8 => 1,
        }
    }
}

/// What is written as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// What the sets are.
    pub kind: Kind,
    /// The type of the numbers.
    pub numbers: Numbers,
    /// Numbers of an element.
    pub dim: usize,
    /// How many of them are values; the rest are locations.
    pub value_dim: usize,
    /// How many sets.
    pub num_sets: usize,
    /// Elements of all sets together.
    pub num_elements: usize,
    /// Width and height of pictures.
    pub picture_size: Option<[usize; 2]>,
    /// What the labels mean, by their numbers.
    pub classes: Vec<String>,
    /// Where the data came from, in words.
    pub source: String,
    /// Which normalisation was chosen.
    pub normalised_by: NormaliseBy,
    /// Centre and scale for all sets, where they share one.
    pub affine: Option<Affine>,
    /// Bytes of the names.
    pub names_length: usize,
}
