//! One cell of Figure 1: a model trained on a dataset with a seed, judged, and kept as a file.

use std::path::{Path, PathBuf};

use ebp::data::CurveFamily;
use ebp::metric::predictive::{Evaluation, cross_entropy, held_out, peak_mass};
use ebp::process::Process;
use ebp::rng::Stream;
use serde::{Deserialize, Serialize};

use super::rivals::Model;
use crate::failure::Failure;
use ebp::figure::density::{Window, points};
use ebp::figure::heat_map::Panel;

/// How many elements of a set a model is told.
pub(super) const CONTEXTS: [usize; 3] = [5, 15, 30];
/// Fresh elements: 40 sets of 50.
const NUM_SETS: usize = 40;
const NUM_LOCATIONS: usize = 50;
/// Sets and locations of the quadrature, and of the peaks.
const QUADRATURE_SETS: usize = 10;
const QUADRATURE_LOCATIONS: usize = 40;
/// Which set of the evaluation is drawn, with 30 elements told.
pub(super) const DRAWN_SET: u64 = 0;

/// Where the evaluation's sets come from: the same for every model, unseen by all.
pub(super) fn evaluation_stream() -> Stream {
    Stream::new(0, "figure 1")
}

/// What one trained model scored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cell {
    pub(super) dataset: String,
    pub(super) model: String,
    pub(super) seed: u64,
    /// Seconds of training.
    pub(super) seconds: f64,
    /// One for each of [`CONTEXTS`].
    pub(super) scores: Vec<ContextScore>,
    /// The densities of the figure, seed 1 only.
    pub(super) picture: Option<Vec<f64>>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextScore {
    pub(super) context: usize,
    /// On fresh elements.
    pub(super) nll: f64,
    pub(super) stderr: f64,
    pub(super) floor: f64,
    pub(super) excess: f64,
    pub(super) excess_stderr: f64,
    /// Cross-entropy and excess by quadrature.
    pub(super) quadrature: f64,
    pub(super) quadrature_excess: f64,
    /// The share of locations where each peak carries its due within a fifth; absent where peaks
    /// are never apart.
    pub(super) balanced: Option<f64>,
    /// The smallest share of a peak, averaged over locations.
    pub(super) mean_smallest_peak: Option<f64>,
}

impl Cell {
    pub(super) fn measure(
        process: &dyn Process,
        family: CurveFamily,
        model: Model,
        seed: u64,
        seconds: f64,
    ) -> Result<Self, Failure> {
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
            model: model.name().to_owned(),
            seed,
            seconds,
            scores,
            picture,
        })
    }

    pub(super) fn path(folder: &Path, dataset: &str, model: Model, seed: u64) -> PathBuf {
        folder.join(format!("{dataset}-{}-{seed}.json", model.name()))
    }

    /// The cell in a file, `None` if there is none. A damaged file counts as none: it is made
    /// again.
    pub(super) fn load(path: &Path) -> Option<Self> {
        ebp::files::read_json(path)
    }

    /// Writes a temporary file first, so that a file with the right name is whole.
    pub(super) fn save(&self, path: &Path) -> Result<(), Failure> {
        Ok(ebp::files::write_json(path, self)?)
    }
}

/// The window of a dataset's pictures.
pub(super) fn window(family: CurveFamily) -> Window {
    Window { locations: family.location_range(), values: family.value_range() }
}

/// What a model says about the drawn set, 30 of whose elements it is told.
fn picture(process: &dyn Process, family: CurveFamily) -> Result<Panel, Failure> {
    let context = family.draw(evaluation_stream(), DRAWN_SET, 30)?.set;
    let predictive = process.condition(&context)?;
    Ok(window(family).predicted("", points(&context), predictive.as_ref())?)
}
