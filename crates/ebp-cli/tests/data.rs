//! `ebp data` as a user meets it: stdout, files and exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn ebp(folder: &Path, arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_ebp");
    let output = Command::new(binary).args(arguments).current_dir(folder).output();
    output.expect("the binary starts")
}

fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = ebp(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

fn refused(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = ebp(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    let text = String::from_utf8_lossy(&output.stderr).replace('│', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn shapes_are_drawn_imported_split_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let text =
        done(at, &["data", "shapes", "--class", "chair,car", "-n", "10", "--points", "64", "s"]);
    assert!(text.contains("chair: 10 shapes of 64 points"));
    let png = fs::read(at.join("s/car.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));

    let text =
        done(at, &["data", "import", "s", "a.ebp", "--normalise", "global", "--test", "0.2"]);
    assert!(text.starts_with("20 sets of 64 elements, 2 classes; train 16, test 4"), "{text}");
    let text = done(at, &["data", "split", "a.ebp", "--validation", "0.5", "--test", "0.1"]);
    assert!(text.contains("train 8, validation 10, test 2"), "{text}");

    let json =
        done(at, &["data", "inspect", "a.ebp", "--json", "--sheet", "a.png", "--tiles", "6"]);
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&report["sets"], &report["elements"]), (&20.into(), &1280.into()));
    assert_eq!(report["classes"], serde_json::json!([["car", 10], ["chair", 10]]));
    assert_eq!(report["not_finite"], 0);
    assert!(at.join("a.png").exists());
    // A folder need not be imported to be looked at.
    assert!(done(at, &["data", "inspect", "s"]).starts_with("sets          20"));

    assert!(refused(at, &["data", "import", "s", "a.ebp"], 2).contains("`--force` writes over it"));
    assert!(
        refused(at, &["data", "import", "nowhere", "b.ebp"], 1).contains("cannot read `nowhere`")
    );
    fs::write(at.join("broken.npy"), b"\x93NUMPY\x01").unwrap();
    let message = refused(at, &["data", "import", "broken.npy", "b.ebp"], 1);
    assert!(message.contains("broken.npy, byte 6: expected 2 bytes of the version"), "{message}");
}

#[test]
fn meshes_are_sampled_in_three_ways() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("square.off"), "OFF4 1 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n").unwrap();
    for spread in ["uniform", "farthest", "poisson"] {
        let out = format!("{spread}.xyz");
        done(
            at,
            &["data", "sample-mesh", "square.off", &out, "--points", "50", "--spread", spread],
        );
        let text = fs::read_to_string(at.join(&out)).unwrap();
        let points: Vec<[f64; 2]> = text
            .lines()
            .map(|line| {
                let mut numbers = line.split(' ').map(|word| word.parse().unwrap());
                [numbers.next().unwrap(), numbers.next().unwrap()]
            })
            .collect();
        assert_eq!(points.len(), 50);
        let mut nearest = f64::INFINITY;
        for (index, a) in points.iter().enumerate() {
            for b in &points[..index] {
                nearest = nearest.min((a[0] - b[0]).hypot(a[1] - b[1]));
            }
        }
        // Fifty points in a unit square at even distances are about 0.14 apart; random ones come
        // as near as 1/(2 · 50) on average.
        assert_eq!(nearest > 0.08, spread != "uniform", "{spread}: {nearest}");
    }
    done(at, &["data", "sample-mesh", ".", "all.npy", "--points", "10", "--normalise", "sphere"]);
    assert!(at.join("all.npy").exists());
}

#[test]
fn data_sets_are_described_and_copies_checked() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert!(done(at, &["data", "info"]).contains("shapenet-pc15k"));
    let text = done(at, &["data", "info", "mnist"]);
    assert!(
        text.contains("licence")
            && text.contains("train-images-idx3-ubyte.gz")
            && text.contains("60000")
    );
    assert!(refused(at, &["data", "info", "imagenet"], 2).contains("one of shapenet-pc15k"));
    assert!(refused(at, &["data", "info", "mnist", "."], 1).contains("4 counts differ"));
}
