//! Settings in layers: what wins, what is refused, and what the refusal says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use ebp::Error;
use ebp::config::{Layers, Resolved, differing_keys};
use ebp::train::{OnDivergence, TrainerConfig};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    seed: u64,
    name: String,
    widths: Vec<usize>,
    model: Model,
    train: TrainerConfig,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Model {
    learning_rate: f64,
    context_dim: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            name: "none".into(),
            widths: vec![8, 8],
            model: Model::default(),
            train: TrainerConfig::default(),
        }
    }
}

impl Default for Model {
    fn default() -> Self {
        Self { learning_rate: 1e-3, context_dim: None }
    }
}

const TEST_PRESETS: [(&str, &str); 2] =
    [("sine", "seed = 5\nname = \"sine\"\n[model]\nlearning_rate = 0.5\n"), ("wrong", "sed = 5\n")];

fn resolve(preset: Option<&str>, assignments: &[&str]) -> Result<Resolved<Config>, Error> {
    Layers {
        presets: &TEST_PRESETS,
        preset: preset.map(Into::into),
        file: None,
        assignments: assignments.iter().map(|&text| text.into()).collect(),
    }
    .resolve()
}

/// The message of a usage error with its help.
fn refusal(preset: Option<&str>, assignments: &[&str]) -> String {
    match resolve(preset, assignments) {
        Err(Error::Refused { message, help }) => {
            format!("{message} | {}", help.unwrap_or_default())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn later_layers_win_and_leave_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, "seed = 7\n[train]\nnum_steps = 20\non_divergence = \"rollback\"\n")
        .unwrap();
    let resolved: Resolved<Config> = Layers {
        presets: &TEST_PRESETS,
        preset: Some("sine".into()),
        file: Some(file),
        assignments: vec![
            "train.num_steps=30".into(),
            "model.context_dim = 4".into(),
            "widths=[1, 2]".into(),
        ],
    }
    .resolve()
    .unwrap();
    let config = resolved.config;
    assert_eq!((config.seed, config.name.as_str()), (7, "sine"));
    assert_eq!(config.model, Model { learning_rate: 0.5, context_dim: Some(4) });
    assert_eq!(config.widths, [1, 2]);
    assert_eq!(config.train.num_steps, 30);
    assert_eq!(config.train.on_divergence, OnDivergence::Rollback);
    assert_eq!(config.train.num_kept, 2);
    // The text is the whole truth.
    assert_eq!(toml::from_str::<Config>(&resolved.text).unwrap(), config);
}

#[test]
fn values_are_toml_and_plain_words_need_no_quotes() {
    let config = resolve(
        None,
        &["name=some/file-1.txt", "model.learning_rate=1", "train.on_divergence=rollback"],
    )
    .unwrap()
    .config;
    assert_eq!(config.name, "some/file-1.txt");
    assert!((config.model.learning_rate - 1.0).abs() < f64::EPSILON);
    assert_eq!(resolve(None, &["name=\"two words\""]).unwrap().config.name, "two words");
    let message = refusal(None, &["name=two words"]);
    assert!(message.contains("no TOML value"), "{message}");
    assert!(refusal(None, &["seed=1\nname = 'x'"]).contains("no TOML value"));
    assert!(refusal(None, &["seed"]).contains("no `=`"));
    assert!(refusal(None, &["=3"]).contains("no key"));
    assert!(refusal(None, &["train..num_steps=3"]).contains("no key"));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    let message = refusal(None, &["model.lerning_rate=0.1"]);
    assert_eq!(
        message,
        "`--set model.lerning_rate=0.1`: there is no setting `model.lerning_rate` | \
         did you mean `model.learning_rate`?"
    );
    let message = refusal(None, &["num_steps=3"]);
    assert!(message.ends_with("no setting `num_steps` | did you mean `train.num_steps`?"));
    let message = refusal(Some("wrong"), &[]);
    assert_eq!(message, "preset `wrong`: there is no setting `sed` | did you mean `seed`?");
    let message = refusal(None, &["colour=red"]);
    assert!(message.ends_with("known are: seed, name, widths, model, train"), "{message}");
}

#[test]
fn a_wrong_type_names_the_key() {
    let message = refusal(None, &["train.num_steps=many"]);
    assert!(message.contains("`train.num_steps`: invalid type: string \"many\""), "{message}");
    let message = refusal(None, &["train.on_divergence=pray"]);
    assert!(message.contains("`train.on_divergence`"), "{message}");
    assert!(message.contains("`stop`") && message.contains("`rollback`"), "{message}");
    assert!(refusal(None, &["model=3"]).contains("`model`"));
}

#[test]
fn missing_presets_and_files_are_named() {
    let message = refusal(Some("sin"), &[]);
    assert_eq!(message, "there is no preset `sin` | did you mean `sine`?");
    let layers = Layers { file: Some("no/such.toml".into()), ..Layers::default() };
    let Err(error @ Error::Refused { .. }) = layers.resolve::<Config>() else { panic!("no error") };
    assert!(error.to_string().starts_with("cannot read `no/such.toml`"), "{error}");
}

#[test]
fn differing_keys_are_found_by_value() {
    let before = "a = 1\n[b]\nc = 2\nd = 3\n";
    assert!(differing_keys(before, "b = { d = 3, c = 2 }\na = 1").unwrap().is_empty());
    assert_eq!(
        differing_keys(before, "a = 1\n[b]\nc = 4\ne = 3\n").unwrap(),
        ["b.c", "b.d", "b.e"]
    );
}
