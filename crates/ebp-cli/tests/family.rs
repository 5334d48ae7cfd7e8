//! Topic models, point patterns and processes with latents as a user meets them: `train`, `sample`, `query`,
//! `encode` and `reproduce`, what their JSON has, and what they say about bad input.

mod program;

use std::fs;
use std::path::Path;

use serde_json::Value;

use program::{complaint, good, json, refusal};

/// Every preset of the family, and what makes it take a fraction of a second.
const TOPICS: [(&str, &[&str]); 5] = [
    ("lda", &["lda.num_topics=4", "train.num_steps=8"]),
    ("plsi", &["plsi.num_topics=4", "train.num_steps=4"]),
    ("ctm", &["ctm.num_topics=3", "train.num_steps=2"]),
    ("rsm", &["rsm.num_units=3", "train.num_steps=10"]),
    (
        "topics",
        &[
            "energy_based.documents=8",
            "energy_based.model.encoder_widths=[8]",
            "energy_based.model.energy_widths=[8]",
            "energy_based.model.latent_dim=3",
            "train.num_steps=5",
        ],
    ),
];

const PATTERNS: [(&str, &[&str]); 9] = [
    ("poisson", &[]),
    ("strauss", &[]),
    ("hardcore", &[]),
    ("geyer", &[]),
    ("area", &[]),
    ("pairwise", &["interaction.num_knots=5", "interaction.width=2"]),
    ("deepsets", &["interaction.num_knots=4", "interaction.num_features=1", "interaction.width=2"]),
    ("dpp", &[]),
    ("hawkes", &[]),
];

/// What makes the reports of patterns quick.
const FEW: [&str; 4] = [
    "data.num_patterns=2",
    "evaluation.num_errors=4",
    "evaluation.num_envelope=3",
    "evaluation.steps_per_point=30",
];

fn train<'a>(preset: &'a str, out: &'a str, changes: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["train", preset, "-q", "--out", out];
    for change in changes {
        arguments.extend(["--set", change]);
    }
    arguments
}

fn with_json(mut arguments: Vec<&str>) -> Vec<&str> {
    arguments.push("--json");
    arguments
}

fn is_number(value: &Value) -> bool {
    value.as_f64().is_some_and(f64::is_finite)
}

#[test]
fn topic_models_say_perplexity_with_its_error_coherence_and_topics() {
    let folder = tempfile::tempdir().expect("a folder");
    for (preset, changes) in TOPICS {
        let few = ["data.num_documents=40", "data.document_length=15", "evaluation.every=100"];
        let changes = [changes, &few].concat();
        let report = json(folder.path(), &with_json(train(preset, preset, &changes)));
        for kind in ["completion", "bound"] {
            for number in ["value", "std_error", "estimate_error"] {
                assert!(is_number(&report["perplexity"][kind][number]), "{preset}: {report}");
            }
        }
        assert!(is_number(&report["coherence"]), "{preset}");
        let topics = report["topics"].as_array().expect("topics");
        assert!(topics[0]["words"][0].is_string() && is_number(&topics[0]["share"]), "{preset}");
        // How near it came to the known answer.
        assert!(is_number(&report["truth"]["perplexity"]), "{preset}");
        assert!(folder.path().join(preset).join("plots/topics.png").is_file(), "{preset}");
    }
    let like = good(folder.path(), &["query", "lda", "--document", "3", "-n", "2"]);
    assert!(like.contains("Hellinger") && like.contains("document 3"), "{like}");
    let beyond = refusal(folder.path(), &["query", "lda", "--document", "36"]);
    assert!(beyond.contains("below 36"), "{beyond}");
}

#[test]
fn point_processes_say_coefficients_and_likelihood_and_draw_patterns() {
    let folder = tempfile::tempdir().expect("a folder");
    for (preset, changes) in PATTERNS {
        let changes = [changes, &FEW].concat();
        let report = json(folder.path(), &with_json(train(preset, preset, &changes)));
        let first = &report["coefficients"][0];
        assert!(is_number(&first["value"]) && is_number(&first["truth"]), "{preset}: {report}");
        let is_likelihood = ["poisson", "dpp", "hawkes"].contains(&preset);
        let kinds = ["log_likelihood", "log_pseudolikelihood"].map(|key| is_number(&report[key]));
        assert_eq!(kinds, [is_likelihood, !is_likelihood], "{preset}: {report}");
        assert!(is_number(&report["nats_per_element"]) && is_number(&report["p_value"]));
        let sample = ["sample", preset, "-n", "2", "-o", "drawn", "--json"];
        let drawn = json(folder.path(), &sample);
        assert_eq!((&drawn["patterns"], &drawn["process"]), (&2.into(), &preset.into()));
        let ending = if preset == "hawkes" { "txt" } else { "dat" };
        assert!(folder.path().join(format!("drawn/0001.{ending}")).is_file(), "{preset}");
        for picture in match preset {
            "hawkes" => &["events.png"][..],
            "dpp" => &["summaries.png"],
            "pairwise" => &["summaries.png", "field.png", "potential.png"],
            _ => &["summaries.png", "field.png"],
        } {
            assert!(folder.path().join(preset).join("plots").join(picture).is_file(), "{preset}");
        }
    }
    // What was drawn can be fitted: a folder of one window.
    good(folder.path(), &["sample", "strauss", "-n", "3", "-o", "strauss-drawn"]);
    let changes = [&["method=maximum-likelihood", "sampler=langevin"][..], &FEW].concat();
    let effort =
        ["likelihood.num_patterns=60", "likelihood.num_chains=3", "likelihood.num_rounds=1"];
    let changes = [&changes[..], &effort].concat();
    let mut again = with_json(train("strauss", "again", &changes));
    again.extend(["--data", "strauss-drawn"]);
    let report = json(folder.path(), &again);
    assert_eq!(report["patterns"], 3);
    assert!(is_number(&report["log_likelihood"]) && is_number(&report["log_likelihood_error"]));
}

#[test]
fn processes_with_latents_say_nats_and_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let small = ["evaluation.every=100", "evaluation.num_sets=4", "evaluation.num_draws=4"];
    for further in [&[][..], &["gplvm.is_bayesian=true", "gplvm.num_inducing=8"]] {
        let changes =
            [&small[..], &["gplvm.evaluations_per_step=4", "train.num_steps=2"], further].concat();
        let mut arguments = with_json(train("gplvm", "gplvm", &changes));
        arguments.push("--force");
        let report = json(folder, &arguments);
        for key in ["log_marginal", "nats_per_number", "one_nn_error", "recovered"] {
            assert!(is_number(&report[key]), "{report}");
        }
    }
    assert!(folder.join("gplvm/plots/map.png").is_file());
    let refused = refusal(folder, &["sample", "gplvm", "-n", "2"]);
    assert!(refused.contains("a model of rows"), "{refused}");

    let bruno = ["bruno.hidden_width=8", "data.num_sets=4", "train.num_steps=3"];
    let statistician = ["statistician.hidden_width=8", "data.num_sets=4", "train.num_steps=3"];
    for (preset, changes) in [("bruno", bruno), ("statistician", statistician)] {
        let changes = [&small[..], &changes].concat();
        let report = json(folder, &with_json(train(preset, preset, &changes)));
        for key in ["nats_per_element", "nats_error", "true_nats"] {
            assert!(is_number(&report[key]), "{preset}: {report}");
        }
        assert!(is_number(&report["excess"][0]) && is_number(&report["excess"][1]));
        let sample = ["sample", preset, "-n", "3", "--points", "7", "-o", "sets.npy", "--json"];
        let drawn = json(folder, &sample);
        assert_eq!((&drawn["sets"], &drawn["points"]), (&3.into(), &7.into()));
    }
    // The sets of one number that a statistician has drawn have codes.
    good(folder, &["encode", "statistician", "sets.npy", "-o", "codes.npy", "--features", "mean"]);
    assert!(folder.join("codes.npy").is_file());
    let refused = refusal(folder, &["encode", "bruno", "sets.npy", "-o", "codes.npy"]);
    assert!(refused.contains("BRUNO has no code"), "{refused}");
    assert!(refusal(folder, &["query", "bruno", "--document", "1"]).contains("documents"));
}

/// Twelve documents, one of them empty, with a word outside the vocabulary.
fn write_documents(folder: &Path) {
    let line = |i: usize| format!("{} {}:2 {}:1\n", i % 2, 1 + i % 3, 2 + i % 3);
    let text: String = (0..11).map(line).collect();
    fs::write(folder.join("news.feat"), format!("{text}0\n1 9:3 1:1\n")).expect("documents");
    fs::write(folder.join("news.vocab"), "god 12\nspace 3\ncar 2\nice 1\n").expect("words");
}

#[test]
fn items_like_others_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_documents(folder);
    let words = json(folder, &["query", "news.feat", "--like", "god,space", "--json"]);
    assert_eq!(words["items"], "words");
    let documents = json(folder, &["query", "news.feat", "--like", "0,3", "-n", "3", "--json"]);
    assert_eq!(documents["items"], "documents");
    assert_eq!(documents["found"].as_array().map(Vec::len), Some(3));
    // Documents 6 and 9 have the words of 0 and 3.
    let found = [&documents["found"][0]["item"], &documents["found"][1]["item"]];
    assert!(
        found.iter().all(|item| ["6", "9"].contains(&item.as_str().unwrap_or(""))),
        "{found:?}"
    );
    fs::write(folder.join("animals.csv"), "name,legs,fur\nlion,1,1\ntiger,1,1\neel,0,0\n")
        .expect("a table");
    let rows = good(folder, &["query", "animals.csv", "--like", "lion"]);
    assert!(rows.contains("tiger"), "{rows}");
    let unknown = refusal(folder, &["query", "animals.csv", "--like", "yeti"]);
    assert!(unknown.contains("no item `yeti`"), "{unknown}");
    fs::write(folder.join("bad.csv"), "name,legs\nlion,many\n").expect("a table");
    assert!(refusal(folder, &["query", "bad.csv", "--like", "lion"]).contains("must be a number"));
    fs::write(folder.join("short.csv"), "name,legs\nlion\n").expect("a table");
    assert!(refusal(folder, &["query", "short.csv", "--like", "lion"]).contains("2 columns"));
}

#[test]
fn bad_input_is_refused_or_counted_and_what_was_trained_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_documents(folder);
    let mut lda = train("lda", "lda", &["lda.num_topics=2", "train.num_steps=3"]);
    lda.extend(["--data", "news.feat"]);
    let text = good(folder, &lda);
    assert!(text.contains("1 documents without words, 3 words outside"), "{text}");
    let config = fs::read_to_string(folder.join("lda/config.toml")).expect("a run");

    let pattern = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a pattern");
    pattern("outside.dat", "2\nx\n0 1 0 1 1\n0.5 0.5\n0.5 1.5\n");
    pattern("few.dat", "3\nx\n0 1 0 1 1\n0.5 0.5\n0.2 0.1\n");
    pattern("word.dat", "1\nx\n0 1 0 1 1\n0.5 half\n");
    pattern("nan.dat", "1\nx\n0 1 0 1 1\n0.5 nan\n");
    pattern("flat.dat", "1\nx\n0 1 0 0 1\n0.5 0\n");
    pattern("none.dat", "0\nx\n0 1 0 1 1\n");
    pattern("twice.dat", "3\nx\n0 1 0 1 1\n0.5 0.5\n0.5 0.5\n0.2 0.9\n");
    pattern("times.txt", "1\n2\n2\n");
    pattern("empty.feat", "0\n1\n");
    pattern("broken.feat", "0 1:two\n");
    pattern("table.csv", "a,b\n1,2\n1,nan\n");
    for (preset, data, word) in [
        ("strauss", "outside.dat", "a point inside 0 to 1"),
        ("strauss", "few.dat", "3 points, as this line says"),
        ("strauss", "word.dat", "line 4"),
        ("strauss", "nan.dat", "line 4"),
        ("strauss", "flat.dat", "rising bounds"),
        ("poisson", "none.dat", "line 1"),
        ("hardcore", "twice.dat", "1 duplicate points"),
        ("dpp", "nowhere.dat", "nowhere.dat"),
        ("hawkes", "times.txt", "later than the one before"),
        ("lda", "empty.feat", "line 2: expected a document"),
        ("topics", "broken.feat", "line 1"),
        ("gplvm", "table.csv", "a finite number"),
        ("bruno", "table.csv", "table.csv"),
    ] {
        // The run that is there stays as it is.
        let said =
            complaint(folder, &["train", preset, "-q", "--force", "--out", "lda", "--data", data]);
        assert!(said.contains(word), "{preset} {data}: {said}");
        let kept = fs::read_to_string(folder.join("lda/config.toml")).expect("the run");
        assert_eq!(kept, config, "{preset} {data}");
    }
    let poisson = ["train", "poisson", "-q", "--out", "p", "--data", "twice.dat"];
    let text = good(folder, &poisson);
    assert!(text.contains("1 points repeat another exactly"), "{text}");
    good(folder, &["query", "lda", "--document", "0"]);
    for (preset, change, word) in [
        ("dpp", "method=logistic", "one way of fitting"),
        ("deepsets", "method=logistic", "no logistic fit"),
        ("poisson", "sampler=langevin", "without a chain"),
        ("pairwise", "interaction.trend=true", "has no trend"),
        ("strauss", "likelihood.num_chains=1", "at least 2"),
        ("strauss", "interaction.radius=-1", "positive"),
        ("lda", "lda.num_topics=0", "at least 1"),
        ("lda", "data.left_out_part=9", "not the one that is held out"),
        ("gplvm", "gplvm.evaluations_per_step=0", "at least 1"),
        ("statistician", "data.set_size=1", "at least 2"),
    ] {
        let said = refusal(folder, &["train", preset, "-q", "--out", "no", "--set", change]);
        assert!(said.contains(word), "{preset} {change}: {said}");
    }
}

#[test]
fn simulations_and_choices_can_be_reproduced() {
    let folder = tempfile::tempdir().expect("a folder");
    let simulation = ["reproduce", "simulation", "-n", "20", "--steps-per-point", "60", "--json"];
    let report = json(folder.path(), &simulation);
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(15));
    assert!(is_number(&report["largest"]) && report["is_within_three"].is_boolean());
    let unknown = ["reproduce", "documents", "--families", "magic"];
    assert!(refusal(folder.path(), &unknown).contains("no family `magic`"));
}
