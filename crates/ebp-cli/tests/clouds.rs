//! `ebp train shapes`, `sample`, `score`, `denoise`, `encode` and `reproduce` as a user meets them.

mod program;

use std::fs;

use serde_json::Value;

use program::{TINY_CLOUDS as TINY, ebp, good, json};

#[test]
fn a_model_of_shapes_is_trained_and_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let train: Vec<&str> =
        ["train", "shapes", "--out", "run", "--quiet", "--json"].into_iter().chain(TINY).collect();
    let outcome = json(path, &train);
    assert_eq!(outcome["estimator"], "importance");
    assert!(outcome["held_out_nats"].as_f64().is_some_and(f64::is_finite));
    assert_eq!(outcome["rows"].as_array().map(Vec::len), Some(2));
    assert!(path.join("run/plots/clouds.png").exists() && path.join("run/codes.npy").exists());

    for prior in ["gaussian", "standard"] {
        let sampled = json(
            path,
            &[
                "sample", "run", "-n", "2", "--points", "70", "-o", "x.npy", "--prior", prior,
                "--json",
            ],
        );
        assert_eq!(sampled["sets"], 2);
        assert!(sampled["effective_proposals"].as_f64().is_some_and(|effective| effective > 10.0));
    }
    assert!(path.join("x.png").exists());
    let again = fs::read(path.join("x.npy")).expect("samples");
    good(
        path,
        &[
            "sample",
            "run",
            "-n",
            "2",
            "--points",
            "70",
            "-o",
            "y.npy",
            "--prior",
            "standard",
            "--threads",
            "1",
        ],
    );
    assert_eq!(again, fs::read(path.join("y.npy")).expect("samples"), "same seed, same bytes");
    good(path, &["sample", "run", "-n", "2", "--points", "9", "-o", "many", "--method", "mala"]);
    assert!(path.join("many/00001.ply").exists());

    let scored = json(
        path,
        &[
            "score",
            "run",
            "x.npy",
            "many",
            "--proposals",
            "500",
            "--draws",
            "2",
            "--points",
            "p.npy",
            "--json",
        ],
    );
    assert_eq!(scored["sets"].as_array().map(Vec::len), Some(4));
    assert!(scored["sets"][0]["std_error"].as_f64().is_some_and(|error| error > 0.0));
    // The encoder alone says the same of the code.
    let codes = json(path, &["score", "run", "x.npy", "many", "--codes-only", "--json"]);
    for field in ["log_law", "rank", "kl"] {
        assert!(codes["sets"][1][field].is_number(), "{field}");
        assert_eq!(codes["sets"][1][field], scored["sets"][1][field], "{field}");
    }
    let text = good(path, &["score", "run", "x.npy", "--codes-only"]);
    assert!(text.contains("θ from kernel; rank"), "{text}");

    good(
        path,
        &["denoise", "run", "many/00000.ply", "-o", "clean.ply", "--steps", "2", "--noise", "0.02"],
    );
    assert!(path.join("clean.ply").exists());
    let text = good(path, &["encode", "run", "x.npy", "-o", "f.npy", "--labels", "labels.txt"]);
    assert!(text.contains("2 clouds, 12 features"), "{text}");
    assert_eq!(fs::read_to_string(path.join("labels.txt")).expect("labels"), "x\nx\n");

    // Codes out, clouds from them in.
    good(path, &["encode", "run", "x.npy", "-o", "codes.npy", "--features", "mean"]);
    let drawn = json(
        path,
        &["sample", "run", "--codes", "codes.npy", "--points", "30", "-o", "z.npy", "--json"],
    );
    assert_eq!((&drawn["sets"], &drawn["prior"]), (&Value::from(2), &Value::from("given codes")));
    let refused = ebp(path, &["sample", "run", "--codes", "f.npy"]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("[sets, 3], but is [2, 12]"), "{message}");

    let refused = ebp(path, &["sample", "nowhere"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn experiments_on_clouds_print_their_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let with = |name: &'static str, further: &[&'static str]| -> Vec<&'static str> {
        ["reproduce", name, "--out", "r", "--quiet"]
            .into_iter()
            .chain(TINY)
            .chain(further.iter().copied())
            .collect()
    };
    let table = good(path, &with("denoising", &["--steps", "2"]));
    assert!(table.contains("everywhere"), "{table}");
    let report = json(path, &with("energies", &["--json"]));
    assert!(report["overlap"].as_f64().is_some_and(|overlap| (0.0..=1.0).contains(&overlap)));
    for file in ["denoising.png", "energies.png", "energies.json", "model/codes.npy"] {
        assert!(path.join("r").join(file).exists(), "{file}");
    }
    // Two splits; what was measured stays, and is measured again if the model is another one.
    let once = good(path, &with("generation", &["--splits", "2", "--set", "data.num_shapes=20"]));
    let kept = path.join("r/split-1.json");
    let text = fs::read_to_string(&kept).expect("rows of a split");
    let mut rows: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(rows["rows"][2]["name"], "flow prior");
    rows["rows"][2]["cov_cd"] = 0.125.into();
    fs::write(&kept, rows.to_string()).expect("a file");
    let twice = good(path, &with("generation", &["--splits", "2", "--set", "data.num_shapes=20"]));
    // The mean of both splits, and half of a 95 % interval: t = 12.706, s/√2 = |a − b|/2.
    let text = fs::read_to_string(path.join("r/split-2.json")).expect("rows of a split");
    let other: Value = serde_json::from_str(&text).expect("JSON");
    let other = 100.0 * other["rows"][2]["cov_cd"].as_f64().expect("a share");
    let cell =
        format!("{:.2} ± {:.2}", f64::midpoint(12.5, other), 12.706 * (12.5 - other).abs() / 2.0);
    assert!(!once.contains(&cell) && twice.contains(&cell), "{cell}\n{once}{twice}");
    assert!(twice.contains("learned from 12 sets, chosen by 4, measured on 4"), "{twice}");
    assert!(twice.contains("part 2 of 3") && twice.contains("bandwidths"), "{twice}");
    let some = good(
        path,
        &with(
            "generation",
            &["--splits", "2", "--priors", "gaussian", "--set", "data.num_shapes=20"],
        ),
    );
    assert!(some.contains("gaussian prior") && some.contains("training sets"), "{some}");
    assert!(!some.contains("kernel prior"), "{some}");
    for split in ["r/split-1", "r/split-2"] {
        fs::remove_dir_all(path.join(split)).expect("a model");
    }
    good(
        path,
        &with("generation", &["--split", "2", "--set", "data.num_shapes=20", "--set", "seed=7"]),
    );
    assert!(path.join("r/split-2").exists() && !path.join("r/split-1").exists());
    let other = good(
        path,
        &with("generation", &["--splits", "2", "--set", "data.num_shapes=20", "--set", "seed=7"]),
    );
    assert!(other.contains("flow prior"), "{other}");

    let rows = json(
        path,
        &with(
            "ablation",
            &[
                "--variants",
                "ade-flow,score-matching",
                "--json",
                "--set",
                "model.sampler.num_draws=20",
            ],
        ),
    );
    let names: Vec<_> =
        rows["rows"].as_array().expect("rows").iter().map(|row| row["variant"].as_str()).collect();
    assert_eq!(names, [Some("score-matching"), Some("ade-flow"), Some("ade-flow, sampler")]);
    let refused = ebp(path, &with("ablation", &["--variants", "nothing"]));
    assert_eq!(refused.status.code(), Some(2));
    let table = good(path, &with("table2", &["--folds", "2", "--set", "data.num_shapes=20"]));
    assert!(table.contains("untrained") && table.contains("C = 1"), "{table}");
    assert!(table.contains("C chosen"), "{table}");
    assert!(table.contains("learned from 16 sets, judged on 4 that no choice has seen"), "{table}");
    let turned = good(
        path,
        &with("table2", &["--folds", "2", "--set", "data.num_shapes=20", "--turn-axis", "2"]),
    );
    assert!(turned.contains("turned about axis 2"), "{turned}");
}

/// Published rows stand beside ours, with the same columns; what is missing in a folder is drawn.
#[test]
fn the_first_table_has_the_paper_s_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let chairs = ["data", "shapes", "--class", "chair", "-n", "12", "--points", "64", "own"];
    good(path, &chairs);
    let command: Vec<&str> =
        ["reproduce", "table1", "--data", "own", "--classes", "chair,car", "--out", "r", "--json"]
            .into_iter()
            .chain(TINY)
            .collect();
    let classes = json(path, &command);
    for (class, data) in [(0, "own/chair.npy"), (1, "car")] {
        let found = &classes["classes"][class];
        assert_eq!((&found["data"], &found["emd"]), (&data.into(), &"approxmatch".into()));
        assert_eq!(found["parts"]["measured_on"], "report");
        for row in found["rows"].as_array().expect("rows") {
            let number = |key: &str| row["emd"][key].as_f64().expect("a number");
            assert!(number("mmd") > 0.0 && (0.0..=1.0).contains(&number("cov")), "{row}");
        }
    }
    let words = ["PC-GAN, theirs, ShapeNet", "MMD-EMD", "measured on 4 that no choice has seen"];
    let text =
        good(path, &command.into_iter().filter(|word| *word != "--json").collect::<Vec<_>>());
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

/// A model that was trained on everything has nothing to report on, and says so.
#[test]
fn reports_need_sets_that_no_choice_has_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let train: Vec<&str> =
        ["train", "shapes", "--out", "run", "--quiet"].into_iter().chain(TINY).collect();
    good(path, &train);
    let denoising = ["reproduce", "denoising", "--model", "run", "--steps", "1", "--out", "r"];
    let refused = ebp(path, &denoising);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("without setting sets aside"), "{message}");
    let table = good(path, &[&denoising[..], &["--on", "choose", "--quiet"]].concat());
    assert!(table.contains("not for reports"), "{table}");
}
