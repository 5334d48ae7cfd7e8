//! A fitted process of points: its coefficients, and data beside simulations.

use std::fmt::{self, Display};
use std::path::Path;

use serde::Serialize;

use super::{Picture, folder_of};
use crate::Result;
use crate::experiment::table;
use crate::figure::heat_map::{HeatMap, Panel};
use crate::figure::line_plot::{Band, LinePlot, Series, Style};
use crate::figure::{Drawing, stack};
use crate::model::{
    Model, PatternData, PatternExtra, PatternLaw, PatternModel, PatternProcess, is_likelihood,
    pattern_extras,
};
use crate::pattern::{
    Envelope, Events, Gibbs, Hawkes, Interaction, Pattern, Residual, Summary, exponential_test,
    smoothed_residual,
};
use crate::rng::Stream;

/// Cells along a side of a field.
const CELLS: usize = 64;
/// Distances of a summary function.
const DISTANCES: usize = 60;
/// Quadrats along a side.
const QUADRATS: usize = 3;

/// What a process of points has learned.
#[derive(Clone, Debug, Serialize)]
pub struct PatternOutcome {
    /// Its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Its name.
    pub model: &'static str,
    /// Where the patterns come from.
    pub data: String,
    /// How many patterns, or series of events.
    pub patterns: usize,
    /// Points of all.
    pub points: usize,
    /// Points that repeat another exactly.
    pub duplicates: usize,
    /// What was found.
    pub coefficients: Vec<Coefficient>,
    /// Of a likelihood fit: the log of the Janossy density.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_likelihood: Option<f64>,
    /// The Monte Carlo error of it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_likelihood_error: Option<f64>,
    /// Of a pseudolikelihood or logistic fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_pseudolikelihood: Option<f64>,
    /// The negative of either, per point that counted.
    pub nats_per_element: f64,
    /// Of the largest deviation of L from simulations; of events, of rescaled gaps from the exponential law.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Of 3 × 3 quadrats of the first pattern, from below: what the data have beyond the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub raw_residuals: Vec<f64>,
    /// The same, Pearson's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pearson_residuals: Vec<f64>,
    /// What could not be done, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Of the fit.
    pub seconds: f64,
    /// Where the pictures belong.
    #[serde(skip)]
    pub plots: String,
}

/// A coefficient.
#[derive(Clone, Debug, Serialize)]
pub struct Coefficient {
    /// What it is called.
    pub name: String,
    /// What was found.
    pub value: f64,
    /// How far that is uncertain, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// What built-in data were drawn with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<f64>,
}

pub(super) fn judge(
    model: &Model,
    data: &PatternData,
    plots: &Path,
) -> Result<(PatternOutcome, Vec<Picture>)> {
    let fit = model.patterns()?;
    let objective = fit.fitted().objective();
    let known = is_likelihood(fit.settings());
    let error = fit.fitted().numbers.get(1).copied().filter(|error| *error > 0.0);
    let mut outcome = PatternOutcome {
        run: folder_of(model),
        model: fit.settings().process.name(),
        data: fit.settings().data.source.clone(),
        patterns: data.patterns.len().max(1),
        points: data.num_points(),
        duplicates: data.num_duplicates(),
        coefficients: coefficients(fit, data),
        log_likelihood: known.then_some(objective),
        log_likelihood_error: error,
        log_pseudolikelihood: (!known).then_some(objective),
        nats_per_element: -objective / fit.fitted().num_points().max(1.0),
        p_value: None,
        raw_residuals: Vec::new(),
        pearson_residuals: Vec::new(),
        notes: Vec::new(),
        seconds: model.seconds().unwrap_or(0.0),
        plots: plots.display().to_string(),
    };
    if outcome.duplicates > 0 {
        outcome.notes.push(format!("{} points repeat another exactly", outcome.duplicates));
    }
    let mut pictures = Vec::new();
    if let (PatternLaw::Hawkes(law), Some(events)) = (fit.law(), &data.events) {
        outcome.p_value = Some(exponential_test(&law.rescaled_gaps(events)).1);
        pictures.push((plots.join("events.png"), stack(&draw_events(law, events)?, 1).into()));
        return Ok((outcome, pictures));
    }
    let Some(pattern) = data.patterns.first() else { return Ok((outcome, pictures)) };
    if let PatternLaw::Gibbs(law) = fit.law() {
        outcome.raw_residuals = Residual::Raw.of_quadrats(law, pattern, QUADRATS)?;
        outcome.pearson_residuals = Residual::Pearson.of_quadrats(law, pattern, QUADRATS)?;
        pictures.push((plots.join("field.png"), draw_field(&outcome, law, pattern)?.into()));
        if let Interaction::Pairwise { reach, num_knots } = law.family().interaction {
            let plot = draw_potential(&outcome, reach, num_knots)?;
            pictures.push((plots.join("potential.png"), plot.into()));
        }
    }
    let stream = Stream::new(fit.settings().seed, "envelope");
    match fit.sample(fit.settings().evaluation.num_envelope.max(2), stream) {
        Ok(drawn) => {
            let [width, height] = pattern.window().lengths();
            let longest = 0.25 * width.min(height);
            let distances: Vec<f64> =
                (0..=DISTANCES).map(|k| longest * k as f64 / DISTANCES as f64).collect();
            let mut plots_of = Vec::new();
            for summary in Summary::ALL {
                let found =
                    Envelope::new(summary, std::slice::from_ref(pattern), &drawn, &distances)?;
                if summary == Summary::L {
                    outcome.p_value = Some(found.p_value);
                }
                plots_of.push(draw_envelope(&found)?);
            }
            pictures.push((plots.join("summaries.png"), stack(&plots_of, 2).into()));
        }
        Err(error) => outcome.notes.push(format!("not simulated: {error}")),
    }
    Ok((outcome, pictures))
}

fn coefficients(fit: &PatternModel, data: &PatternData) -> Vec<Coefficient> {
    let (fitted, process) = (fit.fitted(), fit.settings().process);
    // Built-in data of a network are of a process whose further coefficients it does not have.
    let num_shared = match process {
        PatternProcess::Pairwise | PatternProcess::Deepsets => 1,
        _ => usize::MAX,
    };
    let truth = data.truth.as_deref().unwrap_or_default();
    let known = |error: f64| (error >= 0.0).then_some(error);
    let mut all: Vec<Coefficient> = fit
        .names()
        .into_iter()
        .zip(fitted.coefficients.iter().zip(&fitted.errors))
        .enumerate()
        .map(|(j, (name, (&value, &error)))| Coefficient {
            name,
            value,
            standard_error: known(error),
            truth: truth.get(j).copied().filter(|_| j < num_shared),
        })
        .collect();
    let further = pattern_extras(fit.settings()).into_iter().zip(fitted.extras()).map(
        |(PatternExtra { name, truth, .. }, (value, error))| Coefficient {
            name,
            value,
            standard_error: known(error),
            truth,
        },
    );
    all.splice(1..1, further);
    all
}

fn draw_field(outcome: &PatternOutcome, law: &Gibbs, pattern: &Pattern) -> Result<Drawing> {
    let places = pattern.window().grid(CELLS, CELLS);
    let [[left, right], [bottom, top]] = pattern.window().sides();
    let map = |label: &str, panels: Vec<Panel>| HeatMap {
        title: format!("{}: {}", outcome.data_name(), outcome.model),
        panels_per_row: panels.len(),
        panels,
        x_range: (left, right),
        y_range: (bottom, top),
        x_label: "x".to_owned(),
        y_label: "y".to_owned(),
        value_label: label.to_owned(),
        brightest: None,
        has_cells: false,
        aspect: (top - bottom) / (right - left),
    };
    let panel = |title: &str, values: Vec<f64>, points: Vec<[f64; 2]>| Panel {
        title: title.to_owned(),
        values,
        num_columns: CELLS,
        points,
    };
    let points = pattern.points().to_vec();
    let intensity = panel("conditional intensity", law.intensities(pattern, &places), points);
    // About as wide as a quarter of the window holds a few points.
    let bandwidth = 0.1 * pattern.window().area().sqrt();
    let field = smoothed_residual(law, pattern, CELLS, bandwidth);
    let side = |sign: f64| field.iter().map(|value| (sign * value).max(0.0)).collect();
    let first = map("intensity", vec![intensity]).draw()?;
    let excess = panel("more points than expected", side(1.0), Vec::new());
    let lack = panel("fewer points than expected", side(-1.0), Vec::new());
    let second = map("smoothed residual", vec![excess, lack]).draw()?;
    Ok(stack(&[first, second], 1))
}

fn line(name: &str, points: Vec<[f64; 2]>) -> Series {
    Series { name: name.to_owned(), points, style: Style::Line }
}

fn reference(name: &str, points: Vec<[f64; 2]>) -> Series {
    Series { style: Style::Reference, ..line(name, points) }
}

fn plot(title: &str, [x_label, y_label]: [&str; 2], series: Vec<Series>) -> LinePlot {
    LinePlot {
        title: title.to_owned(),
        series,
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        ..LinePlot::default()
    }
}

fn draw_envelope(envelope: &Envelope) -> Result<Drawing> {
    // L is drawn less r, which it is without interaction.
    let is_l = envelope.summary == Summary::L;
    let shown = |r: f64, value: f64| if is_l { value - r } else { value };
    let curve = |values: &[f64]| {
        let pairs = envelope.distances.iter().zip(values).skip(1);
        pairs.map(|(&r, &value)| [r, shown(r, value)]).collect::<Vec<_>>()
    };
    let edges = envelope.distances.iter().zip(envelope.low.iter().zip(&envelope.high)).skip(1);
    let edges = edges.map(|(&r, (&low, &high))| [r, shown(r, low), shown(r, high)]).collect();
    let name = envelope.summary.name();
    let label = if is_l { "L(r) − r".to_owned() } else { format!("{name}(r)") };
    let title = format!("{name}, p = {:.3}", envelope.p_value);
    let series = vec![
        line("data", curve(&envelope.observed)),
        reference("simulated mean", curve(&envelope.mean)),
    ];
    let bands = vec![Band { name: "all simulations".to_owned(), edges }];
    LinePlot { bands, ..plot(&title, ["distance r", &label], series) }.draw()
}

fn draw_potential(outcome: &PatternOutcome, reach: f64, num_knots: usize) -> Result<Drawing> {
    let knots = (0..num_knots).map(|k| (k as f64 + 0.5) * reach / num_knots as f64);
    let values = outcome.coefficients.iter().filter(|c| c.name.starts_with("potential"));
    let (mut points, mut edges) = (Vec::new(), Vec::new());
    for (distance, found) in knots.zip(values) {
        let error = 2.0 * found.standard_error.unwrap_or(0.0);
        points.push([distance, found.value]);
        edges.push([distance, found.value - error, found.value + error]);
    }
    let ends = [points.first(), points.last()].into_iter().flatten();
    let none = ends.map(|point| [point[0], 0.0]).collect();
    let series = vec![line("potential", points), reference("no interaction", none)];
    let bands = vec![Band { name: "± 2 standard errors".to_owned(), edges }];
    LinePlot { bands, ..plot("Pair potential", ["distance", "log factor of a pair"], series) }
        .draw()
}

fn draw_events(law: &Hawkes, events: &Events) -> Result<[Drawing; 2]> {
    // A window of time that holds some sixty events.
    let (times, count) = (events.times(), events.times().len().min(60));
    let (from, to) = (0.0, times[count - 1]);
    let rate = (0..=600).map(|k| from + (to - from) * f64::from(k) / 600.0);
    let rate = rate.map(|time| [time, law.intensity(events, time)]).collect();
    let labels = ["time", "events per unit of time"];
    let first = plot("Intensity of the first events", labels, vec![line("rate", rate)]);
    let mut gaps = law.rescaled_gaps(events);
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let expected = |i: usize| -(1.0 - (i as f64 + 0.5) / n).ln();
    let found = gaps.iter().enumerate().map(|(i, gap)| [expected(i), *gap]).collect();
    let ideal = vec![[0.0, 0.0], [expected(gaps.len() - 1); 2]];
    let found = Series { style: Style::Dots, ..line("data", found) };
    let labels = ["exponential quantile", "quantile of the data"];
    let second = plot("Rescaled gaps", labels, vec![found, reference("model", ideal)]);
    Ok([first.draw()?, second.draw()?])
}

impl PatternOutcome {
    fn data_name(&self) -> &str {
        self.data.rsplit(['/', '\\']).next().unwrap_or(&self.data)
    }
}

impl Display for PatternOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, patterns, points, seconds, .. } = self;
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.6}"));
        let mut rows = vec![
            ["coefficient", "value", "standard error", "truth", "errors away"]
                .map(str::to_owned)
                .to_vec(),
        ];
        // Knots of a potential are drawn, not listed.
        for c in self.coefficients.iter().filter(|c| !c.name.starts_with("potential ")) {
            let away = c.truth.zip(c.standard_error).map(|(t, e)| (c.value - t).abs() / e);
            let away = away.map_or("-".to_owned(), |away| format!("{away:.2}"));
            let cells = [c.name.clone(), number(Some(c.value)), number(c.standard_error)];
            rows.push(cells.into_iter().chain([number(c.truth), away]).collect());
        }
        writeln!(
            f,
            "{}, {model}, {patterns} patterns of {points} points together, {seconds:.1} s\n\n{}",
            self.data_name(),
            table(&rows)
        )?;
        if let Some(value) = self.log_likelihood {
            let error =
                self.log_likelihood_error.map_or(String::new(), |e| format!(" ± {:.3}", 1.96 * e));
            writeln!(f, "log likelihood        {value:.6}{error}")?;
        }
        if let Some(value) = self.log_pseudolikelihood {
            writeln!(f, "log pseudolikelihood  {value:.6}")?;
        }
        writeln!(f, "nats per element      {:.6}", self.nats_per_element)?;
        if let Some(value) = self.p_value {
            writeln!(f, "p of the fit          {value:.3}")?;
        }
        for note in &self.notes {
            writeln!(f, "note                  {note}")?;
        }
        writeln!(f, "\npictures  {}", self.plots)?;
        self.run.as_ref().map_or(Ok(()), |run| writeln!(f, "model     {run}"))
    }
}
