//! `ebp data inspect`: counts, ranges, faults, and a contact sheet.

use std::collections::HashSet;
use std::io::{Write, stdout};

use ebp::data::cache::{Cache, Numbers, Split, is_sharded};
use ebp::data::image::{ImageOptions, read_images};
use ebp::data::import::{SourceKind, detect};
use ebp::data::read_clouds;
use ebp::figure::contact_sheet::{self, Tile};
use ebp::figure::save;
use serde::Serialize;

use super::arguments::InspectArguments;
use crate::failure::Failure;
use crate::{output, progress, show};

const COLUMNS: u32 = 8;

/// What was found.
#[derive(Debug, Default, Serialize)]
struct Report {
    sets: usize,
    elements: usize,
    dim: usize,
    smallest: usize,
    largest: usize,
    /// Lowest and highest number of each column; not finite ones left out.
    ranges: Vec<[f64; 2]>,
    not_finite: usize,
    /// Elements that repeat another one of the same set, to the last bit.
    repeated_elements: usize,
    /// Sets that repeat an earlier one, to the last bit.
    repeated_sets: usize,
    classes: Vec<(String, usize)>,
    splits: Vec<(&'static str, usize)>,
    normalised_by: Option<String>,
}

/// Sets of floats or of bytes, wherever they come from.
enum Data<'a> {
    Floats(Vec<&'a [f32]>, usize),
    Bytes(Vec<&'a [u8]>, usize, usize),
}

pub(super) fn run(arguments: &InspectArguments) -> Result<(), Failure> {
    if Cache::is_cache(&arguments.data) {
        let cache = Cache::open(&arguments.data)?;
        let meta = cache.meta();
        let data = match meta.numbers {
            Numbers::F32 => {
                Data::Floats((0..cache.len()).map(|i| cache.set(i)).collect(), meta.dim)
            }
            Numbers::U8 => {
                let width = meta.picture_size.map_or(1, |size| size[0]);
                Data::Bytes((0..cache.len()).map(|i| cache.picture(i)).collect(), meta.dim, width)
            }
        };
        let mut report = Report::new(&data);
        let number_of = |label: usize| {
            (0..cache.len()).filter(|&set| cache.label(set) == u32::try_from(label).ok()).count()
        };
        report.classes = meta
            .classes
            .iter()
            .enumerate()
            .map(|(label, class)| (class.clone(), number_of(label)))
            .collect();
        report.splits = Split::ALL
            .into_iter()
            .map(|split| (split.name(), cache.members(split).len()))
            .collect();
        report.normalised_by = Some(format!("{:?}", meta.normalised_by).to_lowercase());
        return finish(arguments, &data, &report);
    }
    if !is_sharded(&arguments.data) && detect(&arguments.data)? == SourceKind::Images {
        let read = || read_images(&arguments.data, &ImageOptions::default());
        let images = progress::during(false, "reading", read)?;
        let sets = (0..images.len()).map(|index| images.image(index)).collect();
        let data = Data::Bytes(sets, images.channels, images.width);
        return finish(arguments, &data, &Report::new(&data));
    }
    let clouds = progress::during(false, "reading", || read_clouds(&arguments.data))?;
    let sets = (0..clouds.num_clouds()).map(|index| clouds.cloud(index)).collect();
    let data = Data::Floats(sets, clouds.dim());
    finish(arguments, &data, &Report::new(&data))
}

fn finish(arguments: &InspectArguments, data: &Data<'_>, report: &Report) -> Result<(), Failure> {
    if let Some(sheet) = &arguments.sheet {
        let tiles: Vec<Tile<'_>> = match data {
            Data::Floats(sets, dim) => {
                sets.iter().map(|points| Tile::Cloud { points, dim: *dim }).collect()
            }
            Data::Bytes(sets, channels, width) => sets
                .iter()
                .map(|pixels| Tile::Picture { pixels, width: *width, channels: *channels })
                .collect(),
        };
        // Evenly through the data, because neighbours are often alike.
        let step = tiles.len().div_ceil(arguments.tiles).max(1);
        let chosen: Vec<Tile<'_>> = tiles.into_iter().step_by(step).collect();
        save(&contact_sheet::draw(&chosen, COLUMNS), sheet)?;
    }
    if arguments.json {
        return output::print_json(None, report);
    }
    let mut out = stdout();
    let Report { sets, elements, dim, smallest, largest, .. } = report;
    writeln!(out, "sets          {sets}, of {smallest} to {largest} elements")?;
    writeln!(out, "elements      {elements} of {dim} numbers")?;
    for (column, [low, high]) in report.ranges.iter().enumerate() {
        writeln!(out, "column {column}      {low} to {high}")?;
    }
    writeln!(out, "not finite    {}", report.not_finite)?;
    writeln!(out, "repeated      {} elements within their set", report.repeated_elements)?;
    writeln!(out, "              {} sets", report.repeated_sets)?;
    for (class, count) in &report.classes {
        writeln!(out, "class         {class}: {count}")?;
    }
    for (split, count) in &report.splits {
        writeln!(out, "split         {split}: {count}")?;
    }
    if let Some(name) = &report.normalised_by {
        writeln!(out, "normalised    {name}")?;
    }
    match &arguments.sheet {
        Some(sheet) => show::picture(sheet, false),
        None => Ok(()),
    }
}

impl Report {
    fn new(data: &Data<'_>) -> Self {
        match data {
            Data::Floats(sets, dim) => {
                Self::count(sets, *dim, |x| f64::from(*x), |x| x.to_bits(), true)
            }
            // Pixels repeat by nature; only whole pictures are compared.
            Data::Bytes(sets, dim, _) => {
                Self::count(sets, *dim, |x| f64::from(*x), |x| u32::from(*x), false)
            }
        }
    }

    fn count<T>(
        sets: &[&[T]],
        dim: usize,
        number: impl Fn(&T) -> f64,
        bits: impl Fn(&T) -> u32,
        has_elements: bool,
    ) -> Self {
        let dim = dim.max(1);
        let mut report = Self { sets: sets.len(), dim, smallest: usize::MAX, ..Self::default() };
        report.ranges = vec![[f64::INFINITY, f64::NEG_INFINITY]; dim];
        let mut seen_sets = HashSet::new();
        for set in sets {
            let count = set.len() / dim;
            report.elements += count;
            report.smallest = report.smallest.min(count);
            report.largest = report.largest.max(count);
            for (index, value) in set.iter().enumerate() {
                let value = number(value);
                if value.is_finite() {
                    let [low, high] = &mut report.ranges[index % dim];
                    (*low, *high) = (low.min(value), high.max(value));
                } else {
                    report.not_finite += 1;
                }
            }
            if has_elements {
                let mut seen = HashSet::with_capacity(count);
                for row in set.chunks_exact(dim) {
                    let row: Vec<u32> = row.iter().map(&bits).collect();
                    report.repeated_elements += usize::from(!seen.insert(row));
                }
            }
            // FNV-1a over all numbers: 64 bits tell sets apart well enough for a count.
            let hash = set.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, x| {
                (hash ^ u64::from(bits(x))).wrapping_mul(0x0100_0000_01b3)
            });
            report.repeated_sets += usize::from(!seen_sets.insert((count, hash)));
        }
        report
    }
}
