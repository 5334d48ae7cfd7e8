//! What there is to look at in a trained model, as numbers: clouds, densities, topics.
//!
//! ```text
//! clouds     samples, each beside the nearest training set; held-out sets drawn again; the way from noise; blends
//! curves     densities given one point anywhere on a lattice, and given more and more points of a curve
//! patterns   simulated ones beside the data
//! documents  the words of every topic
//! ```
//!
//! What needs the data that a model learned from is left out, with a note, where they are gone. `ebp view`
//! makes a page of an album.

mod clouds;
mod curves;

use serde::Serialize;

pub use self::curves::{CurveContexts, DensityAlbum, GivenPoints, Lattice};
use crate::model::{Data, Model, PriorKind, SampleOptions};
use crate::rng::Stream;
use crate::topic::top_words;
use crate::{Error, Result};

/// Patterns that are simulated beside the data, and words of a topic.
const NUM_PATTERNS: usize = 12;
const NUM_WORDS: usize = 12;

/// How much to make.
#[derive(Clone, Copy, Debug)]
pub struct AlbumOptions {
    /// Samples of clouds.
    pub num_samples: usize,
    /// Points of each.
    pub num_points: usize,
    /// The law of θ.
    pub prior: PriorKind,
    /// All randomness.
    pub stream: Stream,
}

impl Default for AlbumOptions {
    fn default() -> Self {
        Self {
            num_samples: 36,
            num_points: 1024,
            prior: PriorKind::Kernel,
            stream: Stream::new(0, "album"),
        }
    }
}

/// What there is to look at.
#[derive(Clone, Debug, Default)]
pub struct Album {
    /// Clouds, or point patterns.
    pub clouds: Option<CloudAlbum>,
    /// Densities of curves.
    pub densities: Option<DensityAlbum>,
    /// Topics of documents.
    pub topics: Vec<TopicWords>,
    /// What is missing, and why.
    pub notes: Vec<String>,
}

/// The words of a topic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopicWords {
    /// What it is called.
    pub name: String,
    /// The heaviest words with their weights, heaviest first.
    pub words: Vec<(String, f64)>,
}

/// Clouds, and what belongs together.
#[derive(Clone, Debug, Default)]
pub struct CloudAlbum {
    /// Numbers of a point.
    pub dim: usize,
    /// All clouds.
    pub clouds: Vec<AlbumCloud>,
    /// Ranges of clouds to be seen together.
    pub groups: Vec<CloudGroup>,
    /// Clouds to be seen beside each other.
    pub rows: Vec<CloudRows>,
    /// Points on their way from noise.
    pub paths: Vec<CloudPath>,
    /// Clouds of codes between two.
    pub blends: Vec<CloudPath>,
}

/// A cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct AlbumCloud {
    /// What it is called.
    pub name: String,
    /// `[n, d]`, in the units of the data.
    pub points: Vec<f32>,
    /// log p(x | θ) of every point in nats, in the units of the data, where it is known.
    pub log_densities: Vec<f32>,
}

/// Clouds that follow each other in an album.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CloudGroup {
    /// What they are.
    pub name: String,
    /// The number of the first.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// More about them.
    pub note: String,
}

/// Clouds beside each other, by their numbers in the album.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CloudRows {
    /// What is compared.
    pub name: String,
    /// What stands in every column.
    pub heads: Vec<String>,
    /// A cloud for every column.
    pub rows: Vec<Vec<usize>>,
    /// More about them.
    pub note: String,
}

/// Clouds one after the other, by their numbers in the album.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CloudPath {
    /// What it is called.
    pub name: String,
    /// From the first to the last.
    pub frames: Vec<usize>,
    /// Of every frame.
    pub labels: Vec<String>,
    /// Whether it leads from one code to another; otherwise points keep their order from frame to frame.
    pub is_blend: bool,
    /// More about it.
    pub note: String,
}

impl CloudAlbum {
    /// Adds a cloud and gives its number.
    fn add(&mut self, name: String, points: Vec<f32>, log_densities: Vec<f32>) -> usize {
        self.clouds.push(AlbumCloud { name, points, log_densities });
        self.clouds.len() - 1
    }

    /// Adds clouds without densities as a group.
    pub fn add_group(&mut self, name: &str, note: &str, clouds: Vec<(String, Vec<f32>)>) {
        let (first, count) = (self.clouds.len(), clouds.len());
        for (name, points) in clouds {
            self.add(name, points, Vec::new());
        }
        self.groups.push(CloudGroup { name: name.into(), first, count, note: note.into() });
    }
}

/// The album of a model; `watch` is told what is being made.
///
/// # Errors
///
/// What the model says.
pub fn album(model: &Model, options: &AlbumOptions, watch: &mut dyn FnMut(&str)) -> Result<Album> {
    watch("data");
    let mut album = Album::default();
    let data = match Data::load(model.settings()) {
        Ok(data) => Some(data),
        Err(error) => {
            album.notes.push(format!("without the data it learned from: {error}"));
            None
        }
    };
    if let Ok(clouds) = model.clouds() {
        let data = match &data {
            Some(Data::Clouds(data)) => Some(data),
            _ => None,
        };
        album.clouds = Some(clouds::make(clouds, data, options, watch)?);
    } else if let Ok(curves) = model.curves() {
        if let Some(Data::Curves(data)) = &data {
            watch("densities");
            match curves::make(curves, data, options.stream)? {
                Some(densities) => album.densities = Some(densities),
                None => album.notes.push(
                    "densities are drawn of values and locations of one number each".to_owned(),
                ),
            }
        }
    } else if let Ok(topics) = model.topics() {
        if let Some(Data::Topics(data)) = &data {
            album.topics = words_of(&topics.model().topics(), &data.vocabulary);
        }
    } else if let Ok(patterns) = model.patterns() {
        watch("patterns");
        match patterns.sample(NUM_PATTERNS, options.stream.child(0)) {
            Ok(found) => {
                let flat = |(number, pattern): (usize, &crate::pattern::Pattern)| {
                    #[expect(clippy::cast_possible_truncation, reason = "for the eye")]
                    let points = pattern.points().iter().flatten().map(|&x| x as f32).collect();
                    (format!("pattern {}", number + 1), points)
                };
                let patterns = found.iter().enumerate().map(flat).collect();
                let mut clouds = CloudAlbum { dim: 2, ..CloudAlbum::default() };
                clouds.add_group("Simulated patterns", "Drawn from the fitted process.", patterns);
                album.clouds = Some(clouds);
            }
            Err(error) => album.notes.push(format!("without simulated patterns: {error}")),
        }
    } else {
        watch("samples");
        match sets_of(model, options) {
            Ok(clouds) => album.clouds = clouds,
            Err(error) => album.notes.push(format!("without samples: {error}")),
        }
    }
    Ok(album)
}

/// Samples of a model that draws sets and has no codes of clouds; none of single numbers.
fn sets_of(model: &Model, options: &AlbumOptions) -> Result<Option<CloudAlbum>> {
    if matches!(model.settings(), crate::model::Settings::Pictures(_)) {
        return Ok(None);
    }
    let count = options.num_samples;
    let drawn = model.sample(&SampleOptions { count, ..SampleOptions::default() })?;
    if drawn.dim < 2 {
        return Err(Error::refused("sets of single numbers have no picture here"));
    }
    let mut clouds = CloudAlbum { dim: drawn.dim, ..CloudAlbum::default() };
    let name = |(number, points)| (format!("sample {}", number + 1), points);
    let sets = drawn.sets.into_iter().enumerate().map(name).collect();
    clouds.add_group("Samples", "Drawn from the model.", sets);
    Ok(Some(clouds))
}

fn words_of(topics: &[Vec<f64>], vocabulary: &[String]) -> Vec<TopicWords> {
    let words = |weights: &Vec<f64>| {
        let top = top_words(weights, NUM_WORDS).into_iter();
        top.filter_map(|word| Some((vocabulary.get(word)?.clone(), weights[word]))).collect()
    };
    let topic = |(number, weights): (usize, &Vec<f64>)| TopicWords {
        name: format!("Topic {}", number + 1),
        words: words(weights),
    };
    topics.iter().enumerate().map(topic).collect()
}
