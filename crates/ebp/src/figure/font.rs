//! A small font of its own: dots on a grid of 5 × 9, smoothed when it is drawn.
//!
//! Each glyph is nine rows of five bits, capitals in the upper seven rows. Scale2x (Mazzoleni,
//! 2001) rounds the corners, twice, and the result is averaged down to the size asked for.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of text are small and positive"
)]

const ROWS: usize = 9;
const COLUMNS: usize = 5;
/// The rows of a capital letter: what a text's size means.
const CAPITAL_ROWS: f64 = 7.0;
/// Twice doubled.
const FINE: usize = 4;
/// The widths of a blank and of what stands between letters, in dots.
const BLANK: usize = 2;
const GAP: usize = 1;

/// A line of text as shares of ink per pixel, row-major `[height, width]`.
pub(super) struct Rendered {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) cover: Vec<f64>,
}

/// The width of `text` in units of its size, before rounding to pixels.
pub(super) fn relative_width(text: &str) -> f64 {
    let dots: usize = text.chars().map(|character| dots_of(character) + GAP).sum();
    dots.saturating_sub(GAP) as f64 / CAPITAL_ROWS
}

/// Draws one line with capitals of `size` pixels.
pub(super) fn render(text: &str, size: f64) -> Rendered {
    let fine = fine_grid(text);
    let dot = (size / CAPITAL_ROWS).max(0.5);
    let width = (fine.width as f64 / FINE as f64 * dot).round().max(1.0) as usize;
    let height = (ROWS as f64 * dot).round() as usize;
    let mut cover = Vec::with_capacity(width * height);
    for row in 0..height {
        for column in 0..width {
            cover.push(fine.mean(column, row, width, height));
        }
    }
    // The descenders' two rows hang below: the middle of the text is that of its capitals.
    let below = (2.0 * dot).round() as usize;
    let mut padded = vec![0.0; below * width];
    padded.append(&mut cover);
    Rendered { width: width as u32, height: (height + below) as u32, cover: padded }
}

/// Dots, set or not.
struct Grid {
    width: usize,
    dots: Vec<bool>,
}

impl Grid {
    fn height(&self) -> usize {
        self.dots.len() / self.width.max(1)
    }

    /// A dot, blank beyond the edges.
    fn get(&self, column: usize, row: usize) -> bool {
        column < self.width && row < self.height() && self.dots[row * self.width + column]
    }

    /// Scale2x: a corner of a dot takes the colour of its two neighbours where they agree and the
    /// other two do not.
    fn doubled(&self) -> Self {
        let (width, height) = (2 * self.width, 2 * self.height());
        let mut dots = vec![false; width * height];
        for row in 0..self.height() {
            for column in 0..self.width {
                let here = self.get(column, row);
                let up = row > 0 && self.get(column, row - 1);
                let left = column > 0 && self.get(column - 1, row);
                let down = self.get(column, row + 1);
                let right = self.get(column + 1, row);
                let pick = |a: bool, b: bool, c: bool, d: bool| {
                    if a == b && a != c && b != d { a } else { here }
                };
                let at = 2 * row * width + 2 * column;
                dots[at] = pick(left, up, down, right);
                dots[at + 1] = pick(up, right, left, down);
                dots[at + width] = pick(down, left, right, up);
                dots[at + width + 1] = pick(right, down, up, left);
            }
        }
        Self { width, dots }
    }

    /// The share of ink in cell (`column`, `row`) of a coarser grid of `width` × `height`.
    fn mean(&self, column: usize, row: usize, width: usize, height: usize) -> f64 {
        const SAMPLES: usize = 4;
        let place = |cell: usize, k: usize, from: usize, to: usize| {
            let middle = cell as f64 + (k as f64 + 0.5) / SAMPLES as f64;
            (middle / from as f64 * to as f64) as usize
        };
        let mut count = 0;
        for i in 0..SAMPLES {
            for j in 0..SAMPLES {
                let x = place(column, i, width, self.width);
                let y = place(row, j, height, self.height());
                count += usize::from(self.get(x, y));
            }
        }
        count as f64 / (SAMPLES * SAMPLES) as f64
    }
}

/// The text on the finest grid.
fn fine_grid(text: &str) -> Grid {
    let total: usize = text.chars().map(|character| dots_of(character) + GAP).sum();
    let mut grid = Grid { width: total.max(1), dots: vec![false; total.max(1) * ROWS] };
    let mut start = 0;
    for character in text.chars() {
        let (rows, left) = (glyph(character), left_edge(character));
        for (row, bits) in rows.iter().enumerate() {
            for column in 0..dots_of(character) {
                let shift = COLUMNS.checked_sub(1 + left + column);
                let is_set = shift.is_some_and(|shift| bits >> shift & 1 == 1);
                grid.dots[row * grid.width + start + column] = is_set;
            }
        }
        start += dots_of(character) + GAP;
    }
    grid.doubled().doubled()
}

/// A character's rows; a question mark for what the font lacks.
fn glyph(character: char) -> [u8; ROWS] {
    if character.is_whitespace() {
        return [0; ROWS];
    }
    let place = GLYPHS.binary_search_by_key(&character, |entry| entry.0);
    let unknown = || GLYPHS.iter().find(|entry| entry.0 == '?').map_or([31; ROWS], |entry| entry.1);
    place.map_or_else(|_| unknown(), |index| GLYPHS[index].1)
}

/// The bits that any row sets.
fn ink(character: char) -> u8 {
    glyph(character).iter().fold(0, |all, row| all | row)
}

fn left_edge(character: char) -> usize {
    let ink = ink(character);
    if is_digit_like(character) || ink == 0 {
        return 0;
    }
    ink.leading_zeros() as usize - (8 - COLUMNS)
}

/// Columns from the first dot to the last; digits keep their full width, so that numbers align.
fn dots_of(character: char) -> usize {
    let ink = ink(character);
    if ink == 0 {
        return BLANK;
    }
    if is_digit_like(character) {
        return COLUMNS;
    }
    COLUMNS - left_edge(character) - ink.trailing_zeros() as usize
}

fn is_digit_like(character: char) -> bool {
    character.is_ascii_digit()
}

/// Sorted by character.
#[rustfmt::skip]
const GLYPHS: [(char, [u8; 9]); 106] = [
    ('!', [4, 4, 4, 4, 4, 0, 4, 0, 0]),
    ('"', [10, 10, 10, 0, 0, 0, 0, 0, 0]),
    ('#', [10, 10, 31, 10, 31, 10, 10, 0, 0]),
    ('$', [4, 15, 20, 14, 5, 30, 4, 0, 0]),
    ('%', [25, 25, 2, 4, 8, 19, 19, 0, 0]),
    ('&', [12, 18, 20, 8, 21, 18, 13, 0, 0]),
    ('\'', [4, 4, 4, 0, 0, 0, 0, 0, 0]),
    ('(', [2, 4, 8, 8, 8, 8, 8, 4, 2]),
    (')', [8, 4, 2, 2, 2, 2, 2, 4, 8]),
    ('*', [0, 4, 21, 14, 21, 4, 0, 0, 0]),
    ('+', [0, 4, 4, 31, 4, 4, 0, 0, 0]),
    (',', [0, 0, 0, 0, 0, 6, 6, 4, 8]),
    ('-', [0, 0, 0, 14, 0, 0, 0, 0, 0]),
    ('.', [0, 0, 0, 0, 0, 12, 12, 0, 0]),
    ('/', [1, 1, 2, 4, 8, 16, 16, 0, 0]),
    ('0', [4, 10, 17, 17, 17, 10, 4, 0, 0]),
    ('1', [4, 12, 4, 4, 4, 4, 14, 0, 0]),
    ('2', [14, 17, 1, 6, 8, 16, 31, 0, 0]),
    ('3', [14, 17, 1, 6, 1, 17, 14, 0, 0]),
    ('4', [2, 6, 10, 18, 31, 2, 2, 0, 0]),
    ('5', [31, 16, 30, 1, 1, 17, 14, 0, 0]),
    ('6', [14, 16, 16, 30, 17, 17, 14, 0, 0]),
    ('7', [31, 1, 2, 4, 4, 8, 8, 0, 0]),
    ('8', [14, 17, 17, 14, 17, 17, 14, 0, 0]),
    ('9', [14, 17, 17, 15, 1, 1, 14, 0, 0]),
    (':', [0, 12, 12, 0, 12, 12, 0, 0, 0]),
    (';', [0, 6, 6, 0, 0, 6, 6, 4, 8]),
    ('<', [2, 4, 8, 16, 8, 4, 2, 0, 0]),
    ('=', [0, 0, 31, 0, 31, 0, 0, 0, 0]),
    ('>', [16, 8, 4, 2, 4, 8, 16, 0, 0]),
    ('?', [14, 17, 1, 2, 4, 0, 4, 0, 0]),
    ('@', [14, 17, 23, 21, 22, 16, 15, 0, 0]),
    ('A', [14, 17, 17, 31, 17, 17, 17, 0, 0]),
    ('B', [30, 17, 17, 30, 17, 17, 30, 0, 0]),
    ('C', [14, 17, 16, 16, 16, 17, 14, 0, 0]),
    ('D', [30, 17, 17, 17, 17, 17, 30, 0, 0]),
    ('E', [31, 16, 16, 30, 16, 16, 31, 0, 0]),
    ('F', [31, 16, 16, 30, 16, 16, 16, 0, 0]),
    ('G', [14, 17, 16, 23, 17, 17, 14, 0, 0]),
    ('H', [17, 17, 17, 31, 17, 17, 17, 0, 0]),
    ('I', [14, 4, 4, 4, 4, 4, 14, 0, 0]),
    ('J', [7, 2, 2, 2, 2, 18, 12, 0, 0]),
    ('K', [17, 18, 20, 24, 20, 18, 17, 0, 0]),
    ('L', [16, 16, 16, 16, 16, 16, 31, 0, 0]),
    ('M', [17, 27, 21, 21, 17, 17, 17, 0, 0]),
    ('N', [17, 25, 25, 21, 19, 19, 17, 0, 0]),
    ('O', [14, 17, 17, 17, 17, 17, 14, 0, 0]),
    ('P', [30, 17, 17, 30, 16, 16, 16, 0, 0]),
    ('Q', [14, 17, 17, 17, 21, 18, 13, 0, 0]),
    ('R', [30, 17, 17, 30, 20, 18, 17, 0, 0]),
    ('S', [14, 17, 16, 14, 1, 17, 14, 0, 0]),
    ('T', [31, 4, 4, 4, 4, 4, 4, 0, 0]),
    ('U', [17, 17, 17, 17, 17, 17, 14, 0, 0]),
    ('V', [17, 17, 17, 17, 10, 10, 4, 0, 0]),
    ('W', [17, 17, 17, 21, 21, 27, 17, 0, 0]),
    ('X', [17, 17, 10, 4, 10, 17, 17, 0, 0]),
    ('Y', [17, 17, 10, 4, 4, 4, 4, 0, 0]),
    ('Z', [31, 1, 2, 4, 8, 16, 31, 0, 0]),
    ('[', [14, 8, 8, 8, 8, 8, 8, 8, 14]),
    ('\\', [16, 16, 8, 4, 2, 1, 1, 0, 0]),
    (']', [14, 2, 2, 2, 2, 2, 2, 2, 14]),
    ('^', [4, 10, 17, 0, 0, 0, 0, 0, 0]),
    ('_', [0, 0, 0, 0, 0, 0, 0, 31, 0]),
    ('`', [8, 4, 0, 0, 0, 0, 0, 0, 0]),
    ('a', [0, 0, 14, 1, 15, 17, 15, 0, 0]),
    ('b', [16, 16, 30, 17, 17, 17, 30, 0, 0]),
    ('c', [0, 0, 14, 17, 16, 17, 14, 0, 0]),
    ('d', [1, 1, 15, 17, 17, 17, 15, 0, 0]),
    ('e', [0, 0, 14, 17, 31, 16, 14, 0, 0]),
    ('f', [6, 8, 30, 8, 8, 8, 8, 0, 0]),
    ('g', [0, 0, 15, 17, 17, 17, 15, 1, 14]),
    ('h', [16, 16, 30, 17, 17, 17, 17, 0, 0]),
    ('i', [8, 0, 8, 8, 8, 8, 8, 0, 0]),
    ('j', [2, 0, 2, 2, 2, 2, 2, 2, 12]),
    ('k', [16, 16, 18, 20, 24, 20, 18, 0, 0]),
    ('l', [8, 8, 8, 8, 8, 8, 6, 0, 0]),
    ('m', [0, 0, 26, 21, 21, 21, 21, 0, 0]),
    ('n', [0, 0, 30, 17, 17, 17, 17, 0, 0]),
    ('o', [0, 0, 14, 17, 17, 17, 14, 0, 0]),
    ('p', [0, 0, 30, 17, 17, 17, 30, 16, 16]),
    ('q', [0, 0, 15, 17, 17, 17, 15, 1, 1]),
    ('r', [0, 0, 22, 24, 16, 16, 16, 0, 0]),
    ('s', [0, 0, 15, 16, 14, 1, 30, 0, 0]),
    ('t', [8, 8, 30, 8, 8, 8, 6, 0, 0]),
    ('u', [0, 0, 17, 17, 17, 17, 15, 0, 0]),
    ('v', [0, 0, 17, 17, 10, 10, 4, 0, 0]),
    ('w', [0, 0, 17, 21, 21, 21, 10, 0, 0]),
    ('x', [0, 0, 17, 10, 4, 10, 17, 0, 0]),
    ('y', [0, 0, 17, 17, 17, 17, 15, 1, 14]),
    ('z', [0, 0, 31, 2, 4, 8, 31, 0, 0]),
    ('{', [2, 4, 4, 4, 8, 4, 4, 4, 2]),
    ('|', [4, 4, 4, 4, 4, 4, 4, 4, 4]),
    ('}', [8, 4, 4, 4, 2, 4, 4, 4, 8]),
    ('~', [0, 0, 9, 21, 18, 0, 0, 0, 0]),
    ('±', [4, 4, 31, 4, 4, 0, 31, 0, 0]),
    ('²', [12, 18, 4, 8, 30, 0, 0, 0, 0]),
    ('·', [0, 0, 0, 4, 0, 0, 0, 0, 0]),
    ('×', [0, 17, 10, 4, 10, 17, 0, 0, 0]),
    ('θ', [14, 17, 17, 31, 17, 17, 14, 0, 0]),
    ('κ', [0, 0, 18, 20, 24, 20, 18, 0, 0]),
    ('λ', [24, 4, 4, 4, 10, 17, 17, 0, 0]),
    ('μ', [0, 0, 17, 17, 17, 25, 23, 16, 16]),
    ('σ', [0, 0, 15, 18, 17, 17, 14, 0, 0]),
    ('τ', [0, 0, 31, 4, 4, 4, 2, 0, 0]),
    ('φ', [0, 0, 22, 21, 21, 21, 14, 4, 4]),
    ('−', [0, 0, 0, 31, 0, 0, 0, 0, 0]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_character_has_its_own_glyph() {
        assert!(GLYPHS.is_sorted_by_key(|entry| entry.0));
        for (index, (character, rows)) in GLYPHS.iter().enumerate() {
            assert!(rows.iter().all(|row| *row < 32) && rows.iter().any(|row| *row > 0));
            let twins: Vec<_> =
                GLYPHS[..index].iter().filter(|other| other.1 == *rows).map(|o| o.0).collect();
            assert!(twins.is_empty(), "{character} looks like {twins:?}");
        }
        assert!(('!'..='~').all(|c| GLYPHS.iter().any(|entry| entry.0 == c)));
        assert_eq!(glyph('ж'), glyph('?'));
    }

    #[test]
    fn texts_are_as_wide_as_announced() {
        for text in ["", "i", "Loss 0.25", "θ ~ p(θ)"] {
            let rendered = render(text, 14.0);
            assert_eq!(rendered.cover.len(), (rendered.width * rendered.height) as usize);
            assert!((f64::from(rendered.width) - 14.0 * relative_width(text)).abs() <= 3.0);
        }
    }
}
