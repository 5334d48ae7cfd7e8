//! What was typed for `ebp distance` and `ebp metrics`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ebp::metric::collection::{Preparation, SetNormalisation};
use ebp::metric::distance::{ChamferConvention, EmdMethod};

use super::{Choice, at_least_one, choice, number_of_threads};
use crate::shard::ShardArgument;

const DISTANCE_HELP: &str = "\
What the numbers are:
  chamfer    mean-of-squares   mean_x min_y |x-y|^2 + mean_y min_x |x-y|^2
             sum-of-distances  sum_x  min_y |x-y|   + sum_y  min_x |x-y|
  hausdorff  the largest distance from any point to its nearest one in the other set
  emd        exact        least mean distance of moving one set onto the other; sets of different
                          sizes carry the same mass. gap: how much smaller the true value can be,
                          as a share
             approxmatch  the soft matching of PointFlow and most papers, 20 to 50 % above exact
             squared      the same matching, squared distances (PVD, LION)
             sinkhorn     with an entropy term; an upper bound, and its gap to a lower bound

Files: npy, npz, h5, ply, off, obj, pcd, xyz, txt, pts.

Examples:
  ebp distance chair.npy table.ply
  ebp distance a.npy b.npy --emd approxmatch --points 2048 --json";

/// Arguments of `ebp distance`.
#[derive(Debug, Args)]
#[command(after_long_help = DISTANCE_HELP)]
pub(crate) struct DistanceArguments {
    /// The first set of points
    pub(crate) x: PathBuf,

    /// The second set of points
    pub(crate) y: PathBuf,

    /// Method of the earth mover's distance
    #[arg(long, value_enum, default_value_t = EmdName::Exact, value_name = "METHOD")]
    pub(crate) emd: EmdName,

    /// Convention of the Chamfer distance
    #[arg(long, value_enum, default_value_t = ChamferName::MeanOfSquares, value_name = "CONVENTION")]
    pub(crate) chamfer: ChamferName,

    #[command(flatten)]
    pub(crate) clouds: CloudArguments,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = number_of_threads)]
    pub(crate) threads: Option<usize>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

const METRICS_HELP: &str = "\
What the numbers are (S samples, R references, d a distance between sets):
  JSD    Jensen-Shannon divergence, base 2, of all points on a grid of 28^3 cells in the ball of
         radius 1/2: lower is better. `--normalise unit-ball` brings any clouds there
  MMD    minimum matching distance: mean over R of the distance to the nearest of S
  COV    coverage: share of R that is nearest to at least one of S
  1-NNA  share of S and R whose nearest other set is of its own kind: 50 % is ideal
Intervals are 95 % by bootstrap over references (MMD, COV), all sets (1-NNA), sets of both
collections (JSD). Chamfer is the mean of squares; `ebp distance --help` explains the methods.

A collection is an array [sets, points, dim] (npy, npz, h5), a file of one set, or a folder.
Distances are kept in the cache and a run that was killed goes on where it was.

Examples:
  ebp metrics samples.npy references.npy --emd off
  ebp metrics samples/ references/ --points 2048 --oracle train.npy --paper chair
  ebp metrics samples.npy references.npy --emd exact --json > metrics.json
  ebp metrics samples.npy references.npy --shard 2/4 -o part-2   # one of four jobs; then `ebp merge part-*`";

/// Arguments of `ebp metrics`.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = METRICS_HELP)]
pub(crate) struct MetricsArguments {
    /// The generated sets: a file or a folder
    pub(crate) samples: PathBuf,

    /// The real sets: a file or a folder
    pub(crate) references: PathBuf,

    /// Method of the earth mover's distance
    #[arg(long, value_enum, default_value_t = EmdName::Exact, value_name = "METHOD")]
    pub(crate) emd: EmdName,

    /// Only K sets of each collection, drawn at random
    #[arg(long, value_name = "K", value_parser = at_least_one)]
    pub(crate) subset: Option<usize>,

    #[command(flatten)]
    pub(crate) clouds: CloudArguments,

    /// Training sets: as many as there are samples are measured in their place, as the ceiling
    #[arg(long, value_name = "TRAIN")]
    pub(crate) oracle: Option<PathBuf>,

    /// Show the paper's table beside the result
    #[arg(long, value_enum, value_name = "CLASS")]
    pub(crate) paper: Option<PaperClass>,

    /// Folder for distances that were computed [default: the user's cache folder]
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    pub(crate) cache: Option<PathBuf>,

    /// Keep no distances
    #[arg(long)]
    pub(crate) no_cache: bool,

    #[command(flatten)]
    pub(crate) shard: ShardArgument,

    /// The folder of the part
    #[arg(short, long, value_name = "PART", requires = "share", help_heading = "Many jobs")]
    pub(crate) out: Option<PathBuf>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = number_of_threads)]
    pub(crate) threads: Option<usize>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// How clouds are prepared.
#[derive(Clone, Debug, Args)]
pub(crate) struct CloudArguments {
    /// Only N points of each set, drawn at random
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) points: Option<usize>,

    /// What is done to each set first
    #[arg(long, default_value = "none", value_parser = choice(NORMALISATIONS), value_name = "HOW")]
    pub(crate) normalise: SetNormalisation,

    /// Seed of what is drawn at random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Weight of the entropy for `--emd sinkhorn`, as a share of the mean distance of all pairs
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub(crate) regularisation: f64,
}

/// A method of the earth mover's distance by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmdName {
    /// The optimal plan, with a certificate
    Exact,
    /// The soft matching of most papers
    Approxmatch,
    /// The same matching, squared distances
    Squared,
    /// With an entropy term
    Sinkhorn,
    /// None
    Off,
}

impl EmdName {
    /// The method, `None` for off.
    pub(crate) fn method(self, regularisation: f64) -> Option<EmdMethod> {
        match self {
            Self::Exact => Some(EmdMethod::Exact),
            Self::Approxmatch => Some(EmdMethod::Approxmatch),
            Self::Squared => Some(EmdMethod::Squared),
            Self::Sinkhorn => Some(EmdMethod::Sinkhorn { regularisation }),
            Self::Off => None,
        }
    }
}

/// A convention of the Chamfer distance by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChamferName {
    /// As PointFlow and the numbers of the paper
    MeanOfSquares,
    /// As the paper's formula
    SumOfDistances,
}

impl From<ChamferName> for ChamferConvention {
    fn from(name: ChamferName) -> Self {
        match name {
            ChamferName::MeanOfSquares => Self::MeanOfSquares,
            ChamferName::SumOfDistances => Self::SumOfDistances,
        }
    }
}

const NORMALISATIONS: &[Choice<SetNormalisation>] = &[
    ("none", "Nothing: coordinates as they are", SetNormalisation::None),
    ("unit-ball", "Mean to the origin, farthest point to distance 1/2", SetNormalisation::UnitBall),
    (
        "unit-cube",
        "Middle of the box to the origin, longest side to length 1",
        SetNormalisation::UnitCube,
    ),
];

impl CloudArguments {
    /// How sets are prepared, `subset` of each collection.
    pub(crate) fn preparation(&self, subset: Option<usize>) -> Preparation {
        Preparation { subset, points: self.points, normalise: self.normalise, seed: self.seed }
    }
}

/// A class of the paper's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperClass {
    Airplane,
    Chair,
    Car,
}
