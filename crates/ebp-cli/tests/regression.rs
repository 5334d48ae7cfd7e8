//! `ebp train`, `predict`, `plot` and `reproduce figure1` as a user meets them.

mod program;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

use program::{TINY_CURVES, ebp, good, refusal};

/// Few sets to be judged by.
const FEW: [&str; 4] = ["--set", "evaluation.num_sets=2", "--set", "evaluation.num_locations=5"];

/// Three sets of 20 elements near x = 100 ± 5, t in hours.
fn write_table(path: &Path) {
    let mut text = "day,hour,note,rain\n".to_owned();
    for i in 0..60_u32 {
        let t = f64::from(i * 7 % 60) / 10.0;
        let branch = if i * 13 % 7 < 3 { 5.0 } else { -5.0 };
        let x = 100.0 + branch + f64::from(i % 5) * 0.2;
        writeln!(text, "day {},{t},x,{x}", i % 3).expect("a string");
    }
    fs::write(path, text).expect("a table");
}

#[test]
fn a_table_of_ones_own_becomes_a_model_that_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_table(&folder.join("rain.csv"));
    let columns = [
        "--set",
        "data.set_column=day",
        "--set",
        "data.location_columns=[\"hour\"]",
        "--set",
        "data.value_columns=[\"rain\"]",
    ];
    let train = [
        &["train", "--data", "rain.csv", "-q", "--json", "--set", "train.num_steps=60"][..],
        &columns,
        &FEW,
        &TINY_CURVES,
    ]
    .concat();
    let report: Value = serde_json::from_str(&good(folder, &train)).expect("JSON");
    assert_eq!(report["model"], "ebp-importance");
    assert_eq!(report["steps"], 60);
    assert_eq!(report["run"], "runs/rain");
    for score in report["scores"].as_array().expect("scores") {
        assert!(score["nll"].as_f64().expect("a number").is_finite(), "{score}");
    }
    let run = folder.join("runs/rain");
    for file in ["config.toml", "run.json", "metrics.jsonl", "plots/density.png"] {
        assert!(run.join(file).is_file(), "{file}");
    }

    fs::write(folder.join("known.csv"), "hour,rain\n1,105\n2,95.5\n").expect("a table");
    fs::write(folder.join("at.csv"), "hour\n1.5\n3\n").expect("a table");
    let predict = |more: &[&str]| {
        let start = ["predict", "runs/rain", "--context", "known.csv", "--at", "at.csv"];
        good(folder, &[&start[..], more].concat())
    };
    let summary = predict(&[]);
    let lines: Vec<&str> = summary.lines().collect();
    assert!(
        lines[0].starts_with("set,hour,mean,q05,q25,q50,q75,q95,mode1,mode_density1,mode_mass1")
    );
    assert_eq!(lines.len(), 3);
    let numbers: Vec<f64> =
        lines[1].split(',').skip(1).take(7).map(|cell| cell.parse().expect("a number")).collect();
    assert!((numbers[0] - 1.5).abs() < 1e-12);
    assert!(numbers[2..7].is_sorted(), "quantiles grow: {numbers:?}");
    assert!((80.0..120.0).contains(&numbers[1]), "in the units of the data: {numbers:?}");

    let density = predict(&["--show", "density", "--grid", "500"]);
    let rows: Vec<Vec<f64>> = density
        .lines()
        .skip(1)
        .map(|line| line.split(',').skip(1).map(|cell| cell.parse().expect("a number")).collect())
        .collect();
    assert_eq!(rows.len(), 1000);
    let width = rows[1][1] - rows[0][1];
    let mass: f64 = rows[..500].iter().map(|row| row[2] * width).sum();
    assert!((mass - 1.0).abs() < 1e-6, "{mass}");

    let samples = predict(&["--show", "samples", "--samples", "7"]);
    assert_eq!(samples.lines().count(), 1 + 7 * 2);
    assert_eq!(samples, predict(&["--show", "samples", "--samples", "7"]), "same seed, same bytes");
    assert_ne!(samples, predict(&["--show", "samples", "--samples", "7", "--seed", "1"]));

    fs::write(folder.join("at.csv"), "hour,rain\n1.5,104\n3,96\n").expect("a table");
    for rule in ["mixture", "geometric"] {
        let targets = predict(&["--show", "targets", "--rule", rule]);
        assert_eq!(targets.lines().next(), Some("set,hour,log_density,stderr"));
        let all: Value = serde_json::from_str(&predict(&["--json", "--rule", rule])).expect("JSON");
        let set = &all["sets"][0];
        assert_eq!(set["locations"].as_array().map(Vec::len), Some(2));
        assert_eq!(set["samples"].as_array().map(Vec::len), Some(100));
        let density = set["targets"][0]["log_density"].as_f64().expect("a number");
        let printed: f64 = targets
            .lines()
            .nth(1)
            .and_then(|l| l.split(',').nth(2))
            .expect("a cell")
            .parse()
            .expect("a number");
        assert!((density - printed).abs() < 1e-12);
    }

    assert!(good(folder, &["plot", "runs/rain"]).contains("curves.png"));
    assert!(good(folder, &["plot", "runs/rain", "--from", "2"]).contains("curves.png"));
    let late = refusal(folder, &["plot", "runs/rain", "--from", "1000000"]);
    assert!(late.contains("nothing from step 1000000"), "{late}");
    let wrong = refusal(folder, &["plot", "runs/rain", "--only", "lossy"]);
    assert!(wrong.contains("no quantity `lossy`") && wrong.contains("nats"), "{wrong}");

    fs::write(folder.join("far.csv"), "hour,rain\n1.5,1e6\n").expect("a table");
    let far = ebp(folder, &["predict", "runs/rain", "--at", "far.csv", "--show", "targets"]);
    assert_eq!(far.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&far.stderr).contains("outside the model's domain"));
}

#[test]
fn what_cannot_work_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let message = refusal(folder, &["train", "linse"]);
    assert!(
        message.contains("there is no preset `linse`") && message.contains("`lines`"),
        "{message}"
    );
    let message = refusal(folder, &["train", "--set", "model.energy_width=[3]"]);
    assert!(
        message.contains("`model.energy_width`") && message.contains("energy_widths"),
        "{message}"
    );
    let message = refusal(folder, &["train", "--set", "model.temperature=-1"]);
    assert!(message.contains("`temperature` must be positive"), "{message}");
    let message = refusal(folder, &["train", "--set", "data.source=spiral"]);
    assert!(message.contains("sines") && message.contains("CSV"), "{message}");
    let message = refusal(folder, &["train", "--resume"]);
    assert!(message.contains("no run to go on with"), "{message}");
    fs::write(folder.join("bad.csv"), "t,x\n0,1\n1,abc\n").expect("a table");
    let output = ebp(folder, &["train", "--data", "bad.csv"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("bad.csv, line 3") && message.contains("`abc`"), "{message}");
    fs::write(folder.join("one.csv"), "t,x\n0,1\n").expect("a table");
    assert!(refusal(folder, &["train", "--data", "one.csv"]).contains("too few elements"));
    let message = refusal(folder, &["predict", "nowhere", "--at", "one.csv"]);
    assert!(message.contains("no model in `nowhere`"), "{message}");
    assert!(!folder.join("runs").exists(), "nothing is left behind by what was refused");
    let message = refusal(folder, &["reproduce", "figure1", "--models", "gpp"]);
    assert!(message.contains("no model `gpp`") && message.contains("ebp-ade"), "{message}");
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let states = ["1", "2", "5"].map(|threads| {
        let run = format!("with-{threads}");
        let arguments = [
            &["train", "sines", "-q", "--json", "--out", &run, "--threads", threads][..],
            &["--set", "train.num_steps=12", "--set", "tasks.set_size=200"],
            &FEW,
            &TINY_CURVES,
        ]
        .concat();
        let report: Value = serde_json::from_str(&good(folder, &arguments)).expect("JSON");
        let mut report = program::timeless(report);
        report["run"] = Value::Null;
        report["seconds"] = Value::Null;
        let last = fs::read_to_string(folder.join(&run).join("checkpoints/last")).expect("a name");
        let state =
            folder.join(&run).join("checkpoints").join(last.trim()).join("state.safetensors");
        (fs::read(state).expect("a state"), report)
    });
    assert!(states[0] == states[1] && states[1] == states[2]);
}

/// κ = 1 with λ = 1e-5: the KL divergence wins, and everyone can see it.
#[test]
fn the_papers_constants_collapse_the_posterior_visibly() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let arguments = ["train", "paper-literal", "-q", "--json", "--out", "run"];
    let short = ["--set", "train.num_steps=120", "--set", "model.sampler.updates_per_step=1"];
    let few = ["--set", "model.sampler.num_draws=2", "--set", "evaluation.num_sets=2"];
    let fewer = ["--set", "evaluation.num_locations=5", "--set", "model.energy_widths=[16]"];
    good(folder, &[&arguments[..], &short, &few, &fewer].concat());
    let metrics = fs::read_to_string(folder.join("run/metrics.jsonl")).expect("metrics");
    let active = |line: Option<&str>| {
        let line: Value = serde_json::from_str(line.expect("a line")).expect("JSON");
        line["record"]["active_units"].as_f64().or(line["active_units"].as_f64()).expect("a number")
    };
    assert!(active(metrics.lines().next()) > 0.0);
    assert!(active(metrics.lines().last()) < 0.5, "{metrics}");
}

#[test]
fn figure_1_has_its_shape_and_remembers_what_is_finished() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let arguments = [
        "reproduce",
        "figure1",
        "--datasets",
        "lines",
        "--models",
        "gp,tp",
        "--seeds",
        "2",
        "--json",
    ];
    let text = good(folder, &arguments);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let lines = &report["datasets"]["lines"];
    assert!((lines["floor"].as_f64().expect("a floor") + 0.19).abs() < 0.05);
    for model in ["gp", "tp"] {
        let found = &lines["models"][model];
        assert!(found["nll"].as_f64().is_some() && found["stderr"].as_f64().is_some());
        // The best Gaussian is 0.94 nats above the floor; a process that must learn more.
        let excess = found["excess"].as_f64().expect("an excess");
        assert!((0.85..1.2).contains(&excess), "{model}: {excess}");
        // 24 sets of 30 elements, once per evaluation; 576,000 elements at most.
        let seen = found["elements"].as_f64().expect("elements");
        assert!((720.0..=576_000.0).contains(&seen), "{model}: {seen}");
    }
    let fitted = &lines["models"]["tp"]["fitted"]["degrees_of_freedom"];
    assert!(fitted[1].as_f64().is_some_and(|nu| nu > 2.0), "{fitted}");
    assert!(folder.join("runs/figure1/figure1.png").is_file());
    let results = folder.join("runs/figure1/results");
    let cell = results.join("lines-gp-2.json");
    let before = fs::read(&cell).expect("a cell");
    fs::write(results.join("lines-tp-1.json"), "{\"broken").expect("a damaged cell");
    let again: Value = serde_json::from_str(&good(folder, &arguments)).expect("JSON");
    assert_eq!(
        again["datasets"]["lines"]["models"]["gp"],
        report["datasets"]["lines"]["models"]["gp"]
    );
    assert_eq!(fs::read(&cell).expect("a cell"), before);
}
