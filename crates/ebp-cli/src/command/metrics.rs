//! `ebp metrics`: how far a collection of generated sets is from one of real sets.
//!
//! The path: arguments → collections (read, thinned out, normalised) → [`evaluate_on`] on all threads,
//! with its cache on disk → [`Report`].

mod paper;
mod progress;
mod report;

use std::path::{Path, PathBuf};

use ebp::metric::collection::{Collection, CollectionMetrics, CollectionOptions, evaluate_on};
use ebp::metric::distance::GpuDistances;

use self::progress::PairProgress;
use self::report::{CollectionReport, Report, Rows};
use crate::args::MetricsArguments;
use crate::device;
use crate::failure::Failure;
use crate::output;
use crate::threads::start_threads;

/// Below the user's cache folder.
const CACHE_NAME: &str = "ebp/metrics";

/// Evaluates and prints.
pub(crate) fn run(arguments: &MetricsArguments) -> Result<(), Failure> {
    let report = start_threads(arguments.threads)?.install(|| measure(arguments))?;
    if arguments.json {
        output::print_json(Some(report.seed), &report)
    } else {
        output::print(&report.table(arguments.paper))
    }
}

fn measure(arguments: &MetricsArguments) -> Result<Report, Failure> {
    let samples =
        Collection::read(&arguments.samples, &arguments.clouds.preparation(arguments.subset))?;
    let references =
        Collection::read(&arguments.references, &arguments.clouds.preparation(arguments.subset))?;
    // What is wrong with the training sets should be known before the long work.
    let oracle = match &arguments.oracle {
        None => None,
        Some(path) => {
            Some(Collection::read(path, &arguments.clouds.preparation(Some(samples.clouds.len())))?)
        }
    };
    let cache = cache_folder(arguments);
    let metrics = compare(&samples, &references, arguments, cache.as_deref(), "samples")?;
    let oracle = match oracle {
        None => None,
        Some(oracle) => Some(compare(&oracle, &references, arguments, cache.as_deref(), "oracle")?),
    };
    Ok(Report {
        samples: CollectionReport::new(&arguments.samples, &samples),
        references: CollectionReport::new(&arguments.references, &references),
        n: samples.clouds.len(),
        m: references.clouds.len(),
        dim: references.clouds.first().map_or(0, ebp::metric::distance::ArrangedCloud::dim),
        normalisation: arguments.clouds.normalise.name(),
        points: arguments.clouds.points,
        subset: arguments.subset,
        seed: arguments.clouds.seed,
        chamfer_convention: ebp::metric::collection::CHAMFER.name(),
        rows: Rows::new(&metrics),
        oracle: oracle.as_ref().map(Rows::new),
    })
}

fn compare(
    samples: &Collection,
    references: &Collection,
    arguments: &MetricsArguments,
    cache: Option<&Path>,
    name: &'static str,
) -> Result<CollectionMetrics, Failure> {
    let options = CollectionOptions {
        emd: arguments.emd.method(arguments.clouds.regularisation),
        cache,
        seed: arguments.clouds.seed,
    };
    let mut progress = PairProgress::new(arguments.quiet, name);
    let sizes = samples.clouds.iter().chain(&references.clouds).map(|cloud| cloud.len() as f64);
    let gpu = device::gpu_for_distances(sizes.sum::<f64>().powi(2))?;
    let gpu = gpu.as_ref().map(GpuDistances::new);
    let metrics = evaluate_on(gpu, &samples.clouds, &references.clouds, &options, &mut |at| {
        progress.show(at);
    })?;
    progress.finish();
    Ok(metrics)
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
