//! A contact sheet: many clouds or pictures side by side, to look at data before using it.
//!
//! Clouds are drawn by [`render`](mod@super::render) with few samples, each scaled to its cell; the colour
//! tells the height. Points that are not finite are left out.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "coordinates are clipped to the cell before they become pixel numbers"
)]

use image::imageops::replace;
use image::{DynamicImage, Rgb, RgbImage};
use rayon::prelude::*;

use super::colour::WHITE;
use super::render::{self, ColourMap, Placement, Quality, RenderOptions, Scene, Up, paint};
use crate::Result;

/// Pixels of a cell's side, and between cells.
const CELL: u32 = 220;
const GAP: u32 = 6;

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
    let clouds = |tile: &Tile<'_>| match tile {
        Tile::Cloud { points, dim } => Some(cloud(points, *dim)),
        Tile::Picture { .. } => None,
    };
    let clouds: Vec<Option<RgbImage>> = tiles.par_iter().map(clouds).collect();
    for (index, (tile, cloud)) in tiles.iter().zip(clouds).enumerate() {
        let (row, column) = (index as u32 / columns, index as u32 % columns);
        let corner = [column, row].map(|place| GAP + place * (CELL + GAP));
        if let Some(cloud) = cloud {
            replace(&mut sheet, &cloud, i64::from(corner[0]), i64::from(corner[1]));
        }
        if let Tile::Picture { pixels, width, channels } = tile {
            picture(&mut sheet, corner, pixels, *width, *channels);
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

/// A cell with what can be drawn of a cloud.
fn cloud(points: &[f32], dim: usize) -> RgbImage {
    let blank = || RgbImage::from_pixel(CELL, CELL, WHITE);
    let is_whole = |point: &&[f32]| point.iter().all(|number| number.is_finite());
    let whole = points.chunks_exact(dim.max(1)).filter(is_whole);
    // Numbers lie on a line.
    let (finite, dim): (Vec<f32>, usize) = match dim {
        0 | 1 => (whole.flat_map(|point| [point[0], 0.0]).collect(), 2),
        _ => (whole.flatten().copied().collect(), dim),
    };
    // What is left to go wrong are numbers near the end of their range, or none.
    spheres(&finite, dim).unwrap_or_else(|_| blank())
}

fn spheres(points: &[f32], dim: usize) -> Result<RgbImage> {
    let placement = Placement::around(&[points], dim, Up::Z)?;
    let heights = paint::coordinate(points, dim, paint::height_axis(dim, Up::Z));
    let range = paint::range_of(heights.iter().copied())?;
    let colours = paint::by_value(&heights, ColourMap::Viridis, range);
    let scene = Scene::new(points, dim, &placement, colours, None)?;
    let options =
        RenderOptions { size: [CELL, CELL], quality: Quality::Draft, ..RenderOptions::default() };
    Ok(DynamicImage::ImageRgba8(render::render(&scene, &options)?).into_rgb8())
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
    fn every_tile_has_its_cell() {
        let points = [0.0_f32, 0.0, 0.0, 1.0, 1.0, 1.0, f32::NAN, 0.0, 0.0];
        let flat = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        let pixels = [0_u8, 255, 10, 20];
        let tiles = [
            Tile::Cloud { points: &points, dim: 3 },
            Tile::Picture { pixels: &pixels, width: 2, channels: 1 },
            Tile::Cloud { points: &[], dim: 3 },
            Tile::Cloud { points: &flat, dim: 2 },
        ];
        let sheet = draw(&tiles, 2);
        assert_eq!(sheet.dimensions(), (2 * (CELL + GAP) + GAP, 2 * (CELL + GAP) + GAP));
        let dark =
            sheet.pixels().filter(|pixel| pixel.0 != [255; 3] && pixel.0 != [236; 3]).count();
        assert!(dark > (CELL * CELL) as usize / 2, "the picture fills its cell");
        assert_eq!(sheet.get_pixel(CELL + 2 * GAP + 1, GAP + 1).0, [0; 3]);
        let is_blank = |column: u32, row: u32| {
            let corner = [column, row].map(|place| GAP + place * (CELL + GAP));
            let cell = |at: u32| [at % CELL, at / CELL];
            (0..CELL * CELL).all(|at| {
                let [x, y] = cell(at);
                sheet.get_pixel(corner[0] + x, corner[1] + y).0 == [255; 3]
            })
        };
        assert!(is_blank(0, 1) && !is_blank(0, 0) && !is_blank(1, 1));
    }
}
