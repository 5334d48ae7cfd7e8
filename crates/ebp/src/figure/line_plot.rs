//! Line plots: several named series over one axis, such as losses over steps.

use image::RgbImage;

use super::axis::{Axis, Scale};
use super::canvas::{Anchor, Area, Canvas};
use super::colour;
use super::frame::{Frame, LABEL_SIZE, SPACE, text_width};
use crate::{Error, Result};

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 190.0;
const OUTER_MARGIN: f64 = 10.0;
const LINE_WIDTH: f64 = 1.5;
/// The line before a name in the legend.
const SAMPLE_WIDTH: f64 = 16.0;
const LEGEND_ROW: f64 = 13.0;

/// A named curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// (x, y) in the order of drawing. The line breaks where one is not finite, or not positive
    /// on a logarithmic axis.
    pub points: Vec<[f64; 2]>,
}

/// A figure of curves.
#[derive(Clone, Debug)]
pub struct LinePlot {
    /// What stands above it; may be empty.
    pub title: String,
    /// The curves, in the order of the legend.
    pub series: Vec<Series>,
    /// What the x axis means.
    pub x_label: String,
    /// What the y axis means.
    pub y_label: String,
    /// How the x axis is laid out.
    pub x_scale: Scale,
    /// How the y axis is laid out.
    pub y_scale: Scale,
    /// Pixels per point; 2 is good for screens, 4 for print.
    pub scale: u32,
}

impl LinePlot {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if there is nothing to draw or a panel has the wrong size.
    pub fn draw(&self) -> Result<RgbImage> {
        if self.series.is_empty() {
            return Err(Error::failed("a plot needs at least one series"));
        }
        let x = self.axis(0, self.x_scale);
        let y = self.axis(1, self.y_scale);
        let frame = Frame {
            x: &x,
            y: &y,
            title: &self.title,
            x_label: &self.x_label,
            y_label: &self.y_label,
            has_grid: true,
        };
        let margins = frame.margins();
        let area = Area {
            left: OUTER_MARGIN + margins.left,
            top: OUTER_MARGIN + margins.top,
            width: WIDTH,
            height: HEIGHT,
        };
        let legend = self.legend_width();
        let width = area.right() + margins.right.max(legend) + OUTER_MARGIN;
        let height = area.bottom() + margins.bottom + OUTER_MARGIN;
        let mut canvas = Canvas::new(width, height, self.scale);
        frame.draw_grid(&mut canvas, area);
        for (number, series) in self.series.iter().enumerate() {
            let place = |[px, py]: &[f64; 2]| {
                [
                    area.left + area.width * x.position(*px),
                    area.top + area.height * (1.0 - y.position(*py)),
                ]
            };
            let places: Vec<[f64; 2]> = series.points.iter().map(place).collect();
            let colour = colour::series(number);
            canvas.polyline(&places, LINE_WIDTH, colour, area);
            if let [only] = places[..] {
                canvas.dot(only, 2.0 * LINE_WIDTH, [colour; 2], area);
            }
        }
        frame.draw(&mut canvas, area);
        self.draw_legend(&mut canvas, area);
        Ok(canvas.into_image())
    }

    /// The axis of coordinate `index`, with a margin around the data.
    fn axis(&self, index: usize, scale: Scale) -> Axis {
        let is_shown = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
        let all = || {
            let points = self.series.iter().flat_map(|series| &series.points);
            points.map(|point| point[index]).filter(is_shown)
        };
        let low = all().fold(f64::INFINITY, f64::min);
        let high = all().fold(f64::NEG_INFINITY, f64::max);
        let margin = if index == 0 { 0.0 } else { 0.04 };
        let (low, high) = match scale {
            Scale::Linear => (low - margin * (high - low), high + margin * (high - low)),
            Scale::Logarithmic => {
                let ratio = (high / low).powf(margin);
                (low / ratio, high * ratio)
            }
        };
        Axis::new(low, high, scale, if index == 0 { 6 } else { 5 })
    }

    /// The room of the legend to the right of the data; none for one series.
    fn legend_width(&self) -> f64 {
        if self.series.len() < 2 {
            return 0.0;
        }
        let names = self.series.iter().map(|series| text_width(&series.name, LABEL_SIZE));
        2.0 * SPACE + SAMPLE_WIDTH + SPACE + names.fold(0.0, f64::max)
    }

    fn draw_legend(&self, canvas: &mut Canvas, area: Area) {
        if self.series.len() < 2 {
            return;
        }
        let left = area.right() + 2.0 * SPACE;
        for (number, series) in self.series.iter().enumerate() {
            let y = area.top + 0.5 * LEGEND_ROW + LEGEND_ROW * number as f64;
            let right = left + SAMPLE_WIDTH;
            let everywhere = Area { left: 0.0, top: 0.0, width: f64::MAX, height: f64::MAX };
            let sample = [[left, y], [right, y]];
            canvas.polyline(&sample, LINE_WIDTH, colour::series(number), everywhere);
            canvas.text(&series.name, [right + SPACE, y], LABEL_SIZE, Anchor::Left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::save;

    fn series(name: &str, curve: impl Fn(f64) -> f64) -> Series {
        let points = (0..=200).map(|k| [f64::from(10 * k), curve(f64::from(k))]).collect();
        Series { name: name.to_owned(), points }
    }

    fn plot() -> LinePlot {
        LinePlot {
            title: "Excess over the true density".to_owned(),
            series: vec![
                series("sines", |k| 0.9 * (-k / 25.0).exp() + 0.015 + 0.003 * (k * 0.9).sin()),
                series("lines", |k| 0.7 * (-k / 12.0).exp() + 0.004 + 0.001 * (k * 1.7).sin()),
                series("circle", |k| 2.0 * (-k / 30.0).exp() + 0.022 + 0.004 * (k * 1.1).cos()),
                series("phase, 30 context points", |k| 1.1 * (-k / 90.0).exp()),
            ],
            x_label: "training step".to_owned(),
            y_label: "excess in nats per element".to_owned(),
            x_scale: Scale::Linear,
            y_scale: Scale::Logarithmic,
            scale: 2,
        }
    }

    #[test]
    fn a_plot_is_drawn_with_a_blank_edge() {
        for y_scale in [Scale::Logarithmic, Scale::Linear] {
            let image = LinePlot { y_scale, ..plot() }.draw().expect("a plot");
            let (width, height) = image.dimensions();
            let edge = (0..width)
                .flat_map(|x| [(x, 0), (x, height - 1)])
                .chain((0..height).flat_map(|y| [(0, y), (width - 1, y)]));
            for (x, y) in edge {
                assert_eq!(*image.get_pixel(x, y), colour::WHITE);
            }
            if let Some(keep) = std::env::var_os("EBP_PICTURES") {
                let name = format!("line_plot_{y_scale:?}.png");
                save(&image, &std::path::Path::new(&keep).join(name)).expect("written");
            }
        }
    }

    #[test]
    fn odd_data_are_drawn_too() {
        let odd = [
            vec![],
            vec![[1.0, 2.0]],
            vec![[0.0, f64::NAN], [1.0, -1.0], [2.0, f64::INFINITY]],
            vec![[0.0, 1e300], [1.0, -1e300]],
        ];
        for points in odd {
            for y_scale in [Scale::Logarithmic, Scale::Linear] {
                let series = vec![Series { name: "a".into(), points: points.clone() }];
                assert!(LinePlot { series, y_scale, ..plot() }.draw().is_ok());
            }
        }
        assert!(LinePlot { series: Vec::new(), ..plot() }.draw().is_err());
    }
}
