//! Commands cut by `--shard` and put together by `ebp merge`: the bytes of the whole, whatever is killed.

mod program;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ebp::data::npy::{Array, Precision, write_npy};
use ebp::rng::Stream;
use serde_json::Value;

use program::{TINY_CLOUDS, good, json, refusal};

fn train(folder: &Path) {
    let words = ["train", "shapes", "--out", "run", "--quiet"];
    good(folder, &[&words[..], &TINY_CLOUDS].concat());
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
    let array = Array::new(vec![count, points, 3], values).expect("a shape that fits");
    write_npy(path, &array, Precision::Single).expect("a writable folder");
}

/// Makes the parts `name-1`, … of a command, and names them in a strange order.
fn parts(folder: &Path, words: &[&str], name: &str, count: usize) -> Vec<String> {
    let mut parts: Vec<String> = (1..=count).map(|number| format!("{name}-{number}")).collect();
    for (number, part) in (1..).zip(&parts) {
        let share = format!("{number}/{count}");
        let said = good(folder, &[words, &["--shard", &share, "-o", part, "-q"]].concat());
        assert!(said.contains(&format!("share {share}")) && said.contains(part), "{said}");
    }
    parts.reverse();
    parts
}

fn merged(folder: &Path, parts: &[String], more: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    good(folder, &[&["merge", "-q"], &parts[..], more].concat())
}

/// Text without the one line of JSON that differs between two runs of anything.
fn but_for_the_time(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("  \"elapsed_s\": "));
    lines.map(|line| [line, "\n"].concat()).collect()
}

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).expect(name)
}

#[test]
fn metrics_in_shares_are_those_of_the_whole_to_the_last_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write_balls(&path.join("a.npy"), 1, 13, 90);
    write_balls(&path.join("b.npy"), 2, 15, 70);
    write_balls(&path.join("train.npy"), 3, 20, 80);
    for (name, more, count) in [
        ("exact", &["--oracle", "train.npy", "--paper", "chair", "--seed", "3"][..], 4),
        ("two", &["--points", "40", "--normalise", "unit-ball"], 2),
        ("soft", &["--emd", "approxmatch", "--subset", "9"], 3),
        ("sinkhorn", &["--emd", "sinkhorn", "--subset", "5", "--regularisation", "0.05"], 4),
        ("off", &["--emd", "off"], 40),
    ] {
        let words = [&["metrics", "a.npy", "b.npy"], more].concat();
        let whole = [&words[..], &["--no-cache", "-q"]].concat();
        let parts = parts(path, &words, name, count);
        assert_eq!(merged(path, &parts, &[]), good(path, &whole), "{name}");
        let whole = good(path, &[&whole[..], &["--json"]].concat());
        let found = merged(path, &parts, &["--json", "--threads", "1"]);
        assert_eq!(but_for_the_time(&found), but_for_the_time(&whole), "{name}");
        if name == "exact" {
            // The search skips and stops pairs: its counts are a part of what must not change.
            let found: Value = serde_json::from_str(&whole).expect("JSON");
            let count = |kind: &str| found["emd_pairs"][kind].as_u64().expect("a count");
            assert!(count("solved") > 0 && count("stopped") > 0 && count("skipped") > 0, "{found}");
        }
    }
    // Sets that have changed since are not those of the parts.
    write_balls(&path.join("b.npy"), 4, 15, 70);
    let changed: Vec<String> = (1..=2).map(|number| format!("two-{number}")).collect();
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    let said = refusal(path, &[&["merge", "-q"], &changed[..]].concat());
    assert!(said.contains("two-1") && said.contains("has no distances"), "{said}");
}

#[test]
fn a_killed_share_goes_on_and_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write_balls(&path.join("a.npy"), 4, 8, 150);
    write_balls(&path.join("b.npy"), 5, 8, 150);
    let words = ["metrics", "a.npy", "b.npy"];
    let share = [&words[..], &["--shard", "1/2", "-o", "killed", "-q"]].concat();
    for life in [20, 60, 120, 200, 300] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ebp"))
            .current_dir(path)
            .args(&share)
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary is built");
        std::thread::sleep(Duration::from_millis(life));
        child.kill().expect("SIGKILL"); // kill -9
        child.wait().expect("a dead child");
    }
    good(path, &share);
    good(path, &[&words[..], &["--shard", "2/2", "-o", "other", "-q"]].concat());
    let whole = good(path, &[&words[..], &["--no-cache", "-q"]].concat());
    assert_eq!(good(path, &["merge", "other", "killed", "-q"]), whole);
    // What is whole is not computed again.
    good(path, &share);
    assert_eq!(good(path, &["merge", "killed", "other", "-q"]), whole);
}

#[test]
fn clouds_in_shares_are_rows_of_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    train(path);
    // 38 clouds are three groups: of five shares two have nothing to do.
    for (name, count, more) in [
        ("mala", 3, &["--method", "mala", "--prior", "gaussian"][..]),
        ("annealed", 5, &["--seed", "7"]),
    ] {
        let words = [&["sample", "run", "-n", "38", "--points", "30"], more].concat();
        let parts = parts(path, &words, name, count);
        let mut found: Value =
            serde_json::from_str(&merged(path, &parts, &["-o", "merged.npy", "--json"]))
                .expect("JSON");
        let mut whole = json(path, &[&words[..], &["-q", "-o", "whole.npy", "--json"]].concat());
        assert!(bytes(path, "merged.npy") == bytes(path, "whole.npy"), "{name}: clouds");
        assert!(bytes(path, "merged.png") == bytes(path, "whole.png"), "{name}: picture");
        for report in [&mut found, &mut whole] {
            assert!(report["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
            for key in ["seconds", "elapsed_s", "out", "picture"] {
                report[key] = Value::Null;
            }
        }
        assert_eq!(found, whole);
    }
    // A piece that is lost is drawn again, and nothing else.
    let kept = bytes(path, "annealed-5/000002.npy");
    let header = fs::read_to_string(path.join("annealed-5/part.json")).expect("a header");
    let header = header.replace("\"is_whole\": true", "\"is_whole\": false");
    fs::write(path.join("annealed-5/part.json"), header).expect("a header");
    for name in ["000002.json", "000002.npy"] {
        fs::remove_file(path.join("annealed-5").join(name)).expect(name);
    }
    let unfinished = refusal(
        path,
        &["merge", "annealed-1", "annealed-2", "annealed-3", "annealed-4", "annealed-5"],
    );
    assert!(unfinished.contains("`annealed-5`, share 5/5, is not finished"), "{unfinished}");
    let words = ["sample", "run", "-n", "38", "--points", "30", "--seed", "7"];
    good(path, &[&words[..], &["--shard", "5/5", "-o", "annealed-5", "-q"]].concat());
    assert!(bytes(path, "annealed-5/000002.npy") == kept);
}

/// 37 patterns are three pieces: of four shares one has nothing to do.
#[test]
fn patterns_in_shares_are_files_of_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for preset in ["poisson", "hawkes"] {
        let quick = ["--set", "data.num_patterns=2", "--set", "evaluation.num_errors=4"];
        let quicker = ["--set", "evaluation.num_envelope=3", "--quiet"];
        good(path, &[&["train", preset, "--out", preset][..], &quick, &quicker].concat());
        let words = ["sample", preset, "-n", "37", "--seed", "3"];
        let parts = parts(path, &words, &format!("{preset}-part"), 4);
        let merged_folder = format!("{preset}-merged");
        let mut found: Value =
            serde_json::from_str(&merged(path, &parts, &["-o", &merged_folder, "--json"]))
                .expect("JSON");
        let whole_folder = format!("{preset}-whole");
        let mut whole = json(path, &[&words[..], &["-q", "-o", &whole_folder, "--json"]].concat());
        for report in [&mut found, &mut whole] {
            for key in ["seconds", "elapsed_s", "out"] {
                report[key] = Value::Null;
            }
        }
        assert_eq!(found, whole, "{preset}");
        let files = |name: &str| {
            let entries = fs::read_dir(path.join(name)).expect("a folder");
            let mut names: Vec<String> = entries
                .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        };
        let names = files(&whole_folder);
        assert_eq!((names.len(), &files(&merged_folder)), (37, &names), "{preset}");
        for name in names {
            let [one, other] =
                [&merged_folder, &whole_folder].map(|all| bytes(path, &format!("{all}/{name}")));
            assert!(one == other, "{preset}: {name}");
        }
    }
}

#[test]
fn scores_and_features_in_shares_are_those_of_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    train(path);
    fs::create_dir(path.join("clouds")).expect("a folder");
    write_balls(&path.join("clouds/few.npy"), 1, 5, 25);
    write_balls(&path.join("clouds/many.npy"), 2, 300, 12);

    let words = ["encode", "run", "clouds", "--labels", "labels.txt"];
    let features = parts(path, &words, "features", 2);
    let said = merged(path, &features, &["-o", "merged.npy"]);
    let labels = bytes(path, "labels.txt");
    let whole = good(path, &[&words[..], &["-q", "-o", "whole.npy"]].concat());
    assert_eq!(said.replace("merged.npy", "whole.npy"), whole);
    assert!(bytes(path, "merged.npy") == bytes(path, "whole.npy"));
    assert!(labels == bytes(path, "labels.txt"));
    assert_eq!(String::from_utf8_lossy(&labels).lines().count(), 305);

    let words = ["score", "run", "clouds", "--codes-only"];
    let codes = parts(path, &words, "codes", 3);
    for more in [&[][..], &["--json"]] {
        let whole = good(path, &[&words[..], &["-q"], more].concat());
        let found = merged(path, &codes, more);
        assert_eq!(but_for_the_time(&found), but_for_the_time(&whole));
    }

    let words = [
        "score",
        "run",
        "clouds/few.npy",
        "--points",
        "points.npy",
        "--draws",
        "4",
        "--most-draws",
        "8",
        "--proposals",
        "500",
    ];
    let scores = parts(path, &words, "scores", 3);
    assert!(!path.join("points.npy").exists());
    let (found, points) = (merged(path, &scores, &[]), bytes(path, "points.npy"));
    assert_eq!(found, good(path, &[&words[..], &["-q"]].concat()));
    assert!(points == bytes(path, "points.npy"));
    let whole = good(path, &[&words[..], &["-q", "--json"]].concat());
    let found = merged(path, &scores, &["--json"]);
    assert_eq!(but_for_the_time(&found), but_for_the_time(&whole));
    assert!(
        found.contains("\"command\": \"score\"") && found.contains("\"device\": \"cpu\""),
        "{found}"
    );
}

#[test]
fn parts_that_do_not_belong_together_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write_balls(&path.join("a.npy"), 1, 4, 20);
    write_balls(&path.join("b.npy"), 2, 4, 20);
    let words = ["metrics", "a.npy", "b.npy", "--emd", "off"];
    let share = |share: &str, part: &str, more: &[&str]| {
        good(path, &[&words[..], more, &["--shard", share, "-o", part, "-q"]].concat());
    };
    share("1/3", "one", &[]);
    share("2/3", "two", &[]);
    share("2/3", "two-again", &[]);
    share("3/3", "other-seed", &["--seed", "1"]);
    share("3/4", "of-four", &[]);
    share("3/3", "three", &[]);
    let said = |words: &[&str]| refusal(path, &[&["merge", "-q"], words].concat());
    let missing = said(&["one", "two"]);
    assert!(missing.contains("of 3 shares 1 are missing: 3/3"), "{missing}");
    let twice = said(&["one", "two", "two-again", "three"]);
    assert!(twice.contains("`two` and `two-again` are both share 2/3"), "{twice}");
    let seed = said(&["one", "two", "other-seed"]);
    assert!(seed.contains("`other-seed` does not belong to `one`"), "{seed}");
    assert!(seed.contains("--seed 1"), "{seed}");
    let four = said(&["one", "two", "of-four"]);
    assert!(four.contains("one is share 3/4, the other 1/3"), "{four}");
    let none = said(&["one", "two", "nothing"]);
    assert!(none.contains("`nothing` is no part"), "{none}");
    let file = said(&["one", "two", "three", "-o", "metrics.json"]);
    assert!(file.contains("prints its result"), "{file}");
    // A folder that holds another part, or something else, is left alone.
    let words = [&words[..], &["-q", "--shard"]].concat();
    let taken = refusal(path, &[&words[..], &["3/3", "-o", "two"]].concat());
    assert!(taken.contains("`two` holds a part of something else"), "{taken}");
    let taken = refusal(path, &[&words[..], &["3/3", "-o", "."]].concat());
    assert!(taken.contains("must be new"), "{taken}");
    for text in ["0/3", "4/3", "2"] {
        let strange = refusal(path, &[&words[..], &[text, "-o", "strange"]].concat());
        assert!(strange.contains("such as 2/4"), "{strange}");
    }
    let nowhere = refusal(path, &[&words[..], &["1/3"]].concat());
    assert!(nowhere.contains("--out"), "{nowhere}");
    // Distances that were cut off are not taken for all there are.
    let stores = fs::read_dir(path.join("two")).expect("a part");
    let store = stores.map(|entry| entry.expect("an entry").path());
    let store = store.into_iter().find(|path| path.extension().is_some_and(|e| e == "pairs"));
    let store = store.expect("distances");
    let whole = fs::read(&store).expect("distances");
    fs::write(&store, &whole[..whole.len() - 1]).expect("a shorter file");
    let cut = program::complaint(path, &["merge", "-q", "one", "two", "three"]);
    assert!(cut.contains("damaged") && cut.contains("two"), "{cut}");
}

#[test]
fn experiments_in_shares_end_as_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let words = [
        "reproduce",
        "figure1",
        "--datasets",
        "sines",
        "--models",
        "gp,tp",
        "--seeds",
        "2",
        "--elements",
        "2000",
        "--quiet",
    ];
    for share in ["1/3", "2/3", "3/3"] {
        let said = good(path, &[&words[..], &["--out", "shared", "--shard", share]].concat());
        assert!(said.contains("sines-"), "{said}");
    }
    let results = path.join("shared/results");
    assert_eq!(fs::read_dir(&results).expect("results").count(), 4);
    let report = |out: &str| {
        let mut found = json(path, &[&words[..], &["--out", out, "--json"]].concat());
        forget_times(&mut found);
        found
    };
    assert_eq!(report("shared"), report("alone"));

    let words = ["reproduce", "generation", "--splits", "2", "--priors", "gaussian", "--quiet"];
    let words = [&words[..], &TINY_CLOUDS, &["--set", "data.report=3"]].concat();
    for share in ["2/2", "1/2"] {
        good(path, &[&words[..], &["--out", "shared", "--shard", share]].concat());
    }
    let report = |out: &str| {
        let mut found = json(path, &[&words[..], &["--out", out, "--json"]].concat());
        for key in ["elapsed_s", "picture"] {
            found[key] = Value::Null;
        }
        found
    };
    assert_eq!(report("shared"), report("alone"));
}

/// Seconds and paths differ between two runs of anything.
fn forget_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name.contains("seconds") || name == "picture" || name == "elapsed_s" {
                    *field = Value::Null;
                }
                forget_times(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        _ => {}
    }
}
