//! Checkpoints: everything a run needs to go on, and a model to be used, in one folder each.
//!
//! ```text
//! checkpoints/
//!   step-000000000100/state.safetensors   every tensor; any safetensors library reads it
//!   step-000000000100/meta.json           step, seed, configuration, statistics, checksum
//!   last, best                            one line each: the name of a folder beside them
//! ```
//!
//! A checkpoint is written under another name, synced and renamed, so that a process may die at
//! any moment. The bytes are a function of the content alone: no clock, no host name. What is read
//! is checked against its size and checksum before anything is made of it.
//!
//! [`Checkpoint`] is one of them, [`CheckpointStore`] the folder that holds them. A model that is to be
//! used and not trained further needs only a quarter of it: [`Checkpoint::weights`].

mod checksum;
mod meta;
mod parts;
mod store;
mod weights;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors, View};

pub use self::checksum::crc32c;
pub use self::meta::{Best, CheckpointMeta, Holds, Rollback};
pub use self::store::{CheckpointStore, Loaded};
use crate::tensor::{Tensor, TensorValues, Tensors};
use crate::{Error, Result, files};

/// Name of the file of tensors.
pub const STATE_FILE: &str = "state.safetensors";
/// Name of the file of everything else.
pub const META_FILE: &str = "meta.json";
/// Name of the pointer to the newest checkpoint.
pub const LAST: &str = "last";
/// Name of the pointer to the best checkpoint.
pub const BEST: &str = "best";

/// No meta file is longer than this; a longer one is not read.
const MAX_META_BYTES: u64 = 64 << 20;

/// What a checkpoint holds.
///
/// ```
/// use std::collections::BTreeMap;
/// use ebp::checkpoint::{Checkpoint, CheckpointMeta};
/// use ebp::tensor::Tensor;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("model");
/// let weights = Tensor::new(vec![3], vec![1.0, 2.0, 3.0])?;
/// let meta = CheckpointMeta { step: 10, seed: 7, ..CheckpointMeta::default() };
/// let saved = Checkpoint { state: BTreeMap::from([("weights".into(), weights)]), meta };
/// saved.save(&path)?;
/// let loaded = Checkpoint::load(&path)?;
/// assert_eq!(loaded.meta, saved.meta);
/// assert_eq!(loaded.state, saved.state);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Checkpoint {
    /// Named tensors.
    pub state: Tensors,
    /// Everything else.
    pub meta: CheckpointMeta,
}

impl Checkpoint {
    /// Writes the folder `path`, which must not exist. It appears as a whole or not at all.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for content that cannot be saved, [`Error::Occupied`] if `path`
    /// exists, [`Error::Io`] if it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        if path.exists() {
            return Err(Error::Occupied {
                path: path.into(),
                found: "something there".into(),
                remedy: "choose another name or remove it",
            });
        }
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
            Error::invalid("path", "the name of a folder to be made", path.display())
        })?;
        self.encode()?.write(folder, name)
    }

    /// Reads a checkpoint: its folder, or the pointer `last` or `best` beside it.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] naming the file that is missing, cut or changed, and how;
    /// [`Error::Io`] if it cannot be read.
    pub fn load(path: &Path) -> Result<Self> {
        let path = if path.is_file() { store::follow(path)? } else { path.to_owned() };
        let (meta_path, state_path) = (path.join(META_FILE), path.join(STATE_FILE));
        let damaged = |path: &PathBuf, reason| Error::Damaged { path: path.clone(), reason };

        let text = read_limited(&meta_path, MAX_META_BYTES)?;
        let sealed = meta::unseal(&text).map_err(|reason| damaged(&meta_path, reason))?;
        let bytes = read_limited(&state_path, sealed.state_bytes)?;
        let found = bytes.len() as u64;
        if found != sealed.state_bytes {
            let reason = format!("it must have {} bytes, found {found}", sealed.state_bytes);
            return Err(damaged(&state_path, reason));
        }
        if !sealed.has_checksum_of(&bytes) {
            let reason = format!(
                "the checksum of {STATE_FILE} and {META_FILE} must be {}, found another",
                sealed.checksum
            );
            return Err(damaged(&state_path, reason));
        }
        // Sizes in the header are compared with the buffer before a tensor is made.
        let found = SafeTensors::deserialize(&bytes)
            .map_err(|error| damaged(&state_path, error.to_string()))?;
        let mut state = Tensors::new();
        for (name, view) in found.tensors() {
            let tensor = decode(&view).map_err(|found| {
                damaged(&state_path, format!("`{name}` must be F32, F64 or I64, found {found}"))
            })?;
            state.insert(name, tensor);
        }
        Ok(Self { state, meta: sealed.meta })
    }

    /// All of it as bytes, for another process.
    pub(crate) fn pack(&self) -> Result<Vec<u8>> {
        let Encoded { state, meta } = self.encode()?;
        let length = (meta.len() as u64).to_le_bytes();
        Ok([&length[..], &meta, &state].concat())
    }

    /// What [`pack`](Self::pack) gave.
    pub(crate) fn unpack(bytes: &[u8]) -> Result<Self> {
        let wrong = || Error::failed("the checkpoint of the first process cannot be read");
        let (length, rest) = bytes.split_first_chunk().ok_or_else(wrong)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (meta, state) = rest.split_at_checked(length).ok_or_else(wrong)?;
        let sealed = meta::unseal(meta).map_err(|_reason| wrong())?;
        let found = SafeTensors::deserialize(state).map_err(|_reason| wrong())?;
        let tensors = found.tensors().into_iter();
        let tensors =
            tensors.map(|(name, view)| Ok((name, decode(&view).map_err(|_kind| wrong())?)));
        Ok(Self { state: tensors.collect::<Result<_>>()?, meta: sealed.meta })
    }

    fn encode(&self) -> Result<Encoded> {
        // Sorted by dtype and name: equal tensors, equal bytes. What is shared says what hubs of models
        // ask safetensors files for, in one entry, because several would have no order.
        let format = || HashMap::from([("format".to_owned(), "pt".to_owned())]);
        let metadata = (self.meta.holds != Holds::Everything).then(format);
        let state = safetensors::serialize(&self.state, metadata)
            .map_err(|error| Error::invalid("state", "tensors that can be saved", error))?;
        let meta = meta::seal(&self.meta, &state)?;
        Ok(Encoded { state, meta })
    }
}

impl View for &Tensor {
    fn dtype(&self) -> Dtype {
        match self.values() {
            TensorValues::F32(_) => Dtype::F32,
            TensorValues::F64(_) => Dtype::F64,
            TensorValues::I64(_) => Dtype::I64,
        }
    }

    fn shape(&self) -> &[usize] {
        self.dims()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match self.values() {
            TensorValues::F32(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            TensorValues::F64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            TensorValues::I64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }

    fn data_len(&self) -> usize {
        match self.values() {
            TensorValues::F32(values) => size_of_val(&values[..]),
            TensorValues::F64(values) => size_of_val(&values[..]),
            TensorValues::I64(values) => size_of_val(&values[..]),
        }
    }
}

/// The numbers of a file; the name of their kind if it is none of ours.
fn decode(view: &TensorView<'_>) -> std::result::Result<Tensor, String> {
    fn numbers<const N: usize, T>(bytes: &[u8], number: fn([u8; N]) -> T) -> Vec<T> {
        bytes.as_chunks().0.iter().map(|&bytes| number(bytes)).collect()
    }
    let values = match view.dtype() {
        Dtype::F32 => TensorValues::F32(numbers(view.data(), f32::from_le_bytes)),
        Dtype::F64 => TensorValues::F64(numbers(view.data(), f64::from_le_bytes)),
        Dtype::I64 => TensorValues::I64(numbers(view.data(), i64::from_le_bytes)),
        other => return Err(format!("{other:?}")),
    };
    Tensor::from_values(view.shape().to_vec(), values).map_err(|error| error.to_string())
}

/// The two files of a checkpoint.
struct Encoded {
    state: Vec<u8>,
    meta: Vec<u8>,
}

impl Encoded {
    /// Writes the folder `name`, which must not exist, into `folder`.
    fn write(&self, folder: &Path, name: &str) -> Result<()> {
        let temporary = folder.join(format!("{}{name}", files::WRITING));
        if temporary.exists() {
            fs::remove_dir_all(&temporary).map_err(Error::io("remove", &temporary))?;
        }
        fs::create_dir(&temporary).map_err(Error::io("create", &temporary))?;
        files::write_synced(&temporary.join(STATE_FILE), &self.state)?;
        files::write_synced(&temporary.join(META_FILE), &self.meta)?;
        files::sync_folder(&temporary)?;
        files::rename(&temporary, &folder.join(name))?;
        files::sync_folder(folder)
    }

    /// Whether the folder at `path` holds exactly these files.
    fn is_at(&self, path: &Path) -> bool {
        let holds =
            |name, bytes: &[u8]| fs::read(path.join(name)).is_ok_and(|found| found == bytes);
        holds(META_FILE, &self.meta) && holds(STATE_FILE, &self.state)
    }
}

/// A whole file. One longer than `limit` is damaged, and so is a missing one: a checkpoint's
/// folder appears only when both of its files are in it.
fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let damaged = |reason: String| Error::Damaged { path: path.into(), reason };
    let length = match fs::metadata(path) {
        Ok(found) if found.is_file() => found.len(),
        Ok(_) => return Err(damaged("it is not a file".into())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(damaged("it is missing".into()));
        }
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    if length > limit {
        return Err(damaged(format!("it must have at most {limit} bytes, found {length}")));
    }
    fs::read(path).map_err(Error::io("read", path))
}
