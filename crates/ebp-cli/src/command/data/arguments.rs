//! What was typed after `ebp data`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ebp::data::normalise::NormaliseBy;
use ebp::data::shapes::ShapeClass;

use crate::args::at_least_one;

/// Arguments of `ebp data`.
#[derive(Debug, Args)]
pub(crate) struct DataArguments {
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// What to do with data.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Read clouds, meshes, pictures, words, point patterns or a table into one cache
    Import(ImportArguments),
    /// Say what a cache or source holds, and draw a contact sheet of it
    Inspect(InspectArguments),
    /// Draw the splits of a cache anew
    Split(SplitArguments),
    /// Sample points on the surface of a mesh, or of all meshes in a folder
    SampleMesh(SampleMeshArguments),
    /// Draw built-in shapes as point clouds
    Shapes(ShapesArguments),
    /// Draw points on the strokes of pictures: MNIST as sets of the plane
    Strokes(StrokesArguments),
    /// Say what a data set is, where it comes from and how its folder looks, and check a copy
    Info(InfoArguments),
}

const IMPORT_HELP: &str = "\
What SRC may be:
  a folder or file of clouds and meshes: npy npz h5 ply off obj pcd xyz txt pts asc
  a folder with MNIST's IDX files; a folder or zip archive of png and jpg
  svmlight counts (.feat .svm), UCI docword, point patterns (.dat), a table (.csv)
Folders called train, val and test are splits; other folders, and files with many clouds, are
classes. With --shards OUT becomes a folder that every command takes as it takes a cache: N files of
neighbouring clouds and an index. Shards that an interrupted import finished are kept as long as the files
they came from have the same names, sizes and times. A file of SRC goes into one shard as a whole, so more
shards than files make no sense. The numbers in the cache are those of the source; the normalisation is recorded beside
them and applied when batches are made.

Examples:
  ebp data import ModelNet10 modelnet10.ebp --points 2048 --normalise sphere
  ebp data import ShapeNetCore.v2.PC15k/03001627 chair.ebp --normalise global
  ebp data import /mnt/scans scans --shards 64 --normalise global   # larger than the memory
  ebp data import img_align_celeba.zip celeba.ebp --celeba --test 0.1";

/// Arguments of `ebp data import`.
#[derive(Debug, Args)]
#[command(after_long_help = IMPORT_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ImportArguments {
    /// The file or folder to read
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,

    /// The cache to write
    #[arg(value_name = "OUT")]
    pub(crate) out: PathBuf,

    /// Points on the surface of each mesh
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = at_least_one)]
    pub(crate) points: usize,

    /// How clouds are normalised
    #[arg(long, value_enum, default_value_t = NormaliseName::None)]
    pub(crate) normalise: NormaliseName,

    /// Share of the sets for validation, where the source has no splits
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) validation: f64,

    /// Share of the sets for the test, where the source has no splits
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) test: f64,

    /// Seed of surfaces and splits
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Leave out points that are not finite, rather than refuse them
    #[arg(long)]
    pub(crate) drop_nan: bool,

    /// Resize pictures to this many pixels a side
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) size: Option<usize>,

    /// Crop pictures to the centred square of this many pixels first
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) crop: Option<usize>,

    /// Turn pictures to grey
    #[arg(long)]
    pub(crate) grey: bool,

    /// As CelebA is used: the central 148 of 178 columns, 32×32 pixels
    #[arg(long, conflicts_with_all = ["size", "crop"])]
    pub(crate) celeba: bool,

    /// Write a folder of N caches with an index, in parallel; killed, the same command goes on
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) shards: Option<usize>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    pub(crate) threads: Option<usize>,

    /// Write over OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `ebp data inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// A cache, or a file or folder of clouds or pictures
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,

    /// Where to draw a contact sheet (PNG)
    #[arg(long, value_name = "FILE")]
    pub(crate) sheet: Option<PathBuf>,

    /// Sets on the contact sheet
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = at_least_one)]
    pub(crate) tiles: usize,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `ebp data split`.
#[derive(Debug, Args)]
pub(crate) struct SplitArguments {
    /// The cache; it is replaced as a whole, or left as it is
    #[arg(value_name = "CACHE")]
    pub(crate) cache: PathBuf,

    /// Share of the sets for validation
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub(crate) validation: f64,

    /// Share of the sets for the test
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub(crate) test: f64,

    /// Seed of the draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `ebp data sample-mesh`.
#[derive(Debug, Args)]
pub(crate) struct SampleMeshArguments {
    /// A mesh (off, obj, ply), or a folder of meshes
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,

    /// The cloud to write (npy, ply, off, obj, pcd, xyz); for a folder, one array
    /// [meshes, points, 3] in npy
    #[arg(value_name = "OUT")]
    pub(crate) out: PathBuf,

    /// Points of each mesh
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = at_least_one)]
    pub(crate) points: usize,

    /// How points are spread
    #[arg(long, value_enum, default_value_t = SpreadName::Uniform)]
    pub(crate) spread: SpreadName,

    /// How each cloud is normalised
    #[arg(long, value_enum, default_value_t = NormaliseName::None)]
    pub(crate) normalise: NormaliseName,

    /// Seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `ebp data shapes`.
#[derive(Debug, Args)]
pub(crate) struct ShapesArguments {
    /// Classes to draw, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "chair")]
    pub(crate) class: Vec<ClassName>,

    /// Shapes of each class
    #[arg(
        short = 'n',
        long = "count",
        value_name = "N",
        default_value_t = 20,
        value_parser = at_least_one
    )]
    pub(crate) count: usize,

    /// Points of each shape
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = at_least_one)]
    pub(crate) points: usize,

    /// Seed: the same seed draws the same shapes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Number of the first shape; others continue the same series
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) first: u64,

    /// How each cloud is normalised
    #[arg(long, value_enum, default_value_t = NormaliseName::Sphere)]
    pub(crate) normalise: NormaliseName,

    /// Also write every shape as a mesh, `CLASS/NUMBER.obj`
    #[arg(long)]
    pub(crate) meshes: bool,

    /// Write a cache in N files in place of arrays and sheets, for more shapes than memory holds; killed,
    /// the same command goes on
    #[arg(long, value_name = "N", value_parser = at_least_one, conflicts_with = "meshes")]
    pub(crate) shards: Option<usize>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads, requires = "shards")]
    pub(crate) threads: Option<usize>,

    /// Folder for `CLASS.npy` [count, points, 3] and a contact sheet `CLASS.png`
    #[arg(value_name = "OUT")]
    pub(crate) out: PathBuf,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

const STROKES_HELP: &str = "\
A pixel is drawn with a probability proportional to its intensity, and the point is uniform within it;
coordinates are in [-1, 1], y up.

Examples:
  ebp data strokes mnist/train-images-idx3-ubyte.gz strokes.npy
  ebp data strokes mnist/t10k-images-idx3-ubyte.gz test.npy --count 200";

/// Arguments of `ebp data strokes`.
#[derive(Debug, Args)]
#[command(after_help = STROKES_HELP)]
pub(crate) struct StrokesArguments {
    /// An IDX file, a folder or a zip archive of grey pictures
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,

    /// The array to write, [pictures, points, 2] in npy
    #[arg(value_name = "OUT")]
    pub(crate) out: PathBuf,

    /// Points of each picture
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub(crate) points: usize,

    /// Pictures at most, the first of them [default: all]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) count: Option<usize>,

    /// Seed of the points
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `ebp data info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArguments {
    /// The data set; all are listed without it
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// A copy whose counts are checked
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// A class of shapes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassName {
    Airplane,
    Chair,
    Car,
    Table,
    Lamp,
}

impl From<ClassName> for ShapeClass {
    fn from(name: ClassName) -> Self {
        match name {
            ClassName::Airplane => Self::Airplane,
            ClassName::Chair => Self::Chair,
            ClassName::Car => Self::Car,
            ClassName::Table => Self::Table,
            ClassName::Lamp => Self::Lamp,
        }
    }
}

/// A normalisation by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NormaliseName {
    /// Coordinates as they are
    None,
    /// One centre and scale from all training points, as PointFlow
    Global,
    /// Each cloud by its own mean and spread
    Shape,
    /// Each cloud into the unit sphere
    Sphere,
}

impl From<NormaliseName> for NormaliseBy {
    fn from(name: NormaliseName) -> Self {
        match name {
            NormaliseName::None => Self::None,
            NormaliseName::Global => Self::Global,
            NormaliseName::Shape => Self::Shape,
            NormaliseName::Sphere => Self::Sphere,
        }
    }
}

/// How points of a surface are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpreadName {
    /// Independent, by area
    Uniform,
    /// Evenly: the farthest points of eight times as many
    Farthest,
    /// Evenly: no two nearer than a radius, which is fitted to the number of points
    Poisson,
}
