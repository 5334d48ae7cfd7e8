//! Overlapping histograms: which numbers two or three samples take, such as the energies of held-out
//! sets, of generated ones and of noise.

use super::axis::{Axis, Scale};
use super::colour;
use super::drawing::{Area, Drawing, Paint};
use super::frame::{Frame, OUTER_MARGIN, place_in};
use super::legend::{Legend, Sample as Shown, series};
use crate::Result;
use crate::metric::overlap::Bins;

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 130.0;
const LINE_WIDTH: f64 = 0.9;
/// How much of a sample's colour covers what lies behind it.
const COVER: f64 = 0.32;
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
    /// What stands after the legend, such as the overlap; may be empty.
    pub note: String,
}

impl HistogramPlot {
    /// Draws the figure: shares of each sample per cell, as densities.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) if there is nothing to draw.
    pub fn draw(&self) -> Result<Drawing> {
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
            has_grid: true,
            has_numbers: [true; 2],
        };
        let (margins, legend) = (frame.margins(), self.legend());
        let above = legend.above(WIDTH);
        let area = Area {
            left: OUTER_MARGIN + margins.left,
            top: OUTER_MARGIN + margins.top + above,
            width: WIDTH,
            height: HEIGHT,
        };
        let width = area.right() + margins.right.max(legend.beside(WIDTH)) + OUTER_MARGIN;
        let mut drawing = Drawing::new(width, area.bottom() + margins.bottom + OUTER_MARGIN);
        frame.draw_grid(&mut drawing, area);
        let outlines = heights.iter().map(|heights| {
            let place = |value: f64, level: f64| place_in(area, &x, &y, [value, level]);
            let mut steps = vec![place(bins.low, 0.0)];
            for (cell, &level) in heights.iter().enumerate() {
                let left = bins.low + bins.width * cell as f64;
                steps.extend([place(left, level), place(left + bins.width, level)]);
            }
            steps.push(place(end, 0.0));
            steps
        });
        let outlines: Vec<Vec<[f64; 2]>> = outlines.collect();
        for (number, outline) in outlines.iter().enumerate() {
            drawing.polygon(outline, Paint { opacity: COVER, ..series(number) }, area);
        }
        for (number, outline) in outlines.iter().enumerate() {
            let look = (series(number), colour::dashes(number));
            drawing.polyline(outline, LINE_WIDTH, look, area);
        }
        frame.draw(&mut drawing, area, above);
        legend.draw(&mut drawing, area);
        Ok(drawing)
    }

    fn legend(&self) -> Legend {
        let shown = |(number, sample): (usize, &Sample)| {
            let paint = Paint { opacity: COVER, ..series(number) };
            (Shown::Patch { paint, has_border: true }, sample.name.clone())
        };
        let note = (!self.note.is_empty()).then(|| (Shown::Nothing, self.note.clone()));
        Legend { entries: self.samples.iter().enumerate().map(shown).chain(note).collect() }
    }
}

/// Fewer and wider cells where there are too many to be seen.
fn thinned(bins: Bins) -> Bins {
    let together = (bins.count as f64 / MOST_BINS).ceil().max(1.0);
    let count = (bins.count as f64 / together).ceil();
    let fewer = (1..=bins.count).find(|&c| c as f64 >= count).unwrap_or(bins.count);
    Bins { low: bins.low, width: bins.width * together, count: fewer }
}

#[cfg(test)]
mod tests {
    use crate::rng::Stream;

    use super::*;
    use crate::figure::tests::{assert_blank_edge, keep};

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
            x_label: "energy −f, nats per element".to_owned(),
            note: "overlap 0.71 (0.65 to 0.77)".to_owned(),
        };
        let drawing = plot.draw().expect("a picture");
        assert_blank_edge(&drawing);
        keep(&drawing, "histogram");
        let empty = HistogramPlot { samples: Vec::new(), ..plot };
        assert!(empty.draw().is_err());
    }

    #[test]
    fn too_many_cells_are_joined() {
        let bins = thinned(Bins { low: 0.0, width: 0.5, count: 150 });
        assert_eq!(bins, Bins { low: 0.0, width: 1.5, count: 50 });
    }
}
