//! `ebp classify` as a user meets it: tables, JSON, pictures, errors.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ebp::data::npy::{Array, Precision, write_npy};
use ebp::rng::Stream;
use serde_json::Value;

fn ebp(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebp")).args(arguments).output().expect("the binary is built")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of plain letters")
}

/// Three blobs four standard deviations apart: features, labels as numbers and as names.
fn write_blobs(folder: &Path, name: &str, seed: u64, count: usize) -> [PathBuf; 3] {
    let mut values = vec![0.0_f32; 4 * count];
    Stream::new(seed, "blobs").fill_normal(0, 0, &mut values);
    let mut numbers = Vec::new();
    let mut names = String::new();
    for (item, row) in values.chunks_exact_mut(4).enumerate() {
        row[item % 3] += 4.0;
        numbers.push([7.0_f32, 3.0, 12.0][item % 3]);
        names += ["chair\n", "bed\n", "table\n"][item % 3];
    }
    let paths = ["npy", "labels.npy", "txt"].map(|end| folder.join(format!("{name}.{end}")));
    let write = |path: &Path, shape: Vec<usize>, values: Vec<f32>| {
        let array = Array::new(shape, values).expect("a shape that fits");
        write_npy(path, &array, Precision::Single).expect("a writable folder");
    };
    write(&paths[0], vec![count, 4], values);
    write(&paths[1], vec![count], numbers);
    std::fs::write(&paths[2], names).expect("a writable folder");
    paths
}

#[test]
fn classes_are_read_off_features_by_folds_and_by_a_test_set() {
    let folder = tempfile::tempdir().expect("a folder");
    let [features, numbers, names] = write_blobs(folder.path(), "train", 1, 150);
    let picture = folder.path().join("confusion.png");
    let output = ebp(&[
        "classify",
        text(&features),
        "--labels",
        text(&names),
        "--json",
        "--picture",
        text(&picture),
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!((&found["items"], &found["protocol"]), (&150.into(), &"cross-validation".into()));
    // The best plane between two blobs errs for Φ(−2√2) of them, 0.2 %.
    assert!(found["accuracy"].as_f64().expect("a number") > 0.95, "{found}");
    assert_eq!(found["classes"][0]["name"], "bed");
    assert!(image::open(&picture).expect("a picture").width() > 100);
    let svg =
        std::fs::read_to_string(picture.with_extension("svg")).expect("an SVG file beside it");
    assert!(svg.contains(">predicted class<") && svg.contains("fill=\"#ffffff\""));

    // A name that ends in .svg asks for that alone; a theme changes the paper.
    let dark = folder.path().join("dark.svg");
    let arguments = ["classify", text(&features), "--labels", text(&names), "--theme", "dark"];
    let output = ebp(&[&arguments[..], &["--picture", text(&dark)]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let svg = std::fs::read_to_string(&dark).expect("an SVG file");
    assert!(svg.contains("fill=\"#181a1f\"") && !svg.contains("fill=\"#ffffff\""));
    assert!(!dark.with_extension("png").exists());
    let output = ebp(&[&arguments[..5], &["grey"]].concat());
    assert_eq!(output.status.code(), Some(2));

    // The same with numbers in the place of names: classes by size, the same counts.
    let output = ebp(&["classify", text(&features), "--labels", text(&numbers), "--json"]);
    let again: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(again["classes"][2]["name"], "12");
    assert_eq!(again["items"], found["items"]);

    let [test, _, test_names] = write_blobs(folder.path(), "test", 2, 60);
    let output = ebp(&[
        "classify",
        text(&features),
        "--labels",
        text(&names),
        "--test",
        text(&test),
        "--test-labels",
        text(&test_names),
        "--c",
        "auto",
    ]);
    let table = String::from_utf8(output.stdout).expect("text");
    assert!(table.contains("60 items predicted from 4 features, 3 classes"), "{table}");
    assert!(table.contains("fitted on 150 items"), "{table}");
}

#[test]
fn what_does_not_fit_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let [features, _, names] = write_blobs(folder.path(), "train", 1, 30);
    let short = folder.path().join("short.txt");
    std::fs::write(&short, "chair\nbed\n").expect("a writable folder");
    for (arguments, message) in [
        (vec!["--labels", text(&short)], "one label per row of features, 30, found 2"),
        (vec!["--labels", text(&names), "--c", "0"], "must be a number above 0, or `auto`"),
        (vec!["--labels", text(&names), "--folds", "31"], "at most the number of items, 30"),
        (vec!["--labels", "nowhere.txt"], "cannot read `nowhere.txt`"),
    ] {
        let output = ebp(&[&["classify", text(&features)], &arguments[..]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(message), "{message}: {stderr}");
    }
}
