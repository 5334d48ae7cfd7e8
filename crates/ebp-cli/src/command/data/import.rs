//! `ebp data import` and `ebp data split`.

use std::io::{Write, stdout};
use std::path::Path;
use std::time::Instant;

use ebp::data::Cache;
use ebp::data::cache::{ShardReport, Split, is_finished_sharded, is_sharded, random_splits};
use ebp::data::image::{Crop, ImageOptions};
use ebp::data::import::{ImportOptions, import, import_shards};
use miette::miette;

use super::arguments::{ImportArguments, SplitArguments};
use crate::failure::Failure;
use crate::progress;
use crate::threads::start_threads;

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
        let begin = Instant::now();
        let bar = progress::bar(num_shards as u64, false, TEMPLATE);
        let report = start_threads(arguments.threads)?.install(|| {
            import_shards(&arguments.source, &arguments.out, &options, num_shards, &|num_done| {
                bar.set_position(num_done as u64);
            })
        })?;
        bar.finish_and_clear();
        return say_shards(&report, &arguments.out, begin);
    }
    let cache = start_threads(arguments.threads)?
        .install(|| import(&arguments.source, &arguments.out, &options))?;
    writeln!(
        stdout(),
        "{} in {} ({:.1} s)",
        describe(&cache),
        arguments.out.display(),
        begin.elapsed().as_secs_f64()
    )?;
    Ok(())
}

/// The bar of the shards.
pub(super) const TEMPLATE: &str = "{wide_bar} {pos}/{len} shards  {eta} left";

/// What a cache in shards holds, and how long it took.
pub(super) fn say_shards(report: &ShardReport, out: &Path, begin: Instant) -> Result<(), Failure> {
    let ShardReport { num_sets, num_elements, num_shards, num_kept } = report;
    let kept = match num_kept {
        0 => String::new(),
        some => format!(", {some} of them from before"),
    };
    writeln!(
        stdout(),
        "{num_sets} sets of {num_elements} elements in {num_shards} shards{kept} in {} ({:.1} s)",
        out.display(),
        begin.elapsed().as_secs_f64()
    )?;
    Ok(())
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
    cache.rewrite(&arguments.cache, by, |index| splits[index])?;
    writeln!(stdout(), "{}", describe(&Cache::open(&arguments.cache)?))?;
    Ok(())
}

/// `3977 sets of 2048 elements, 10 classes; train 3579, validation 199, test 199`
pub(super) fn describe(cache: &Cache) -> String {
    let sizes = (0..cache.len()).map(|index| cache.offsets().size(index));
    let (low, high) = sizes.fold((usize::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
    let elements = if low == high { low.to_string() } else { format!("{low} to {high}") };
    let classes = match cache.meta().classes.len() {
        0 => String::new(),
        count => format!(", {count} classes"),
    };
    let splits: Vec<String> = Split::ALL
        .into_iter()
        .map(|split| (split, cache.members(split).len()))
        .filter(|(_, count)| *count > 0)
        .map(|(split, count)| format!("{} {count}", split.name()))
        .collect();
    format!("{} sets of {elements} elements{classes}; {}", cache.len(), splits.join(", "))
}
