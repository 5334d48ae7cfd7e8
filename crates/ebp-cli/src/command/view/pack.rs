//! Numbers as text: places in 16 bits a coordinate, values in 8, both in base64 (RFC 4648).
//!
//! ```text
//! place   q = round(65535 (x − low)/(high − low)), low byte first; an error of half of (high − low)/65535
//! value   q = round(254 (v − low)/(high − low)), cut at the ends; 255: not known
//! ```
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers are cut to the range before they become whole"
)]

use ebp::experiment::album::{CloudAlbum, CloudGroup, CloudPath, CloudRows};
use serde::Serialize;

/// Of the values a colour tells apart, so many at either end share the last one.
const CUT: f64 = 0.02;

/// Clouds as the page reads them.
#[derive(Debug, Serialize)]
pub(super) struct PackedClouds<'a> {
    dim: usize,
    /// The box of all points.
    low: [f32; 3],
    high: [f32; 3],
    /// The cube that is looked at.
    centre: [f32; 3],
    span: f32,
    places: String,
    values: String,
    value_range: [f32; 2],
    value_name: &'static str,
    counts: Vec<usize>,
    names: Vec<&'a str>,
    has_values: Vec<bool>,
    groups: &'a [CloudGroup],
    rows: &'a [CloudRows],
    paths: &'a [CloudPath],
    blends: &'a [CloudPath],
}

/// Where a point is seen: right, away, up. Two numbers are those of a plane that stands upright.
pub(super) fn place(point: &[f32]) -> [f32; 3] {
    let at = |axis: usize| point.get(axis).copied().unwrap_or(0.0);
    match point.len() {
        0..=2 => [at(0), 0.0, at(1)],
        _ => [at(0), at(1), at(2)],
    }
}

/// The smallest box around points; that of nothing is a unit cube.
pub(super) fn bounds(points: impl Iterator<Item = [f32; 3]>) -> ([f32; 3], [f32; 3]) {
    let start = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
    let (low, high) = points.fold(start, |(mut low, mut high), point| {
        for axis in 0..3 {
            low[axis] = low[axis].min(point[axis]);
            high[axis] = high[axis].max(point[axis]);
        }
        (low, high)
    });
    if low[0] > high[0] { ([-1.0; 3], [1.0; 3]) } else { (low, high) }
}

impl<'a> PackedClouds<'a> {
    pub(super) fn new(album: &'a CloudAlbum) -> Self {
        let dim = album.dim.max(1);
        let clouds = &album.clouds;
        let places = |of: std::ops::Range<usize>| {
            clouds[of].iter().flat_map(move |cloud| cloud.points.chunks_exact(dim).map(place))
        };
        let (low, high) = bounds(places(0..clouds.len()));
        // What the eye is set to: samples, not the noise that points come from.
        let seen = album
            .groups
            .first()
            .map_or(0..clouds.len(), |group| group.first..group.first + group.count);
        let (from, to) = bounds(places(seen.clone()));
        let centre: [f32; 3] = std::array::from_fn(|axis| 0.5 * (from[axis] + to[axis]));
        let half = (0..3).map(|axis| 0.5 * (to[axis] - from[axis])).fold(0.0, f32::max);
        let known: Vec<f32> =
            clouds[seen].iter().flat_map(|cloud| cloud.log_densities.iter().copied()).collect();
        let range = range_of(known);
        let mut bytes = Vec::new();
        for point in places(0..clouds.len()) {
            for axis in 0..3 {
                let size = (high[axis] - low[axis]).max(f32::MIN_POSITIVE);
                let share = ((point[axis] - low[axis]) / size).clamp(0.0, 1.0);
                bytes.extend(((share * 65535.0).round() as u16).to_le_bytes());
            }
        }
        let mut values = Vec::new();
        for cloud in clouds {
            let count = cloud.points.len() / dim;
            let width = (range[1] - range[0]).max(f32::MIN_POSITIVE);
            let byte = |&value: &f32| {
                if value.is_nan() {
                    return 255;
                }
                (254.0 * ((value - range[0]) / width).clamp(0.0, 1.0)).round() as u8
            };
            let found = cloud.log_densities.iter().map(byte).chain(std::iter::repeat(255));
            values.extend(found.take(count));
        }
        Self {
            dim,
            low,
            high,
            centre,
            span: if half > 0.0 { half } else { 1.0 },
            places: base64(&bytes),
            values: base64(&values),
            value_range: range,
            value_name: "log density, nats",
            counts: clouds.iter().map(|cloud| cloud.points.len() / dim).collect(),
            names: clouds.iter().map(|cloud| cloud.name.as_str()).collect(),
            has_values: clouds.iter().map(|cloud| !cloud.log_densities.is_empty()).collect(),
            groups: &album.groups,
            rows: &album.rows,
            paths: &album.paths,
            blends: &album.blends,
        }
    }
}

/// The range that colours tell apart: without the most extreme values.
fn range_of(mut values: Vec<f32>) -> [f32; 2] {
    values.retain(|value| value.is_finite());
    values.sort_by(f32::total_cmp);
    let cut = (CUT * values.len() as f64) as usize;
    match values.as_slice() {
        [] => [0.0, 1.0],
        all => [all[cut], all[all.len() - 1 - cut]],
    }
}

/// Bytes as text.
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use ebp::experiment::album::AlbumCloud;

    use super::*;

    /// The examples of RFC 4648, section 10.
    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn places_and_values_by_hand() {
        let cloud = AlbumCloud {
            name: "one".into(),
            points: vec![0.0, 0.0, 0.0, 2.0, 4.0, 8.0],
            log_densities: vec![-1.0, 3.0],
        };
        let mut album = CloudAlbum { dim: 3, ..CloudAlbum::default() };
        album.clouds.push(cloud);
        let packed = PackedClouds::new(&album);
        assert_eq!(packed.places, base64(&[0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255]));
        assert_eq!(packed.values, base64(&[0, 254]));
        assert_eq!((packed.centre, packed.span), ([1.0, 2.0, 4.0], 4.0));
        assert_eq!(packed.value_range.map(f32::to_bits), [-1.0_f32, 3.0].map(f32::to_bits));
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "places are copied")]
    fn flat_points_stand_upright() {
        assert_eq!(place(&[1.0, 2.0]), [1.0, 0.0, 2.0]);
        assert_eq!(place(&[1.0, 2.0, 3.0, 4.0]), [1.0, 2.0, 3.0]);
    }
}
