//! A model of documents: held-out perplexity, coherence, top words, and topics over classes.

use std::fmt::{self, Display};
use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;

use super::{Picture, folder_of};
use crate::Result;
use crate::experiment::{table, with_interval};
use crate::figure::Drawing;
use crate::figure::heat_map::{self, HeatMap, Panel};
use crate::model::{Model, TopicData};
use crate::rng::Stream;
use crate::topic::held_out::{Perplexity, bound_perplexity, completion_perplexity};
use crate::topic::{TopicModel, coherence, top_words};

/// What a model of documents has learned.
#[derive(Clone, Debug, Serialize)]
pub struct TopicOutcome {
    /// Its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Its name.
    pub model: &'static str,
    /// Where the documents come from.
    pub data: String,
    /// Documents that were learned from.
    pub documents: usize,
    /// Documents that it was judged by.
    pub held_out: usize,
    /// V.
    pub words: usize,
    /// Documents without words, which were left out.
    pub empty_documents: usize,
    /// Words outside the vocabulary, which were left out.
    pub unknown_words: u64,
    /// After how many steps.
    pub steps: u64,
    /// Of training.
    pub seconds: f64,
    /// Of held-out documents.
    pub perplexity: PerplexityReport,
    /// Where the true law is known: its perplexity by completion, and how far topics are from the true ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<TruthReport>,
    /// NPMI of the top words, the mean over topics.
    pub coherence: f64,
    /// Of every topic.
    pub topics: Vec<TopicRow>,
    /// Where the picture belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
}

/// Held-out perplexity in both ways.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PerplexityReport {
    /// Of hidden halves of documents, given the others.
    pub completion: PerplexityNumber,
    /// Of whole documents, by a bound.
    pub bound: PerplexityNumber,
}

/// A perplexity and how well it is known.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PerplexityNumber {
    /// The number.
    pub value: f64,
    /// Its standard error.
    pub std_error: f64,
    /// The part of it that comes from draws, not from documents.
    pub estimate_error: f64,
}

impl From<Perplexity> for PerplexityNumber {
    fn from(found: Perplexity) -> Self {
        let Perplexity { value, std_error, estimate_error, .. } = found;
        Self { value, std_error, estimate_error }
    }
}

/// How near a model came to the law that the documents were drawn from.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TruthReport {
    /// By completion, with the true topics.
    pub perplexity: f64,
    /// Total variation between each true topic and the learned one that is matched with it, the mean; the
    /// nearest pairs are matched first. Nothing for models whose topics are no laws of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_distance: Option<f64>,
}

/// One topic.
#[derive(Clone, Debug, Serialize)]
pub struct TopicRow {
    /// Its share of all training documents.
    pub share: f64,
    /// NPMI of its top words.
    pub coherence: f64,
    /// Its top words, most typical first.
    pub words: Vec<String>,
}

pub(super) fn judge(
    model: &Model,
    data: &TopicData,
    plots: &Path,
) -> Result<(TopicOutcome, Option<Picture>)> {
    let documents = model.topics()?;
    let (settings, law) = (documents.settings(), documents.model());
    let (seed, num_top) = (settings.evaluation.seed, settings.evaluation.num_top_words);
    let completion = completion_perplexity(law, &data.held_out, seed)?;
    let bound = bound_perplexity(law, &data.held_out, seed)?;
    let topics = law.topics();
    let truth = match &data.truth {
        None => None,
        Some(truth) => Some(TruthReport {
            perplexity: completion_perplexity(truth, &data.held_out, seed)?.value,
            topic_distance: matched_distance(&truth.topics(), &topics),
        }),
    };
    let found = coherence(law, &data.training, num_top);
    let shares = (0..data.training.len())
        .into_par_iter()
        .map(|index| {
            law.shares(
                data.training.document(index),
                Stream::new(seed, "shares").child(index as u64),
            )
        })
        .collect::<Result<Vec<_>>>()?;
    let mean =
        |topic: usize| shares.iter().map(|shares| shares[topic]).sum::<f64>() / shares.len() as f64;
    let row = |(topic, weights): (usize, &Vec<f64>)| TopicRow {
        share: mean(topic),
        coherence: found.topics[topic],
        words: top_words(weights, num_top).iter().map(|&w| data.vocabulary[w].clone()).collect(),
    };
    let rows: Vec<TopicRow> = topics.iter().enumerate().map(row).collect();
    let picture = draw(data, &topics, &shares, law.name())?;
    let picture = picture.map(|picture| (plots.join("topics.png"), picture.into()));
    let outcome = TopicOutcome {
        run: folder_of(model),
        model: law.name(),
        data: settings.data.source.clone(),
        documents: data.training.len(),
        held_out: data.held_out.len(),
        words: data.vocabulary.len(),
        empty_documents: data.num_empty,
        unknown_words: data.num_unknown,
        steps: model.step(),
        seconds: model.seconds().unwrap_or(0.0),
        perplexity: PerplexityReport { completion: completion.into(), bound: bound.into() },
        truth,
        coherence: found.mean,
        topics: rows,
        picture: picture.as_ref().map(|(path, _)| path.display().to_string()),
    };
    Ok((outcome, picture))
}

/// The mean total variation over pairs of true and learned topics, nearest pairs first.
fn matched_distance(truth: &[Vec<f64>], found: &[Vec<f64>]) -> Option<f64> {
    let is_law = |topic: &Vec<f64>| {
        topic.iter().all(|&p| p >= 0.0) && (topic.iter().sum::<f64>() - 1.0).abs() < 1e-6
    };
    if found.len() < truth.len() || !found.iter().all(is_law) {
        return None;
    }
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (i, a) in truth.iter().enumerate() {
        for (j, b) in found.iter().enumerate() {
            pairs.push((0.5 * a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>(), i, j));
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let (mut left, mut right) = (vec![false; truth.len()], vec![false; found.len()]);
    let mut sum = 0.0;
    for (distance, i, j) in pairs {
        if !left[i] && !right[j] {
            (left[i], right[j]) = (true, true);
            sum += distance;
        }
    }
    Some(sum / truth.len() as f64)
}

/// Mean shares of topics in every class; of the built-in square, the topics themselves.
fn draw(
    data: &TopicData,
    topics: &[Vec<f64>],
    shares: &[Vec<f64>],
    name: &str,
) -> Result<Option<Drawing>> {
    let plain = |title: String, panels, per_row, sides: [usize; 2], labels: [&str; 3]| HeatMap {
        title,
        panels,
        panels_per_row: per_row,
        x_range: (0.5, sides[0] as f64 + 0.5),
        y_range: (0.5, sides[1] as f64 + 0.5),
        x_label: labels[0].to_owned(),
        y_label: labels[1].to_owned(),
        value_label: labels[2].to_owned(),
        brightest: None,
        has_cells: true,
        aspect: if per_row == 1 { heat_map::WIDE } else { 1.0 },
    };
    if !data.labels.is_empty() && data.labels.len() == shares.len() {
        let (k, classes) = (topics.len(), data.classes.len());
        let mut counts = vec![0.0_f64; classes];
        let mut values = vec![0.0; classes * k];
        for (&class, shares) in data.labels.iter().zip(shares) {
            counts[class] += 1.0;
            values[class * k..][..k].iter_mut().zip(shares).for_each(|(sum, s)| *sum += s);
        }
        for (row, count) in values.chunks_exact_mut(k).zip(&counts) {
            for sum in &mut *row {
                *sum /= count.max(1.0);
            }
        }
        let panel = Panel {
            title: format!("{classes} classes, {k} topics"),
            values,
            num_columns: k,
            points: Vec::new(),
        };
        let labels = ["topic", "class, in order", "mean share"];
        let title = format!("{name}: topics over classes");
        return plain(title, vec![panel], 1, [k, classes], labels).draw().map(Some);
    }
    if data.truth.is_none() {
        return Ok(None);
    }
    let side = data.vocabulary.len().isqrt();
    let panel = |(number, weights): (usize, &Vec<f64>)| {
        // Weights of a network may be negative: what is shown is their law over words.
        let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_law = weights.iter().all(|w| *w >= 0.0);
        let values: Vec<f64> = if is_law {
            weights.clone()
        } else {
            weights.iter().map(|w| (w - largest).exp()).collect()
        };
        let title = (number + 1).to_string();
        Panel { title, values, num_columns: side, points: Vec::new() }
    };
    let panels = topics.iter().enumerate().take(20).map(panel).collect();
    let labels = ["column", "row", "p(word | topic)"];
    plain(format!("{name}: topics over the square"), panels, 5, [side, side], labels)
        .draw()
        .map(Some)
}

impl Display for TopicOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, data, documents, held_out, words, steps, seconds, .. } = self;
        writeln!(
            f,
            "{data}, {model}, {steps} steps, {seconds:.1} s; {documents} documents of {words} words, \
             {held_out} held out"
        )?;
        if self.empty_documents > 0 || self.unknown_words > 0 {
            let Self { empty_documents, unknown_words, .. } = self;
            writeln!(
                f,
                "left out: {empty_documents} documents without words, {unknown_words} words outside \
                 the vocabulary"
            )?;
        }
        let PerplexityReport { completion, bound } = self.perplexity;
        writeln!(
            f,
            "\nperplexity by completion  {}",
            with_interval(completion.value, completion.std_error, 1)
        )?;
        let of_bound = with_interval(bound.value, bound.std_error, 1);
        write!(f, "perplexity by bound       {of_bound}")?;
        if bound.estimate_error > 0.0 {
            write!(f, ", of which {:.1} by draws", 1.96 * bound.estimate_error)?;
        }
        writeln!(f, "\ncoherence (NPMI)          {:.3}", self.coherence)?;
        if let Some(truth) = &self.truth {
            writeln!(f, "perplexity of the truth   {:.1}", truth.perplexity)?;
            if let Some(distance) = truth.topic_distance {
                writeln!(f, "distance to true topics   {distance:.3} in total variation")?;
            }
        }
        let mut order: Vec<usize> = (0..self.topics.len()).collect();
        order.sort_by(|&a, &b| self.topics[b].share.total_cmp(&self.topics[a].share));
        let mut rows = vec![["topic", "share %", "NPMI", "top words"].map(str::to_owned).to_vec()];
        for topic in order {
            let row = &self.topics[topic];
            rows.push(vec![
                (topic + 1).to_string(),
                format!("{:.1}", 100.0 * row.share),
                format!("{:.2}", row.coherence),
                row.words.join(" "),
            ]);
        }
        writeln!(f, "\n{}", table(&rows))?;
        self.picture.as_ref().map_or(Ok(()), |picture| writeln!(f, "picture   {picture}"))?;
        self.run.as_ref().map_or(Ok(()), |run| writeln!(f, "model     {run}"))
    }
}
