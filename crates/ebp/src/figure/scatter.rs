//! A scatter plot: points of the plane, a colour for every group, the same unit on both axes.

use image::RgbImage;

use super::axis::{Axis, Scale};
use super::canvas::{Anchor, Area, Canvas};
use super::colour::{self, WHITE};
use super::frame::{Frame, LABEL_SIZE, SPACE, text_width};
use crate::{Error, Result};

const SIDE: f64 = 260.0;
const OUTER_MARGIN: f64 = 10.0;
const RADIUS: f64 = 2.4;
const LEGEND_ROW: f64 = 13.0;

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
    /// Pixels per point; 2 is good for screens, 4 for print.
    pub scale: u32,
}

impl Scatter {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if there is no point or one is not finite.
    pub fn draw(&self) -> Result<RgbImage> {
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
        };
        let margins = frame.margins();
        let area = Area {
            left: OUTER_MARGIN + margins.left,
            top: OUTER_MARGIN + margins.top,
            width: SIDE,
            height: SIDE,
        };
        let names = self.groups.iter().map(|group| text_width(&group.name, LABEL_SIZE));
        let legend = match self.groups.len() {
            1 => 0.0,
            _ => 4.0 * SPACE + names.fold(0.0, f64::max),
        };
        let width = area.right() + margins.right.max(legend) + OUTER_MARGIN;
        let height = area.bottom() + margins.bottom + OUTER_MARGIN;
        let mut canvas = Canvas::new(width, height, self.scale);
        frame.draw_grid(&mut canvas, area);
        for (number, group) in self.groups.iter().enumerate() {
            for [px, py] in &group.points {
                let place = [
                    area.left + area.width * x.position(*px),
                    area.top + area.height * (1.0 - y.position(*py)),
                ];
                canvas.dot(place, RADIUS, [self.colour(number), WHITE], area);
            }
        }
        frame.draw(&mut canvas, area);
        if self.groups.len() > 1 {
            let everywhere = Area { left: 0.0, top: 0.0, width: f64::MAX, height: f64::MAX };
            for (number, group) in self.groups.iter().enumerate() {
                let top = area.top + 0.5 * LEGEND_ROW + LEGEND_ROW * number as f64;
                let left = area.right() + 2.0 * SPACE;
                canvas.dot([left, top], RADIUS, [self.colour(number), WHITE], everywhere);
                canvas.text(&group.name, [left + SPACE, top], LABEL_SIZE, Anchor::Left);
            }
        }
        Ok(canvas.into_image())
    }

    /// A few groups in the colours of series, many along a scale.
    fn colour(&self, number: usize) -> image::Rgb<u8> {
        const FEW: usize = 5;
        if self.groups.len() <= FEW {
            return colour::series(number);
        }
        colour::viridis(number as f64 / (self.groups.len() - 1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_drawn_and_nothing_is_refused() {
        let group = |name: &str, points: Vec<[f64; 2]>| Group { name: name.into(), points };
        let plot = |groups| Scatter {
            title: "map".into(),
            groups,
            labels: ["t1".into(), "t2".into()],
            scale: 1,
        };
        let both = vec![group("a", vec![[0.0, 0.0]]), group("b", vec![[3.0, 1.0], [2.0, 2.0]])];
        let picture = plot(both).draw().unwrap();
        let ink = colour::series(1);
        // Two dots and one in the legend, of radius 2.4: about 18 pixels each, less their edges.
        let found = picture.pixels().filter(|pixel| **pixel == ink).count();
        assert!((10..=60).contains(&found), "{found}");
        assert!(plot(vec![]).draw().is_err());
        assert!(plot(vec![group("a", vec![[f64::NAN, 0.0]])]).draw().is_err());
    }
}
