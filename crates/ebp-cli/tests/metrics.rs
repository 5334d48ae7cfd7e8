//! `ebp distance` and `ebp metrics` as a user meets them: output, files, exit codes, kills.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ebp::data::npy::{Array, Precision, write_npy};
use ebp::rng::Stream;
use serde_json::Value;

fn ebp(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebp")).args(arguments).output().expect("the binary is built")
}

fn json(arguments: &[&str]) -> Value {
    let output = ebp(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    let mut printed: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    // No two runs take the same time.
    printed.as_object_mut().and_then(|fields| fields.remove("elapsed_s")).expect("a time");
    printed
}

fn failure(arguments: &[&str]) -> (Option<i32>, String) {
    let output = ebp(arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Balls of different sizes and places, `[count, points, 3]`.
fn write_balls(path: &Path, seed: u64, count: usize, points: usize) {
    let stream = Stream::new(seed, "balls");
    let mut values = vec![0.0_f32; count * points * 3];
    stream.fill_normal(0, 0, &mut values);
    let mut shapes = vec![0.0_f32; 4 * count];
    stream.fill_uniform(1, 0, &mut shapes);
    for (ball, shape) in values.chunks_exact_mut(points * 3).zip(shapes.chunks_exact(4)) {
        for (place, value) in ball.iter_mut().enumerate() {
            *value = *value * 0.05 * (1.0 + shape[3]) + 0.3 * (shape[place % 3] - 0.5);
        }
    }
    write(path, &[count, points, 3], &values);
}

fn write(path: &Path, shape: &[usize], values: &[f32]) {
    let array = Array::new(shape.to_vec(), values.to_vec()).expect("a shape that fits");
    write_npy(path, &array, Precision::Single).expect("a writable folder");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of plain letters")
}

#[test]
fn a_distance_says_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (x, y) = (folder.path().join("x.npy"), folder.path().join("y.npy"));
    write(&x, &[2, 1], &[0.0, 1.0]);
    write(&y, &[3, 1], &[0.0, 0.5, 1.0]);
    let found = json(&["distance", text(&x), text(&y), "--json"]);
    assert_eq!((&found["n"], &found["m"], &found["dim"]), (&2.into(), &3.into(), &1.into()));
    // From x: 0, 0. From y: 0, ¼, 0.
    let close = |value: &Value, expected: f64| {
        assert!((value.as_f64().expect("a number") - expected).abs() < 1e-12, "{value} {expected}");
    };
    close(&found["chamfer"]["value"], 0.25 / 3.0);
    assert_eq!(found["chamfer"]["convention"], "mean-of-squares");
    close(&found["hausdorff"]["value"], 0.5);
    close(&found["emd"]["value"], 0.5 / 3.0);
    assert_eq!(found["emd"]["method"], "exact");
    assert!(found["emd"]["gap"].as_f64().expect("a gap") < 1e-12);
    assert_eq!(found["emd"]["convention"], "mean of distances");
    assert_eq!((&found["normalisation"], &found["seed"]), (&"none".into(), &0.into()));
    let found = json(&["distance", text(&x), text(&y), "--emd", "squared", "--json"]);
    assert_eq!((&found["emd"]["method"], &found["emd"]["gap"]), (&"squared".into(), &Value::Null));
    let off = json(&["distance", text(&x), text(&y), "--emd", "off", "--json"]);
    assert_eq!(off["emd"], Value::Null);
    let table = String::from_utf8(ebp(&["distance", text(&x), text(&y)]).stdout).expect("text");
    assert!(table.contains("exact, mean of distances, gap"), "{table}");
}

#[test]
fn collections_are_measured_with_intervals_and_the_papers_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (a, b, train) = (path("a.npy"), path("b.npy"), path("train.npy"));
    write_balls(&a, 1, 6, 40);
    write_balls(&b, 2, 7, 40);
    write_balls(&train, 3, 9, 40);
    let cache = path("cache");
    let shared = [text(&a), text(&b), "--cache", text(&cache), "-q"];
    let with = |more: &[&str]| json(&[&["metrics"], &shared[..], &["--json"], more].concat());
    let found = with(&["--oracle", text(&train)]);
    let names = ["jsd", "mmd_cd", "cov_cd", "nna_cd", "mmd_emd", "cov_emd", "nna_emd"];
    for name in names {
        for rows in [&found, &found["oracle"]] {
            let end = |end: &str| rows[name][end].as_f64().expect("a number");
            assert!(end("low") <= end("value") && end("value") <= end("high"), "{name}");
        }
    }
    assert_eq!((&found["emd_method"], &found["seed"]), (&"exact".into(), &0.into()));
    assert_eq!((&found["n"], &found["m"], &found["dim"]), (&6.into(), &7.into(), &3.into()));
    assert_eq!(found["chamfer_convention"], "mean-of-squares");
    assert_eq!(found["emd_convention"], "mean of distances");
    assert_eq!(found["normalisation"], "none");
    assert!(found["emd_gap"].as_f64().expect("a gap") < 1e-12);
    // The cache changes nothing.
    assert_eq!(found, with(&["--oracle", text(&train)]));
    let fresh =
        json(&["metrics", text(&a), text(&b), "--no-cache", "-q", "--json", "--threads", "1"]);
    assert_eq!(fresh["nna_emd"], found["nna_emd"]);
    assert_eq!(fresh["mmd_emd"], found["mmd_emd"]);
    // Swapped: accuracy and divergence stay.
    let swapped = json(&["metrics", text(&b), text(&a), "--no-cache", "-q", "--json"]);
    for name in ["jsd", "nna_cd", "nna_emd"] {
        let value = |found: &Value| found[name]["value"].as_f64().expect("a number");
        assert!((value(&swapped) - value(&found)).abs() < 1e-12, "{name}");
    }
    let subset = with(&["--subset", "4", "--points", "25", "--emd", "off", "--seed", "3"]);
    assert_eq!(
        (&subset["samples"]["sets"], &subset["samples"]["most_points"]),
        (&4.into(), &25.into())
    );
    assert_eq!(subset.get("mmd_emd"), None);
    let table = ebp(&[&["metrics"], &shared[..], &["--paper", "chair"]].concat()).stdout;
    let table = String::from_utf8(table).expect("text");
    for words in ["JSD ×10²", "MMD-CD ×10³", "95 % interval", "PointFlow", "2.42", "largest gap"]
    {
        assert!(table.contains(words), "{words} in\n{table}");
    }
}

#[test]
fn a_killed_run_goes_on_and_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    write_balls(&path("a.npy"), 4, 8, 150);
    write_balls(&path("b.npy"), 5, 8, 150);
    let (a, b) = (path("a.npy"), path("b.npy"));
    let arguments = |cache: &Path| -> Vec<String> {
        ["metrics", text(&a), text(&b), "--json", "-q", "--cache", text(cache)]
            .map(Into::into)
            .into()
    };
    let run = |cache: &Path| {
        let arguments = arguments(cache);
        json(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let whole = run(&path("whole"));
    for life in [20, 60, 120, 200, 300] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ebp"))
            .args(arguments(&path("killed")))
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary is built");
        std::thread::sleep(Duration::from_millis(life));
        child.kill().expect("SIGKILL"); // kill -9
        child.wait().expect("a dead child");
    }
    assert_eq!(run(&path("killed")), whole);
    for entry in fs::read_dir(path("whole")).expect("a cache") {
        let name = entry.expect("an entry").file_name();
        let read = |folder: &str| fs::read(path(folder).join(&name)).expect("a cache file");
        assert!(read("whole") == read("killed"), "{} differs", name.display());
    }
}

#[test]
fn what_cannot_be_measured_is_said_with_exit_code_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (flat, solid, broken) = (path("flat.npy"), path("solid.npy"), path("broken.npy"));
    write(&flat, &[2, 2], &[0.0, 0.0, 1.0, 1.0]);
    write_balls(&solid, 1, 3, 10);
    write(&broken, &[2, 2], &[0.0, f32::NAN, 1.0, 1.0]);
    let (code, message) = failure(&["distance", text(&flat), text(&broken)]);
    assert!(code == Some(2) && message.contains("finite"), "{message}");
    let (code, message) = failure(&["distance", text(&flat), text(&solid)]);
    assert!(code == Some(2) && message.contains("one set of points, found 3"), "{message}");
    let (code, message) = failure(&["metrics", text(&flat), text(&solid), "--no-cache", "-q"]);
    assert!(code == Some(2) && message.contains("coordinates"), "{message}");
    let (code, message) = failure(&["metrics", text(&solid), text(&solid), "--subset", "9"]);
    assert!(code == Some(2) && message.contains("at least 9 sets, found 3"), "{message}");
    let (code, message) = failure(&["metrics", text(&solid), text(&solid), "--points", "11"]);
    assert!(code == Some(2) && message.contains("at least 11 points, found 10"), "{message}");
    let (code, message) = failure(&["distance", text(&flat), text(&path("absent.npy"))]);
    assert!(code == Some(2) && message.contains("absent.npy"), "{message}");
}
