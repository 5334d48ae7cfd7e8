//! A scatter plot: points of the plane, a colour for every group, the same unit on both axes.

use super::axis::{Axis, Scale};
use super::colour;
use super::drawing::{Area, Drawing};
use super::frame::{Frame, OUTER_MARGIN, place_in};
use super::legend::{Legend, Sample};
use super::marker;
use super::theme::Colour;
use crate::{Error, Result};

const SIDE: f64 = 190.0;

/// A named group of points.
#[derive(Clone, Debug)]
pub struct Group {
    /// What the legend calls it.
    pub name: String,
    /// Its points.
    pub points: Vec<[f64; 2]>,
}

/// A figure of points.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// What stands above it; may be empty.
    pub title: String,
    /// The groups, in the order of the legend.
    pub groups: Vec<Group>,
    /// What the axes mean.
    pub labels: [String; 2],
}

impl Scatter {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if there is no point or one is not finite.
    pub fn draw(&self) -> Result<Drawing> {
        let all = || self.groups.iter().flat_map(|group| &group.points);
        if all().count() == 0 || all().flatten().any(|x| !x.is_finite()) {
            return Err(Error::failed("a scatter plot needs points, all of them finite"));
        }
        let ends = [0, 1].map(|index| {
            let numbers = || all().map(|point| point[index]);
            let (low, high) = (
                numbers().fold(f64::INFINITY, f64::min),
                numbers().fold(f64::NEG_INFINITY, f64::max),
            );
            (0.5 * (low + high), high - low)
        });
        let half = 0.53 * ends[0].1.max(ends[1].1).max(1e-9);
        let [x, y] =
            ends.map(|(middle, _)| Axis::new(middle - half, middle + half, Scale::Linear, 5));
        let frame = Frame {
            x: &x,
            y: &y,
            title: &self.title,
            x_label: &self.labels[0],
            y_label: &self.labels[1],
            has_grid: true,
            has_numbers: [true; 2],
        };
        let (margins, legend) = (frame.margins(), self.legend());
        let above = legend.above(SIDE);
        let area = Area {
            left: OUTER_MARGIN + margins.left,
            top: OUTER_MARGIN + margins.top + above,
            width: SIDE,
            height: SIDE,
        };
        let width = area.right() + margins.right.max(legend.beside(SIDE)) + OUTER_MARGIN;
        let mut drawing = Drawing::new(width, area.bottom() + margins.bottom + OUTER_MARGIN);
        frame.draw_grid(&mut drawing, area);
        for (number, group) in self.groups.iter().enumerate() {
            for point in &group.points {
                let dot = (place_in(area, &x, &y, *point), marker::RADIUS);
                marker::draw(&mut drawing, number, dot, self.colour(number), area);
            }
        }
        frame.draw(&mut drawing, area, above);
        legend.draw(&mut drawing, area);
        Ok(drawing)
    }

    /// Nothing for one group alone.
    fn legend(&self) -> Legend {
        let sample = |(number, group): (usize, &Group)| {
            (Sample::Marker { number, colour: self.colour(number) }, group.name.clone())
        };
        let entries = self.groups.iter().enumerate().map(sample);
        Legend { entries: if self.groups.len() > 1 { entries.collect() } else { Vec::new() } }
    }

    /// A few groups in the colours of series, many along a scale.
    fn colour(&self, number: usize) -> Colour {
        const FEW: usize = 5;
        if self.groups.len() <= FEW {
            return Colour::Fixed(colour::series(number));
        }
        // The ends of the scale are hard to see on paper, dark or light.
        let share = number as f64 / (self.groups.len() - 1) as f64;
        Colour::Fixed(colour::viridis(0.2 + 0.72 * share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Theme;
    use crate::figure::tests::{assert_blank_edge, keep};

    #[test]
    fn points_are_drawn_and_nothing_is_refused() {
        let group = |name: &str, points: Vec<[f64; 2]>| Group { name: name.into(), points };
        let plot =
            |groups| Scatter { title: "map".into(), groups, labels: ["t1".into(), "t2".into()] };
        let both = vec![group("a", vec![[0.0, 0.0]]), group("b", vec![[3.0, 1.0], [2.0, 2.0]])];
        let drawing = plot(both).draw().unwrap();
        assert_blank_edge(&drawing);
        let ink = colour::series(1);
        // Two squares and one in the legend, of sides 2 · 0.88 · 2.3 points less the border.
        let found = drawing.image(Theme::Light).pixels().filter(|pixel| **pixel == ink).count();
        let side = (1.76 * marker::RADIUS - 0.4) * 300.0 / 72.0;
        assert!((found as f64 / (3.0 * side * side) - 1.0).abs() < 0.15, "{found}");
        let many = (0..7_u32).map(|k| {
            let angle = |i: u32| f64::from(i) * 0.3 + f64::from(k);
            let points = (0..20).map(|i| [angle(i).cos() + f64::from(k), angle(i).sin()]).collect();
            group(&format!("group {k}"), points)
        });
        let drawing = plot(many.collect()).draw().unwrap();
        assert_blank_edge(&drawing);
        keep(&drawing, "scatter");
        assert!(plot(vec![]).draw().is_err());
        assert!(plot(vec![group("a", vec![[f64::NAN, 0.0]])]).draw().is_err());
    }
}
