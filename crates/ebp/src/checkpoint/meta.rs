//! `meta.json`: what a checkpoint holds besides tensors, sealed with a checksum.
//!
//! The checksum covers the bytes of the tensors followed by the JSON text of the content, so a
//! changed digit in either is noticed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::checksum::crc32c;
use crate::{Error, Result};

/// Raised when a reader of the old format would misread the new one.
const FORMAT: u32 = 1;

/// What a checkpoint holds besides tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointMeta {
    /// How many steps were taken; the number of the next one.
    pub step: u64,
    /// Seed of the run.
    pub seed: u64,
    /// Multiplies every learning rate: halved by each rollback.
    pub learning_rate_factor: f64,
    /// What went wrong so far, oldest first.
    pub rollbacks: Vec<Rollback>,
    /// The best evaluation so far.
    pub best: Option<Best>,
    /// The resolved configuration as text, from which the model can be built again.
    pub config: String,
    /// Named numbers that belong to the model, such as the statistics its data were standardised
    /// with. All finite.
    pub numbers: BTreeMap<String, Vec<f64>>,
    /// What the tensors are good for. Not written where it is everything, as before there was less.
    #[serde(default, skip_serializing_if = "Holds::is_everything")]
    pub holds: Holds,
}

/// What the tensors of a checkpoint are good for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// A run can go on from it.
    #[default]
    Everything,
    /// A model can be used: averages in the place of the parameters. For every part of the state
    /// that was left out, the names of what was in it.
    Weights(BTreeMap<String, Vec<String>>),
}

impl Holds {
    fn is_everything(&self) -> bool {
        *self == Self::Everything
    }
}

impl Default for CheckpointMeta {
    /// A run that has not begun.
    fn default() -> Self {
        Self {
            step: 0,
            seed: 0,
            learning_rate_factor: 1.0,
            rollbacks: Vec::new(),
            best: None,
            config: String::new(),
            numbers: BTreeMap::new(),
            holds: Holds::Everything,
        }
    }
}

/// A return to an earlier state after a step that diverged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// The step that diverged.
    pub from_step: u64,
    /// The next step after the return.
    pub to_step: u64,
    /// The first quantity that was not finite.
    pub quantity: String,
    /// Its value in words, since JSON has no word for NaN.
    pub found: String,
    /// The factor of the learning rates from here on.
    pub learning_rate_factor: f64,
}

/// The best evaluation of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// After how many steps.
    pub step: u64,
    /// After how many rollbacks.
    pub num_rollbacks: u64,
    /// The value that was compared.
    pub value: f64,
}

/// The file: the content, and what makes sure of it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sealed {
    format: u32,
    /// Version of the library that wrote it; for people, not compared.
    library: String,
    /// Length of the file of tensors.
    pub(super) state_bytes: u64,
    /// CRC-32C of the tensors and the content, in hexadecimal.
    pub(super) checksum: String,
    pub(super) meta: CheckpointMeta,
}

impl Sealed {
    /// Whether `state` and the content are those that were sealed.
    pub(super) fn has_checksum_of(&self, state: &[u8]) -> bool {
        checksum(&self.meta, state).is_ok_and(|found| found == self.checksum)
    }
}

/// The file's bytes for `meta` and the tensors in `state`.
pub(super) fn seal(meta: &CheckpointMeta, state: &[u8]) -> Result<Vec<u8>> {
    check_finite("learning_rate_factor", &[meta.learning_rate_factor])?;
    for (name, values) in &meta.numbers {
        check_finite(&format!("numbers.{name}"), values)?;
    }
    if let Some(best) = &meta.best {
        check_finite("best.value", &[best.value])?;
    }
    let sealed = Sealed {
        format: FORMAT,
        library: env!("CARGO_PKG_VERSION").into(),
        state_bytes: state.len() as u64,
        checksum: checksum(meta, state)?,
        meta: meta.clone(),
    };
    let mut text = serde_json::to_vec_pretty(&sealed).map_err(unsaveable)?;
    text.push(b'\n');
    Ok(text)
}

/// Reads a file, or says what is wrong with it.
pub(super) fn unseal(text: &[u8]) -> std::result::Result<Sealed, String> {
    /// The part that every format has.
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }
    let Versioned { format } = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if format != FORMAT {
        return Err(format!("`format` must be {FORMAT} for this version of ebp, found {format}"));
    }
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

fn checksum(meta: &CheckpointMeta, state: &[u8]) -> Result<String> {
    let content = serde_json::to_vec(meta).map_err(unsaveable)?;
    Ok(format!("{:08x}", crc32c(&[state, &content])))
}

fn check_finite(name: &str, values: &[f64]) -> Result<()> {
    match values.iter().find(|value| !value.is_finite()) {
        Some(value) => Err(Error::invalid(name, "finite numbers", value)),
        None => Ok(()),
    }
}

fn unsaveable(error: serde_json::Error) -> Error {
    Error::invalid("meta", "content that JSON can hold", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> CheckpointMeta {
        CheckpointMeta {
            step: u64::MAX,
            seed: u64::MAX - 1,
            rollbacks: vec![Rollback {
                from_step: 7,
                to_step: 5,
                quantity: "loss".into(),
                found: "NaN".into(),
                learning_rate_factor: 0.5,
            }],
            best: Some(Best { step: 3, num_rollbacks: 0, value: -1.25 }),
            config: "a = 1\n\"é\"".into(),
            // Numbers whose decimal forms need all 17 digits.
            numbers: BTreeMap::from([("mean".into(), vec![0.1 + 0.2, 5e-324, -1.797e308])]),
            ..CheckpointMeta::default()
        }
    }

    #[test]
    fn what_is_sealed_comes_back_to_the_last_bit() {
        let bytes = seal(&example(), b"state").unwrap();
        assert_eq!(bytes, seal(&example(), b"state").unwrap());
        let sealed = unseal(&bytes).unwrap();
        assert_eq!(sealed.meta, example());
        assert!(sealed.has_checksum_of(b"state"));
        assert!(!sealed.has_checksum_of(b"stats"));
    }

    #[test]
    fn what_it_holds_is_written_only_where_it_is_not_everything() {
        let text = |meta: &CheckpointMeta| String::from_utf8(seal(meta, b"").unwrap()).unwrap();
        assert!(!text(&example()).contains("holds"));
        let left_out = BTreeMap::from([("adam".to_owned(), vec!["w".to_owned()])]);
        let weights = CheckpointMeta { holds: Holds::Weights(left_out), ..example() };
        let written = text(&weights);
        assert!(written.contains("\"holds\": {\n      \"weights\""), "{written}");
        let sealed = unseal(written.as_bytes()).unwrap();
        assert!(sealed.meta == weights && sealed.has_checksum_of(b""));
    }

    #[test]
    fn a_changed_digit_breaks_the_seal() {
        let text = String::from_utf8(seal(&example(), b"state").unwrap()).unwrap();
        let changed = text.replace("\"to_step\": 5", "\"to_step\": 6");
        assert_ne!(text, changed);
        assert!(!unseal(changed.as_bytes()).unwrap().has_checksum_of(b"state"));
    }

    #[test]
    fn numbers_that_json_lacks_are_refused_by_name() {
        let mut meta = example();
        meta.numbers.insert("scale".into(), vec![1.0, f64::NAN]);
        let message = seal(&meta, b"").unwrap_err().to_string();
        assert_eq!(message, "`numbers.scale` must be finite numbers, found NaN");
    }

    #[test]
    fn another_format_is_named() {
        let text = String::from_utf8(seal(&example(), b"").unwrap()).unwrap();
        let other = text.replace("\"format\": 1", "\"format\": 2");
        let reason = unseal(other.as_bytes()).err().unwrap();
        assert_eq!(reason, "`format` must be 1 for this version of ebp, found 2");
    }
}
