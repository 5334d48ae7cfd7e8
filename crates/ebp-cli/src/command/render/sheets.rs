//! From files to what is drawn: which clouds, how they are placed, and their colours.

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use ebp::data::CloudSource;
use ebp::data::cloud::cloud_files;
use ebp::data::mesh::read_vertex_colours;
use ebp::data::npy::{Array, read_npy};
use ebp::figure::render::{Key, Panel, Placement, Scene, Sheet, paint};
use ebp::model::read_cloud_inputs;
use miette::miette;

use super::RenderArguments;
use crate::failure::Failure;

/// Words of a key at most.
const MOST_WORDS: usize = 24;

/// A cloud that is drawn.
struct Chosen<'a> {
    number: usize,
    points: Cow<'a, [f32]>,
    label: String,
}

/// What colours are made of.
enum Paint {
    /// Along an axis.
    Axis(usize),
    Place,
    Values,
    Label,
    /// A colour for each point of SRC.
    Own(Vec<[u8; 3]>),
    One([u8; 3]),
}

/// The sheets to draw, one for each frame of steps that move, otherwise one; and whether clouds are placed
/// alike.
pub(super) fn read(
    arguments: &RenderArguments,
    moves: bool,
) -> Result<(Vec<Sheet>, bool), Failure> {
    let source = read_cloud_inputs(&arguments.sources)?;
    let dim = source.dim();
    if !(2..=3).contains(&dim) {
        return Err(Failure::Usage(miette!(
            help = "keep two or three columns",
            "expected clouds of 2 or 3 coordinates, found {dim}"
        )));
    }
    let chosen = choose(&source, arguments, moves)?;
    let starts = ranges_of(&source);
    let paint = paint_of(arguments, dim, starts.last().map_or(0, |last| last.end))?;
    let values = values_of(arguments, &paint, &starts)?;
    let is_alike = arguments.same_scale || arguments.steps;
    let all: Vec<&[f32]> = chosen.iter().map(|cloud| cloud.points.as_ref()).collect();
    let place = |clouds: &[&[f32]], numbers: Range<usize>| {
        Placement::around(clouds, dim, arguments.up).map_err(|error| {
            let names: Vec<String> =
                numbers.take(3).map(|at| format!("`{}`", source.name(chosen[at].number))).collect();
            let help =
                error.help().unwrap_or("`ebp data inspect` says what a file holds").to_owned();
            Failure::Usage(miette!(help = help, "{}: {error}", names.join(", ")))
        })
    };
    let common = if is_alike { Some(place(&all, 0..all.len())?) } else { None };
    let numbers = |cloud: &Chosen<'_>| -> Option<Vec<f32>> {
        match paint {
            Paint::Axis(axis) => Some(paint::coordinate(&cloud.points, dim, axis)),
            Paint::Values | Paint::Label => {
                values.as_ref().map(|values| values[starts[cloud.number].clone()].to_vec())
            }
            Paint::Place | Paint::Own(_) | Paint::One(_) => None,
        }
    };
    let numbers: Vec<Option<Vec<f32>>> = chosen.iter().map(numbers).collect();
    // One scale for values, and for heights where clouds compare.
    let whole_range = || paint::range_of(numbers.iter().flatten().flatten().copied());
    let range = match (&paint, arguments.range) {
        (_, Some(range)) => Some(range),
        (Paint::Values, None) => Some(whole_range()?),
        (Paint::Axis(_), None) if is_alike => Some(whole_range()?),
        _ => None,
    };
    let mut panels = Vec::new();
    for (at, (cloud, numbers)) in chosen.iter().zip(&numbers).enumerate() {
        let placement = match common {
            Some(common) => common,
            None => place(&all[at..=at], at..at + 1)?,
        };
        let numbers = numbers.as_deref().unwrap_or(&[]);
        let colours = match &paint {
            Paint::Axis(_) | Paint::Values => {
                let own = || paint::range_of(numbers.iter().copied());
                paint::by_value(numbers, arguments.map, range.map_or_else(own, Ok)?)
            }
            Paint::Label => paint::by_label(numbers),
            Paint::Place => paint::by_place(&cloud.points, dim, &placement),
            Paint::Own(colours) => colours[starts[cloud.number].clone()].to_vec(),
            Paint::One(colour) => vec![*colour],
        };
        let scene = Scene::new(&cloud.points, dim, &placement, colours, arguments.radius)?;
        panels.push(Panel { scene, label: cloud.label.clone() });
    }
    if is_alike && arguments.radius.is_none() {
        panels = with_one_radius(panels);
    }
    let key = key_of(arguments, &paint, range, &numbers);
    if arguments.steps && moves {
        let sheet = |panel| Sheet { panels: vec![panel], columns: 1, key: key.clone() };
        return Ok((panels.into_iter().map(sheet).collect(), true));
    }
    let columns = arguments.columns.unwrap_or_else(|| columns_for(panels.len(), arguments.steps));
    Ok((vec![Sheet { panels, columns, key }], is_alike))
}

fn choose<'a>(
    source: &'a CloudSource,
    arguments: &RenderArguments,
    moves: bool,
) -> Result<Vec<Chosen<'a>>, Failure> {
    let total = source.num_sets();
    if arguments.first >= total {
        return Err(Failure::Usage(miette!(
            help = "clouds are counted from 0",
            "expected `--first` below the number of clouds, {total}, found {}",
            arguments.first
        )));
    }
    let numbers: Vec<usize> = if arguments.steps {
        // The first and the last step, and evenly between them; all of them where they move.
        let left = total - arguments.first;
        let count = if moves { left } else { arguments.count.min(left) };
        let last = (count - 1).max(1);
        (0..count).map(|index| arguments.first + index * (left - 1) / last).collect()
    } else {
        (arguments.first..total).take(arguments.count).collect()
    };
    if arguments.label.len() > numbers.len() {
        return Err(Failure::Usage(miette!(
            "expected at most {} labels, one for each cloud, found {}",
            numbers.len(),
            arguments.label.len()
        )));
    }
    let label = |index: usize, number: usize| match arguments.label.get(index) {
        Some(label) => label.clone(),
        None if arguments.names => source.name(number),
        None if arguments.steps && !moves && arguments.label.is_empty() => format!("step {number}"),
        None => String::new(),
    };
    Ok(numbers
        .into_iter()
        .enumerate()
        .map(|(index, number)| Chosen {
            number,
            points: source.set(number),
            label: label(index, number),
        })
        .collect())
}

fn paint_of(arguments: &RenderArguments, dim: usize, num_points: usize) -> Result<Paint, Failure> {
    let default = if arguments.values.is_some() { "values" } else { "height" };
    let word = arguments.colour.as_deref().unwrap_or(default);
    let needs_values = matches!(word, "values" | "label");
    if needs_values && arguments.values.is_none() {
        return Err(Failure::Usage(miette!(
            help = "`--values FILE` names an array with a number for each point",
            "`--colour {word}` needs values, found none"
        )));
    }
    Ok(match word {
        "height" => Paint::Axis(paint::height_axis(dim, arguments.up)),
        "x" => Paint::Axis(0),
        "y" => Paint::Axis(1),
        "z" => Paint::Axis(2),
        "place" => Paint::Place,
        "values" => Paint::Values,
        "label" => Paint::Label,
        "own" => Paint::Own(own_colours(arguments, num_points)?),
        other => Paint::One(paint::colour_named(other).map_err(|error| {
            Failure::Usage(miette!(
                help = "`ebp render --help` lists what colours can mean",
                "expected height, x, y, z, place, values, label, own or a colour: {error}"
            ))
        })?),
    })
}

/// Which points of all are those of each cloud.
fn ranges_of(source: &CloudSource) -> Vec<Range<usize>> {
    let mut end = 0;
    let mut next = |number: usize| {
        let start = end;
        end += source.size(number);
        start..end
    };
    (0..source.num_sets()).map(&mut next).collect()
}

/// A number for each point, where colours are made of numbers.
fn values_of(
    arguments: &RenderArguments,
    paint: &Paint,
    clouds: &[Range<usize>],
) -> Result<Option<Vec<f32>>, Failure> {
    let Some(path) = arguments.values.as_ref().filter(|_| !matches!(paint, Paint::Own(_))) else {
        return Ok(None);
    };
    let Array { shape, values } = read_npy::<f32>(path)?;
    let total = clouds.last().map_or(0, |last| last.end);
    if values.len() != total {
        return Err(Failure::Usage(miette!(
            help = "all clouds of SRC need their values, also those that are not drawn; \
                    `--colour own` takes three numbers for each",
            "`{}` must hold a number for each of {total} points, found shape {shape:?}",
            path.display()
        )));
    }
    Ok(Some(values))
}

/// The colours that points bring along: three numbers each of `--values`, or what PLY files say.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clipped to a byte")]
fn own_colours(arguments: &RenderArguments, num_points: usize) -> Result<Vec<[u8; 3]>, Failure> {
    let Some(path) = &arguments.values else { return colours_of_files(arguments, num_points) };
    let Array { shape, values } = read_npy::<f32>(path)?;
    if shape.last() != Some(&3) || values.len() != 3 * num_points {
        return Err(Failure::Usage(miette!(
            help = "all clouds of SRC need their colours, also those that are not drawn",
            "`{}` must hold red, green and blue for each of {num_points} points, found shape {shape:?}",
            path.display()
        )));
    }
    // Shares of the brightest, or levels.
    let most = if values.iter().all(|&number| number <= 1.0) { 1.0 } else { 255.0 };
    let level = |number: &f32| (255.0 * number / most).round().clamp(0.0, 255.0) as u8;
    Ok(values.chunks_exact(3).map(|c| [level(&c[0]), level(&c[1]), level(&c[2])]).collect())
}

fn colours_of_files(
    arguments: &RenderArguments,
    num_points: usize,
) -> Result<Vec<[u8; 3]>, Failure> {
    let mut files: Vec<PathBuf> = Vec::new();
    for source in &arguments.sources {
        if source.is_dir() {
            files.extend(cloud_files(source)?);
        } else {
            files.push(source.clone());
        }
    }
    let mut colours = Vec::new();
    for file in &files {
        let is_ply = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("ply"));
        let found = if is_ply { read_vertex_colours(file)? } else { None };
        let found = found.ok_or_else(|| {
            Failure::Usage(miette!(
                help = "PLY files may have `red`, `green` and `blue`; colours of others are given as an array \
                        [points, 3] by `--values`",
                "`--colour own` needs a colour for each point, found none in `{}`",
                file.display()
            ))
        })?;
        colours.extend(found);
    }
    if colours.len() != num_points {
        return Err(Failure::Usage(miette!(
            "expected a colour for each of {num_points} points, found {}",
            colours.len()
        )));
    }
    Ok(colours)
}

/// Clouds that compare have spheres of one size: the median.
fn with_one_radius(panels: Vec<Panel>) -> Vec<Panel> {
    let mut radii: Vec<f32> = panels.iter().map(|panel| panel.scene.radius()).collect();
    radii.sort_by(f32::total_cmp);
    let Some(&median) = radii.get(radii.len() / 2) else { return panels };
    let change = |panel: Panel| Panel { scene: panel.scene.with_radius(median), ..panel };
    panels.into_iter().map(change).collect()
}

fn key_of(
    arguments: &RenderArguments,
    paint: &Paint,
    range: Option<[f32; 2]>,
    numbers: &[Option<Vec<f32>>],
) -> Option<Key> {
    match (paint, range) {
        (Paint::Values, Some(range)) => {
            Some(Key::Bar { map: arguments.map, range, name: arguments.name.clone() })
        }
        (Paint::Label, _) => {
            let mut labels: Vec<f32> = numbers.iter().flatten().flatten().copied().collect();
            labels.retain(|label| label.is_finite());
            labels.sort_by(f32::total_cmp);
            labels.dedup();
            let word =
                |label: &f32| (format!("{} {label}", arguments.name), paint::of_label(*label));
            let words: Vec<_> = labels.iter().take(MOST_WORDS).map(word).collect();
            (!words.is_empty()).then_some(Key::Words(words))
        }
        _ => None,
    }
}

/// A film strip is a row; others are a little wider than high.
fn columns_for(count: usize, is_strip: bool) -> usize {
    if is_strip || count <= 4 {
        return count.max(1);
    }
    let rows = (1..count).take_while(|rows| 2 * rows * rows <= count).last().unwrap_or(1);
    count.div_ceil(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_a_little_wider_than_high() {
        let columns: Vec<usize> =
            [1, 4, 5, 8, 12, 16, 24, 48].map(|count| columns_for(count, false)).to_vec();
        assert_eq!(columns, [1, 4, 5, 4, 6, 8, 8, 12]);
        assert_eq!(columns_for(9, true), 9);
    }
}
