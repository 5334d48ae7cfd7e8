//! The program as a user starts it, in a folder of the test.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;
use std::process::{Command, Output};

/// Settings of a model of curves so small that a step takes a millisecond.
pub(crate) const TINY_CURVES: [&str; 10] = [
    "--set",
    "model.encoder_widths=[8]",
    "--set",
    "model.head_widths=[8]",
    "--set",
    "model.energy_widths=[12, 12]",
    "--set",
    "tasks.num_sets=4",
    "--set",
    "model.latent_dim=2",
];

/// Settings of a model of clouds so small that a step takes a millisecond.
pub(crate) const TINY_CLOUDS: [&str; 24] = [
    "--set",
    "data.num_shapes=12",
    "--set",
    "data.num_points=80",
    "--set",
    "data.held_out=4",
    "--set",
    "evaluation.num_sets=4",
    "--set",
    "evaluation.num_points=60",
    "--set",
    "model.encoder_widths=[8, 12]",
    "--set",
    "model.energy_widths=[12]",
    "--set",
    "model.latent_dim=3",
    "--set",
    "model.num_proposals=40",
    "--set",
    "batch_size=3",
    "--set",
    "train.num_steps=4",
    "--set",
    "evaluation.every=2",
];

/// Pictures of 8 × 8 and a model so small that a step takes milliseconds.
pub(crate) const TINY_PICTURES: [&str; 18] = [
    "data.side=8",
    "data.num_training=60",
    "data.num_test=12",
    "evaluation.num_pictures=3",
    "evaluation.num_draws=3",
    "evaluation.parts=[\"10\",\"top\"]",
    "evaluation.drawn=[\"top\"]",
    "evaluation.classifies=false",
    "tasks.num_pictures=4",
    "tasks.max_context=40",
    "model.encoder_widths=[8]",
    "model.head_widths=[8]",
    "model.energy_widths=[8]",
    "model.latent_dim=2",
    "neural.encoder_widths=[16, 16]",
    "neural.representation_dim=16",
    "neural.decoder_widths=[16, 16]",
    "neural.embedding_widths=[16]",
];

/// What happened.
pub(crate) fn ebp(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebp"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the binary starts")
}

/// What a command that works prints.
pub(crate) fn good(folder: &Path, arguments: &[&str]) -> String {
    let output = ebp(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What a command that cannot work says; it must not have tried.
pub(crate) fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = ebp(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command says that found something wrong, whether before it tried or on the way.
pub(crate) fn complaint(folder: &Path, arguments: &[&str]) -> String {
    let output = ebp(folder, arguments);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {:?}", output.status);
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command that works prints, as JSON.
pub(crate) fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&good(folder, arguments)).expect("JSON")
}

/// The same without the time it took, the one thing that no two runs share.
pub(crate) fn timeless(mut printed: serde_json::Value) -> serde_json::Value {
    let fields = printed.as_object_mut().expect("an object");
    assert!(fields.remove("elapsed_s").is_some_and(|seconds| seconds.is_f64()));
    printed
}

/// What a command that tried and did not manage says.
pub(crate) fn failure(folder: &Path, arguments: &[&str]) -> String {
    let output = ebp(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}
