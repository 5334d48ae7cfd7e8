//! A contact sheet: many clouds or pictures side by side, to look at data before using it.
//!
//! Clouds of three dimensions are seen from the front right, a little from above, each scaled to
//! its cell. Near points cover far ones, far ones are paler, and the colour tells the height.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "coordinates are clipped to the cell before they become pixel numbers"
)]

use image::{Rgb, RgbImage};

use super::colour::{WHITE, viridis};

/// Pixels of a cell's side, and between cells.
const CELL: u32 = 220;
const GAP: u32 = 6;
/// Half the side of a point as drawn, and of what it hides, in pixels.
const RADIUS: i64 = 1;
const COVER: i64 = 4;
/// How far behind the nearest point, by the depth of the cloud, a point is still seen.
const SLACK: f64 = 0.09;
/// The view: turned around the vertical axis, then tipped forward; in radians.
const TURN: f64 = -0.72;
const TIP: f64 = 0.36;

/// One cell: points `[n, dim]`, or pixels of a picture.
#[derive(Clone, Copy, Debug)]
pub enum Tile<'a> {
    /// A cloud of two or three dimensions; further ones are left out.
    Cloud {
        /// All points.
        points: &'a [f32],
        /// Numbers of a point.
        dim: usize,
    },
    /// A picture of 8 bits a channel.
    Picture {
        /// All pixels, `[height, width, channels]`.
        pixels: &'a [u8],
        /// Columns.
        width: usize,
        /// 1 or 3.
        channels: usize,
    },
}

/// Draws the tiles row by row.
pub fn draw(tiles: &[Tile<'_>], columns: u32) -> RgbImage {
    let columns = columns.max(1);
    let rows = (tiles.len() as u32).div_ceil(columns).max(1);
    let side = |cells: u32| cells * (CELL + GAP) + GAP;
    let mut sheet = RgbImage::from_pixel(side(columns), side(rows), Rgb([236, 236, 236]));
    for (index, tile) in tiles.iter().enumerate() {
        let (row, column) = (index as u32 / columns, index as u32 % columns);
        let corner = [column, row].map(|place| GAP + place * (CELL + GAP));
        match tile {
            Tile::Cloud { points, dim } => cloud(&mut sheet, corner, points, *dim),
            Tile::Picture { pixels, width, channels } => {
                picture(&mut sheet, corner, pixels, *width, *channels);
            }
        }
    }
    sheet
}

/// Rows of clouds `[n, dim]` below each other; shorter rows leave cells empty.
pub fn draw_rows(rows: &[&[Vec<f32>]], dim: usize) -> RgbImage {
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(1).max(1);
    let tile = |row: &&[Vec<f32>], column: usize| -> Vec<f32> {
        row.get(column).cloned().unwrap_or_default()
    };
    let clouds: Vec<Vec<f32>> =
        rows.iter().flat_map(|row| (0..columns).map(move |column| tile(row, column))).collect();
    let tiles: Vec<Tile> = clouds.iter().map(|points| Tile::Cloud { points, dim }).collect();
    draw(&tiles, columns as u32)
}

fn cloud(sheet: &mut RgbImage, corner: [u32; 2], points: &[f32], dim: usize) {
    for y in 0..CELL {
        for x in 0..CELL {
            sheet.put_pixel(corner[0] + x, corner[1] + y, WHITE);
        }
    }
    // Right, down and towards the viewer, and the height for the colour.
    let seen: Vec<[f64; 4]> = points
        .chunks_exact(dim.max(1))
        .filter(|point| point.iter().all(|number| number.is_finite()))
        .map(project)
        .collect();
    let range = |axis: usize| {
        let low = seen.iter().map(|p| p[axis]).fold(f64::INFINITY, f64::min);
        let high = seen.iter().map(|p| p[axis]).fold(f64::NEG_INFINITY, f64::max);
        (low, (high - low).max(1e-12))
    };
    if seen.is_empty() {
        return;
    }
    let ranges = [range(0), range(1), range(2), range(3)];
    let scale = f64::from(CELL - 16) / ranges[0].1.max(ranges[1].1);
    let placed: Vec<([i64; 2], f64, f64)> = seen
        .iter()
        .map(|point| {
            let place = |axis: usize| {
                let (low, size) = ranges[axis];
                (0.5 * f64::from(CELL) + scale * (point[axis] - low - 0.5 * size)).round() as i64
            };
            let share = |axis: usize| (point[axis] - ranges[axis].0) / ranges[axis].1;
            ([place(0), place(1)], share(2), share(3))
        })
        .collect();
    // A surface of points has holes; wide splats close them before anything is drawn, so that
    // what lies behind a surface stays hidden.
    let mut depths = vec![f64::NEG_INFINITY; (CELL * CELL) as usize];
    for &(centre, near, _) in &placed {
        visit(centre, COVER, |x, y| {
            let depth = &mut depths[(y * CELL + x) as usize];
            *depth = depth.max(near);
        });
    }
    let mut order: Vec<usize> = (0..placed.len()).collect();
    order.sort_by(|&a, &b| placed[a].1.total_cmp(&placed[b].1));
    for index in order {
        let (centre, near, high) = placed[index];
        let colour = shade(viridis(0.9 * high), 0.6 * (1.0 - near));
        visit(centre, RADIUS, |x, y| {
            if near >= depths[(y * CELL + x) as usize] - SLACK {
                sheet.put_pixel(corner[0] + x, corner[1] + y, colour);
            }
        });
    }
}

/// Every pixel of the cell within a distance of a place.
fn visit(centre: [i64; 2], reach: i64, mut mark: impl FnMut(u32, u32)) {
    let range = |place: i64| (place - reach).max(0)..=(place + reach).min(i64::from(CELL) - 1);
    for y in range(centre[1]) {
        for x in range(centre[0]) {
            mark(x as u32, y as u32);
        }
    }
}

/// Where a point is seen: right, down, near, high.
fn project(point: &[f32]) -> [f64; 4] {
    let at = |axis: usize| point.get(axis).map_or(0.0, |&number| f64::from(number));
    let [x, y, z] = [at(0), at(1), at(2)];
    if point.len() < 3 {
        return [x, -y, 0.0, y];
    }
    let (sine, cosine) = TURN.sin_cos();
    let (right, away) = (cosine * x - sine * y, sine * x + cosine * y);
    let (sine, cosine) = TIP.sin_cos();
    [right, -(cosine * z + sine * away), cosine * -away + sine * z, z]
}

/// Mixes a colour with white.
fn shade(Rgb(channels): Rgb<u8>, white: f64) -> Rgb<u8> {
    Rgb(channels.map(|c| (f64::from(c) * (1.0 - white) + 255.0 * white).round() as u8))
}

/// The picture as large as fits, each pixel a square.
fn picture(sheet: &mut RgbImage, corner: [u32; 2], pixels: &[u8], width: usize, channels: usize) {
    let (width, channels) = (width.max(1), channels.max(1));
    let height = (pixels.len() / (width * channels)).max(1);
    let longest = width.max(height);
    for y in 0..CELL {
        for x in 0..CELL {
            let [column, row] = [x, y].map(|place| place as usize * longest / CELL as usize);
            if column >= width || row >= height {
                continue;
            }
            let start = (row * width + column) * channels;
            let Some(pixel) = pixels.get(start..start + channels) else { continue };
            let colour = if channels >= 3 { [pixel[0], pixel[1], pixel[2]] } else { [pixel[0]; 3] };
            sheet.put_pixel(corner[0] + x, corner[1] + y, Rgb(colour));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_right_up_and_near_is_drawn_so() {
        // Seen from the front right: +x comes nearer and goes right, +z goes up.
        let [right, down, near, _] = project(&[1.0, 0.0, 0.0]);
        assert!(right > 0.0 && near > 0.0 && down > 0.0);
        let [right, down, _, high] = project(&[0.0, 0.0, 1.0]);
        assert!(right.abs() < 1e-12 && down < 0.0 && high > 0.0);
    }

    #[test]
    fn every_tile_has_its_cell() {
        let points = [0.0_f32, 0.0, 0.0, 1.0, 1.0, 1.0, f32::NAN, 0.0, 0.0];
        let pixels = [0_u8, 255, 10, 20];
        let tiles = [
            Tile::Cloud { points: &points, dim: 3 },
            Tile::Picture { pixels: &pixels, width: 2, channels: 1 },
            Tile::Cloud { points: &[], dim: 3 },
        ];
        let sheet = draw(&tiles, 2);
        assert_eq!(sheet.dimensions(), (2 * (CELL + GAP) + GAP, 2 * (CELL + GAP) + GAP));
        let dark =
            sheet.pixels().filter(|pixel| pixel.0 != [255; 3] && pixel.0 != [236; 3]).count();
        assert!(dark > (CELL * CELL) as usize / 2, "the picture fills its cell");
        assert_eq!(sheet.get_pixel(CELL + 2 * GAP + 1, GAP + 1).0, [0; 3]);
        assert_eq!(sheet.get_pixel(2 * CELL, GAP + 1).0, [255; 3]);
    }
}
