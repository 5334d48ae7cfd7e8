//! `ebp data import` and `ebp data split`.

use std::fmt::{self, Display};
use std::path::Path;
use std::time::Instant;

use ebp::data::Cache;
use ebp::data::cache::{ShardReport, Split, is_finished_sharded, is_sharded, random_splits};
use ebp::data::image::{Crop, ImageOptions};
use ebp::data::import::{ImportOptions, import_shards, import_watched};
use miette::miette;
use serde::Serialize;

use super::arguments::{ImportArguments, SplitArguments};
use crate::failure::Failure;
use crate::threads::start_threads;
use crate::{output, progress};

/// What a cache holds.
#[derive(Debug, Serialize)]
struct Report {
    cache: String,
    sets: usize,
    /// Elements of the smallest and of the largest set.
    smallest: usize,
    largest: usize,
    classes: usize,
    /// Sets of each.
    splits: Vec<(&'static str, usize)>,
}

pub(super) fn run(arguments: &ImportArguments) -> Result<(), Failure> {
    // The folder of an import that was interrupted has no index yet, and the same command goes on.
    let goes_on = arguments.shards.is_some()
        && arguments.out.is_dir()
        && !is_finished_sharded(&arguments.out);
    if arguments.out.exists() && !arguments.force && !goes_on {
        return Err(Failure::Usage(miette!(
            help = "`--force` writes over it",
            "`{}` exists already",
            arguments.out.display()
        )));
    }
    let begin = Instant::now();
    let image = if arguments.celeba {
        ImageOptions { is_grey: arguments.grey, ..ImageOptions::CELEBA_32 }
    } else {
        ImageOptions {
            crop: arguments.crop.map_or(Crop::Whole, Crop::Square),
            size: arguments.size.map(|size| (size, size)),
            is_grey: arguments.grey,
        }
    };
    let options = ImportOptions {
        num_points: arguments.points,
        normalise_by: arguments.normalise.into(),
        validation: arguments.validation,
        test: arguments.test,
        seed: arguments.seed,
        image,
        drops_non_finite: arguments.drop_nan,
    };
    if let Some(num_shards) = arguments.shards {
        let count = progress::count(num_shards as u64, arguments.quiet, "shards");
        let report = start_threads(arguments.threads)?.install(|| {
            import_shards(&arguments.source, &arguments.out, &options, num_shards, &|num_done| {
                count.set(num_done as u64);
            })
        })?;
        count.finish();
        let report = ShardsReport::of(&report, &arguments.out, begin);
        return report.print(arguments.seed, arguments.json);
    }
    let clock = progress::clock(0, arguments.quiet);
    clock.set_message("reading");
    let mut count = None;
    let mut watch = |num_read: usize, num_files: usize| {
        // Files that can be counted take the place of the clock.
        clock.finish_and_clear();
        let new = || progress::count(num_files as u64, arguments.quiet, "files");
        count.get_or_insert_with(new).set(num_read as u64);
    };
    let cache = start_threads(arguments.threads)?
        .install(|| import_watched(&arguments.source, &arguments.out, &options, &mut watch))?;
    clock.finish_and_clear();
    count.iter().for_each(progress::Count::finish);
    let report = Report::of(&cache, &arguments.out);
    if arguments.json {
        return output::print_json(Some(arguments.seed), &report);
    }
    let seconds = begin.elapsed().as_secs_f64();
    output::print(&format!("{report} in {} ({seconds:.1} s)\n", report.cache))
}

/// What a cache in shards holds.
#[derive(Debug, Serialize)]
pub(super) struct ShardsReport {
    cache: String,
    sets: usize,
    elements: usize,
    shards: usize,
    /// Shards that were there before.
    kept: usize,
    /// Printed with the head of the object.
    #[serde(skip)]
    seconds: f64,
}

impl ShardsReport {
    pub(super) fn of(report: &ShardReport, out: &Path, begin: Instant) -> Self {
        let &ShardReport { num_sets, num_elements, num_shards, num_kept } = report;
        Self {
            cache: out.display().to_string(),
            sets: num_sets,
            elements: num_elements,
            shards: num_shards,
            kept: num_kept,
            seconds: begin.elapsed().as_secs_f64(),
        }
    }

    pub(super) fn print(&self, seed: u64, as_json: bool) -> Result<(), Failure> {
        if as_json {
            return output::print_json(Some(seed), self);
        }
        let Self { cache, sets, elements, shards, kept, seconds } = self;
        let kept = match kept {
            0 => String::new(),
            some => format!(", {some} of them from before"),
        };
        output::print(&format!(
            "{sets} sets of {elements} elements in {shards} shards{kept} in {cache} ({seconds:.1} s)\n"
        ))
    }
}

pub(super) fn split(arguments: &SplitArguments) -> Result<(), Failure> {
    if is_sharded(&arguments.cache) {
        return Err(Failure::Usage(miette!(
            help =
                "import it again with `--validation` and `--test`: shards that are there are kept",
            "`{}` is a cache in shards, whose splits are drawn when it is imported",
            arguments.cache.display()
        )));
    }
    let cache = Cache::open(&arguments.cache)?;
    let splits = random_splits(cache.len(), arguments.validation, arguments.test, arguments.seed)?;
    let by = cache.meta().normalised_by;
    progress::during(false, "writing", || {
        cache.rewrite(&arguments.cache, by, |index| splits[index])
    })?;
    let report = Report::of(&Cache::open(&arguments.cache)?, &arguments.cache);
    if arguments.json {
        return output::print_json(Some(arguments.seed), &report);
    }
    output::print(&format!("{report}\n"))
}

impl Report {
    fn of(cache: &Cache, path: &Path) -> Self {
        let sizes = (0..cache.len()).map(|index| cache.offsets().size(index));
        let (smallest, largest) =
            sizes.fold((usize::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
        let count = |split: Split| (split.name(), cache.members(split).len());
        Self {
            cache: path.display().to_string(),
            sets: cache.len(),
            smallest,
            largest,
            classes: cache.meta().classes.len(),
            splits: Split::ALL.into_iter().map(count).collect(),
        }
    }
}

/// `3977 sets of 2048 elements, 10 classes; train 3579, validation 199, test 199`
impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sets, smallest, largest, .. } = self;
        write!(f, "{sets} sets of {smallest}")?;
        if smallest != largest {
            write!(f, " to {largest}")?;
        }
        write!(f, " elements")?;
        if self.classes > 0 {
            write!(f, ", {} classes", self.classes)?;
        }
        let splits = self.splits.iter().filter(|(_, count)| *count > 0);
        let splits: Vec<String> = splits.map(|(name, count)| format!("{name} {count}")).collect();
        write!(f, "; {}", splits.join(", "))
    }
}
