//! `ebp data import` and `ebp data split`.

use std::io::{Write, stdout};
use std::time::Instant;

use ebp::data::Cache;
use ebp::data::cache::{Split, random_splits};
use ebp::data::image::{Crop, ImageOptions};
use ebp::data::import::{ImportOptions, import};
use miette::miette;

use super::arguments::{ImportArguments, SplitArguments};
use crate::failure::Failure;

pub(super) fn run(arguments: &ImportArguments) -> Result<(), Failure> {
    if arguments.out.exists() && !arguments.force {
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
    let cache = import(&arguments.source, &arguments.out, &options)?;
    writeln!(
        stdout(),
        "{} in {} ({:.1} s)",
        describe(&cache),
        arguments.out.display(),
        begin.elapsed().as_secs_f64()
    )?;
    Ok(())
}

pub(super) fn split(arguments: &SplitArguments) -> Result<(), Failure> {
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
