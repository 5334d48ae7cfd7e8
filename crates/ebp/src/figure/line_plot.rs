//! Line plots: several named series over one axis, such as losses over steps.

use super::axis::{Axis, Scale};
use super::colour;
use super::drawing::{Area, Drawing, Paint};
use super::frame::{Frame, OUTER_MARGIN, place_in};
use super::legend::{Legend, Sample, series as paint_of};
use super::theme::Colour;
use crate::{Error, Result};

const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 138.0;
const LINE_WIDTH: f64 = 1.25;
const FAINT_WIDTH: f64 = 0.6;
const DOT_RADIUS: f64 = 1.1;
/// How much of what lies behind a band is covered by it, or by a faint line.
const BAND: f64 = 0.16;
const FAINT: f64 = 0.4;

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// A line in its own colour and dashes.
    #[default]
    Line,
    /// A thin, light line in the colour of the first series: what the others are averages of.
    Faint,
    /// Dots in its own colour.
    Dots,
    /// A dashed line in ink: what the others are compared with.
    Reference,
}

/// A named curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// (x, y) in the order of drawing. The line breaks where one is not finite, or not positive
    /// on a logarithmic axis.
    pub points: Vec<[f64; 2]>,
    /// How it is drawn.
    pub style: Style,
}

/// A named range of y over x, behind the series.
#[derive(Clone, Debug)]
pub struct Band {
    /// What the legend calls it.
    pub name: String,
    /// (x, low, high), x rising.
    pub edges: Vec<[f64; 3]>,
}

/// A figure of curves.
#[derive(Clone, Debug, Default)]
pub struct LinePlot {
    /// What stands above it; may be empty.
    pub title: String,
    /// The curves, in the order of the legend.
    pub series: Vec<Series>,
    /// Ranges behind them.
    pub bands: Vec<Band>,
    /// What the x axis means.
    pub x_label: String,
    /// What the y axis means.
    pub y_label: String,
    /// How the x axis is laid out.
    pub x_scale: Scale,
    /// How the y axis is laid out.
    pub y_scale: Scale,
}

impl LinePlot {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if there is nothing to draw.
    pub fn draw(&self) -> Result<Drawing> {
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
        let place = |point: [f64; 2]| place_in(area, &x, &y, point);
        for band in &self.bands {
            let low = band.edges.iter().map(|[x, low, _]| place([*x, *low]));
            let high = band.edges.iter().rev().map(|[x, _, high]| place([*x, *high]));
            let contour: Vec<[f64; 2]> = low.chain(high).collect();
            drawing.polygon(&contour, BAND_PAINT, area);
        }
        // What others are compared with lies below them.
        let (below, above_it): (Vec<_>, Vec<_>) = self
            .series
            .iter()
            .zip(self.looks())
            .partition(|(series, _)| series.style == Style::Reference);
        for (series, look) in below.into_iter().chain(above_it) {
            let places: Vec<[f64; 2]> = series.points.iter().map(|&point| place(point)).collect();
            if series.style == Style::Dots {
                for centre in places {
                    let border = (0.0, Colour::Paper);
                    drawing.dot(centre, DOT_RADIUS, look.paint.colour, border, area);
                }
                continue;
            }
            drawing.polyline(&places, look.width, (look.paint, look.dash), area);
            if let [only] = places[..] {
                let border = (0.0, Colour::Paper);
                drawing.dot(only, 2.0 * LINE_WIDTH, look.paint.colour, border, area);
            }
        }
        frame.draw(&mut drawing, area, above);
        legend.draw(&mut drawing, area);
        Ok(drawing)
    }

    /// The axis of coordinate `index`, with a margin around the data.
    fn axis(&self, index: usize, scale: Scale) -> Axis {
        let is_shown = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
        let all = || {
            let points = self.series.iter().flat_map(|series| &series.points);
            let bands = self.bands.iter().flat_map(|band| &band.edges);
            let edges = bands.flat_map(|[x, low, high]| [[*x, *low], [*x, *high]]);
            points.copied().chain(edges).map(|point| point[index]).filter(is_shown)
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
        Axis::new(low, high, scale, 5)
    }

    /// How each series is drawn; only lines and dots of their own take the next colour.
    fn looks(&self) -> impl Iterator<Item = Look> {
        let mut number = 0;
        self.series.iter().map(move |series| {
            let paint = paint_of(number);
            match series.style {
                Style::Line | Style::Dots => {
                    number += 1;
                    Look { paint, width: LINE_WIDTH, dash: colour::dashes(number - 1) }
                }
                Style::Faint => {
                    let paint = Paint { opacity: FAINT, ..paint_of(0) };
                    Look { paint, width: FAINT_WIDTH, dash: &[] }
                }
                Style::Reference => {
                    let paint = Paint::from(Colour::Ink);
                    Look { paint, width: 0.7 * LINE_WIDTH, dash: colour::dashes(1) }
                }
            }
        })
    }

    /// Nothing for one series alone: the y axis says what it is.
    fn legend(&self) -> Legend {
        let mut entries = Vec::new();
        if self.series.len() + self.bands.len() > 1 {
            for (series, look) in self.series.iter().zip(self.looks()) {
                let dash = if series.style == Style::Dots { colour::dashes(2) } else { look.dash };
                let sample = Sample::Line { paint: look.paint, width: look.width, dash };
                entries.push((sample, series.name.clone()));
            }
            for band in &self.bands {
                let sample = Sample::Patch { paint: BAND_PAINT, has_border: false };
                entries.push((sample, band.name.clone()));
            }
        }
        Legend { entries }
    }
}

const BAND_PAINT: Paint = Paint { colour: Colour::Ink, opacity: BAND };

/// What a line looks like.
struct Look {
    paint: Paint,
    width: f64,
    dash: &'static [f64],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::svg::tests::words;
    use crate::figure::tests::{assert_blank_edge, keep};
    use crate::figure::{Theme, drawing::Mark};

    fn series(name: &str, curve: impl Fn(f64) -> f64) -> Series {
        let points = (0..=200).map(|k| [f64::from(10 * k), curve(f64::from(k))]).collect();
        Series { name: name.to_owned(), points, style: Style::Line }
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
            y_label: "excess, nats per element".to_owned(),
            y_scale: Scale::Logarithmic,
            ..LinePlot::default()
        }
    }

    #[test]
    fn a_plot_is_drawn_with_a_blank_edge() {
        for y_scale in [Scale::Logarithmic, Scale::Linear] {
            let drawing = LinePlot { y_scale, ..plot() }.draw().expect("a plot");
            assert_blank_edge(&drawing);
            keep(&drawing, &format!("line_plot_{y_scale:?}"));
            let words = words(&drawing.svg(Theme::Light).expect("a file"));
            for label in ["training step", "excess, nats per element", "phase, 30 context points"] {
                assert!(words.iter().any(|word| word == label), "{words:?}");
            }
        }
    }

    /// Colours are not the only sign.
    #[test]
    fn every_series_has_its_colour_and_dashes() {
        let drawing = plot().draw().expect("a plot");
        let looks: Vec<_> = drawing
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Lines { paint, dash, .. } => Some((paint.colour, dash)),
                _ => None,
            })
            .collect();
        // Once in the data and once in the legend.
        assert_eq!(looks.len(), 8);
        for (index, look) in looks[..4].iter().enumerate() {
            assert_eq!(looks[4 + index], *look);
            assert!(looks[..index].iter().all(|other| other.0 != look.0 && other.1 != look.1));
        }
    }

    #[test]
    fn legends_stand_beside_the_data_or_above_them() {
        let legend_of = |plot: &LinePlot| {
            let drawing = plot.draw().expect("a plot");
            let area = drawing.data.expect("data");
            let names: Vec<&str> = plot.series.iter().map(|series| series.name.as_str()).collect();
            let places = drawing.marks.iter().filter_map(|mark| match mark {
                Mark::Text { words, place, .. } if names.contains(&words.as_str()) => Some(*place),
                _ => None,
            });
            (area, places.collect::<Vec<_>>())
        };
        let (area, long) = legend_of(&plot());
        assert!(long.len() == 4 && long.iter().all(|place| place[0] > area.right()));
        let (area, short) = legend_of(&LinePlot { series: plot().series[..2].to_vec(), ..plot() });
        assert!(short.len() == 2 && short.iter().all(|place| place[1] < area.top));
    }

    #[test]
    fn bands_and_references_are_drawn() {
        let wave = series("data", |k| (k / 20.0).sin());
        let edges = wave.points.iter().map(|[x, y]| [*x, y - 0.3, y + 0.3]).collect();
        let flat = Series { style: Style::Reference, ..series("mean", |_| 0.0) };
        let faint =
            Series { style: Style::Faint, ..series("raw", |k| (k / 20.0).sin() + (k * 9.0).sin()) };
        let dots = Series { style: Style::Dots, ..series("seen", |k| (k / 15.0).cos()) };
        let drawing = LinePlot {
            series: vec![faint, wave, flat, dots],
            bands: vec![Band { name: "95 % band".into(), edges }],
            y_scale: Scale::Linear,
            ..plot()
        }
        .draw()
        .expect("a plot");
        assert_blank_edge(&drawing);
        assert_eq!(drawing.marks.iter().filter(|m| matches!(m, Mark::Polygon { .. })).count(), 1);
        keep(&drawing, "line_plot_band");
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
                let series = vec![Series {
                    name: "a".into(),
                    points: points.clone(),
                    style: Style::default(),
                }];
                let drawing = LinePlot { series, y_scale, ..plot() }.draw().expect("a plot");
                words(&drawing.svg(Theme::Dark).expect("a file"));
            }
        }
        assert!(LinePlot { series: Vec::new(), ..plot() }.draw().is_err());
    }
}
