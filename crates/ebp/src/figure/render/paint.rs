//! The colours of points: of a number by a map, of a place as PointFlow has them, of a label.
//!
//! All are mixed with some white, because shading darkens them: dark ends of maps would show no form.

use super::super::colour::{self, ColourMap};
use super::picture::encoded;
use super::scene::{Placement, Up};
use crate::{Error, Result};

/// Share of white in every colour.
const WHITE_SHARE: f32 = 0.10;
/// What colours by place are brightened by: the light of PointFlow's scene, about 1.4 on what looks up, over the 1.1 here.
const GAIN: f32 = 1.25;
/// Where maps begin: what is darker shows no form.
const MAP_START: f64 = 0.10;

/// The colour of a share of a scale as spheres have it.
pub(super) fn mapped(map: ColourMap, share: f64) -> [u8; 3] {
    lighter(map.colour(MAP_START + (1.0 - MAP_START) * share).0)
}

fn lighter(colour: [u8; 3]) -> [u8; 3] {
    colour.map(|level| (f32::from(level) + WHITE_SHARE * (255.0 - f32::from(level))).round() as u8)
}

/// The lowest and highest of numbers; equal ones get a range around them.
///
/// # Errors
///
/// [`Error::Refused`] if none is finite.
pub fn range_of(values: impl Iterator<Item = f32>) -> Result<[f32; 2]> {
    let finite = values.filter(|value| value.is_finite());
    let [low, high] = finite.fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], value| {
        [low.min(value), high.max(value)]
    });
    if low > high {
        return Err(Error::refused("expected numbers for colours, found none that is finite"));
    }
    if low < high { Ok([low, high]) } else { Ok([low - 0.5, high + 0.5]) }
}

/// By a map from the low to the high end of a range; numbers that are not finite are grey.
pub fn by_value(values: &[f32], map: ColourMap, [low, high]: [f32; 2]) -> Vec<[u8; 3]> {
    let colour = |&value: &f32| {
        if !value.is_finite() {
            return [150; 3];
        }
        mapped(map, (f64::from(value) - f64::from(low)) / (f64::from(high) - f64::from(low)))
    };
    values.iter().map(colour).collect()
}

/// One of the coordinates of all points.
pub fn coordinate(points: &[f32], dim: usize, axis: usize) -> Vec<f32> {
    points.chunks_exact(dim.max(1)).map(|point| point.get(axis).copied().unwrap_or(0.0)).collect()
}

/// The coordinate that points up.
pub fn height_axis(dim: usize, up: Up) -> usize {
    if dim < 3 || up == Up::Y { 1 } else { 2 }
}

/// Red, green and blue light from the place in the cube around the cloud, as much of it everywhere: the place from 0
/// to 1 on every axis over its length, as in PointFlow's figures, whose lamp is brighter than the one here.
pub fn by_place(points: &[f32], dim: usize, placement: &Placement) -> Vec<[u8; 3]> {
    let colour = |point: &[f32]| {
        let share = placement.share(point).map(|number| number.max(0.001));
        let size = super::space::length(share);
        share.map(|number| (255.0 * encoded((GAIN * number / size).min(1.0))).round() as u8)
    };
    points.chunks_exact(dim.max(2)).map(colour).collect()
}

/// Whole numbers as colours that the colour-blind can tell apart; six of them, then again.
pub fn by_label(values: &[f32]) -> Vec<[u8; 3]> {
    values.iter().map(|&value| of_label(value)).collect()
}

/// The colour of a label.
pub fn of_label(value: f32) -> [u8; 3] {
    if value.is_finite() { lighter(colour::series(value.max(0.0) as usize).0) } else { [150; 3] }
}

/// A colour by name or as #rrggbb.
///
/// # Errors
///
/// [`Error::InvalidValue`] for anything else.
pub fn colour_named(text: &str) -> Result<[u8; 3]> {
    const NAMES: [(&str, [u8; 3]); 9] = [
        ("white", [255; 3]),
        ("black", [0; 3]),
        ("grey", [150; 3]),
        ("blue", [86, 148, 208]),
        ("orange", [238, 150, 60]),
        ("green", [70, 170, 130]),
        ("red", [214, 94, 80]),
        ("pink", [216, 140, 180]),
        ("sand", [222, 200, 160]),
    ];
    if let Some((_, colour)) = NAMES.iter().find(|(name, _)| *name == text) {
        return Ok(*colour);
    }
    let digits = text.strip_prefix('#').unwrap_or("");
    let number = u32::from_str_radix(digits, 16).ok();
    let is_whole = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if let Some(number) = number.filter(|_| is_whole) {
        return Ok([16, 8, 0].map(|shift| (number >> shift & 255) as u8));
    }
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    let expected = format!("#rrggbb or one of {}", names.join(", "));
    Err(Error::invalid("colour", expected, format!("`{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_a_range_have_the_ends_of_the_map() -> Result<()> {
        let values = [2.0, f32::NAN, 4.0, 3.0];
        let range = range_of(values.into_iter())?;
        assert_eq!(range.map(f32::to_bits), [2.0, 4.0].map(f32::to_bits));
        let colours = by_value(&values, ColourMap::Viridis, range);
        assert_eq!(colours[1], [150; 3]);
        assert_eq!(colours[0], mapped(ColourMap::Viridis, 0.0));
        assert_eq!(colours[2], mapped(ColourMap::Viridis, 1.0));
        assert_eq!(colours[3], mapped(ColourMap::Viridis, 0.5));
        let [low, high] = range_of([7.0].into_iter())?;
        assert!(low < 7.0 && high > 7.0);
        assert!(range_of([f32::NAN].into_iter()).is_err());
        Ok(())
    }

    /// The corner that is farthest along all axes is as red as it is green and blue; the one at x alone is red.
    #[test]
    fn places_have_the_colours_of_their_axes() -> Result<()> {
        let points = [0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0, 2.0, 2.0];
        let placement = Placement::around(&[&points], 3, Up::Z)?;
        let colours = by_place(&points, 3, &placement);
        // 1/√3 of the light, and the gain, in each.
        let grey = (255.0 * encoded(GAIN / 3.0_f32.sqrt())).round() as u8;
        assert_eq!(colours[2], [grey; 3]);
        assert_eq!(colours[0], colours[2], "a black corner would show no form");
        assert!(colours[1][0] == 255 && colours[1][1] < 20 && colours[1][2] < 20);
        // One point is in the middle.
        assert_eq!(
            by_place(&[5.0; 3], 3, &Placement::around(&[&[5.0; 3]], 3, Up::Z)?),
            [[grey; 3]]
        );
        Ok(())
    }

    #[test]
    fn colours_are_read_or_refused() -> Result<()> {
        assert_eq!(colour_named("#01fF80")?, [1, 255, 128]);
        assert_eq!(colour_named("black")?, [0; 3]);
        for wrong in ["#01f", "01ff80", "#01ff8g", "blau", "#+1ff80", ""] {
            assert!(colour_named(wrong).is_err(), "{wrong}");
        }
        Ok(())
    }
}
