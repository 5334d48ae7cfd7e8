//! Everything that decides a model, for every kind of data.

use serde::{Deserialize, Serialize};

use super::{
    CloudSettings, CurveSettings, LatentSettings, PRESETS, PatternSettings, PictureSettings,
    SetEnergySettings, TopicSettings,
};
use crate::config::{Layers, text_of};
use crate::train::TrainerConfig;
use crate::{Error, Result};

/// The settings of a run. In a file the key `kind` says which of them these are; without it they
/// are those of curves.
///
/// ```
/// use ebp::model::Settings;
///
/// let settings = Settings::preset("shapes", &["train.num_steps=200", "seed=3"])?;
/// assert_eq!((settings.kind(), settings.seed()), ("clouds", 3));
/// let error = Settings::preset("shapes", &["train.num_step=200"]).unwrap_err();
/// assert_eq!(error.help(), Some("did you mean `train.num_steps`?"));
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Settings {
    /// Sets of values at locations: built-in curves, or a table of one's own.
    Curves(Box<CurveSettings>),
    /// Sets of points without locations.
    Clouds(Box<CloudSettings>),
    /// Sets of pixels, some of which are given.
    Pictures(Box<PictureSettings>),
    /// Energies of whole sets, without a latent.
    SetEnergies(Box<SetEnergySettings>),
    /// Rows or sets with latents: the paper's special cases.
    Latents(Box<LatentSettings>),
    /// Points in a window, or events in time.
    Patterns(Box<PatternSettings>),
    /// Documents as bags of words.
    Topics(Box<TopicSettings>),
}

impl Settings {
    /// A preset with changes on top, each `key=value`.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn preset(name: &str, changes: &[impl AsRef<str>]) -> Result<Self> {
        let layers = Layers {
            presets: PRESETS,
            preset: Some(name.to_owned()),
            assignments: changes.iter().map(|change| change.as_ref().to_owned()).collect(),
            ..Layers::default()
        };
        Self::resolve(&layers)
    }

    /// Puts layers on top of each other: a preset, a file, assignments.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] naming the layer and the key that is wrong, with the nearest one that is
    /// right.
    pub fn resolve(layers: &Layers<'_>) -> Result<Self> {
        Ok(match layers.kind()?.as_deref() {
            None | Some("curves") => Self::Curves(layers.resolve_kind()?),
            Some("clouds") => Self::Clouds(layers.resolve_kind()?),
            Some("pictures") => Self::Pictures(layers.resolve_kind()?),
            Some("set-energies") => Self::SetEnergies(layers.resolve_kind()?),
            Some("latents") => Self::Latents(layers.resolve_kind()?),
            Some("patterns") => Self::Patterns(layers.resolve_kind()?),
            Some("topics") => Self::Topics(layers.resolve_kind()?),
            Some(other) => {
                let message = format!("there is no `kind = \"{other}\"` of training");
                let help =
                    "known are: clouds, curves, latents, patterns, pictures, set-energies, topics";
                return Err(Error::refused(message).with_help(help));
            }
        })
    }

    /// What [`text`](Self::text) gave.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is something else.
    pub fn parse(text: &str) -> Result<Self> {
        let presets = [("saved", text)];
        let preset = Some("saved".to_owned());
        Self::resolve(&Layers { presets: &presets, preset, ..Layers::default() })
    }

    /// All settings as TOML.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if TOML cannot hold one.
    pub fn text(&self) -> Result<String> {
        text_of(self)
    }

    /// The value of the key `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Curves(_) => "curves",
            Self::Clouds(_) => "clouds",
            Self::Pictures(_) => "pictures",
            Self::SetEnergies(_) => "set-energies",
            Self::Latents(_) => "latents",
            Self::Patterns(_) => "patterns",
            Self::Topics(_) => "topics",
        }
    }

    /// Seed of all random numbers.
    pub fn seed(&self) -> u64 {
        match self {
            Self::Curves(settings) => settings.seed,
            Self::Clouds(settings) => settings.seed,
            Self::Pictures(settings) => settings.seed,
            Self::SetEnergies(settings) => settings.seed,
            Self::Latents(settings) => settings.seed,
            Self::Patterns(settings) => settings.seed,
            Self::Topics(settings) => settings.seed,
        }
    }

    /// Settings of the loop.
    pub fn trainer(&self) -> &TrainerConfig {
        match self {
            Self::Curves(settings) => &settings.train,
            Self::Clouds(settings) => &settings.train,
            Self::Pictures(settings) => &settings.train,
            Self::SetEnergies(settings) => &settings.train,
            Self::Latents(settings) => &settings.train,
            Self::Patterns(settings) => &settings.train,
            Self::Topics(settings) => &settings.train,
        }
    }

    /// Where the data come from: built-in ones by name, or a path.
    pub fn source(&self) -> &str {
        match self {
            Self::Curves(settings) => &settings.data.source,
            Self::Clouds(settings) => &settings.data.source,
            Self::Pictures(settings) => &settings.data.source,
            Self::SetEnergies(settings) => &settings.data.source,
            Self::Latents(settings) => &settings.data.source,
            Self::Patterns(settings) => &settings.data.source,
            Self::Topics(settings) => &settings.data.source,
        }
    }

    /// The numbers of a step that say most, for whoever shows them.
    pub fn headline(&self) -> &'static [&'static str] {
        match self {
            Self::Curves(_) => &["nats", "kl", "active_units", "excess", "held_out_nats"],
            Self::Clouds(_) => {
                &["nats", "kl", "active_units", "effective_candidates", "held_out_nats"]
            }
            Self::Pictures(_) => &["bits", "kl", "active_units", "held_out_bits"],
            Self::SetEnergies(_) => &["nats", "sampler_loss", "effective_share", "accuracy"],
            Self::Latents(_) => &["nats", "kl_c", "kl_z", "correlation", "held_out_nats"],
            Self::Patterns(_) => &["nats"],
            Self::Topics(_) => &["nats", "perplexity"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_complete_set_of_settings() {
        for (name, _) in PRESETS {
            let settings = Settings::preset(name, &["seed=7"]);
            let settings = settings.map_err(|error| format!("{name}: {error}")).unwrap();
            assert_eq!(settings.seed(), 7, "{name}");
            // The text is the whole truth, and begins with whose it is.
            let text = settings.text().unwrap();
            assert!(text.starts_with("kind = \""), "{text}");
            assert_eq!(Settings::parse(&text).unwrap(), settings, "{name}");
            assert_eq!(toml::from_str::<Settings>(&text).unwrap(), settings, "{name}");
        }
    }

    #[test]
    fn an_unknown_kind_is_refused() {
        let error = Settings::preset("sines", &["kind=cloud"]).unwrap_err();
        assert_eq!(error.to_string(), "there is no `kind = \"cloud\"` of training");
        assert!(error.help().unwrap().contains("clouds"));
    }
}
