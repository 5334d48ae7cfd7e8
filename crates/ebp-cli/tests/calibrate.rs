//! `ebp calibrate` and `ebp reproduce sbc` as a user meets them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod program;

use std::fmt::Write;
use std::fs;

use serde_json::Value;

use program::{TINY_CURVES, good, refusal};

#[test]
fn a_model_is_calibrated_and_its_temperature_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let train =
        [&["train", "lines", "-q", "--set", "train.num_steps=40", "--out", "m"][..], &TINY_CURVES]
            .concat();
    good(folder, &train);
    let ask = ["calibrate", "m", "-q", "--sets", "30", "--draws", "9", "--simulations", "20"];
    let json = |further: &[&str]| -> Value {
        let text = good(folder, &[&ask[..], &["--json"], further].concat());
        program::timeless(serde_json::from_str(&text).expect("JSON"))
    };
    let report = json(&["-o", "pictures"]);
    assert!(folder.join("pictures/calibration.png").is_file());
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["count"], 60);
    assert_eq!(rows[0]["positions"]["band"].as_array().expect("a band").len(), 99);
    assert_eq!(report["latent"]["coordinates"].as_array().expect("coordinates").len(), 2);
    let fitted = report["recalibration"]["temperature"].as_f64().expect("a temperature");
    // The fit cannot be worse than no temperature where it was made.
    let of = |name: &str| report["recalibration"][name].as_f64().expect("nats");
    assert!(of("nats_after") <= of("nats_before"));
    // The same question, the same answer; kept, it changes what `predict` says, and is named there.
    assert_eq!(json(&["-o", "pictures"]), report);
    fs::write(folder.join("at.csv"), "t,x\n0.5,0.45\n").expect("a table");
    let predict = ["predict", "m", "--at", "at.csv", "--json"];
    let before: Value = serde_json::from_str(&good(folder, &predict)).expect("JSON");
    assert!(before.get("temperature").is_none());
    let kept = json(&["--keep"]);
    assert!(kept["kept"].is_null(), "nothing was kept before");
    let after: Value = serde_json::from_str(&good(folder, &predict)).expect("JSON");
    assert_eq!(after["temperature"].as_f64(), Some(fitted));
    assert_ne!(before["sets"][0]["targets"], after["sets"][0]["targets"]);
    // The first row is the model without it.
    assert_eq!(json(&[])["rows"][0], report["rows"][0]);
    let text = good(folder, &ask);
    assert!(text.contains("is kept with the model"), "{text}");
    // A temperature of another step, or one that cannot be read, is not taken.
    let file = folder.join("m/calibration.json");
    let kept = fs::read_to_string(&file).expect("kept");
    fs::write(&file, kept.replace("\"step\": 40", "\"step\": 39")).expect("written");
    assert!(refusal(folder, &ask).contains("was fitted to step 39"));
    fs::write(&file, "{").expect("written");
    let output = program::ebp(folder, &ask);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be read"));
}

#[test]
fn what_cannot_be_calibrated_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    assert!(refusal(folder, &["calibrate", "nothing"]).contains("there is no model"));
    let train = ["train", "rival/gp", "-q", "--out", "gp", "--set", "data.source=lines"];
    good(folder, &train);
    let few = refusal(folder, &["calibrate", "gp", "--simulations", "5"]);
    assert!(few.contains("at least 20, found 5"), "{few}");
    let keep = refusal(folder, &["calibrate", "gp", "--keep"]);
    assert!(keep.contains("only energy-based models"), "{keep}");
    fs::write(folder.join("two.csv"), "t1,t2,x\n0,0,1\n1,1,2\n").expect("a table");
    let wrong = refusal(folder, &["calibrate", "gp", "--data", "two.csv"]);
    assert!(wrong.contains("2 location and 1 value columns"), "{wrong}");
    let mut small = "set,t,x\n".to_owned();
    for i in 0..12_u32 {
        writeln!(small, "{},{},0.5", i % 2, f64::from(i) / 10.0).expect("a string");
    }
    fs::write(folder.join("small.csv"), small).expect("a table");
    let few = refusal(folder, &["calibrate", "gp", "--data", "small.csv"]);
    assert!(few.contains("too few, at least 20"), "{few}");
    good(folder, &["calibrate", "gp", "-q", "--sets", "20", "--draws", "9"]);
}

#[test]
fn exact_posteriors_pass_and_unknown_models_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let sbc = ["reproduce", "sbc", "--simulations", "200", "--json"];
    let report: Value = serde_json::from_str(&good(folder.path(), &sbc)).expect("JSON");
    assert_eq!(report["rows"].as_array().expect("rows").len(), 4);
    let unknown = ["reproduce", "consistency", "--models", "gp,magic"];
    assert!(refusal(folder.path(), &unknown).contains("there is no model `magic`"));
}
