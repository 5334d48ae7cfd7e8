//! How much of every pixel a shape covers: exact areas of polygons, and lines by their distance.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places are clipped to the picture before they become pixel numbers"
)]

use super::letters::Contours;

/// Shares of the pixels of a rectangle, row by row, from 0 to 1.
pub(super) struct Cover {
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) width: u32,
    pub(super) shares: Vec<f64>,
}

impl Cover {
    /// Nothing yet, around what lies between `low` and `high`, within a picture of `size`.
    fn around(low: [f64; 2], high: [f64; 2], size: [u32; 2]) -> Self {
        let range = |axis: usize| {
            let end = f64::from(size[axis]);
            let from = low[axis].floor().clamp(0.0, end);
            (from as u32, high[axis].ceil().clamp(from, end) as u32)
        };
        let ((left, right), (top, bottom)) = (range(0), range(1));
        let count = (right - left) as usize * (bottom - top) as usize;
        Self { left, top, width: right - left, shares: vec![0.0; count] }
    }

    fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    fn height(&self) -> u32 {
        self.shares.len() as u32 / self.width.max(1)
    }

    /// Every pixel with its share.
    pub(super) fn pixels(&self) -> impl Iterator<Item = (u32, u32, f64)> {
        let place = |(index, &share): (usize, &f64)| {
            let index = index as u32;
            (self.left + index % self.width, self.top + index / self.width, share)
        };
        self.shares.iter().enumerate().filter(|(_, share)| **share > 0.0).map(place)
    }

    /// The area of polygons within each pixel. An edge adds, right of it, the height that it crosses,
    /// with the sign of its direction: the sum along a row is the area inside. Contours of the same
    /// direction must not overlap.
    pub(super) fn of_polygons(contours: &Contours, size: [u32; 2]) -> Self {
        let (low, high) = bounds(contours.iter().flatten());
        let mut cover = Self::around(low, high, size);
        if cover.is_empty() || !low.iter().chain(&high).all(|number| number.is_finite()) {
            return cover;
        }
        let (columns, rows) = (cover.width as usize, cover.height() as usize);
        // Two more columns take what edges at the right end add.
        let mut sums = Sums { stride: columns + 2, rows, cells: vec![0.0; (columns + 2) * rows] };
        let corner = [f64::from(cover.left), f64::from(cover.top)];
        let place = |point: [f64; 2]| [point[0] - corner[0], point[1] - corner[1]];
        for contour in contours {
            let ends = contour.iter().cycle().skip(1);
            for (a, b) in contour.iter().zip(ends) {
                sums.add(place(*a), place(*b));
            }
        }
        for (shares, sums) in
            cover.shares.chunks_exact_mut(columns).zip(sums.cells.chunks_exact(columns + 2))
        {
            let mut sum = 0.0_f64;
            for (share, change) in shares.iter_mut().zip(sums) {
                sum += change;
                *share = sum.abs().min(1.0);
            }
        }
        cover
    }

    /// Lines through points, all with round ends: the greatest share of any of their parts counts, so
    /// that joints are not drawn twice.
    pub(super) fn of_lines(lines: &[Vec<[f64; 2]>], radius: f64, size: [u32; 2]) -> Self {
        let (low, high) = bounds(lines.iter().flatten());
        let reach = radius + 1.0;
        let mut cover = Self::around(low.map(|x| x - reach), high.map(|x| x + reach), size);
        if cover.is_empty() {
            return cover;
        }
        for line in lines {
            let ends = if line.len() == 1 { &line[..] } else { &line[1..] };
            for (a, b) in line.iter().zip(ends) {
                cover.add_part(*a, *b, radius);
            }
        }
        cover
    }

    fn add_part(&mut self, a: [f64; 2], b: [f64; 2], radius: f64) {
        let reach = radius + 1.0;
        let range = |axis: usize, start: u32, count: u32| {
            let place = |x: f64| (x - f64::from(start)).clamp(0.0, f64::from(count));
            let (low, high) = (a[axis].min(b[axis]), a[axis].max(b[axis]));
            place((low - reach).floor()) as u32..place((high + reach).ceil()) as u32
        };
        let (columns, rows) = (range(0, self.left, self.width), range(1, self.top, self.height()));
        for row in rows {
            let y = f64::from(self.top + row) + 0.5;
            let cells = &mut self.shares[(row * self.width) as usize..][..self.width as usize];
            for column in columns.clone() {
                let place = [f64::from(self.left + column) + 0.5, y];
                let share = within(distance(place, a, b), radius);
                let cell = &mut cells[column as usize];
                *cell = cell.max(share);
            }
        }
    }
}

/// How much of a pixel at a distance from a line's middle lies within `radius` of it, for edges along
/// rows or columns.
fn within(distance: f64, radius: f64) -> f64 {
    (distance + radius + 0.5).clamp(0.0, 1.0) - (distance - radius + 0.5).clamp(0.0, 1.0)
}

/// From a place to the straight line between a and b.
fn distance(place: [f64; 2], a: [f64; 2], b: [f64; 2]) -> f64 {
    let along = [b[0] - a[0], b[1] - a[1]];
    let away = [place[0] - a[0], place[1] - a[1]];
    let length = along[0] * along[0] + along[1] * along[1];
    let share = if length > 0.0 { (along[0] * away[0] + along[1] * away[1]) / length } else { 0.0 };
    let share = share.clamp(0.0, 1.0);
    (away[0] - share * along[0]).hypot(away[1] - share * along[1])
}

fn bounds<'a>(points: impl Iterator<Item = &'a [f64; 2]>) -> ([f64; 2], [f64; 2]) {
    let start = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    points.fold(start, |(low, high), point| {
        let both = |choose: fn(f64, f64) -> f64, so_far: [f64; 2]| {
            [choose(so_far[0], point[0]), choose(so_far[1], point[1])]
        };
        (both(f64::min, low), both(f64::max, high))
    })
}

/// What every pixel adds to the sum along its row.
struct Sums {
    stride: usize,
    rows: usize,
    cells: Vec<f64>,
}

impl Sums {
    /// Adds an edge. What lies beyond the left or the right end of the rows stands upright at that end.
    fn add(&mut self, a: [f64; 2], b: [f64; 2]) {
        let last = (self.stride - 2) as f64;
        let mut here = a;
        let crossings = [0.0, last].map(|end| (end - a[0]) / (b[0] - a[0]));
        let [first, second] = if a[0] < b[0] { crossings } else { [crossings[1], crossings[0]] };
        for share in [first, second, 1.0] {
            if share > 0.0 && share <= 1.0 {
                let at = |axis: usize| a[axis] + share * (b[axis] - a[axis]);
                let there = if share < 1.0 { [at(0), at(1)] } else { b };
                let side = |x: f64| x.clamp(0.0, last);
                self.add_inside([side(here[0]), here[1]], [side(there[0]), there[1]]);
                here = there;
            }
        }
    }

    fn add_inside(&mut self, a: [f64; 2], b: [f64; 2]) {
        let (sign, upper, lower) = if a[1] < b[1] { (1.0, a, b) } else { (-1.0, b, a) };
        let (from, to) = (upper[1].max(0.0), lower[1].min(self.rows as f64));
        let slope = (lower[0] - upper[0]) / (lower[1] - upper[1]);
        let mut row = from as usize;
        let mut y = from;
        while y < to {
            let next = (row as f64 + 1.0).min(to);
            let x_at =
                |y: f64| (upper[0] + slope * (y - upper[1])).clamp(0.0, (self.stride - 2) as f64);
            let (x, x_next) = (x_at(y), x_at(next));
            let cells = &mut self.cells[row * self.stride..][..self.stride];
            spread(cells, sign * (next - y), x.min(x_next), x.max(x_next));
            y = next;
            row += 1;
        }
    }
}

/// Adds an edge of `height` between the columns `left` and `right`: to every pixel the part of its
/// area right of the edge, less what pixels before have added.
fn spread(cells: &mut [f64], height: f64, left: f64, right: f64) {
    let (first, end) = (left as usize, (right.ceil() as usize).max(left as usize + 1));
    // The area right of the edge in the pixels up to `column`, summed along the row.
    let filled = |column: usize| {
        let column = column as f64;
        if column >= right {
            return column - 0.5 * (left + right);
        }
        if column <= left { 0.0 } else { (column - left).powi(2) / (2.0 * (right - left)) }
    };
    let mut before = 0.0;
    for column in first..=end.min(cells.len() - 1) {
        let here = filled(column + 1) - filled(column);
        cells[column] += height * (here - before);
        before = here;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: [u32; 2] = [12, 10];

    fn share(cover: &Cover, column: u32, row: u32) -> f64 {
        cover
            .pixels()
            .find(|pixel| (pixel.0, pixel.1) == (column, row))
            .map_or(0.0, |pixel| pixel.2)
    }

    /// Against an integral over fine columns, exact in y.
    #[test]
    fn a_half_plane_covers_its_exact_share_of_every_pixel() {
        for (slope, at) in [(0.0, 3.25), (0.5, 1.7), (-1.3, 8.4), (3.0, -4.1)] {
            // Above the line y = at + slope x, as far as the picture goes and beyond.
            let line = |x: f64| at + slope * x;
            let contour =
                vec![[-3.0, -50.0], [15.0, -50.0], [15.0, line(15.0)], [-3.0, line(-3.0)]];
            let cover = Cover::of_polygons(&vec![contour], SIZE);
            for row in 0..SIZE[1] {
                for column in 0..SIZE[0] {
                    let strips = 4000;
                    let height = |k: u32| {
                        let x = f64::from(column) + (f64::from(k) + 0.5) / f64::from(strips);
                        (line(x) - f64::from(row)).clamp(0.0, 1.0)
                    };
                    let expected = (0..strips).map(height).sum::<f64>() / f64::from(strips);
                    let found = share(&cover, column, row);
                    // The strips err by less than slope² / (8 · 4000).
                    assert!(
                        (found - expected).abs() < 1e-3,
                        "{slope} {column} {row}: {found} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn areas_add_up_and_holes_are_left_out() {
        let square = |low: f64, high: f64| vec![[low, low], [high, low], [high, high], [low, high]];
        let mut hole = square(4.2, 5.9);
        hole.reverse();
        let cover = Cover::of_polygons(&vec![square(2.3, 7.6), hole], SIZE);
        let area: f64 = cover.pixels().map(|pixel| pixel.2).sum();
        assert!((area - (5.3_f64.powi(2) - 1.7_f64.powi(2))).abs() < 1e-9, "{area}");
        assert!((share(&cover, 2, 2) - 0.49).abs() < 1e-9 && share(&cover, 5, 5) < 0.8);
        assert!((share(&cover, 3, 3) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn lines_are_as_wide_as_asked_and_joints_are_drawn_once() {
        let bent = vec![vec![[2.0, 5.0], [6.0, 5.0], [10.0, 5.0]]];
        for radius in [0.2, 0.75, 1.5] {
            let cover = Cover::of_lines(&bent, radius, SIZE);
            let across: f64 = (0..SIZE[1]).map(|row| share(&cover, 6, row)).sum();
            assert!((across - 2.0 * radius).abs() < 1e-9, "{radius}: {across}");
        }
        let dot = Cover::of_lines(&[vec![[5.0, 5.0]]], 2.0, SIZE);
        let area: f64 = dot.pixels().map(|pixel| pixel.2).sum();
        // By distance alone a pixel's share errs by up to a twentieth along the edge.
        assert!((area - std::f64::consts::PI * 4.0).abs() < 0.4, "{area}");
        assert_eq!(Cover::of_lines(&[], 1.0, SIZE).pixels().count(), 0);
    }
}
