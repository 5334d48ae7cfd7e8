//! Any source → one cache.
//!
//! What a source is, is seen from its files: MNIST's IDX files, pictures, bags of words, point
//! patterns, tables, and otherwise clouds and meshes. Classes and splits are read from the paths:
//! `chair/train/a.off` is a chair for training, the third cloud of `chair.npy` is a chair. Meshes
//! are sampled to points on their surface.

mod clouds;
mod others;

use std::path::Path;

use crate::error::Place;
use crate::{Error, Result};

use super::cache::{Cache, ShardReport, Split};
use super::cloud::files_below;
use super::file::{extension, malformed, name_of};
use super::image::{ImageOptions, is_image};
use super::normalise::NormaliseBy;

/// How to import.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportOptions {
    /// Points on the surface of each mesh.
    pub num_points: usize,
    /// How clouds are normalised.
    pub normalise_by: NormaliseBy,
    /// Shares of the sets for validation and test, drawn where the source has no splits.
    pub validation: f64,
    /// See `validation`.
    pub test: f64,
    /// Seed of surfaces and splits.
    pub seed: u64,
    /// What is done to pictures.
    pub image: ImageOptions,
    /// Whether points that are not finite are left out rather than refused.
    pub drops_non_finite: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            num_points: 2048,
            normalise_by: NormaliseBy::None,
            validation: 0.0,
            test: 0.0,
            seed: 0,
            image: ImageOptions::default(),
            drops_non_finite: false,
        }
    }
}

/// What a source is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A folder with MNIST's four files.
    Mnist,
    /// Pictures in a folder or zip archive, or an IDX file of pictures.
    Images,
    /// svmlight counts.
    Svmlight,
    /// UCI docword.
    Docword,
    /// Planar point patterns, `.dat`.
    Patterns,
    /// A CSV table.
    Table,
    /// Clouds and meshes.
    Clouds,
}

/// Says what a source is, by the names of its files.
///
/// # Errors
///
/// [`Error::Io`] if a folder cannot be listed, [`Error::Malformed`] if it holds nothing known.
pub fn detect(source: &Path) -> Result<SourceKind> {
    if source.is_dir() {
        let files = files_below(source, &|_| true)?;
        let has = |is_wanted: &dyn Fn(&Path) -> bool| files.iter().any(|file| is_wanted(file));
        if has(&|file| name_of(file).contains("idx3-ubyte")) {
            return Ok(SourceKind::Mnist);
        }
        let of_file = |file: &Path| kind_of_file(file).ok();
        for kind in
            [SourceKind::Clouds, SourceKind::Images, SourceKind::Patterns, SourceKind::Svmlight]
        {
            if has(&|file| of_file(file) == Some(kind)) {
                return Ok(kind);
            }
        }
        let expected = "clouds, meshes, pictures, words or point patterns";
        return Err(malformed(&name_of(source), Place::Byte(0), expected, "none in the folder"));
    }
    kind_of_file(source)
}

fn kind_of_file(file: &Path) -> Result<SourceKind> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if name.starts_with("docword") {
        return Ok(SourceKind::Docword);
    }
    if name.contains("idx3-ubyte") {
        return Ok(SourceKind::Images);
    }
    match extension(file).as_str() {
        "zip" => Ok(SourceKind::Images),
        "feat" | "svm" | "svmlight" | "libsvm" => Ok(SourceKind::Svmlight),
        "dat" => Ok(SourceKind::Patterns),
        "csv" | "tsv" => Ok(SourceKind::Table),
        ending if super::cloud::CLOUD_ENDINGS.contains(&ending) => Ok(SourceKind::Clouds),
        _ if is_image(file) => Ok(SourceKind::Images),
        ending => {
            let expected = "a known ending such as npy, ply, off, h5, zip, csv";
            Err(malformed(&name_of(file), Place::Byte(0), expected, format!("`{ending}`")))
        }
    }
}

/// Reads a source of any kind and writes the cache.
///
/// # Errors
///
/// What the readers and [`CacheWriter`](super::CacheWriter) say.
pub fn import(source: &Path, out: &Path, options: &ImportOptions) -> Result<Cache> {
    import_watched(source, out, options, &mut |_, _| {})
}

/// The same; `watch` is told how many files of clouds are read, and of how many. Other sources are one
/// piece.
///
/// # Errors
///
/// As [`import`].
pub fn import_watched(
    source: &Path,
    out: &Path,
    options: &ImportOptions,
    watch: &mut (dyn FnMut(usize, usize) + Send),
) -> Result<Cache> {
    if !source.exists() {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::io("read", source)(error));
    }
    match detect(source)? {
        SourceKind::Clouds => clouds::import(source, out, options, watch)?,
        SourceKind::Mnist => others::mnist(source, out)?,
        SourceKind::Images => others::images(source, out, options)?,
        SourceKind::Svmlight => others::words(source, out, options, false)?,
        SourceKind::Docword => others::words(source, out, options, true)?,
        SourceKind::Patterns => others::patterns(source, out, options)?,
        SourceKind::Table => others::table(source, out, options)?,
    }
    Cache::open(out)
}

/// Reads clouds and meshes and writes a cache in `num_shards` files, or as many as the source has, in
/// parallel. Shards that an earlier import of the same files finished are kept. `watch` is told how many
/// are done.
///
/// # Errors
///
/// As [`import`] and [`write_shards`](super::cache::write_shards); [`Error::Refused`] if the source holds
/// something else than clouds.
pub fn import_shards(
    source: &Path,
    out: &Path,
    options: &ImportOptions,
    num_shards: usize,
    watch: &(dyn Fn(usize) + Sync),
) -> Result<ShardReport> {
    if !source.exists() {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::io("read", source)(error));
    }
    match detect(source)? {
        SourceKind::Clouds => clouds::import_shards(source, out, options, num_shards, watch),
        kind => {
            let message =
                format!("shards are of clouds, but `{}` holds {kind:?}", source.display());
            Err(Error::refused(message).with_help("leave `--shards` out"))
        }
    }
}

/// What a source is called in a cache: its last part, because paths differ between machines.
fn source_name(source: &Path) -> String {
    let last = source.canonicalize().ok().and_then(|path| path.file_name().map(ToOwned::to_owned));
    last.unwrap_or_default().to_string_lossy().into_owned()
}

/// The split that a folder's name says.
fn split_of(word: &str) -> Option<Split> {
    match word.to_ascii_lowercase().as_str() {
        "train" | "training" => Some(Split::Train),
        "val" | "valid" | "validation" => Some(Split::Validation),
        "test" | "testing" => Some(Split::Test),
        _ => None,
    }
}
