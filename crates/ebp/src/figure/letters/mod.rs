//! The letters of figures, as outlines: those of Arimo, which are as wide as Arial's.
//!
//! `tools/letters/outlines.py` writes the file and says what is in it.

/// Numbers of 16 bits, little endian.
const OUTLINES: &[u8] = include_bytes!("outlines.bin");
/// What stands before the table, and what a letter has in it, in numbers.
const HEADER: usize = 3;
const ENTRY: usize = 4;
/// The height of capitals and digits, as a share of a text's size.
pub(super) const CAPITAL: f64 = 1409.0 / 2048.0;

/// Closed polygons.
pub(super) type Contours = Vec<Vec<[f64; 2]>>;

/// The width of a line of text of size 1.
pub(super) fn width(text: &str) -> f64 {
    let advances = text.chars().map(|letter| f64::from(number(entry(letter) + 1)));
    advances.sum::<f64>() / units()
}

/// The outlines of a line of text that begins at 0 on the line it stands on, x to the right and y down.
/// Curves become chords that are nowhere further off than `tolerance`.
pub(super) fn contours(text: &str, size: f64, tolerance: f64) -> Contours {
    let scale = size / units();
    let mut found = Vec::new();
    let mut left = 0.0;
    for letter in text.chars() {
        let entry = entry(letter);
        let place = |x: u16, y: u16| {
            let (x, y) = (f64::from(x.cast_signed() >> 1), f64::from(y.cast_signed()));
            [scale * (left + x), -scale * y]
        };
        let begin = usize::from(number(entry + 2)) | usize::from(number(entry + 3)) << 16;
        let mut at = HEADER + ENTRY * count() + begin;
        let num_contours = number(at);
        at += 1;
        for _ in 0..num_contours {
            let num_points = usize::from(number(at));
            at += 1;
            let points = (0..num_points).map(|point| {
                let (x, y) = (number(at + 2 * point), number(at + 2 * point + 1));
                (place(x, y), x & 1 == 1)
            });
            found.push(flattened(&points.collect::<Vec<_>>(), tolerance));
            at += 2 * num_points;
        }
        left += f64::from(number(entry + 1));
    }
    found
}

/// A contour of points that lie on it or steer it: between two that steer lies one in their middle.
fn flattened(points: &[([f64; 2], bool)], tolerance: f64) -> Vec<[f64; 2]> {
    let middle = |a: [f64; 2], b: [f64; 2]| [0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1])];
    let Some(&(first, is_on)) = points.first() else { return Vec::new() };
    let last = points[points.len() - 1];
    let start = match (is_on, last.1) {
        (true, _) => first,
        (false, true) => last.0,
        (false, false) => middle(first, last.0),
    };
    let mut contour = vec![start];
    let mut here = start;
    let mut steering: Option<[f64; 2]> = None;
    for &(point, is_on) in points.iter().chain([&(start, true)]) {
        match (steering, is_on) {
            (None, true) => contour.push(point),
            (None, false) => {}
            (Some(by), true) => bend(&mut contour, here, by, point, tolerance),
            (Some(by), false) => bend(&mut contour, here, by, middle(by, point), tolerance),
        }
        here = match (steering, is_on) {
            (_, true) => point,
            (Some(by), false) => middle(by, point),
            (None, false) => here,
        };
        steering = (!is_on).then_some(point);
    }
    contour
}

/// A quadratic curve is at most |a − 2b + c| / 4 away from its chord, a square less for each part.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 64")]
fn bend(contour: &mut Vec<[f64; 2]>, a: [f64; 2], b: [f64; 2], c: [f64; 2], tolerance: f64) {
    let [x, y] = [0, 1].map(|axis| a[axis] - 2.0 * b[axis] + c[axis]);
    let parts = (x.hypot(y) / (4.0 * tolerance)).sqrt().ceil().clamp(1.0, 64.0) as u32;
    for part in 1..=parts {
        let t = f64::from(part) / f64::from(parts);
        contour.push([0, 1].map(|axis| {
            a[axis] * (1.0 - t) * (1.0 - t) + 2.0 * b[axis] * t * (1.0 - t) + c[axis] * t * t
        }));
    }
}

/// A number of the file; 0 beyond its end.
fn number(index: usize) -> u16 {
    OUTLINES.get(2 * index..2 * index + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]))
}

fn units() -> f64 {
    f64::from(number(0))
}

fn count() -> usize {
    usize::from(number(2))
}

/// Where a letter stands in the table: a question mark for those it lacks, a blank for what cannot be seen.
fn entry(letter: char) -> usize {
    let shown = if letter.is_whitespace() || letter.is_control() { ' ' } else { letter };
    find(shown).or_else(|| find('?')).unwrap_or(HEADER)
}

fn find(letter: char) -> Option<usize> {
    let code = u16::try_from(u32::from(letter)).ok()?;
    let (mut low, mut high) = (0, count());
    while low < high {
        let middle = low.midpoint(high);
        let entry = HEADER + ENTRY * middle;
        match number(entry).cmp(&code) {
            std::cmp::Ordering::Equal => return Some(entry),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_whole() {
        let codes: Vec<u16> = (0..count()).map(|k| number(HEADER + ENTRY * k)).collect();
        assert!(codes.is_sorted() && codes.len() > 400);
        assert!((f64::from(number(1)) / units() - CAPITAL).abs() < 1e-9);
        let needed = ('!'..='~').chain("−·±×²³⁻⁰¹⁴⁵⁶⁷⁸⁹θκλμστφωℓ∞≤≥–…ₓäöüéñßжя".chars());
        let lacking: String = needed.filter(|letter| find(*letter).is_none()).collect();
        assert_eq!(lacking, "");
        assert_eq!((entry('漢'), entry('\n')), (entry('?'), entry(' ')));
    }

    /// Advances of Arial, in 2048ths: H 1479, i 455, digits 1139, blank 569.
    #[test]
    fn texts_are_as_wide_as_arial_has_them() {
        for (text, units) in
            [("", 0.0), ("Hi", 1934.0), ("0.25", 3.0 * 1139.0 + 569.0), (" ", 569.0)]
        {
            assert!((width(text) - units / 2048.0).abs() < 1e-12, "{text}");
        }
    }

    /// The area of a polygon, positive if it runs clockwise on a page whose y points down.
    fn area(contour: &[[f64; 2]]) -> f64 {
        let next = contour.iter().cycle().skip(1);
        contour.iter().zip(next).map(|(a, b)| 0.5 * (a[0] * b[1] - b[0] * a[1])).sum()
    }

    #[test]
    fn outlines_stand_on_the_line_and_reach_their_heights() {
        let bounds = |text: &str, axis: usize| {
            let all = contours(text, 100.0, 0.01).concat();
            let low = all.iter().map(|point| point[axis]).fold(f64::INFINITY, f64::min);
            (low, all.iter().map(|point| point[axis]).fold(f64::NEG_INFINITY, f64::max))
        };
        assert!((bounds("H", 1).0 + 100.0 * CAPITAL).abs() < 0.01 && bounds("H", 1).1.abs() < 0.01);
        assert!(bounds("g", 1).1 > 18.0);
        let (left, right) = bounds("HH", 0);
        assert!(left > 0.0 && right < 100.0 * width("HH"));
        assert!(contours(" ", 10.0, 0.1).is_empty());
        // The hole of an o runs the other way; finer chords change its area little.
        let fine = contours("o", 100.0, 0.001);
        assert!(fine.len() == 2 && area(&fine[0]) * area(&fine[1]) < 0.0);
        for (fine, coarse) in fine.iter().zip(contours("o", 100.0, 0.1)) {
            assert!((area(fine) - area(&coarse)).abs() < 0.1 * 200.0);
        }
    }
}
