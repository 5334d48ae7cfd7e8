//! What a network says in numbers that can be compared: they stand beside its coefficients.

use super::data::HIDDEN_STRAUSS;
use super::settings::{PatternProcess, PatternSettings};
use crate::pattern::{DeepSets, Gibbs, mean_potential};

/// Neighbours up to which a point is told what it is worth.
const MOST_NEIGHBOURS: usize = 3;

/// A number of a fitted process.
pub(crate) struct Extra {
    /// What it is called.
    pub(crate) name: String,
    /// What it is.
    pub(crate) number: Box<dyn Fn(&Gibbs) -> f64>,
    /// Of built-in data.
    pub(crate) truth: Option<f64>,
}

/// Those of the process that the settings name.
pub(crate) fn extras(settings: &PatternSettings) -> Vec<Extra> {
    let is_known = settings.data.source == super::data::SIMULATED;
    let radius = settings.interaction.radius;
    match settings.process {
        PatternProcess::Pairwise => {
            let [gamma, hidden] = HIDDEN_STRAUSS;
            let inner = if is_known { 0.93 * hidden } else { 0.5 * radius };
            vec![Extra {
                name: "mean potential inside".to_owned(),
                number: Box::new(move |model| mean_potential(model, inner).unwrap_or(f64::NAN)),
                truth: is_known.then(|| gamma.ln()),
            }]
        }
        PatternProcess::Deepsets => {
            let [_, gamma, hidden, saturation] = super::data::HIDDEN_GEYER;
            let inner = if is_known { 0.9 * hidden } else { 0.5 * radius };
            let worth = move |count: usize| Extra {
                name: format!("beside {count} near each other"),
                number: Box::new(move |model| {
                    model.deep_sets().map_or(f64::NAN, |deep: &DeepSets| deep.clique(count, inner))
                }),
                truth: is_known.then(|| {
                    // min(s, c) of itself, and what it adds to each of the others
                    let count = count as f64;
                    let others = saturation.min(count) - saturation.min(count - 1.0);
                    (saturation.min(count) + count * others) * gamma.ln()
                }),
            };
            (1..=MOST_NEIGHBOURS).map(worth).collect()
        }
        _ => Vec::new(),
    }
}
