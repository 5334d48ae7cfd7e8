//! Overlapping histograms: which numbers two or three samples take, such as the energies of held-out
//! sets, of generated ones and of noise.

use image::{Rgb, RgbImage};

use super::axis::{Axis, Scale};
use super::canvas::{Anchor, Area, Canvas};
use super::colour::{self, WHITE};
use super::frame::{Frame, LABEL_SIZE, SPACE, text_width};
use crate::Result;
use crate::metric::overlap::Bins;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 170.0;
const OUTER_MARGIN: f64 = 10.0;
const LINE_WIDTH: f64 = 1.1;
/// The box before a name in the legend.
const BOX: f64 = 9.0;
const LEGEND_ROW: f64 = 14.0;
/// How much of a sample's colour covers what lies behind it.
const COVER: f64 = 0.42;
/// Cells across the figure: more are too thin to be seen.
const MOST_BINS: f64 = 60.0;

/// A named sample.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What the legend calls it.
    pub name: String,
    /// Its numbers; at least two, all finite.
    pub values: Vec<f64>,
}

/// A figure of histograms over one axis.
#[derive(Clone, Debug)]
pub struct HistogramPlot {
    /// What stands above it; may be empty.
    pub title: String,
    /// The samples, those behind first.
    pub samples: Vec<Sample>,
    /// What the numbers are.
    pub x_label: String,
    /// A line below the legend, such as the overlap; may be empty.
    pub note: String,
    /// Pixels per point; 2 is good for screens, 4 for print.
    pub scale: u32,
}

impl HistogramPlot {
    /// Draws the figure: shares of each sample per cell, as densities.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) if there is nothing to draw or a panel has the wrong size.
    pub fn draw(&self) -> Result<RgbImage> {
        let samples: Vec<&[f64]> = self.samples.iter().map(|s| s.values.as_slice()).collect();
        let bins = thinned(Bins::shared(&samples)?);
        let heights: Vec<Vec<f64>> = samples
            .iter()
            .map(|sample| bins.shares(sample).iter().map(|share| share / bins.width).collect())
            .collect();
        let highest = heights.iter().flatten().copied().fold(0.0, f64::max);
        let end = bins.low + bins.width * bins.count as f64;
        let margin = 0.02 * (end - bins.low);
        let x = Axis::new(bins.low - margin, end + margin, Scale::Linear, 6);
        let y = Axis::new(0.0, 1.06 * highest, Scale::Linear, 4);
        let frame = Frame {
            x: &x,
            y: &y,
            title: &self.title,
            x_label: &self.x_label,
            y_label: "density",
            has_grid: false,
        };
        let margins = frame.margins();
        let area = Area {
            left: OUTER_MARGIN + margins.left,
            top: OUTER_MARGIN + margins.top,
            width: WIDTH,
            height: HEIGHT,
        };
        let names =
            self.samples.iter().map(|sample| BOX + SPACE + text_width(&sample.name, LABEL_SIZE));
        let legend = names.fold(text_width(&self.note, LABEL_SIZE), f64::max) + 2.0 * SPACE;
        let width = area.right() + margins.right.max(legend) + OUTER_MARGIN;
        let height = area.bottom() + margins.bottom + OUTER_MARGIN;
        let mut canvas = Canvas::new(width, height, self.scale);
        let lowest = bins.low - margin;
        let across = end + margin - lowest;
        canvas.shade(area, |from_left, from_top| {
            let cell = ((lowest + from_left * across - bins.low) / bins.width).floor();
            let level = (1.0 - from_top) * 1.06 * highest;
            let covers = |heights: &[f64]| {
                let inside = (0..bins.count).find(|&c| (c as f64 - cell).abs() < 0.5);
                inside.is_some_and(|c| heights[c] >= level)
            };
            let layer = |below: Rgb<u8>, (number, heights): (usize, &Vec<f64>)| {
                if covers(heights) { mixed(below, colour::series(number)) } else { below }
            };
            heights.iter().enumerate().fold(WHITE, layer)
        });
        for (number, heights) in heights.iter().enumerate() {
            let place = |value: f64, level: f64| {
                [
                    area.left + area.width * x.position(value),
                    area.top + area.height * (1.0 - y.position(level)),
                ]
            };
            let mut steps = vec![place(bins.low, 0.0)];
            for (cell, &level) in heights.iter().enumerate() {
                let left = bins.low + bins.width * cell as f64;
                steps.extend([place(left, level), place(left + bins.width, level)]);
            }
            steps.push(place(end, 0.0));
            canvas.polyline(&steps, LINE_WIDTH, colour::series(number), area);
        }
        frame.draw(&mut canvas, area);
        self.draw_legend(&mut canvas, area);
        Ok(canvas.into_image())
    }

    fn draw_legend(&self, canvas: &mut Canvas, area: Area) {
        let left = area.right() + 2.0 * SPACE;
        for (number, sample) in self.samples.iter().enumerate() {
            let y = area.top + 0.5 * LEGEND_ROW + LEGEND_ROW * number as f64;
            let mark = Area { left, top: y - 0.5 * BOX, width: BOX, height: BOX };
            canvas.fill(mark, mixed(WHITE, colour::series(number)));
            canvas.outline(mark, LINE_WIDTH, colour::series(number));
            canvas.text(&sample.name, [left + BOX + SPACE, y], LABEL_SIZE, Anchor::Left);
        }
        let y = area.top + 0.5 * LEGEND_ROW + LEGEND_ROW * (self.samples.len() as f64 + 0.3);
        canvas.text(&self.note, [left, y], LABEL_SIZE, Anchor::Left);
    }
}

/// Fewer and wider cells where there are too many to be seen.
fn thinned(bins: Bins) -> Bins {
    let together = (bins.count as f64 / MOST_BINS).ceil().max(1.0);
    let count = (bins.count as f64 / together).ceil();
    let fewer = (1..=bins.count).find(|&c| c as f64 >= count).unwrap_or(bins.count);
    Bins { low: bins.low, width: bins.width * together, count: fewer }
}

/// A layer of `colour` on what lies below.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
fn mixed(below: Rgb<u8>, colour: Rgb<u8>) -> Rgb<u8> {
    let channel = |c: usize| {
        (f64::from(below.0[c]) * (1.0 - COVER) + f64::from(colour.0[c]) * COVER).round() as u8
    };
    Rgb([channel(0), channel(1), channel(2)])
}

#[cfg(test)]
mod tests {
    use crate::rng::Stream;

    use super::*;
    use crate::figure::save;

    fn sample(name: &str, mean: f64, std_dev: f64) -> Sample {
        let mut numbers = vec![0.0_f32; 400];
        Stream::new(3, name).fill_normal(0, 0, &mut numbers);
        let values = numbers.into_iter().map(|z| mean + std_dev * f64::from(z)).collect();
        Sample { name: name.to_owned(), values }
    }

    #[test]
    fn histograms_are_drawn_with_a_blank_edge() {
        let plot = HistogramPlot {
            title: "Energies of chairs".to_owned(),
            samples: vec![
                sample("held-out sets", -1.2, 0.2),
                sample("generated sets", -1.05, 0.22),
                sample("noise", 1.5, 0.3),
            ],
            x_label: "-f per element".to_owned(),
            note: "overlap 0.71 (0.65 to 0.77)".to_owned(),
            scale: 2,
        };
        let image = plot.draw().expect("a picture");
        let (width, height) = image.dimensions();
        let edge = (0..width)
            .flat_map(|x| [(x, 0), (x, height - 1)])
            .chain((0..height).flat_map(|y| [(0, y), (width - 1, y)]));
        for (x, y) in edge {
            assert_eq!(*image.get_pixel(x, y), WHITE);
        }
        if let Some(keep) = std::env::var_os("EBP_PICTURES") {
            save(&image, &std::path::Path::new(&keep).join("histogram.png")).expect("written");
        }
        let empty = HistogramPlot { samples: Vec::new(), ..plot };
        assert!(empty.draw().is_err());
    }

    #[test]
    fn too_many_cells_are_joined() {
        let bins = thinned(Bins { low: 0.0, width: 0.5, count: 150 });
        assert_eq!(bins, Bins { low: 0.0, width: 1.5, count: 50 });
    }
}
