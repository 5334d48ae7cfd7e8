//! Figures of completions, in the paper's two arrangements.

use crate::Result;
use crate::data::image::{Images, KnownPart};
use crate::figure::mosaic::{Mosaic, Row, Thumbnail};
use crate::model::{FigureColumns, PictureEvaluation, filled};
use crate::process::{Finish, LEVEL_CELL, LatentProcess, draw_in_rounds, picture_task};
use crate::rng::Stream;

/// Pictures whose columns stand side by side, and those of a figure with a column per part.
const DRAWN_ACROSS: usize = 12;
const DRAWN_DOWN: usize = 5;
/// Completions of each, and those in rounds where these are asked for.
const DRAWN_COMPLETIONS: usize = 3;
const DRAWN_IN_ROUNDS: usize = 2;

/// What is given, completions and originals.
pub(in crate::experiment) fn completion_mosaic(
    process: &dyn LatentProcess,
    images: &Images,
    settings: &PictureEvaluation,
) -> Result<Mosaic> {
    match settings.columns {
        FigureColumns::Pictures => by_picture(process, images, settings),
        FigureColumns::Parts => by_part(process, images, settings),
    }
}

/// A column per picture; for each part a group of rows, and the originals at the end.
fn by_picture(
    process: &dyn LatentProcess,
    images: &Images,
    settings: &PictureEvaluation,
) -> Result<Mosaic> {
    let count = DRAWN_ACROSS.min(images.len());
    let mut mosaic = Mosaic::default();
    for name in &settings.drawn {
        let part = KnownPart::parse(name)?;
        let mut rows = empty_rows(settings.rounds);
        for index in 0..count {
            add(process, images, (index, part), settings.rounds, &mut rows)?;
        }
        let title = match part {
            KnownPart::Random(count) => format!("{count} random pixels given"),
            KnownPart::AroundHole(side) => format!("all but a square of {side} given"),
            _ => format!("{name} half given"),
        };
        mosaic.groups.push((title, rows));
    }
    let originals = (0..count).map(|index| original(images, index)).collect();
    let row = Row { label: "original".into(), pictures: originals };
    mosaic.groups.push((String::new(), vec![row]));
    Ok(mosaic)
}

/// A column per part, from little to much, and the original; for each picture a group of rows.
fn by_part(
    process: &dyn LatentProcess,
    images: &Images,
    settings: &PictureEvaluation,
) -> Result<Mosaic> {
    let parts = &settings.drawn;
    let mut mosaic = Mosaic::default();
    for index in 0..DRAWN_DOWN.min(images.len()) {
        let mut rows = empty_rows(settings.rounds);
        for name in parts {
            let part = KnownPart::parse(name)?;
            add(process, images, (index, part), settings.rounds, &mut rows)?;
        }
        rows[0].pictures.push(original(images, index));
        let title = if index == 0 {
            format!("given: {}; last, the original", parts.join(", "))
        } else {
            String::new()
        };
        mosaic.groups.push((title, rows));
    }
    Ok(mosaic)
}

fn original(images: &Images, index: usize) -> Thumbnail {
    Thumbnail::new(images.width, images.channels, images.image(index))
}

/// What is given, and the completions.
fn empty_rows(rounds: usize) -> Vec<Row> {
    let labels = (1..=DRAWN_COMPLETIONS).map(|number| format!("completion {number}"));
    let in_rounds = if rounds > 0 { DRAWN_IN_ROUNDS } else { 0 };
    let more = (1..=in_rounds).map(|number| format!("in rounds {number}"));
    let labels = std::iter::once("given".to_owned()).chain(labels).chain(more);
    labels.map(|label| Row { label, pictures: Vec::new() }).collect()
}

/// One picture, from one part of it, at the end of the rows.
fn add(
    process: &dyn LatentProcess,
    images: &Images,
    (index, part): (usize, KnownPart),
    rounds: usize,
    rows: &mut [Row],
) -> Result<()> {
    let (width, channels) = (images.width, images.channels);
    let stream = Stream::new(0, "figure").child(index as u64);
    let mask = part.mask(width, images.height, stream.child(0));
    let task = picture_task(images, index, &mask, stream.child(1))?;
    let (context, target) = (&task.context, &task.target);
    let found =
        process.hypotheses(context, target, LEVEL_CELL, DRAWN_COMPLETIONS, stream.child(2))?;
    let known = images.image(index);
    rows[0].pictures.push(Thumbnail::shaded(known, &mask, width, channels));
    let numbers = target.len() * channels;
    let mut means = found.mean;
    for number in DRAWN_COMPLETIONS + 1..rows.len() {
        let stream = stream.child(2 + number as u64);
        let how = (rounds, Finish::Means);
        means.extend(draw_in_rounds(process, (context, target), LEVEL_CELL, how, stream)?);
    }
    for (row, means) in rows[1..].iter_mut().zip(means.chunks_exact(numbers)) {
        let levels = filled(known, &mask, channels, means);
        row.pictures.push(Thumbnail::new(width, channels, &levels));
    }
    Ok(())
}
