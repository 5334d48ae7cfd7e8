//! Pictures, words, point patterns and tables → cache.

use std::path::{Path, PathBuf};

use crate::data::ColumnChoice;
use crate::data::cache::{CacheOptions, CacheWriter, Kind, SetInfo, Split};
use crate::data::cloud::files_below;
use crate::data::file::{Real, extension, malformed, name_of, read_bytes};
use crate::data::image::{Images, parse_idx_images, parse_idx_labels, read_images};
use crate::data::normalise::NormaliseBy;
use crate::data::pattern::read_pattern;
use crate::data::table::read_table;
use crate::data::words::{parse_docword, parse_svmlight};
use crate::error::Place;
use crate::{Error, Result};

use super::{ImportOptions, source_name, split_of};

/// MNIST's files: pictures and labels of both parts, packed or not.
pub(super) fn mnist(source: &Path, out: &Path) -> Result<()> {
    let parts = [("train", Split::Train), ("t10k", Split::Test)];
    let mut writer: Option<CacheWriter> = None;
    for (part, split) in parts {
        let images = idx_file(source, &format!("{part}-images-idx3-ubyte"))?;
        let images = parse_idx_images(&read_bytes(&images)?, &name_of(&images))?;
        let labels = idx_file(source, &format!("{part}-labels-idx1-ubyte"))?;
        let labels = parse_idx_labels(&read_bytes(&labels)?, &name_of(&labels))?;
        if labels.len() != images.len() {
            let expected = format!("a label for each of {} pictures", images.len());
            return Err(malformed(part, Place::Byte(4), expected, labels.len().to_string()));
        }
        if writer.is_none() {
            writer = Some(CacheWriter::create(out, picture_options(source, &images))?);
        }
        let Some(writer) = &mut writer else { continue };
        for (index, label) in labels.iter().enumerate() {
            let name = format!("{part}/{index}");
            let class = Some(label.to_string());
            writer.push_bytes(images.image(index), SetInfo { name, class, split })?;
        }
    }
    writer
        .map_or_else(|| Err(Error::invalid("source", "MNIST's files", "none")), CacheWriter::finish)
}

fn idx_file(folder: &Path, name: &str) -> Result<PathBuf> {
    let packed = folder.join(format!("{name}.gz"));
    let plain = folder.join(name);
    // Some copies are called `train-images.idx3-ubyte`.
    let dotted = folder.join(name.replacen("-idx", ".idx", 1));
    [packed, plain, dotted].into_iter().find(|path| path.is_file()).ok_or_else(|| {
        malformed(&name_of(folder), Place::Byte(0), format!("a file {name} or {name}.gz"), "none")
    })
}

/// Pictures of a folder, archive or IDX file; folders are classes.
pub(super) fn images(source: &Path, out: &Path, options: &ImportOptions) -> Result<()> {
    let images = read_images(source, &options.image)?;
    let mut writer = CacheWriter::create(out, picture_options(source, &images))?;
    let paths: Vec<Vec<&str>> = images.names.iter().map(|name| name.split('/').collect()).collect();
    // One folder around everything is no class.
    let first = paths.first().and_then(|path| path.first());
    let skip = usize::from(paths.iter().all(|path| path.len() > 1 && path.first() == first));
    for (index, path) in paths.iter().enumerate() {
        let folders = &path[skip.min(path.len() - 1)..path.len() - 1];
        let class = folders.iter().find(|folder| split_of(folder).is_none());
        let split = folders.iter().find_map(|folder| split_of(folder)).unwrap_or_default();
        let name = images.names[index].clone();
        let class = class.map(|class| (*class).to_owned());
        writer.push_bytes(images.image(index), SetInfo { name, class, split })?;
    }
    finish(writer, options)
}

fn picture_options(source: &Path, images: &Images) -> CacheOptions {
    CacheOptions {
        kind: Kind::Images,
        dim: images.channels,
        value_dim: images.channels,
        picture_size: Some([images.width, images.height]),
        source: source_name(source),
        normalise_by: NormaliseBy::None,
    }
}

/// Documents as sets of `[word, count]`.
pub(super) fn words(
    source: &Path,
    out: &Path,
    options: &ImportOptions,
    is_docword: bool,
) -> Result<()> {
    let is_wanted =
        |path: &Path| matches!(extension(path).as_str(), "feat" | "svm" | "svmlight" | "libsvm");
    let mut writer =
        CacheWriter::create(out, plain_options(source, Kind::Words, 2, 2, NormaliseBy::None))?;
    for file in files_of(source, &is_wanted)? {
        let (bytes, name) = (read_bytes(&file)?, name_of(&file));
        let bags =
            if is_docword { parse_docword(&bytes, &name)? } else { parse_svmlight(&bytes, &name)? };
        for document in 0..bags.offsets.num_sets() {
            let elements: Vec<f32> = bags
                .offsets
                .range(document)
                .flat_map(|index| [bags.words[index], bags.counts[index]])
                .map(|number| f32::nearest(f64::from(number)))
                .collect();
            let class = bags.labels.get(document).map(ToString::to_string);
            let name = bags.ids[document].to_string();
            writer.push(&elements, SetInfo { name, class, split: Split::Train })?;
        }
    }
    finish(writer, options)
}

/// Point patterns as clouds of the plane.
pub(super) fn patterns(source: &Path, out: &Path, options: &ImportOptions) -> Result<()> {
    let plain = plain_options(source, Kind::Clouds, 2, 2, options.normalise_by);
    let mut writer = CacheWriter::create(out, plain)?;
    for file in files_of(source, &|path| extension(path) == "dat")? {
        let pattern = read_pattern(&file)?;
        let points: Vec<f32> =
            pattern.points.iter().flatten().map(|&number| f32::nearest(number)).collect();
        let info = SetInfo { name: pattern.title, class: None, split: Split::Train };
        writer.push(&points, info)?;
    }
    finish(writer, options)
}

/// The sets of a table, rows `[value, location]`.
pub(super) fn table(source: &Path, out: &Path, options: &ImportOptions) -> Result<()> {
    let sets = read_table(source, &ColumnChoice::default())?;
    let Some(first) = sets.first() else {
        return Err(Error::invalid("table", "at least one set", "none"));
    };
    let (d_x, d_t) = (first.set.value_dim(), first.set.location_dim());
    let plain = plain_options(source, Kind::Table, d_x + d_t, d_x, NormaliseBy::None);
    let mut writer = CacheWriter::create(out, plain)?;
    for named in sets {
        let rows: Vec<f32> = (0..named.set.len())
            .flat_map(|index| [named.set.value(index), named.set.location(index)].concat())
            .map(f32::nearest)
            .collect();
        let info = SetInfo { name: named.name, class: None, split: Split::Train };
        writer.push(&rows, info)?;
    }
    finish(writer, options)
}

fn plain_options(
    source: &Path,
    kind: Kind,
    dim: usize,
    value_dim: usize,
    normalise_by: NormaliseBy,
) -> CacheOptions {
    let source = source_name(source);
    CacheOptions { kind, dim, value_dim, picture_size: None, source, normalise_by }
}

fn files_of(source: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    if source.is_dir() { files_below(source, is_wanted) } else { Ok(vec![source.to_path_buf()]) }
}

fn finish(mut writer: CacheWriter, options: &ImportOptions) -> Result<()> {
    if writer.is_unsplit() && options.validation + options.test > 0.0 {
        writer.split_randomly(options.validation, options.test, options.seed)?;
    }
    writer.finish()
}
