//! `ebp metrics`: how far a collection of generated sets is from one of real sets.
//!
//! The path: arguments → collections (read, thinned out, normalised) → [`evaluate_on`] on all threads,
//! with its cache on disk → [`Report`].

mod paper;
mod progress;
mod report;

use std::path::{Path, PathBuf};

use ebp::Share;
use ebp::metric::collection::{
    Collection, CollectionMetrics, CollectionOptions, compute_share, evaluate_on, evaluate_parts,
    fingerprint_of,
};
use ebp::metric::distance::GpuDistances;
use ebp::point::CudaBackend;
use miette::miette;

use self::progress::PairProgress;
use self::report::{CollectionReport, Report, Rows};
use super::merge::MergeArguments;
use crate::args::MetricsArguments;
use crate::failure::Failure;
use crate::shard::{self, Part, Parts, Question, ShardArgument};
use crate::threads::start_threads;
use crate::{device, output};

/// Below the user's cache folder.
const CACHE_NAME: &str = "ebp/metrics";

/// Evaluates and prints, or computes a share.
pub(crate) fn run(arguments: &MetricsArguments) -> Result<(), Failure> {
    let threads = start_threads(arguments.threads)?;
    if let (Some(share), Some(folder)) = (arguments.shard.share, &arguments.out) {
        let report = threads.install(|| compute(arguments, share, folder))?;
        return if arguments.json {
            output::print_json(Some(arguments.clouds.seed), &report)
        } else {
            output::print(&report.to_string())
        };
    }
    let cache = cache_folder(arguments);
    print(arguments, &threads.install(|| measure(arguments, &Origin::Cache(cache.as_deref())))?)
}

/// What [`run`] prints, from the parts of all shares.
pub(crate) fn merge(
    mut arguments: MetricsArguments,
    parts: &Parts,
    how: &MergeArguments,
) -> Result<(), Failure> {
    how.refuse_out("metrics")?;
    (arguments.json, arguments.quiet) = (how.json, how.quiet);
    let threads = start_threads(how.threads)?;
    print(&arguments, &threads.install(|| measure(&arguments, &Origin::Parts(parts)))?)
}

fn print(arguments: &MetricsArguments, report: &Report) -> Result<(), Failure> {
    if arguments.json {
        output::print_json(Some(report.seed), report)
    } else {
        output::print(&report.table(arguments.paper))
    }
}

/// Where distances are that need no computing.
enum Origin<'a> {
    Cache(Option<&'a Path>),
    Parts(&'a Parts),
}

/// Everything that is compared.
struct Sides {
    samples: Collection,
    references: Collection,
    oracle: Option<Collection>,
}

impl Sides {
    fn read(arguments: &MetricsArguments) -> Result<Self, Failure> {
        let how = arguments.clouds.preparation(arguments.subset);
        let samples = Collection::read(&arguments.samples, &how)?;
        let references = Collection::read(&arguments.references, &how)?;
        // What is wrong with the training sets should be known before the long work.
        let how = arguments.clouds.preparation(Some(samples.clouds.len()));
        let oracle =
            arguments.oracle.as_ref().map(|path| Collection::read(path, &how)).transpose()?;
        Ok(Self { samples, references, oracle })
    }

    /// Each comparison, by the name of what is compared with the references.
    fn each(&self) -> impl Iterator<Item = (&'static str, &Collection)> {
        let oracle = self.oracle.iter().map(|oracle| ("oracle", oracle));
        std::iter::once(("samples", &self.samples)).chain(oracle)
    }
}

fn measure(arguments: &MetricsArguments, origin: &Origin<'_>) -> Result<Report, Failure> {
    let sides = Sides::read(arguments)?;
    let mut rows = Vec::new();
    for (name, samples) in sides.each() {
        rows.push(Rows::new(&compare(samples, &sides.references, arguments, origin, name)?));
    }
    let mut rows = rows.into_iter();
    let Some(of_samples) = rows.next() else {
        return Err(Failure::Failed(miette!("nothing was compared")));
    };
    let Sides { samples, references, .. } = &sides;
    Ok(Report {
        samples: CollectionReport::new(&arguments.samples, samples),
        references: CollectionReport::new(&arguments.references, references),
        n: samples.clouds.len(),
        m: references.clouds.len(),
        dim: references.clouds.first().map_or(0, ebp::metric::distance::ArrangedCloud::dim),
        normalisation: arguments.clouds.normalise.name(),
        points: arguments.clouds.points,
        subset: arguments.subset,
        seed: arguments.clouds.seed,
        chamfer_convention: ebp::metric::collection::CHAMFER.name(),
        rows: of_samples,
        oracle: rows.next(),
    })
}

fn compare(
    samples: &Collection,
    references: &Collection,
    arguments: &MetricsArguments,
    origin: &Origin<'_>,
    name: &'static str,
) -> Result<CollectionMetrics, Failure> {
    let mut progress = PairProgress::new(arguments.quiet, name);
    let watch = &mut |at| progress.show(at);
    let metrics = match origin {
        Origin::Cache(cache) => {
            let gpu = gpu_for(samples, references)?;
            let gpu = gpu.as_ref().map(GpuDistances::new);
            let options = options(arguments, *cache);
            evaluate_on(gpu, &samples.clouds, &references.clouds, &options, watch)?
        }
        Origin::Parts(parts) => {
            let sides = (&samples.clouds[..], &references.clouds[..]);
            evaluate_parts(sides, &options(arguments, None), parts.folders(), watch)?
        }
    };
    progress.finish();
    Ok(metrics)
}

/// A share of all distances, kept in the folder of a part.
fn compute(
    arguments: &MetricsArguments,
    share: Share,
    folder: &Path,
) -> Result<shard::Report, Failure> {
    let sides = Sides::read(arguments)?;
    let part = Part::begin(folder, share, question(arguments, &sides))?;
    if !part.is_whole() {
        for (name, samples) in sides.each() {
            let mut progress = PairProgress::new(arguments.quiet, name);
            let gpu = gpu_for(samples, &sides.references)?;
            let gpu = gpu.as_ref().map(GpuDistances::new);
            let clouds = (&samples.clouds[..], &sides.references.clouds[..]);
            let place = (share, part.folder());
            compute_share(gpu, clouds, &options(arguments, None), place, &mut |at| {
                progress.show(at);
            })?;
            progress.finish();
        }
    }
    part.finish()
}

fn question(arguments: &MetricsArguments, sides: &Sides) -> Question {
    let same = MetricsArguments {
        cache: None,
        no_cache: false,
        shard: ShardArgument::default(),
        out: None,
        threads: None,
        json: false,
        quiet: false,
        ..arguments.clone()
    };
    let print = |(name, samples): (&str, &Collection)| {
        let print = fingerprint_of(&samples.clouds, &sides.references.clouds);
        format!("{name} and references {print:016x}")
    };
    Question {
        command: "metrics".to_owned(),
        arguments: format!("{same:?}"),
        inputs: sides.each().map(print).collect::<Vec<_>>().join("; "),
        // Distances are in stores of their own.
        num_pieces: 0,
    }
}

fn options<'a>(arguments: &MetricsArguments, cache: Option<&'a Path>) -> CollectionOptions<'a> {
    let emd = arguments.emd.method(arguments.clouds.regularisation);
    CollectionOptions { emd, cache, seed: arguments.clouds.seed }
}

fn gpu_for(samples: &Collection, references: &Collection) -> Result<Option<CudaBackend>, Failure> {
    let sizes = samples.clouds.iter().chain(&references.clouds).map(|cloud| cloud.len() as f64);
    device::gpu_for_distances(sizes.sum::<f64>().powi(2))
}

/// The folder that was asked for, or the user's own; none if there is neither.
fn cache_folder(arguments: &MetricsArguments) -> Option<PathBuf> {
    if arguments.no_cache {
        return None;
    }
    arguments.cache.clone().or_else(|| {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache")))
            .or_else(|| variable("LOCALAPPDATA").map(PathBuf::from))?;
        Some(folder.join(CACHE_NAME))
    })
}
