//! Data that lie in memory already, in place of those that `data.source` names.

use super::topics::Collected;
use super::{
    CloudData, CurveData, Data, PatternData, PatternProcess, PictureData, SetEnergyData, Settings,
    TopicData,
};
use crate::data::image::Images;
use crate::data::table::NamedSet;
use crate::data::{CloudSource, Clouds};
use crate::pattern::{Events, Pattern};
use crate::{Error, Result};

/// Sets of one's own program, in their own units.
#[derive(Clone, Debug)]
pub enum Given {
    /// Values at locations.
    Curves(Vec<NamedSet>),
    /// Points without locations, also for energies of whole sets.
    Clouds(Clouds),
    /// Pictures of one size; the last ones are for the test.
    Pictures(Images),
    /// Words with their counts, document by document.
    Documents {
        /// Word and count, in any order.
        documents: Vec<Vec<(u32, u32)>>,
        /// What the words are called; `None` for numbers.
        vocabulary: Option<Vec<String>>,
        /// The class of each document; empty where there are none.
        labels: Vec<String>,
    },
    /// Points in one window.
    Patterns(Vec<Pattern>),
    /// Times, for `process = "hawkes"`.
    Events(Events),
}

impl Given {
    /// What it is, in words.
    fn name(&self) -> &'static str {
        match self {
            Self::Curves(_) => "curves",
            Self::Clouds(_) => "clouds",
            Self::Pictures(_) => "pictures",
            Self::Documents { .. } => "documents",
            Self::Patterns(_) => "patterns",
            Self::Events(_) => "events",
        }
    }
}

impl Data {
    /// What a model learns from and what is held out, of sets in memory: those that the settings would
    /// hold out of a file of the same sets. `data.source` is not read; give it a name that says so.
    ///
    /// ```
    /// use ebp::data::Clouds;
    /// use ebp::model::{Data, Given, Settings};
    /// use ebp::SetOffsets;
    ///
    /// let points: Vec<f32> = (0..90).map(|i| (i as f32).sin()).collect();
    /// let names = ["a", "b", "c"].map(String::from).to_vec();
    /// let clouds = Clouds::new(3, points, SetOffsets::uniform(3, 10)?, names)?;
    /// let settings = Settings::preset("shapes", &["data.source=memory", "data.held_out=1"])?;
    /// let data = Data::given(&settings, Given::Clouds(clouds))?;
    /// assert!(matches!(data, Data::Clouds(_)));
    /// # Ok::<(), ebp::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if they are too few or of another kind than the settings; otherwise as
    /// [`load`](Self::load).
    pub fn given(settings: &Settings, given: Given) -> Result<Self> {
        Ok(match (settings, given) {
            (Settings::Curves(settings), Given::Curves(sets)) => {
                Self::Curves(CurveData::of_sets(settings, sets)?)
            }
            (Settings::Clouds(settings), Given::Clouds(clouds)) => {
                Self::Clouds(CloudData::of_clouds(settings, &clouds.into())?)
            }
            (Settings::SetEnergies(settings), Given::Clouds(clouds)) => {
                let clouds = CloudSource::from(clouds);
                clouds.check_finite()?;
                Self::SetEnergies(SetEnergyData::of_clouds(settings, &clouds)?)
            }
            (Settings::Pictures(settings), Given::Pictures(images)) => {
                Self::Pictures(PictureData::of_images(&settings.data, images)?)
            }
            (Settings::Topics(settings), Given::Documents { documents, vocabulary, labels }) => {
                let read = Collected { documents, labels, num_empty: 0 };
                Self::Topics(TopicData::of_documents(settings, read, vocabulary)?)
            }
            (Settings::Patterns(settings), given @ (Given::Patterns(_) | Given::Events(_))) => {
                settings.check()?;
                let is_hawkes = settings.process == PatternProcess::Hawkes;
                Self::Patterns(match given {
                    Given::Events(events) if is_hawkes => PatternData::of_events(events, None),
                    Given::Patterns(patterns) if !is_hawkes => {
                        PatternData::of_patterns(settings, patterns, None)?
                    }
                    given => {
                        let process = settings.process.name();
                        return Err(does_not_fit(&given, &format!("the process `{process}`")));
                    }
                })
            }
            (settings, given) => return Err(does_not_fit(&given, settings.kind())),
        })
    }
}

fn does_not_fit(given: &Given, wanted: &str) -> Error {
    Error::refused(format!(
        "these settings are for {wanted}, the sets in memory are {}",
        given.name()
    ))
    .with_help("choose a preset of their kind, or name data by `data.source`")
}
