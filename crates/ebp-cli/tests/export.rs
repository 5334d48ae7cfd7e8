//! `ebp export` as a user meets it: what is exported answers as the run does.

mod program;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use program::{ebp, good, json, refusal, timeless};

/// A model of clouds that is large enough for its weights to outweigh the text beside them.
const CLOUDS: [&str; 10] = [
    "data.num_shapes=12",
    "data.num_points=80",
    "data.held_out=4",
    "evaluation.num_sets=4",
    "evaluation.num_points=60",
    "model.energy_widths=[96, 96]",
    "model.encoder_widths=[64, 96]",
    "model.latent_dim=3",
    "model.num_proposals=40",
    "batch_size=3",
];

/// A tiny model of curves.
const CURVES: [&str; 7] = [
    "evaluation.num_sets=2",
    "evaluation.num_locations=2",
    "model.encoder_widths=[8]",
    "model.head_widths=[8]",
    "model.energy_widths=[32]",
    "tasks.num_sets=4",
    "model.latent_dim=2",
];

fn train(folder: &Path, arguments: &[&str], settings: &[&str], more: &[&str]) {
    let settings = settings.iter().chain(more).flat_map(|setting| ["--set", setting]);
    let all: Vec<&str> = ["train"].iter().chain(arguments).copied().chain(settings).collect();
    good(folder, &all);
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn bytes(paths: &[PathBuf]) -> u64 {
    paths.iter().map(|path| fs::metadata(path).expect("a file").len()).sum()
}

/// The folder of the newest checkpoint.
fn newest(run: &Path) -> PathBuf {
    let name = fs::read_to_string(run.join("checkpoints/last")).expect("a name");
    run.join("checkpoints").join(name.trim())
}

fn assert_no_path(folder: &Path, path: &Path) {
    let path = path.to_str().expect("UTF-8");
    for file in files(folder) {
        let content = fs::read(&file).expect("a file");
        let is_there = content.windows(path.len()).any(|part| part == path.as_bytes());
        assert!(!is_there, "{path} in {}", file.display());
    }
}

#[test]
fn exported_clouds_are_those_of_the_run_without_its_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    good(path, &["data", "shapes", "own", "-n", "12", "--points", "80"]);
    let data = path.join("own").join("chair.npy");
    let data = data.to_str().expect("UTF-8");
    let run = path.join("run");
    let run = run.to_str().expect("UTF-8");
    train(path, &["cloud", "--data", data, "--out", run, "-q"], &CLOUDS, &["train.num_steps=4"]);
    let text = good(path, &["export", run, "--out", "model"]);
    assert!(text.contains("weights after 4 steps") && text.contains("ebp sample model"), "{text}");
    assert!(good(path, &["plot", "model", "--out", "curves.png"]).contains("curves.png"));

    let model = path.join("model");
    assert_no_path(&model, path);
    let (small, large) = (bytes(&files(&model)), bytes(&files(&newest(&path.join("run")))));
    assert!(10 * small < 4 * large, "{small} bytes of {large}");

    // Without the data, and with every law of θ that is learned from codes.
    fs::remove_file(data).expect("the data");
    for prior in ["kernel", "gaussian", "standard"] {
        let sample = |model: &str, out: &str| {
            let arguments = ["sample", model, "-n", "3", "--points", "50", "--seed", "1"];
            good(path, &[&arguments[..], &["--prior", prior, "-o", out]].concat());
            fs::read(path.join(out)).expect("samples")
        };
        assert_eq!(sample(run, "a.npy"), sample("model", "b.npy"), "{prior}");
    }
    let ask = |model: &str, out: &str| {
        let score = ["score", model, "a.npy", "--proposals", "300", "--draws", "2", "--json"];
        let mut scores = timeless(json(path, &score));
        scores["model"] = Value::Null;
        good(path, &["encode", model, "a.npy", "-o", out]);
        (scores, fs::read(path.join(out)).expect("features"))
    };
    assert_eq!(ask(run, "a.features.npy"), ask("model", "b.features.npy"));
    good(path, &["denoise", "model", "a.npy", "-o", "clean", "--steps", "2"]);
    let missing = refusal(path, &["reproduce", "energies", "--model", "model", "--out", "r"]);
    assert!(missing.contains("there are no clouds `chair.npy`"), "{missing}");

    let resume = refusal(path, &["train", "cloud", "--data", data, "--resume", "--out", "model"]);
    assert!(resume.contains("found weights only"), "before the data are missed: {resume}");
    let again = refusal(path, &["export", "model", "--out", "more"]);
    assert!(again.contains("`model` is exported already"), "{again}");
    assert!(!path.join("more").exists());
}

#[test]
fn weights_are_not_trained_further() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    train(path, &["shapes", "--out", "run", "-q"], &CLOUDS, &["train.num_steps=3"]);
    good(path, &["export", "run", "--out", "model"]);
    let before: Vec<_> = files(&path.join("model"));
    let settings = CLOUDS.iter().chain(&["train.num_steps=6"]).flat_map(|set| ["--set", set]);
    let resume: Vec<&str> = ["train", "shapes", "--resume", "--out", "model", "-q"]
        .into_iter()
        .chain(settings)
        .collect();
    let message = refusal(path, &resume);
    assert!(message.contains("one that a run can go on from, found weights only"), "{message}");
    assert!(message.contains("go on with the run that they were exported from"), "{message}");
    assert_eq!(files(&path.join("model")), before, "what was exported stays as it is");
}

#[test]
fn exported_curves_predict_as_the_run_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("at.csv"), "t\n-0.5\n0.25\n").expect("a table");
    fs::write(path.join("known.csv"), "t,x\n0,0.3\n0.5,-0.2\n").expect("a table");
    // The second has a sampler, which has no averages.
    for name in ["importance", "ade"] {
        let estimator = format!("model.estimator={name}");
        let few = ["model.sampler.num_components=2", "model.sampler.num_draws=2"];
        let more = ["train.num_steps=5", few[0], few[1], &estimator];
        train(path, &["sines", "--out", name, "-q"], &CURVES, &more);
        let model = format!("{name}-model");
        let report = good(path, &["export", name, "--out", &model, "--json"]);
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!((&report["steps"], &report["kind"]), (&Value::from(5), &Value::from("curves")));
        assert_eq!(report["bytes"], bytes(&files(&path.join(&model))));
        let predict = |model: &str| {
            let arguments = ["predict", model, "--context", "known.csv", "--at", "at.csv"];
            timeless(json(path, &[&arguments[..], &["--json", "--seed", "1"]].concat()))
        };
        assert_eq!(predict(name), predict(&model));
        assert_no_path(&path.join(&model), path);
        let (full, small) = (newest(&path.join(name)), newest(&path.join(&model)));
        let state = |folder: &Path| bytes(&[folder.join("state.safetensors")]);
        assert!(10 * state(&small) < 4 * state(&full), "{name}");
    }
}

#[test]
fn what_cannot_be_exported_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let nothing = refusal(path, &["export", "nowhere", "--out", "model"]);
    assert!(nothing.contains("there is no run in `nowhere`"), "{nothing}");
    fs::create_dir_all(path.join("empty/checkpoints")).expect("a folder");
    let nothing = refusal(path, &["export", "empty", "--out", "model"]);
    assert!(nothing.contains("the run in `empty` has no checkpoint"), "{nothing}");
    for (out, found) in [("empty", "files in it"), ("file", "a file")] {
        fs::write(path.join("file"), "text").expect("a file");
        let occupied = refusal(path, &["export", "nowhere", "--out", out]);
        assert!(occupied.contains(&format!("must be a new or an empty folder, found {found}")));
    }
    assert!(!path.join("model").exists());
    assert_eq!(ebp(path, &["export", "empty"]).status.code(), Some(2), "a folder must be named");
}
