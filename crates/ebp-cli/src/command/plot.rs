//! `ebp plot`: the curves of a run, from its `metrics.jsonl`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use image::RgbImage;
use miette::miette;

use crate::failure::Failure;
use crate::output;
use ebp::figure::line_plot::{LinePlot, Series};
use ebp::figure::{Scale, save, stack};

/// Longer curves are averaged over this many windows, drawn over the curve itself.
const NUM_WINDOWS: usize = 100;

/// Arguments of `ebp plot`.
#[derive(Debug, Args)]
pub(crate) struct PlotArguments {
    /// Folder of a run
    run: PathBuf,

    /// Only these quantities, separated by commas [default: all that were recorded]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,

    /// Begin at this step; the first ones often dwarf all others
    #[arg(long, value_name = "STEP", default_value_t = 0)]
    from: u64,

    /// Where the picture goes [default: plots/curves.png in the run's folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Draws one panel per quantity, below each other.
pub(crate) fn run(arguments: PlotArguments) -> Result<(), Failure> {
    let path = arguments.run.join("metrics.jsonl");
    let mut curves = read_curves(&path)?;
    if !arguments.only.is_empty() {
        for name in &arguments.only {
            if !curves.iter().any(|(known, _)| known == name) {
                let known: Vec<_> = curves.iter().map(|(name, _)| name.as_str()).collect();
                return Err(Failure::Usage(miette!(
                    help = format!("recorded are: {}", known.join(", ")),
                    "`{}` has no quantity `{name}`",
                    path.display()
                )));
            }
        }
        curves.retain(|(name, _)| arguments.only.contains(name));
    }
    let last = curves.iter().flat_map(|(_, points)| points).fold(0.0, |last, p| p[0].max(last));
    for (_, points) in &mut curves {
        points.retain(|point| point[0] >= arguments.from as f64);
    }
    curves.retain(|(_, points)| !points.is_empty());
    if curves.is_empty() {
        return Err(Failure::Usage(miette!(
            help = format!("its last step is {last}"),
            "`{}` has nothing from step {} on",
            path.display(),
            arguments.from
        )));
    }
    let mut panels = Vec::new();
    for (name, points) in curves {
        panels.push(panel(&name, points)?);
    }
    let figure = stack(&panels, if panels.len() > 3 { 2 } else { 1 });
    let out = arguments.out.unwrap_or_else(|| arguments.run.join("plots").join("curves.png"));
    save(&figure, &out)?;
    output::print(&format!("picture  {}\n", out.display()))
}

/// Points (step, value) of every quantity, in the order of first appearance.
type Curves = Vec<(String, Vec<[f64; 2]>)>;

fn read_curves(path: &Path) -> Result<Curves, Failure> {
    let file = File::open(path).map_err(|error| {
        Failure::Usage(miette!(
            help = "give the folder of a run, such as runs/sines",
            "cannot read `{}`: {error}",
            path.display()
        ))
    })?;
    let mut curves: Curves = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let wrong = |reason: String| {
            Failure::Failed(miette!("`{}`, line {}: {reason}", path.display(), number + 1))
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
        return Err(Failure::Failed(miette!("`{}` has no records yet", path.display())));
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

fn panel(name: &str, points: Vec<[f64; 2]>) -> Result<RgbImage, Failure> {
    let positive: Vec<f64> = points.iter().map(|point| point[1]).collect();
    let smallest = positive.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = positive.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Over more than two decades only a logarithmic axis shows anything.
    let is_wide = smallest > 0.0 && largest > 100.0 * smallest;
    let mut series = Vec::new();
    if points.len() > 2 * NUM_WINDOWS {
        let smooth = averages(&points);
        series.push(Series { name: name.to_owned(), points });
        series.push(Series { name: "average".into(), points: smooth });
    } else {
        series.push(Series { name: name.to_owned(), points });
    }
    let plot = LinePlot {
        title: name.to_owned(),
        series,
        x_label: "step".into(),
        y_label: String::new(),
        x_scale: Scale::Linear,
        y_scale: if is_wide { Scale::Logarithmic } else { Scale::Linear },
        scale: 2,
    };
    Ok(plot.draw()?)
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
    use super::*;

    #[test]
    fn long_curves_are_averaged_and_keep_their_mean() {
        let points: Vec<[f64; 2]> = (0..1000).map(|i| [f64::from(i), f64::from(i % 7)]).collect();
        let smooth = averages(&points);
        assert_eq!(smooth.len(), 100);
        assert!(smooth.iter().all(|point| (point[1] - 3.0).abs() < 1.0));
    }
}
