//! One cell of Figure 1: a model trained on a dataset with a seed, judged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::data::CurveFamily;
use crate::figure::density::{Window, points};
use crate::figure::heat_map::Panel;
use crate::metric::predictive::{Evaluation, cross_entropy, held_out, peak_mass};
use crate::model::CurveModel;
use crate::process::{BoundedPartition, Process};
use crate::rng::Stream;

/// How many elements of a set a model is told.
pub(super) const CONTEXTS: [usize; 3] = [5, 15, 30];
/// Fresh elements: 40 sets of 50.
pub(super) const NUM_SETS: usize = 40;
pub(super) const NUM_LOCATIONS: usize = 50;
/// Sets and locations of the quadrature, and of the peaks.
const QUADRATURE_SETS: usize = 10;
const QUADRATURE_LOCATIONS: usize = 40;
/// Draws per location that bound log Z.
const BOUND_DRAWS: usize = 256;
/// Which set of the evaluation is drawn, with 30 elements told.
pub(super) const DRAWN_SET: u64 = 0;

/// Where the evaluation's sets come from: the same for every model, unseen by all.
pub(super) fn evaluation_stream() -> Stream {
    Stream::new(0, "figure 1")
}

/// What one trained model scored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure1Cell {
    /// The curves.
    pub dataset: String,
    /// The model.
    pub model: String,
    /// Of training.
    pub seed: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Elements that the optimiser saw, context and target together, each as often as it was seen.
    pub elements: u64,
    /// What a fit found, by name: hyperparameters of the Gaussian and the Student-t process.
    pub fitted: BTreeMap<String, f64>,
    /// log Z(t; θ), the mean over places given 30 elements, by quadrature and from both sides by the
    /// learned sampler; absent without one whose density is known.
    pub log_partition: Option<BoundedPartition>,
    /// One for each number of elements told.
    pub scores: Vec<ContextScore>,
    /// The densities of the figure, seed 1 only.
    pub picture: Option<Vec<f64>>,
}

/// What it scored, told so many elements.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextScore {
    /// How many elements were told.
    pub context: usize,
    /// On fresh elements.
    pub nll: f64,
    /// Its standard error.
    pub stderr: f64,
    /// Of the true density.
    pub floor: f64,
    /// Above it.
    pub excess: f64,
    /// Its standard error.
    pub excess_stderr: f64,
    /// Cross-entropy by quadrature.
    pub quadrature: f64,
    /// Above the true density.
    pub quadrature_excess: f64,
    /// The share of locations where each peak carries its due within a fifth; absent where peaks
    /// are never apart.
    pub balanced: Option<f64>,
    /// The smallest share of a peak, averaged over locations.
    pub mean_smallest_peak: Option<f64>,
}

impl Figure1Cell {
    pub(super) fn measure(
        process: &CurveModel,
        family: CurveFamily,
        (model, seed): (&str, u64),
        (seconds, elements): (f64, u64),
    ) -> Result<Self> {
        let mut scores = Vec::new();
        for num_context in CONTEXTS {
            let stream = evaluation_stream();
            let fresh = Evaluation {
                family,
                num_context,
                num_sets: NUM_SETS,
                num_locations: NUM_LOCATIONS,
                stream,
            };
            let coarse = Evaluation {
                num_sets: QUADRATURE_SETS,
                num_locations: QUADRATURE_LOCATIONS,
                ..fresh
            };
            let found = held_out(process, &fresh)?;
            let quadrature = cross_entropy(process, &coarse)?;
            let peaks = peak_mass(process, &coarse)?;
            scores.push(ContextScore {
                context: num_context,
                nll: found.nll,
                stderr: found.std_error,
                floor: found.floor,
                excess: found.excess,
                excess_stderr: found.excess_std_error,
                quadrature: quadrature.nll,
                quadrature_excess: quadrature.excess,
                balanced: peaks.map(|peaks| peaks.balanced),
                mean_smallest_peak: peaks.map(|peaks| peaks.mean_smallest),
            });
        }
        let picture = if seed == 1 { Some(picture(process, family)?.values) } else { None };
        Ok(Self {
            dataset: family.name().to_owned(),
            model: model.to_owned(),
            seed,
            seconds,
            elements,
            fitted: process.fitted().into_iter().map(|(name, x)| (name.to_owned(), x)).collect(),
            log_partition: log_partition(process, family)?,
            scores,
            picture,
        })
    }
}

/// The mean over the sets and the locations of the quadrature, given 30 elements.
fn log_partition(process: &CurveModel, family: CurveFamily) -> Result<Option<BoundedPartition>> {
    let evaluation = Evaluation {
        family,
        num_context: CONTEXTS[2],
        num_sets: QUADRATURE_SETS,
        num_locations: QUADRATURE_LOCATIONS,
        stream: evaluation_stream(),
    };
    let locations: Vec<f64> = evaluation.locations().collect();
    let mut found = Vec::new();
    for number in 0..evaluation.num_sets {
        let context = evaluation.context(number)?;
        let stream = Stream::new(number as u64, "figure 1: log Z");
        match process.bounded_partition(&context, &locations, BOUND_DRAWS, stream)? {
            Some(of_set) => found.push(of_set),
            None => return Ok(None),
        }
    }
    Ok(BoundedPartition::mean(&found))
}

/// The window of a dataset's pictures.
pub(super) fn window(family: CurveFamily) -> Window {
    Window { locations: family.location_range(), values: family.value_range() }
}

/// What a model says about the drawn set, 30 of whose elements it is told.
fn picture(process: &dyn Process, family: CurveFamily) -> Result<Panel> {
    let context = family.draw(evaluation_stream(), DRAWN_SET, 30)?.set;
    let predictive = process.condition(&context)?;
    window(family).predicted("", points(&context), predictive.as_ref())
}
