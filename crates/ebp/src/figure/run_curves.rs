//! The curves of a run, from its `metrics.jsonl`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::line_plot::{LinePlot, Series, Style};
use super::{Drawing, Scale, stack};
use crate::{Error, Result};

/// Longer curves are averaged over this many windows, drawn over the curve itself.
const NUM_WINDOWS: usize = 100;

/// One panel per quantity from step `from` on; those of `only`, or all.
///
/// # Errors
///
/// [`Error::Refused`] if there is no such file, quantity or step, [`Error::Failed`] if it holds
/// something else.
pub fn draw(path: &Path, only: &[String], from: u64) -> Result<Drawing> {
    let mut curves = read_curves(path)?;
    if !only.is_empty() {
        for name in only {
            if !curves.iter().any(|(known, _)| known == name) {
                let known: Vec<_> = curves.iter().map(|(name, _)| name.as_str()).collect();
                return Err(Error::refused(format!(
                    "`{}` has no quantity `{name}`",
                    path.display()
                ))
                .with_help(format!("recorded are: {}", known.join(", "))));
            }
        }
        curves.retain(|(name, _)| only.contains(name));
    }
    let last = curves.iter().flat_map(|(_, points)| points).fold(0.0, |last, p| p[0].max(last));
    for (_, points) in &mut curves {
        points.retain(|point| point[0] >= from as f64);
    }
    curves.retain(|(_, points)| !points.is_empty());
    if curves.is_empty() {
        return Err(Error::refused(format!(
            "`{}` has nothing from step {} on",
            path.display(),
            from
        ))
        .with_help(format!("its last step is {last}")));
    }
    let mut panels = Vec::new();
    for (name, points) in curves {
        panels.push(panel(&name, points)?);
    }
    Ok(stack(&panels, if panels.len() > 3 { 2 } else { 1 }))
}

/// Points (step, value) of every quantity, in the order of first appearance.
type Curves = Vec<(String, Vec<[f64; 2]>)>;

fn read_curves(path: &Path) -> Result<Curves> {
    let file = File::open(path).map_err(|error| {
        Error::refused(format!("cannot read `{}`: {error}", path.display()))
            .with_help("give the folder of a run, such as runs/sines")
    })?;
    let mut curves: Curves = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let wrong = |reason: String| {
            Error::failed(format!("`{}`, line {}: {reason}", path.display(), number + 1))
        };
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let record: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
        let Some(step) = record.get("step").and_then(serde_json::Value::as_f64) else {
            continue;
        };
        for (name, value) in flatten(&record) {
            let place = *places.entry(name.clone()).or_insert_with(|| {
                curves.push((name, Vec::new()));
                curves.len() - 1
            });
            curves[place].1.push([step, value]);
        }
    }
    if curves.is_empty() {
        return Err(Error::failed(format!("`{}` has no records yet", path.display())));
    }
    Ok(curves)
}

/// All numbers of a record but the step, those of inner objects too.
fn flatten(record: &serde_json::Map<String, serde_json::Value>) -> Vec<(String, f64)> {
    let mut numbers = Vec::new();
    for (name, value) in record {
        match value {
            serde_json::Value::Object(inner) => numbers.extend(flatten(inner)),
            value => {
                if let Some(number) = value.as_f64().filter(|_| name != "step") {
                    numbers.push((name.clone(), number));
                }
            }
        }
    }
    numbers
}

fn panel(name: &str, points: Vec<[f64; 2]>) -> Result<Drawing> {
    let values = || points.iter().map(|point| point[1]);
    let smallest = values().fold(f64::INFINITY, f64::min);
    let largest = values().fold(f64::NEG_INFINITY, f64::max);
    // Over more than two decades only a logarithmic axis shows anything.
    let is_wide = smallest > 0.0 && largest > 100.0 * smallest;
    let series = |name: &str, points, style| Series { name: name.to_owned(), points, style };
    let series = if points.len() > 2 * NUM_WINDOWS {
        let length = points.len().div_ceil(NUM_WINDOWS);
        let average = averages(&points);
        vec![
            series("as recorded", points, Style::Faint),
            series(&format!("average of {length} records"), average, Style::Line),
        ]
    } else {
        vec![series(name, points, Style::Line)]
    };
    let plot = LinePlot {
        title: name.to_owned(),
        series,
        x_label: "training step".into(),
        y_scale: if is_wide { Scale::Logarithmic } else { Scale::Linear },
        ..LinePlot::default()
    };
    plot.draw()
}

/// Means over windows of equal length.
fn averages(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let mean = |window: &[[f64; 2]], axis: usize| {
        window.iter().map(|point| point[axis]).sum::<f64>() / window.len() as f64
    };
    let length = points.len().div_ceil(NUM_WINDOWS);
    // A last window of a few points would jump about.
    let windows = points.chunks(length).filter(|window| 2 * window.len() > length);
    windows.map(|window| [mean(window, 0), mean(window, 1)]).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::figure::Theme;
    use crate::figure::svg::tests::words;
    use crate::figure::tests::{assert_blank_edge, keep};

    #[test]
    fn long_curves_are_averaged_and_keep_their_mean() {
        let points: Vec<[f64; 2]> = (0..1000).map(|i| [f64::from(i), f64::from(i % 7)]).collect();
        let smooth = averages(&points);
        assert_eq!(smooth.len(), 100);
        assert!(smooth.iter().all(|point| (point[1] - 3.0).abs() < 1.0));
    }

    #[test]
    fn every_quantity_has_its_panel() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut text = String::new();
        for step in 0..5000 {
            let noise = f64::from(step * 37 % 101) / 101.0 - 0.5;
            let loss = 3.0 * (-f64::from(step) / 800.0).exp() + 0.4 + 0.3 * noise;
            writeln!(
                text,
                "{{\"step\":{step},\"loss\":{loss},\"other\":{{\"rate\":{}}}}}",
                0.99_f64.powi(step / 5)
            )
            .unwrap();
        }
        std::fs::write(&path, text).unwrap();
        let drawing = draw(&path, &[], 0).unwrap();
        assert_blank_edge(&drawing);
        keep(&drawing, "run_curves");
        let svg = drawing.svg(Theme::Light).unwrap();
        let words = words(&svg);
        for word in ["loss", "rate", "as recorded", "average of 50 records", "training step"] {
            assert!(words.iter().any(|found| found == word), "{words:?}");
        }
        // Ten thousand points are thinned to what can be seen.
        assert!(svg.len() < 150_000, "{}", svg.len());
        assert!(draw(&path, &["no such".to_owned()], 0).is_err());
        assert!(draw(&path, &[], 5000).is_err());
    }
}
