//! Built-in pictures: digits drawn with a pen, no two alike.
//!
//! Every digit is one or two strokes through a few points, which are shifted, slanted, stretched
//! and turned at random and drawn with a pen of random width. Fours and sevens and ones come in two
//! ways of writing. Digit `number` under a seed is always the same, whatever others are drawn.
//!
//! They are unlimited and nobody's property, which makes them the default for pictures. Seen in
//! part they are ambiguous, as handwriting is: an upper arc may become a 0, 2, 3, 8 or 9.

use rayon::prelude::*;

use super::image::Images;
use crate::rng::Stream;
use crate::{Error, Result};

/// The smallest side of a picture in which a digit can be told.
const LEAST_SIDE: usize = 8;
/// Points between two points of a curve.
const SUBDIVISIONS: usize = 8;

/// One stroke through points in the unit square, x to the right and y down.
#[derive(Clone, Copy)]
struct Stroke {
    is_curved: bool,
    points: &'static [[f64; 2]],
}

const fn curve(points: &'static [[f64; 2]]) -> Stroke {
    Stroke { is_curved: true, points }
}

const fn lines(points: &'static [[f64; 2]]) -> Stroke {
    Stroke { is_curved: false, points }
}

const ZERO: [f64; 2] = [0.5, 0.0];

/// The ways of writing each digit.
const GLYPHS: [&[&[Stroke]]; 10] = [
    &[&[curve(&[
        ZERO,
        [0.12, 0.17],
        [0.0, 0.52],
        [0.14, 0.86],
        [0.5, 1.0],
        [0.86, 0.85],
        [1.0, 0.5],
        [0.87, 0.15],
        ZERO,
    ])]],
    &[&[lines(&[[0.5, 0.0], [0.5, 1.0]])], &[lines(&[[0.2, 0.22], [0.55, 0.0], [0.55, 1.0]])]],
    &[&[
        curve(&[[0.05, 0.25], [0.3, 0.02], [0.75, 0.05], [0.9, 0.3], [0.55, 0.65], [0.05, 1.0]]),
        lines(&[[0.05, 1.0], [0.95, 0.98]]),
    ]],
    &[&[
        curve(&[[0.1, 0.1], [0.5, 0.0], [0.86, 0.2], [0.4, 0.47]]),
        curve(&[[0.4, 0.47], [0.95, 0.72], [0.55, 1.0], [0.05, 0.88]]),
    ]],
    &[
        &[lines(&[[0.72, 1.0], [0.72, 0.0], [0.05, 0.65], [0.98, 0.65]])],
        &[lines(&[[0.15, 0.0], [0.08, 0.52], [0.92, 0.5]]), lines(&[[0.78, 0.1], [0.74, 1.0]])],
    ],
    &[&[
        lines(&[[0.88, 0.0], [0.2, 0.02], [0.14, 0.45]]),
        curve(&[[0.14, 0.45], [0.6, 0.36], [0.92, 0.65], [0.6, 0.99], [0.08, 0.92]]),
    ]],
    &[&[curve(&[
        [0.8, 0.02],
        [0.35, 0.25],
        [0.08, 0.66],
        [0.32, 0.98],
        [0.8, 0.9],
        [0.88, 0.63],
        [0.55, 0.48],
        [0.12, 0.68],
    ])]],
    &[
        &[lines(&[[0.05, 0.02], [0.95, 0.02], [0.4, 1.0]])],
        &[lines(&[[0.05, 0.02], [0.95, 0.02], [0.4, 1.0]]), lines(&[[0.3, 0.5], [0.85, 0.5]])],
    ],
    &[&[curve(&[
        [0.5, 0.47],
        [0.15, 0.25],
        [0.5, 0.0],
        [0.85, 0.25],
        [0.5, 0.47],
        [0.1, 0.76],
        [0.5, 1.0],
        [0.9, 0.76],
        [0.5, 0.47],
    ])]],
    &[&[curve(&[
        [0.88, 0.28],
        [0.55, 0.52],
        [0.14, 0.34],
        [0.45, 0.02],
        [0.84, 0.12],
        [0.88, 0.4],
        [0.78, 0.7],
        [0.5, 1.0],
    ])]],
];

/// Digits `first`, `first + 1`, … as pictures of `side` × `side` grey pixels, with their labels.
///
/// # Errors
///
/// [`Error::InvalidValue`] if a digit could not be told in so few pixels, or would be larger than
/// 1024.
pub fn draw_digits(side: usize, first: u64, count: usize, seed: u64) -> Result<(Images, Vec<u32>)> {
    if !(LEAST_SIDE..=1024).contains(&side) {
        return Err(Error::invalid("side", format!("from {LEAST_SIDE} to 1024"), side));
    }
    let stream = Stream::new(seed, "digits");
    let numbers = first..first + count as u64;
    let drawn: Vec<(Vec<u8>, u32)> =
        numbers.clone().into_par_iter().map(|number| digit(side, stream.child(number))).collect();
    let labels = drawn.iter().map(|(_, label)| *label).collect();
    let pixels = drawn.iter().flat_map(|(pixels, _)| pixels).copied().collect();
    let names = numbers.map(|number| number.to_string()).collect();
    Ok((Images::new(side, side, 1, pixels, names)?, labels))
}

/// Uniforms one after the other.
struct Dice {
    stream: Stream,
    next: u64,
}

impl Dice {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        let mut unit = [0.0];
        self.stream.fill_uniform(0, self.next, &mut unit);
        self.next += 1;
        low + (high - low) * f64::from(unit[0])
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
    fn below(&mut self, count: usize) -> usize {
        (self.between(0.0, count as f64) as usize).min(count - 1)
    }
}

fn digit(side: usize, stream: Stream) -> (Vec<u8>, u32) {
    let mut dice = Dice { stream, next: 0 };
    let label = dice.below(10);
    let ways = GLYPHS[label];
    let strokes = ways[dice.below(ways.len())];
    let (tall, slant, turn) =
        (dice.between(0.5, 0.62), dice.between(-0.1, 0.35), dice.between(-0.12, 0.12));
    let wide = tall * dice.between(0.5, 0.85);
    let centre = [dice.between(0.46, 0.54), dice.between(0.47, 0.53)];
    let radius = dice.between(0.03, 0.06);
    let brightness = dice.between(0.85, 1.0);
    let (sine, cosine) = turn.sin_cos();
    let mut segments = Vec::new();
    for stroke in strokes {
        let placed: Vec<[f64; 2]> = stroke
            .points
            .iter()
            .map(|[x, y]| {
                let (x, y) = (x + dice.between(-0.07, 0.07), y + dice.between(-0.05, 0.05));
                let (x, y) = (wide * (x - 0.5) - slant * tall * (y - 0.5), tall * (y - 0.5));
                [centre[0] + cosine * x - sine * y, centre[1] + sine * x + cosine * y]
            })
            .collect();
        let path = if stroke.is_curved { smooth(&placed) } else { placed };
        segments.extend(path.windows(2).map(|pair| [pair[0], pair[1]]));
    }
    let pixel = 1.0 / side as f64;
    let level = |place: usize| {
        let at = [((place % side) as f64 + 0.5) * pixel, ((place / side) as f64 + 0.5) * pixel];
        let nearest =
            segments.iter().map(|&[a, b]| distance(at, a, b)).fold(f64::INFINITY, f64::min);
        // Ink within the pen, fading over one and a half pixels.
        let ink = ((radius - nearest) / (1.5 * pixel) + 0.5).clamp(0.0, 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        let level = (255.0 * brightness * ink).round() as u8;
        level
    };
    let label = u32::try_from(label).unwrap_or(0);
    ((0..side * side).map(level).collect(), label)
}

/// A curve through all points (Catmull and Rom, 1974), as short lines.
fn smooth(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let at = |index: usize| points[index.min(points.len() - 1)];
    let mut path = vec![points[0]];
    for index in 0..points.len() - 1 {
        let [p, q, r, s] = [at(index.saturating_sub(1)), at(index), at(index + 1), at(index + 2)];
        for step in 1..=SUBDIVISIONS {
            let u = step as f64 / SUBDIVISIONS as f64;
            path.push([0, 1].map(|axis| {
                // ½ (2q + (r − p) u + (2p − 5q + 4r − s) u² + (3q − p − 3r + s) u³)
                let [p, q, r, s] = [p[axis], q[axis], r[axis], s[axis]];
                let (a, b) = (2.0 * p - 5.0 * q + 4.0 * r - s, 3.0 * q - p - 3.0 * r + s);
                0.5 * (2.0 * q + u * ((r - p) + u * (a + u * b)))
            }));
        }
    }
    path
}

/// From a place to the segment from a to b.
fn distance(place: [f64; 2], a: [f64; 2], b: [f64; 2]) -> f64 {
    let along = [b[0] - a[0], b[1] - a[1]];
    let away = [place[0] - a[0], place[1] - a[1]];
    let length = along[0] * along[0] + along[1] * along[1];
    let share = if length > 0.0 { (along[0] * away[0] + along[1] * away[1]) / length } else { 0.0 };
    let share = share.clamp(0.0, 1.0);
    (away[0] - share * along[0]).hypot(away[1] - share * along[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digit_depends_on_seed_and_number_alone() {
        let (all, labels) = draw_digits(16, 0, 40, 3).unwrap();
        let (some, same) = draw_digits(16, 30, 10, 3).unwrap();
        assert_eq!(some.image(0), all.image(30));
        assert_eq!(same, labels[30..]);
        assert_ne!(all.image(0), draw_digits(16, 0, 1, 4).unwrap().0.image(0));
        let kinds: std::collections::BTreeSet<_> = labels.iter().collect();
        assert!(kinds.len() >= 8, "{kinds:?}");
        assert!(draw_digits(4, 0, 1, 0).is_err());
    }

    /// Black ground, white ink and little between: the atoms that a Gaussian cannot have.
    #[test]
    fn digits_are_ink_on_a_black_ground() {
        let (images, _) = draw_digits(28, 0, 50, 1).unwrap();
        for index in 0..images.len() {
            let pixels = images.image(index);
            let black = pixels.iter().filter(|level| **level < 1).count();
            let white = pixels.iter().filter(|level| **level > 180).count();
            assert!(black > 400 && white > 10, "{index}: {black} {white}");
            let edge = (0..28).map(|k| pixels[k].max(pixels[27 * 28 + k])).max();
            assert_eq!(edge, Some(0), "{index} leaves the picture");
        }
    }
}
