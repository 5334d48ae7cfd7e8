//! Processes with latents: how likely held-out rows or sets are, beside the law they came from where
//! that is known.

use std::fmt::{self, Display};
use std::path::Path;

use serde::Serialize;

use super::{Picture, folder_of};
use crate::Result;
use crate::experiment::{table, with_interval};
use crate::figure::histogram::{HistogramPlot, Sample};
use crate::figure::mosaic::{Mosaic, Row, Thumbnail};
use crate::figure::planar_sets::{self, SetRow};
use crate::figure::scatter::{Group, Scatter};
use crate::figure::{Drawing, Figure, contact_sheet};
use crate::model::{
    LatentData, LatentModel, LatentSets, Model, RowData, SetProcess, one_nn_error, recovered,
};
use crate::rng::Stream;

/// Sets that are shown, and elements of each that is a picture.
const SHOWN: usize = 8;

/// What a process with latents has learned.
#[derive(Clone, Debug, Serialize)]
pub struct LatentOutcome {
    /// Its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Its name.
    pub model: &'static str,
    /// Where the rows or sets come from.
    pub data: String,
    /// After how many steps.
    pub steps: u64,
    /// Of training.
    pub seconds: f64,
    /// Of rows.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowOutcome>,
    /// Of sets.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub sets: Option<SetOutcome>,
    /// Where the pictures belong.
    #[serde(skip)]
    pub plots: String,
}

/// Rows at latent locations.
#[derive(Clone, Debug, Serialize)]
pub struct RowOutcome {
    /// How many were learned from.
    pub num_rows: usize,
    /// Numbers of a row.
    pub columns: usize,
    /// log p(x | t), or its bound, of the standardised rows.
    pub log_marginal: f64,
    /// The same with the sign turned, per number.
    pub nats_per_number: f64,
    /// ℓ of every latent dimension.
    pub length_scales: Vec<f64>,
    /// The share of rows whose nearest neighbour on the map, in length scales, has another label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_nn_error: Option<f64>,
    /// The same of held-out rows among those learned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out_one_nn_error: Option<f64>,
    /// −log p(x | t*) of held-out rows per number, in the units of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out_nats: Option<f64>,
    /// The share of the true circle that an affine map of the latents explains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<f64>,
}

/// Sets of vectors.
#[derive(Clone, Debug, Serialize)]
pub struct SetOutcome {
    /// How many held-out sets.
    pub num_sets: usize,
    /// Elements of each.
    pub set_size: usize,
    /// Numbers of an element.
    pub dim: usize,
    /// −log p of held-out sets per element, in the units of the data.
    #[serde(rename = "nats_per_element")]
    pub nats: f64,
    /// Its standard error over sets.
    pub nats_error: f64,
    /// The same per number of a picture, in bits: a bound of the levels' code length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_dim: Option<f64>,
    /// Under the law the sets were drawn from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_nats: Option<f64>,
    /// What the model pays beyond that, and its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excess: Option<[f64; 2]>,
    /// What an element says of its hidden location, in nats: 0 where the energy ignores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location_nats: Option<f64>,
    /// Draws of the set's latent and of each element's in the estimate; none where it is exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws: Option<[usize; 2]>,
    /// Draws of the set's latent that counted, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_draws: Option<f64>,
}

pub(super) fn judge(
    model: &Model,
    data: &LatentData,
    plots: &Path,
) -> Result<(LatentOutcome, Vec<Picture>)> {
    let process = model.latents()?;
    let mut outcome = LatentOutcome {
        run: folder_of(model),
        model: model.name(),
        data: process.settings().data.source.clone(),
        steps: model.step(),
        seconds: model.seconds().unwrap_or(0.0),
        rows: None,
        sets: None,
        plots: plots.display().to_string(),
    };
    let picture = match data {
        LatentData::Rows(rows) => {
            outcome.rows = Some(judge_rows(process, rows)?);
            ("map.png", draw_map(process, rows, &outcome)?.into())
        }
        LatentData::Sets(sets) => {
            outcome.sets = Some(judge_sets(process, sets)?);
            ("sets.png", draw_sets(process, sets, &outcome)?)
        }
    };
    Ok((outcome, vec![(plots.join(picture.0), picture.1)]))
}

fn judge_rows(model: &LatentModel, data: &RowData) -> Result<RowOutcome> {
    let (map, scale) = model.map()?;
    let (dim, log_marginal) = (data.dim(), map.value()?);
    let (latents, latent_dim) = (map.latents(), map.latent_dim());
    let placed = map.in_length_scales(latents);
    let (mut held_out_nats, mut held_out_one_nn_error) = (None, None);
    let count = (data.held_out.len() / dim).min(model.settings().evaluation.num_sets);
    if count > 0 {
        let conditional = map.conditional()?;
        let (mut nats, mut wrong) = (0.0, 0);
        for (row, value) in data.held_out.chunks_exact(dim).take(count).enumerate() {
            let found = conditional.embed(value)?;
            nats += scale.log_volume() - found.log_density;
            let own = map.in_length_scales(&found.latent);
            let far =
                |at: &[f64]| -> f64 { at.iter().zip(&own).map(|(a, b)| (a - b).powi(2)).sum() };
            let places = placed.chunks_exact(latent_dim).enumerate();
            let nearest = places.min_by(|a, b| far(a.1).total_cmp(&far(b.1)));
            let label = nearest.and_then(|(place, _)| data.labels.get(place));
            wrong += usize::from(label != data.held_out_labels.get(row));
        }
        held_out_nats = Some(nats / (count * dim) as f64);
        let has_labels = !data.labels.is_empty();
        held_out_one_nn_error = has_labels.then_some(wrong as f64 / count as f64);
    }
    let recovered = match &data.angles {
        Some(angles) => Some(recovered(latents, latent_dim, angles)?),
        None => None,
    };
    Ok(RowOutcome {
        num_rows: data.train.len() / dim,
        columns: dim,
        log_marginal,
        nats_per_number: -log_marginal / map.num_values() as f64,
        length_scales: map.length_scales(),
        one_nn_error: one_nn_error(&placed, latent_dim, &data.labels),
        held_out_one_nn_error,
        held_out_nats,
        recovered,
    })
}

fn judge_sets(model: &LatentModel, data: &LatentSets) -> Result<SetOutcome> {
    let (process, scale) = model.sets()?;
    let settings = model.settings();
    let (size, evaluation) = (settings.data.set_size, &settings.evaluation);
    let drawn = data.held_out(evaluation.num_sets);
    let draws = [evaluation.num_draws, evaluation.num_inner];
    let stream = Stream::new(settings.seed, "judgement");
    let scores = process.score(&drawn.values, size, draws, stream)?;
    let nats: Vec<f64> = scores
        .iter()
        .zip(&drawn.corrections)
        .map(|(score, correction)| -(score.log_density.value + correction) / size as f64)
        .collect();
    let (mean, error) = mean_and_error(&nats);
    let (mut true_nats, mut excess) = (None, None);
    if let Some(truth) = &drawn.truth {
        let truth: Vec<f64> = truth.iter().map(|log_density| -log_density / size as f64).collect();
        let more: Vec<f64> = nats.iter().zip(&truth).map(|(found, truth)| found - truth).collect();
        true_nats = Some(mean_and_error(&truth).0);
        excess = Some(mean_and_error(&more).into());
    }
    let is_estimate = !matches!(process, SetProcess::Bruno(_));
    let location_nats = match process {
        SetProcess::HiddenLocations(process) => {
            let width = size * data.dim();
            let told: Result<Vec<_>> =
                drawn.values.chunks_exact(width).map(|set| process.location_nats(set)).collect();
            Some(mean_and_error(&told?.concat()).0)
        }
        _ => None,
    };
    let effective: Vec<f64> = scores.iter().filter_map(|score| score.effective_draws).collect();
    let dim = data.dim();
    Ok(SetOutcome {
        num_sets: nats.len(),
        set_size: size,
        dim,
        nats: mean,
        nats_error: error,
        bits_per_dim: scale.picture_width.map(|_| mean / (dim as f64 * 2_f64.ln())),
        true_nats,
        excess,
        location_nats,
        draws: is_estimate.then_some(draws),
        effective_draws: is_estimate.then(|| mean_and_error(&effective).0),
    })
}

fn mean_and_error(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
}

/// The two latent dimensions that matter most, by their length scales.
fn draw_map(model: &LatentModel, data: &RowData, outcome: &LatentOutcome) -> Result<Drawing> {
    let (map, _) = model.map()?;
    let (dim, scales) = (map.latent_dim(), map.length_scales());
    let mut order: Vec<usize> = (0..dim).collect();
    order.sort_by(|&a, &b| scales[a].total_cmp(&scales[b]));
    let axes = [order[0], order[dim.min(2) - 1]];
    let mut groups: Vec<Group> = Vec::new();
    let placed = map.in_length_scales(map.latents());
    for (row, latent) in placed.chunks_exact(dim).enumerate() {
        let name = data.labels.get(row).map_or("rows", String::as_str);
        let point = axes.map(|axis| latent[axis]);
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.points.push(point),
            None => groups.push(Group { name: name.to_owned(), points: vec![point] }),
        }
    }
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    let label = |axis: usize| format!("t{} in length scales of {:.2}", axis + 1, scales[axis]);
    let labels = axes.map(label);
    Scatter { title: format!("{}: {}", outcome.data, outcome.model), groups, labels }.draw()
}

/// Held-out sets above, drawn ones below.
fn draw_sets(model: &LatentModel, data: &LatentSets, outcome: &LatentOutcome) -> Result<Figure> {
    let (_, scale) = model.sets()?;
    let settings = model.settings();
    let (size, dim) = (settings.data.set_size, data.dim());
    let count = if dim == 1 { settings.evaluation.num_sets } else { SHOWN };
    let held_out = scale.restored(data.held_out(count).values);
    let drawn = model.sample(count, size, Stream::new(settings.seed, "drawn"))?;
    let both = [("held-out", &held_out), ("drawn", &drawn)];
    if let Some(width) = scale.picture_width {
        let row = |set: &[f32]| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "levels")]
            let levels: Vec<u8> = set.iter().map(|&x| x as u8).collect();
            let pictures = levels.chunks_exact(dim).take(SHOWN);
            let pictures = pictures.map(|pixels| Thumbnail::new(width, 1, pixels)).collect();
            Row { label: String::new(), pictures }
        };
        let rows = |(name, flat): (&str, &Vec<f32>)| {
            let sets = flat.chunks_exact(size * dim).take(SHOWN / 2);
            (format!("{name} sets, one a row"), sets.map(row).collect())
        };
        let groups = both.into_iter().map(rows).collect();
        return Ok(Mosaic { groups }.draw().into());
    }
    let sets = |flat: &[f32]| -> Vec<Vec<f32>> {
        flat.chunks_exact(size * dim).take(SHOWN).map(<[f32]>::to_vec).collect()
    };
    Ok(match dim {
        1 => {
            let sample = |(name, flat): (&str, &Vec<f32>)| Sample {
                name: format!("{name} sets"),
                values: flat.iter().map(|&x| f64::from(x)).collect(),
            };
            HistogramPlot {
                title: format!("{}: {}", outcome.data, outcome.model),
                samples: both.into_iter().map(sample).collect(),
                x_label: "elements of all sets".to_owned(),
                note: format!("{count} sets of {size}"),
            }
            .draw()?
            .into()
        }
        2 => {
            let row = |(name, flat): (&str, &Vec<f32>)| SetRow {
                name: name.to_owned(),
                sets: sets(flat),
            };
            planar_sets::draw(&both.into_iter().map(row).collect::<Vec<_>>()).into()
        }
        _ => {
            let rows = both.map(|(_, flat)| sets(flat));
            contact_sheet::draw_rows(&[&rows[0], &rows[1]], dim).into()
        }
    })
}

impl Display for LatentOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, data, steps, seconds, .. } = self;
        writeln!(f, "{data}, {model}, {steps} steps, {seconds:.1} s\n")?;
        let mut lines: Vec<Vec<String>> = Vec::new();
        let mut line = |name: &str, value: String| lines.push(vec![name.to_owned(), value]);
        if let Some(rows) = &self.rows {
            let scales: Vec<String> =
                rows.length_scales.iter().map(|l| format!("{l:.2}")).collect();
            line("rows x columns", format!("{} x {}", rows.num_rows, rows.columns));
            line("log p(x | t), or its bound", format!("{:.3}", rows.log_marginal));
            line("nats per number", format!("{:.4}", rows.nats_per_number));
            line("length scales", scales.join(", "));
            let percent = |share: f64| format!("{:.1} %", 100.0 * share);
            rows.one_nn_error.into_iter().for_each(|x| line("1-NN error on the map", percent(x)));
            let held_out = rows.held_out_one_nn_error.into_iter();
            held_out.for_each(|x| line("1-NN error of held-out rows", percent(x)));
            let held_out = rows.held_out_nats.into_iter();
            held_out.for_each(|x| line("held-out rows, nats per number", format!("{x:.4}")));
            let circle = rows.recovered.into_iter();
            circle.for_each(|x| line("true circle recovered, up to an affine map", percent(x)));
        }
        if let Some(sets) = &self.sets {
            let SetOutcome { num_sets, set_size, dim, nats, nats_error, .. } = sets;
            line("held-out sets", format!("{num_sets} of {set_size} elements of {dim} numbers"));
            line("nats per element", with_interval(*nats, *nats_error, 4));
            sets.bits_per_dim
                .into_iter()
                .for_each(|x| line("bits per dimension", format!("{x:.4}")));
            sets.true_nats.into_iter().for_each(|x| line("under the true law", format!("{x:.4}")));
            let told = sets.location_nats.into_iter();
            told.for_each(|x| line("an element says of its place, nats", format!("{x:.3}")));
            let excess = sets.excess.into_iter();
            excess.for_each(|[x, e]| line("excess", with_interval(x, e, 4)));
            if let (Some([outer, inner]), Some(effective)) = (sets.draws, sets.effective_draws) {
                let (name, inner) = match sets.location_nats {
                    Some(_) => ("draws of θ", String::new()),
                    None => ("draws of c, of z", format!(", {inner}")),
                };
                line(name, format!("{outer} ({effective:.1} count){inner}"));
            }
        }
        lines.insert(0, vec!["measured".to_owned(), "value".to_owned()]);
        writeln!(f, "{}\npictures  {}", table(&lines), self.plots)?;
        self.run.as_ref().map_or(Ok(()), |run| writeln!(f, "model     {run}"))
    }
}
