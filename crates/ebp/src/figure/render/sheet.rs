//! Scenes in rows and columns, labels under them and a scale of colours beside them.
//!
//! ```text
//! panel panel panel │ scale
//! label label label │
//! ```

use image::{Rgba, RgbaImage};
use rayon::prelude::*;

use super::super::axis::{Axis, Scale};
use super::super::colour::ColourMap;
use super::super::coverage::Cover;
use super::super::letters;
use super::camera::{Frame, common_frame};
use super::paint::mapped;
use super::picture;
use super::scene::Scene;
use super::{LONGEST_SIDE, RenderOptions};
use crate::{Error, Result};

/// A scene and what is written under it.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What is drawn.
    pub scene: Scene,
    /// What is written, if anything.
    pub label: String,
}

/// What colours mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// A bar with ticks.
    Bar {
        /// From numbers to colours.
        map: ColourMap,
        /// The numbers at its ends.
        range: [f32; 2],
        /// What the numbers are; may be empty.
        name: String,
    },
    /// A square for each word.
    Words(Vec<(String, [u8; 3])>),
}

/// Panels in rows.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Row by row.
    pub panels: Vec<Panel>,
    /// Panels of a row.
    pub columns: usize,
    /// What stands to the right.
    pub key: Option<Key>,
}

/// Places of everything on a sheet, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Of a panel.
    pub(super) size: [u32; 2],
    pub(super) columns: u32,
    pub(super) rows: u32,
    /// The height of the row of labels, 0 without.
    pub(super) label: u32,
    /// The height of capitals.
    pub(super) text: f64,
    /// The width of what stands to the right, 0 without.
    pub(super) key: u32,
}

impl Layout {
    pub(super) fn width(&self) -> u32 {
        self.columns * self.size[0] + self.key
    }

    pub(super) fn height(&self) -> u32 {
        self.rows * (self.size[1] + self.label)
    }

    /// The left upper corner of a panel.
    pub(super) fn corner(&self, panel: usize) -> [u32; 2] {
        let (row, column) = (panel as u32 / self.columns, panel as u32 % self.columns);
        [column * self.size[0], row * (self.size[1] + self.label)]
    }

    /// The middle of a panel's label.
    pub(super) fn label_of(&self, panel: usize) -> [f64; 2] {
        let [left, top] = self.corner(panel).map(f64::from);
        let [width, height] = self.size.map(f64::from);
        [left + 0.5 * width, top + height + 0.4 * f64::from(self.label)]
    }

    /// Left, top, width and height of a bar.
    pub(super) fn bar(&self) -> [f64; 4] {
        let high = f64::from(self.height());
        let length = (0.7 * high).min(1.1 * f64::from(self.size[1]));
        let left = f64::from(self.columns * self.size[0]) + 1.2 * self.text;
        [left, 0.5 * (high - length), 1.6 * self.text, length]
    }

    /// Of the words of a key, the left upper corner of a square and its side.
    pub(super) fn square(&self, number: usize, count: usize) -> [f64; 3] {
        let step = 2.2 * self.text;
        let top = 0.5 * (f64::from(self.height()) - step * count as f64) + step * number as f64;
        [self.bar()[0], top, 1.4 * self.text]
    }
}

impl Key {
    /// Its ticks with their places from the top, from 0 to 1.
    pub(super) fn ticks(range: [f32; 2]) -> Vec<(f64, String)> {
        let axis = Axis::new(f64::from(range[0]), f64::from(range[1]), Scale::Linear, 5);
        axis.ticks
            .iter()
            .map(|tick| (1.0 - axis.position(tick.value), tick.label.clone()))
            .collect()
    }

    fn width(&self, text: f64) -> f64 {
        let wide = |words: &str| text_width(words, text);
        let widest = match self {
            Self::Bar { range, name, .. } => {
                let ticks =
                    Self::ticks(*range).iter().map(|(_, label)| wide(label)).fold(0.0, f64::max);
                (ticks + 2.4 * text).max(wide(name))
            }
            Self::Words(words) => {
                2.2 * text + words.iter().map(|(word, _)| wide(word)).fold(0.0, f64::max)
            }
        };
        widest + 2.6 * text
    }
}

impl Sheet {
    /// Where everything goes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for options that cannot be drawn or a sheet that would be too large.
    pub(super) fn layout(&self, options: &RenderOptions) -> Result<Layout> {
        options.check()?;
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let rows = self.panels.len().div_ceil(columns);
        let text = (0.03 * f64::from(options.size[0].min(options.size[1]))).max(8.0);
        let has_labels = self.panels.iter().any(|panel| !panel.label.is_empty());
        let label = if has_labels { (3.2 * text).round() as u32 } else { 0 };
        let key = self.key.as_ref().map_or(0, |key| key.width(text).ceil() as u32);
        let total = |count: usize, side: u32| {
            u32::try_from(count).ok().and_then(|count| count.checked_mul(side))
        };
        let width = total(columns, options.size[0]).and_then(|width| width.checked_add(key));
        let height = total(rows, options.size[1] + label);
        for (name, side) in [("width of the sheet", width), ("height of the sheet", height)] {
            if side.is_none_or(|side| side > LONGEST_SIDE) {
                let expected =
                    format!("at most {LONGEST_SIDE} pixels; draw fewer or smaller clouds");
                let found = side.map_or("more".to_owned(), |side| side.to_string());
                return Err(Error::invalid(name, expected, found));
            }
        }
        Ok(Layout {
            size: options.size,
            columns: columns as u32,
            rows: rows as u32,
            label,
            text,
            key,
        })
    }

    /// Width and height in pixels.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for options that cannot be drawn or a sheet that would be too large.
    pub fn size(&self, options: &RenderOptions) -> Result<[u32; 2]> {
        let layout = self.layout(options)?;
        Ok([layout.width(), layout.height()])
    }

    /// Draws all panels; `frames` as [`frames`] makes them, `done` is told of every panel.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for options that cannot be drawn or a sheet that would be too large.
    pub fn draw(
        &self,
        options: &RenderOptions,
        frames: &[Frame],
        done: &(dyn Fn() + Sync),
    ) -> Result<RgbaImage> {
        let layout = self.layout(options)?;
        let behind = options.background.colour().map_or([0; 4], |[r, g, b]| [r, g, b, 255]);
        let mut sheet = RgbaImage::from_pixel(layout.width(), layout.height(), Rgba(behind));
        // Panel by panel where each keeps all threads busy, otherwise many at once.
        let at_once = if options.size[0].max(options.size[1]) > 640 { 1 } else { 16 };
        for (chunk, panels) in self.panels.chunks(at_once).enumerate() {
            let draw = |(index, panel): (usize, &Panel)| {
                let number = chunk * at_once + index;
                let picture = picture::draw(&panel.scene, options, frames.get(number).copied());
                done();
                picture
            };
            let pictures: Vec<RgbaImage> = panels.par_iter().enumerate().map(draw).collect();
            for (index, picture) in pictures.iter().enumerate() {
                let [left, top] = layout.corner(chunk * at_once + index).map(i64::from);
                image::imageops::replace(&mut sheet, picture, left, top);
            }
        }
        let ink = options.background.ink();
        for (number, panel) in self.panels.iter().enumerate() {
            // A long label is written smaller.
            let room = 0.94 * f64::from(layout.size[0]);
            let size =
                layout.text * (room / text_width(&panel.label, layout.text).max(1.0)).min(1.0);
            write(&mut sheet, &panel.label, layout.label_of(number), size, 0.5, ink);
        }
        match &self.key {
            None => {}
            Some(Key::Bar { map, range, name }) => {
                bar(&mut sheet, &layout, *map, *range, name, ink);
            }
            Some(Key::Words(words)) => {
                for (number, (word, colour)) in words.iter().enumerate() {
                    let [left, top, side] = layout.square(number, words.len());
                    fill(&mut sheet, [left, top, side, side], *colour);
                    let place = [left + 1.6 * side, top + 0.5 * side];
                    write(&mut sheet, word, place, layout.text, 0.0, ink);
                }
            }
        }
        Ok(sheet)
    }
}

/// Frames for every panel, such that all these sheets fit into them, seen from all these azimuths; with
/// `is_common` all panels have the same one, so that sizes compare.
pub fn frames(
    sheets: &[Sheet],
    options: &RenderOptions,
    azimuths: &[f32],
    is_common: bool,
) -> Vec<Frame> {
    let count = sheets.iter().map(|sheet| sheet.panels.len()).max().unwrap_or(0);
    let fit = |scenes: &[&Scene]| {
        let view = scenes.first().map_or(options.view, |scene| options.view_of(scene));
        let flat = scenes.first().is_some_and(|scene| scene.is_flat);
        let azimuths = if flat { &[view.azimuth][..] } else { azimuths };
        common_frame(scenes, &view, azimuths, |view| {
            scenes.first().and_then(|scene| options.shadow_of(scene, view))
        })
    };
    if is_common {
        let all: Vec<&Scene> =
            sheets.iter().flat_map(|sheet| &sheet.panels).map(|panel| &panel.scene).collect();
        return fit(&all).map_or(Vec::new(), |frame| vec![frame; count]);
    }
    let of_panel = |number: usize| {
        let scenes: Vec<&Scene> = sheets
            .iter()
            .filter_map(|sheet| sheet.panels.get(number))
            .map(|panel| &panel.scene)
            .collect();
        fit(&scenes)
    };
    (0..count).filter_map(of_panel).collect()
}

fn bar(
    sheet: &mut RgbaImage,
    layout: &Layout,
    map: ColourMap,
    range: [f32; 2],
    name: &str,
    ink: [u8; 3],
) {
    let [left, top, width, height] = layout.bar();
    for row in 0..height.round() as u32 {
        let share = 1.0 - (f64::from(row) + 0.5) / height.round();
        fill(sheet, [left, top + f64::from(row), width, 1.0], mapped(map, share));
    }
    for (place, label) in Key::ticks(range) {
        let y = top + place * height;
        let thick = (0.12 * layout.text).max(1.0);
        fill(sheet, [left + width, y - 0.5 * thick, 0.5 * layout.text, thick], ink);
        write(sheet, &label, [left + width + 0.9 * layout.text, y], layout.text, 0.0, ink);
    }
    write(sheet, name, [left, top - 1.6 * layout.text], layout.text, 0.0, ink);
}

/// Fills left, top, width, height.
fn fill(sheet: &mut RgbaImage, [left, top, width, height]: [f64; 4], [r, g, b]: [u8; 3]) {
    let range = |start: f64, size: f64, end: u32| {
        let bound = |place: f64| place.round().clamp(0.0, f64::from(end)) as u32;
        bound(start)..bound(start + size).max(bound(start) + 1).min(end)
    };
    for y in range(top, height, sheet.height()) {
        for x in range(left, width, sheet.width()) {
            sheet.put_pixel(x, y, Rgba([r, g, b, 255]));
        }
    }
}

/// A line of text; `anchor` is the share of its width that lies left of the place.
fn write(
    sheet: &mut RgbaImage,
    text: &str,
    [x, y]: [f64; 2],
    size: f64,
    anchor: f64,
    ink: [u8; 3],
) {
    if text.is_empty() {
        return;
    }
    let left = x - anchor * text_width(text, size);
    let place = |[right, down]: [f64; 2]| [left + right, y + 0.5 * size + down];
    let contours = letters::contours(text, size / letters::CAPITAL, 0.05);
    let contours =
        contours.into_iter().map(|contour| contour.into_iter().map(place).collect()).collect();
    let cover = Cover::of_polygons(&contours, [sheet.width(), sheet.height()]);
    for (column, row, cover) in cover.pixels() {
        let Rgba(pixel) = sheet.get_pixel_mut(column, row);
        let below = f64::from(pixel[3]) / 255.0;
        let above = cover + below * (1.0 - cover);
        for (level, ink) in pixel.iter_mut().zip(ink) {
            let mixed = f64::from(ink) * cover + f64::from(*level) * below * (1.0 - cover);
            *level = (mixed / above).round() as u8;
        }
        pixel[3] = (255.0 * above).round() as u8;
    }
}

/// The width of a line of text whose capitals are `height` high.
fn text_width(text: &str, height: f64) -> f64 {
    height / letters::CAPITAL * letters::width(text)
}
