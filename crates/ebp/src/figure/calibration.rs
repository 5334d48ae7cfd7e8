//! Calibration of one or several laws: histograms of positions and their distance from the diagonal, each
//! with the band in which 95 % of uniform samples lie.

use image::RgbImage;

use super::axis::Scale;
use super::line_plot::{LinePlot, Series};
use super::stack;
use crate::Result;
use crate::metric::uniformity::Uniformity;

/// A row of two plots for each law.
#[derive(Clone, Debug)]
pub struct CalibrationPlot {
    /// Names and positions.
    pub panels: Vec<(String, Uniformity)>,
    /// Pixels per point.
    pub scale: u32,
}

impl CalibrationPlot {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) if there is nothing to draw.
    pub fn draw(&self) -> Result<RgbImage> {
        let mut plots = Vec::with_capacity(2 * self.panels.len());
        for (name, found) in &self.panels {
            plots.push(self.histogram(name, found).draw()?);
            plots.push(self.difference(name, found).draw()?);
        }
        Ok(stack(&plots, 2))
    }

    /// Shares of cells, 1 for a uniform sample.
    fn histogram(&self, name: &str, found: &Uniformity) -> LinePlot {
        let num_cells = found.histogram.len() as f64;
        let height = |count: usize| count as f64 * num_cells / found.count as f64;
        let steps = found.histogram.iter().enumerate().flat_map(|(cell, &count)| {
            let [left, right] = [cell, cell + 1].map(|edge| edge as f64 / num_cells);
            [[left, height(count)], [right, height(count)]]
        });
        let outline = std::iter::once([0.0, 0.0]).chain(steps).chain([[1.0, 0.0]]);
        let (low, high) = found.histogram_band;
        let line = |count: usize| vec![[0.0, height(count)], [1.0, height(count)]];
        self.plot(
            format!("{name}: {} positions", found.count),
            ("position u", "density"),
            [outline.collect(), line(low), line(high)],
        )
    }

    /// Share of positions up to z, less z.
    fn difference(&self, name: &str, found: &Uniformity) -> LinePlot {
        let curve = |values: &mut dyn Iterator<Item = f64>| {
            let inner = Uniformity::levels().zip(values).map(|(z, share)| [z, share - z]);
            std::iter::once([0.0, 0.0]).chain(inner).chain([[1.0, 0.0]]).collect()
        };
        let word = if found.is_within { "within" } else { "outside" };
        self.plot(
            format!("{name}: {word} the band, p = {:.3}", found.p_value),
            ("level z", "share up to z, less z"),
            [
                curve(&mut found.shares.iter().copied()),
                curve(&mut found.band.iter().map(|band| band.0)),
                curve(&mut found.band.iter().map(|band| band.1)),
            ],
        )
    }

    fn plot(
        &self,
        title: String,
        (x_label, y_label): (&str, &str),
        [found, low, high]: [Vec<[f64; 2]>; 3],
    ) -> LinePlot {
        let series = |name: &str, points| Series { name: name.to_owned(), points };
        // One line for both edges: the gap breaks it.
        let gap = [[f64::NAN, f64::NAN]];
        let band = [low, gap.to_vec(), high].concat();
        LinePlot {
            title,
            series: vec![series("found", found), series("95 % band", band)],
            x_label: x_label.to_owned(),
            y_label: y_label.to_owned(),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            scale: self.scale,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_law_has_two_plots() {
        let positions: Vec<f64> = (0..100).map(|i| (f64::from(i) + 0.5) / 100.0).collect();
        let found = Uniformity::of(&positions, 10).expect("uniform");
        let one = CalibrationPlot { panels: vec![("a".into(), found.clone())], scale: 1 };
        let two = CalibrationPlot {
            panels: vec![("a".into(), found.clone()), ("b".into(), found)],
            scale: 1,
        };
        let [one, two] = [one, two].map(|plot| plot.draw().expect("a picture"));
        assert_eq!((two.width(), two.height()), (one.width(), 2 * one.height()));
        assert!(CalibrationPlot { panels: Vec::new(), scale: 1 }.draw().is_ok());
    }
}
