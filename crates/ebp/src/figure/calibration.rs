//! Calibration of one or several laws: histograms of positions and their distance from the diagonal, each
//! with the band in which 95 % of uniform samples lie.

use super::line_plot::{Band, LinePlot, Series, Style};
use super::{Drawing, stack};
use crate::Result;
use crate::metric::uniformity::Uniformity;

/// A row of two plots for each law.
#[derive(Clone, Debug)]
pub struct CalibrationPlot {
    /// Names and positions.
    pub panels: Vec<(String, Uniformity)>,
}

impl CalibrationPlot {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) if there is nothing to draw.
    pub fn draw(&self) -> Result<Drawing> {
        let mut plots = Vec::with_capacity(2 * self.panels.len());
        for (name, found) in &self.panels {
            plots.push(histogram(name, found).draw()?);
            plots.push(difference(name, found).draw()?);
        }
        Ok(stack(&plots, 2))
    }
}

/// Shares of cells, 1 for a uniform sample.
fn histogram(name: &str, found: &Uniformity) -> LinePlot {
    let num_cells = found.histogram.len() as f64;
    let height = |count: usize| count as f64 * num_cells / found.count as f64;
    let steps = found.histogram.iter().enumerate().flat_map(|(cell, &count)| {
        let [left, right] = [cell, cell + 1].map(|edge| edge as f64 / num_cells);
        [[left, height(count)], [right, height(count)]]
    });
    let outline = std::iter::once([0.0, 0.0]).chain(steps).chain([[1.0, 0.0]]);
    let (low, high) = found.histogram_band;
    let edges = [0.0, 1.0].map(|u| [u, height(low), height(high)]);
    plot(
        format!("{name}: {} positions", found.count),
        ("position u", "density"),
        (outline.collect(), 1.0),
        edges.to_vec(),
    )
}

/// Share of positions up to z, less z.
fn difference(name: &str, found: &Uniformity) -> LinePlot {
    let inner = Uniformity::levels().zip(&found.shares).map(|(z, share)| [z, share - z]);
    let curve = std::iter::once([0.0, 0.0]).chain(inner).chain([[1.0, 0.0]]).collect();
    let levels = Uniformity::levels().zip(&found.band);
    let band = levels.map(|(z, (low, high))| [z, low - z, high - z]);
    let edges = std::iter::once([0.0; 3]).chain(band).chain([[1.0, 0.0, 0.0]]).collect();
    let word = if found.is_within { "within" } else { "outside" };
    plot(
        format!("{name}: {word} the band, p = {:.3}", found.p_value),
        ("level z", "share up to z, less z"),
        (curve, 0.0),
        edges,
    )
}

/// What was found, what a uniform sample has on average, and the band around that.
fn plot(
    title: String,
    (x_label, y_label): (&str, &str),
    (found, expected): (Vec<[f64; 2]>, f64),
    edges: Vec<[f64; 3]>,
) -> LinePlot {
    let series = |name: &str, points, style| Series { name: name.to_owned(), points, style };
    let uniform = vec![[0.0, expected], [1.0, expected]];
    LinePlot {
        title,
        series: vec![
            series("found", found, Style::Line),
            series("uniform", uniform, Style::Reference),
        ],
        bands: vec![Band { name: "95 % of uniform samples".into(), edges }],
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        ..LinePlot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::tests::{assert_blank_edge, keep};

    #[test]
    fn every_law_has_two_plots() {
        let positions: Vec<f64> = (0..100).map(|i| (f64::from(i) + 0.5) / 100.0).collect();
        let found = Uniformity::of(&positions, 10).expect("uniform");
        let draw = |names: &[&str]| {
            let panels = names.iter().map(|name| ((*name).to_owned(), found.clone())).collect();
            CalibrationPlot { panels }.draw().expect("a picture")
        };
        let (one, two) = (draw(&["a"]), draw(&["a", "b"]));
        assert_eq!((two.size()[0], two.size()[1]), (one.size()[0], 2.0 * one.size()[1]));
        assert_blank_edge(&two);
        keep(&two, "calibration");
        draw(&[]);
    }
}
