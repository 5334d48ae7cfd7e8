//! What a single trained model has learned, measured on what it has not seen.

mod clouds;
mod completion_figure;
mod curves;
mod latents;
mod patterns;
mod pictures;
mod set_energies;
mod topics;

use std::fmt::{self, Display};
use std::path::PathBuf;

use serde::Serialize;

pub use self::clouds::CloudOutcome;
pub(super) use self::completion_figure::completion_mosaic;
pub use self::curves::{CurveOutcome, CurveScore};
pub use self::latents::{LatentOutcome, RowOutcome, SetOutcome};
pub use self::patterns::{Coefficient, PatternOutcome};
pub(super) use self::pictures::Jury;
pub use self::pictures::{PictureOutcome, score_table};
pub use self::set_energies::{Interval, SetEnergyOutcome, SetEnergyRow};
pub use self::topics::{PerplexityNumber, PerplexityReport, TopicOutcome, TopicRow, TruthReport};
use super::Findings;
use crate::Result;
use crate::figure::Figure;
use crate::model::{Data, Device, Model};

/// What a model has learned, by its kind of data.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// Of curves or a table.
    Curves(CurveOutcome),
    /// Of clouds.
    Clouds(CloudOutcome),
    /// Of pictures.
    Pictures(PictureOutcome),
    /// Of whole sets.
    SetEnergies(SetEnergyOutcome),
    /// Of rows or sets with latents.
    Latents(LatentOutcome),
    /// Of point patterns.
    Patterns(PatternOutcome),
    /// Of documents.
    Topics(TopicOutcome),
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Curves(outcome) => outcome.fmt(f),
            Self::Clouds(outcome) => outcome.fmt(f),
            Self::Pictures(outcome) => outcome.fmt(f),
            Self::SetEnergies(outcome) => outcome.fmt(f),
            Self::Latents(outcome) => outcome.fmt(f),
            Self::Patterns(outcome) => outcome.fmt(f),
            Self::Topics(outcome) => outcome.fmt(f),
        }
    }
}

/// A picture and where it belongs.
type Picture = (PathBuf, Figure);

/// Judges a model by the data that its settings name. Pictures belong into `plots/` in its folder.
///
/// # Errors
///
/// [`Error::Refused`](crate::Error::Refused) if the data are of another kind; otherwise what the model says.
pub fn judge(model: &Model, data: &Data, device: &Device) -> Result<Findings<Outcome>> {
    let plots = model.directory().map_or_else(PathBuf::new, |directory| directory.join("plots"));
    let (report, pictures) = match data {
        Data::Curves(data) => {
            let (outcome, picture) = curves::judge(model, data, &plots)?;
            (Outcome::Curves(outcome), picture.into_iter().collect())
        }
        Data::Clouds(data) => {
            let (outcome, picture) = clouds::judge(model, data, &plots)?;
            (Outcome::Clouds(outcome), vec![picture])
        }
        Data::Pictures(data) => {
            let (outcome, picture) = pictures::judge(model, data, device, &plots)?;
            (Outcome::Pictures(outcome), vec![picture])
        }
        Data::SetEnergies(data) => {
            let (outcome, pictures) = set_energies::judge(model, data, &plots)?;
            (Outcome::SetEnergies(outcome), pictures)
        }
        Data::Latents(data) => {
            let (outcome, pictures) = latents::judge(model, data, &plots)?;
            (Outcome::Latents(outcome), pictures)
        }
        Data::Patterns(data) => {
            let (outcome, pictures) = patterns::judge(model, data, &plots)?;
            (Outcome::Patterns(outcome), pictures)
        }
        Data::Topics(data) => {
            let (outcome, picture) = topics::judge(model, data, &plots)?;
            (Outcome::Topics(outcome), picture.into_iter().collect())
        }
    };
    Ok(Findings { report, pictures })
}

/// The folder of a model, in words.
fn folder_of(model: &Model) -> Option<String> {
    model.directory().map(|directory| directory.display().to_string())
}
