//! Writing a cache, set by set.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::data::normalise::{Affine, Moments, NormaliseBy};
use crate::{Error, Result};

use super::meta::{Kind, MAGIC, Meta, NO_LABEL, Numbers, START};
use super::{Split, map, random_splits};

/// What is known before the first set.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// What the sets are.
    pub kind: Kind,
    /// Numbers of an element.
    pub dim: usize,
    /// How many of them are values.
    pub value_dim: usize,
    /// Width and height of pictures.
    pub picture_size: Option<[usize; 2]>,
    /// Where the data came from, in words.
    pub source: String,
    /// How clouds are to be normalised.
    pub normalise_by: NormaliseBy,
}

/// One set's name, label and split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetInfo {
    /// What it is called.
    pub name: String,
    /// Its class, if it has one.
    pub class: Option<String>,
    /// The part it belongs to.
    pub split: Split,
}

/// A cache while it is written. Nothing appears under its name before
/// [`finish`](CacheWriter::finish).
#[derive(Debug)]
pub struct CacheWriter {
    path: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
    options: CacheOptions,
    numbers: Numbers,
    sizes: Vec<u32>,
    infos: Vec<SetInfo>,
    /// Of each cloud, where they are normalised one by one.
    affines: Vec<Affine>,
    /// Of each cloud, where they are normalised together: which of them are for training may be
    /// decided at the end.
    moments: Vec<Moments>,
}

impl CacheWriter {
    /// Begins a cache.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and [`Error::InvalidValue`] if the dimensions make no sense.
    pub fn create(path: &Path, options: CacheOptions) -> Result<Self> {
        if options.dim == 0 || options.value_dim == 0 || options.value_dim > options.dim {
            let found = format!("{} of {}", options.value_dim, options.dim);
            return Err(Error::invalid("value_dim", "from 1 to dim", found));
        }
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".part");
        let part = path.with_file_name(name);
        let file = File::create(&part).map_err(Error::io("write", path))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        let mut head = MAGIC.to_vec();
        head.resize(START, 0);
        out.write_all(&head).map_err(Error::io("write", path))?;
        let numbers = if options.kind == Kind::Images { Numbers::U8 } else { Numbers::F32 };
        Ok(Self {
            path: path.to_path_buf(),
            part,
            out,
            options,
            numbers,
            sizes: Vec::new(),
            infos: Vec::new(),
            affines: Vec::new(),
            moments: Vec::new(),
        })
    }

    /// Adds a set of floats, `[n, dim]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if it is empty, has broken rows or numbers that are not finite, or
    /// the cache holds pictures; [`Error::Io`].
    pub fn push(&mut self, elements: &[f32], info: SetInfo) -> Result<()> {
        self.check(elements.len(), Numbers::F32, &info)?;
        if let Some(index) = elements.iter().position(|number| !number.is_finite()) {
            let field = format!("element {} of `{}`", index / self.options.dim, info.name);
            return Err(Error::invalid(field, "finite", elements[index]));
        }
        if matches!(self.options.normalise_by, NormaliseBy::Shape | NormaliseBy::Sphere) {
            let by = self.options.normalise_by;
            self.affines.push(Affine::of_cloud(by, elements, self.options.dim));
        }
        if self.options.normalise_by == NormaliseBy::Global {
            let mut moments = match self.moments.first() {
                Some(first) => first.emptied(),
                None => Moments::new(elements, self.options.dim),
            };
            moments.add(elements);
            self.moments.push(moments);
        }
        self.write(map::float_bytes(elements), elements.len(), info)
    }

    /// Adds a picture, `[height · width, channels]`.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_bytes(&mut self, elements: &[u8], info: SetInfo) -> Result<()> {
        self.check(elements.len(), Numbers::U8, &info)?;
        self.write(elements, elements.len(), info)
    }

    fn check(&self, length: usize, numbers: Numbers, info: &SetInfo) -> Result<()> {
        if numbers != self.numbers {
            return Err(Error::invalid("elements", format!("{:?}", self.numbers), "others"));
        }
        let rows = length / self.options.dim;
        if rows == 0 || rows * self.options.dim != length || u32::try_from(rows).is_err() {
            let field = format!("elements of `{}`", info.name);
            let expected = format!("whole rows of {}, at least one", self.options.dim);
            return Err(Error::invalid(field, expected, length));
        }
        if info.name.contains(['\n', '\r']) {
            return Err(Error::invalid("name", "one line", format!("{:?}", info.name)));
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], length: usize, info: SetInfo) -> Result<()> {
        self.out.write_all(bytes).map_err(Error::io("write", &self.path))?;
        self.sizes.push(u32::try_from(length / self.options.dim).unwrap_or(u32::MAX));
        self.infos.push(info);
        Ok(())
    }

    /// How many sets were added.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Whether every set is in the training split, as where a source knows no splits.
    pub fn is_unsplit(&self) -> bool {
        self.infos.iter().all(|info| info.split == Split::Train)
    }

    /// Draws the splits of all sets anew.
    ///
    /// # Errors
    ///
    /// As [`random_splits`].
    pub fn split_randomly(&mut self, validation: f64, test: f64, seed: u64) -> Result<()> {
        let splits = random_splits(self.len(), validation, test, seed)?;
        for (info, split) in self.infos.iter_mut().zip(splits) {
            info.split = split;
        }
        Ok(())
    }

    /// Writes what belongs to all sets and gives the file its name. A global normalisation is that
    /// of the training sets.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no set, [`Error::Io`].
    pub fn finish(mut self) -> Result<()> {
        if self.sizes.is_empty() {
            return Err(Error::invalid("cache", "at least one set", "none"));
        }
        let global = self.moments.first().map(|first| {
            let mut all = first.emptied();
            for (moments, info) in self.moments.iter().zip(&self.infos) {
                if info.split == Split::Train {
                    all.merge(moments);
                }
            }
            all.affine()
        });
        let written = self.write_tail(global).and_then(|()| {
            self.out.flush()?;
            self.out.get_ref().sync_all()?;
            fs::rename(&self.part, &self.path)
        });
        written.map_err(Error::io("write", &self.path))
    }

    fn write_tail(&mut self, global: Option<Affine>) -> std::io::Result<()> {
        let mut classes: Vec<String> =
            self.infos.iter().filter_map(|info| info.class.clone()).collect();
        classes.sort();
        classes.dedup();
        let label = |info: &SetInfo| {
            let place = info.class.as_ref().and_then(|class| classes.binary_search(class).ok());
            place.and_then(|place| u32::try_from(place).ok()).unwrap_or(NO_LABEL)
        };
        let mut tail = Vec::new();
        tail.extend(self.sizes.iter().flat_map(|size| size.to_le_bytes()));
        tail.extend(self.infos.iter().flat_map(|info| label(info).to_le_bytes()));
        tail.extend(self.infos.iter().map(|info| info.split.code()));
        for affine in &self.affines {
            tail.extend(affine.centre.iter().flat_map(|c| c.to_le_bytes()));
            tail.extend(affine.scale.to_le_bytes());
        }
        let names_start = tail.len();
        for info in &self.infos {
            tail.extend_from_slice(info.name.as_bytes());
            tail.push(b'\n');
        }
        let meta = Meta {
            kind: self.options.kind,
            numbers: self.numbers,
            dim: self.options.dim,
            value_dim: self.options.value_dim,
            num_sets: self.sizes.len(),
            num_elements: self.sizes.iter().map(|&size| size as usize).sum(),
            picture_size: self.options.picture_size,
            classes,
            source: self.options.source.clone(),
            normalised_by: self.options.normalise_by,
            affine: global,
            names_length: tail.len() - names_start,
        };
        let json = serde_json::to_vec(&meta).map_err(std::io::Error::other)?;
        self.out.write_all(&tail)?;
        self.out.write_all(&json)?;
        self.out.write_all(&(json.len() as u64).to_le_bytes())?;
        self.out.write_all(MAGIC)
    }
}

impl Drop for CacheWriter {
    /// What was not finished leaves nothing behind.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part);
    }
}
