//! Clouds and meshes → cache, a few files at a time.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rayon::prelude::*;

use crate::data::cache::{
    CacheOptions, CacheWriter, Kind, SetInfo, ShardPlan, ShardReport, Split, write_shards,
};
use crate::data::cloud::{Clouds, cloud_files, hdf5_labels, parse_clouds};
use crate::data::file::{Lines, extension, name_of, read_bytes, stem};
use crate::data::mesh::{MESH_ENDINGS, SurfaceSampler, parse_mesh};
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets, Share};

use super::{ImportOptions, source_name, split_of};

/// Files read at a time: what is held in memory beside the cache.
const CHUNK: usize = 64;
/// The same of each shard.
const FEW: usize = 2;

/// ShapeNet's folders of the classes that people model most.
const SYNSETS: [(&str, &str); 10] = [
    ("02691156", "airplane"),
    ("02828884", "bench"),
    ("02933112", "cabinet"),
    ("02958343", "car"),
    ("03001627", "chair"),
    ("03636649", "lamp"),
    ("04090263", "rifle"),
    ("04256520", "sofa"),
    ("04379243", "table"),
    ("04530566", "watercraft"),
];

/// The clouds of one file, and what is known about each.
struct Part {
    clouds: Clouds,
    infos: Vec<SetInfo>,
}

pub(super) fn import(
    source: &Path,
    out: &Path,
    options: &ImportOptions,
    watch: &mut (dyn FnMut(usize, usize) + Send),
) -> Result<()> {
    let (files, index) = files_and_index(source)?;
    let mut writer = write_files((source, &files), CHUNK, &index, out, options, watch)?;
    if writer.is_unsplit() && options.validation + options.test > 0.0 {
        writer.split_randomly(options.validation, options.test, options.seed)?;
    }
    writer.finish()
}

/// The same into shards, each of neighbouring files.
pub(super) fn import_shards(
    source: &Path,
    out: &Path,
    options: &ImportOptions,
    num_shards: usize,
    watch: &(dyn Fn(usize) + Sync),
) -> Result<ShardReport> {
    let (files, index) = files_and_index(source)?;
    // A file is not cut.
    let count = num_shards.min(files.len()).max(1);
    let ranges = (1..=count).map(|number| Ok(Share::new(number, count)?.range(files.len())));
    let ranges = ranges.collect::<Result<Vec<_>>>()?;
    let inputs: Result<Vec<Vec<String>>> = ranges
        .iter()
        .map(|range| files[range.clone()].iter().map(|file| state_of(source, file)).collect())
        .collect();
    let plan = ShardPlan {
        inputs: inputs?,
        settings: settings_of(options),
        source: source_name(source),
        normalise_by: options.normalise_by,
        validation: options.validation,
        test: options.test,
        seed: options.seed,
    };
    let fill = |number: usize, path: &Path| {
        let files = &files[ranges[number].clone()];
        // Shards are read side by side: no more files at a time than there are threads, or few.
        write_files((source, files), FEW, &index, path, options, &mut |_, _| {})?.finish()
    };
    write_shards(out, &plan, &fill, watch)
}

/// What decides the numbers of a shard beside its files. Splits that are drawn stand in the index.
fn settings_of(options: &ImportOptions) -> String {
    let ImportOptions { num_points, normalise_by, seed, drops_non_finite, .. } = options;
    format!(
        "points {num_points}, normalise {normalise_by:?}, seed {seed}, drop not finite {drops_non_finite}"
    )
}

/// A file in words that change when it does: its name, size and time.
fn state_of(source: &Path, file: &Path) -> Result<String> {
    let found = file.metadata().and_then(|found| Ok((found.len(), found.modified()?)));
    let (size, time) = found.map_err(Error::io("read", file))?;
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = file.strip_prefix(source).unwrap_or(file).display();
    Ok(format!("{name} {size} {}.{:09}", since.as_secs(), since.subsec_nanos()))
}

fn files_and_index(source: &Path) -> Result<(Vec<PathBuf>, Index)> {
    let files = if source.is_dir() { cloud_files(source)? } else { vec![source.to_path_buf()] };
    let index = Index::beside(source, &files)?;
    // Text beside the clouds, such as lists of names, is no cloud.
    let files = files.into_iter().filter(|file| !index.texts.contains(file)).collect();
    Ok((files, index))
}

/// Files one after the other, `at_once` of them in memory; `watch` is told how many are read.
fn write_files(
    (source, files): (&Path, &[PathBuf]),
    at_once: usize,
    index: &Index,
    out: &Path,
    options: &ImportOptions,
    watch: &mut (dyn FnMut(usize, usize) + Send),
) -> Result<CacheWriter> {
    let mut writer: Option<CacheWriter> = None;
    watch(0, files.len());
    for (number, chunk) in files.chunks(at_once).enumerate() {
        let parts: Vec<Result<Part>> =
            chunk.par_iter().map(|file| read_part(source, file, index, options)).collect();
        for part in parts {
            let part = part?;
            let dim = part.clouds.dim();
            if writer.is_none() {
                let options = CacheOptions {
                    kind: Kind::Clouds,
                    dim,
                    value_dim: dim,
                    picture_size: None,
                    source: source_name(source),
                    normalise_by: options.normalise_by,
                };
                writer = Some(CacheWriter::create(out, options)?);
            }
            if let Some(writer) = &mut writer {
                for (number, info) in part.infos.into_iter().enumerate() {
                    writer.push(part.clouds.cloud(number), info)?;
                }
            }
        }
        watch(number * at_once + chunk.len(), files.len());
    }
    writer.ok_or_else(|| Error::invalid("source", "files of clouds", "none"))
}

fn read_part(source: &Path, file: &Path, index: &Index, options: &ImportOptions) -> Result<Part> {
    let (bytes, name, ending) = (read_bytes(file)?, name_of(file), extension(file));
    let mut labels = None;
    let mut clouds = if MESH_ENDINGS.contains(&ending.as_str()) {
        mesh_or_points(&bytes, file, &ending, options)?
    } else {
        if matches!(ending.as_str(), "h5" | "hdf5") {
            labels = hdf5_labels(&bytes, &name)?;
        }
        parse_clouds(&bytes, &name, &ending)?
    };
    clouds.prefix_names(&stem(file));
    if options.drops_non_finite {
        clouds = without_non_finite(&clouds)?;
    }
    let below = file.parent().and_then(|parent| parent.strip_prefix(source).ok());
    let folders: Vec<String> = below
        .map(|path| path.iter().map(|part| part.to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    let many = clouds.num_clouds() > 1 || clouds.names()[0].contains('/');
    let (class, split) = class_and_split(&folders, &stem(file), many);
    let infos = (0..clouds.num_clouds())
        .map(|number| {
            let labelled = labels.as_ref().and_then(|labels| labels.get(number));
            let class = match labelled {
                Some(&label) => Some(index.class_name(label)),
                None => index.class_of(number).or_else(|| class.clone()),
            };
            let own = &clouds.names()[number];
            let name = folders.iter().map(String::as_str).chain([own.as_str()]);
            SetInfo { name: name.collect::<Vec<_>>().join("/"), class, split }
        })
        .collect();
    Ok(Part { clouds, infos })
}

/// A mesh becomes points on its surface; a file of vertices alone is a cloud.
fn mesh_or_points(
    bytes: &[u8],
    file: &Path,
    ending: &str,
    options: &ImportOptions,
) -> Result<Clouds> {
    let name = name_of(file);
    let mesh = parse_mesh(bytes, &name, ending)?;
    if mesh.faces.is_empty() {
        return parse_clouds(bytes, &name, ending);
    }
    // By its name rather than its place in the folder: other files do not change it.
    let stream = Stream::new(options.seed, &stem(file));
    let points = SurfaceSampler::new(&mesh)?.points(stream, options.num_points);
    Clouds::new(3, points, SetOffsets::from_sizes([options.num_points])?, vec![String::new()])
}

fn without_non_finite(clouds: &Clouds) -> Result<Clouds> {
    let dim = clouds.dim();
    let mut points = Vec::with_capacity(clouds.points().len());
    let mut sizes = Vec::new();
    for number in 0..clouds.num_clouds() {
        let start = points.len();
        for point in clouds.cloud(number).chunks_exact(dim) {
            if point.iter().all(|x| x.is_finite()) {
                points.extend_from_slice(point);
            }
        }
        sizes.push((points.len() - start) / dim);
    }
    Clouds::new(dim, points, SetOffsets::from_sizes(sizes)?, clouds.names().to_vec())
}

/// From the folders above a file and its own name: the first that is no split is the class. The
/// file's name counts only where it holds many clouds.
fn class_and_split(folders: &[String], stem: &str, is_collection: bool) -> (Option<String>, Split) {
    let mut split = folders.iter().find_map(|folder| split_of(folder));
    let mut class = folders.iter().find(|folder| split_of(folder).is_none()).cloned();
    if is_collection {
        let mut words = stem.split(|c: char| !c.is_alphabetic());
        split = split.or_else(|| words.find_map(split_of));
        class = class.or_else(|| Some(stem.to_owned()));
    }
    let class = class.map(|class| {
        let known = SYNSETS.iter().find(|(synset, _)| *synset == class);
        known.map_or(class, |(_, name)| (*name).to_owned())
    });
    (class, split.unwrap_or_default())
}

/// What stands beside the clouds: names of classes, and a table of the clouds.
#[derive(Default)]
struct Index {
    /// `shape_names.txt`: a class a line, as ModelNet40's HDF5 has it.
    classes: Vec<String>,
    /// `index.csv`: the class of each cloud of the only file.
    rows: Vec<String>,
    /// Files that are no clouds.
    texts: Vec<PathBuf>,
}

impl Index {
    fn beside(source: &Path, files: &[PathBuf]) -> Result<Self> {
        let mut index = Self::default();
        let has_arrays = files.iter().any(|file| {
            matches!(
                extension(file).as_str(),
                "h5" | "hdf5" | "npy" | "npz" | "ply" | "off" | "obj"
            )
        });
        if has_arrays {
            index.texts = files.iter().filter(|file| extension(file) == "txt").cloned().collect();
        }
        let names = source.join("shape_names.txt");
        if names.is_file() {
            index.classes = words_of(&names, 0)?;
        }
        let table = source.join("index.csv");
        let num_arrays = files.len() - index.texts.len();
        if table.is_file() && num_arrays == 1 {
            let mut header = words_of_first_line(&table)?.into_iter();
            let is_class =
                |word: &String| matches!(word.as_str(), "class" | "coarse_class" | "label");
            if let Some(column) = header.position(|word| is_class(&word)) {
                index.rows = words_of(&table, column)?.split_off(1);
            }
        }
        Ok(index)
    }

    fn class_name(&self, label: u32) -> String {
        self.classes.get(label as usize).cloned().unwrap_or_else(|| label.to_string())
    }

    fn class_of(&self, number: usize) -> Option<String> {
        self.rows.get(number).cloned()
    }
}

/// A column of a small table, a word for each line.
fn words_of(path: &Path, column: usize) -> Result<Vec<String>> {
    let (bytes, file) = (read_bytes(path)?, name_of(path));
    let mut lines = Lines::new(&file, &bytes, None);
    let mut words = Vec::new();
    while let Some(line) = lines.next_line()? {
        let Some(word) = line.text.split(',').nth(column) else {
            return Err(line.error(format!("{} columns", column + 1), line.text));
        };
        words.push(word.trim().to_owned());
    }
    Ok(words)
}

fn words_of_first_line(path: &Path) -> Result<Vec<String>> {
    let (bytes, file) = (read_bytes(path)?, name_of(path));
    let line = Lines::new(&file, &bytes, None).expect("a header")?;
    Ok(line.text.split(',').map(|word| word.trim().to_owned()).collect())
}
