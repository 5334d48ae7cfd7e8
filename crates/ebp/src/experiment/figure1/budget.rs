//! Equal budgets: every model of a dataset sees as many training elements.
//!
//! ```text
//! networks         steps = budget / (sets of a step · elements of a set)
//! closed forms     sets  = budget / (evaluations that the fit may take · elements of a set)
//! ```
//!
//! A fit goes through its sets once per evaluation of the likelihood and stops by itself where nothing is
//! left to gain: what it saw is at most the budget, and is counted.

use crate::model::{CurveModel, CurveProcess, CurveSettings, Settings};
use crate::process::FitConfig;
use crate::{Error, Result};

/// The settings of a model on a dataset: presets of the dataset for energy-based processes, presets
/// `rival/…` for the others, as long as the budget says, or as the dataset's preset is trained.
pub(super) fn settings(
    (dataset, model, seed): (&str, &str, u64),
    elements: Option<u64>,
) -> Result<Settings> {
    let budget = if let Some(elements) = elements {
        elements
    } else {
        let preset = Settings::preset(dataset, &[] as &[&str])?;
        preset.trainer().num_steps * curves(&preset)?.elements_per_step()
    };
    // A folder of 96 models has room for one checkpoint each.
    let mut changes = vec![format!("seed={seed}"), "train.num_kept=1".to_owned()];
    let preset = match model {
        "ebp-importance" => dataset.to_owned(),
        "ebp-ade" => format!("{dataset}-ade"),
        rival => {
            changes.push(format!("data.source={dataset}"));
            format!("rival/{rival}")
        }
    };
    let settings = Settings::preset(&preset, &changes)?;
    let own = curves(&settings)?;
    changes.push(if is_fitted(own) {
        let evaluations = FitConfig::default().max_evaluations * (1 + own.exact.num_restarts);
        let per_set = evaluations as u64 * own.tasks.set_size as u64;
        format!("tasks.num_sets={}", (budget / per_set).max(1))
    } else {
        format!("train.num_steps={}", (budget / own.elements_per_step()).max(1))
    });
    Settings::preset(&preset, &changes)
}

/// Elements that the optimiser of a trained model saw.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
pub(super) fn elements_seen(model: &CurveModel, num_steps: u64) -> u64 {
    let fitted = model.fitted();
    let evaluations = fitted.iter().find(|(name, _)| *name == "evaluations");
    let passes = evaluations.map_or(1, |(_, count)| *count as u64);
    num_steps * model.settings().elements_per_step() * passes
}

fn is_fitted(settings: &CurveSettings) -> bool {
    matches!(settings.process, CurveProcess::Gp | CurveProcess::Tp)
}

fn curves(settings: &Settings) -> Result<&CurveSettings> {
    match settings {
        Settings::Curves(settings) => Ok(settings),
        other => Err(Error::invalid("preset", "of curves", other.kind())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DATASETS, MODELS};
    use super::*;

    /// Networks see the dataset's budget to within a step, fits at most as much.
    #[test]
    fn all_models_of_a_dataset_have_the_same_budget() {
        for dataset in DATASETS {
            for (elements, expected) in [
                (None, if dataset == "phase" { 5_760_000 } else { 576_000 }),
                (Some(96_000), 96_000),
            ] {
                for model in MODELS {
                    let settings = settings((dataset, model, 2), elements).unwrap();
                    let own = curves(&settings).unwrap();
                    assert_eq!((own.seed, own.data.source.as_str()), (2, dataset));
                    let per_step = own.elements_per_step();
                    if is_fitted(own) {
                        // Four starts of at most 200 evaluations.
                        assert_eq!(settings.trainer().num_steps, 1);
                        let most = 800 * per_step;
                        assert!((expected / 2..=expected).contains(&most), "{most} {expected}");
                    } else {
                        assert_eq!(settings.trainer().num_steps * per_step, expected);
                    }
                }
            }
        }
    }
}
