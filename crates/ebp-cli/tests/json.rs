//! What every command prints with `--json`, compared field by field with `docs/json.md`: neither goes stale.
#![allow(clippy::panic, reason = "a failure here is a failed test")]

mod program;
mod schema;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use ebp::data::npy::{Array, Precision, write_npy};
use ebp::rng::Stream;
use serde_json::Value;

use program::{TINY_CLOUDS, TINY_CURVES, TINY_PICTURES, ebp, good, json};
use schema::Schema;

/// Fields that may stay without a value: of a GPU, of trainings that take minutes, of what is remarkable.
const MAY_BE_UNSEEN: [&str; 27] = [
    "GPU: name",
    "GPU: compute_capability",
    "GPU: memory_gib",
    "GPU: free_gib",
    "GPU: peak_gflops",
    "ebp doctor: gpu",
    // Where a machine has a GPU that works.
    "ebp doctor: no_gpu",
    // Where a library of MPI is found, and where none is.
    "MPI: version",
    "MPI: file",
    "ebp doctor: mpi",
    "ebp doctor: no_mpi",
    "case: kernel_ms",
    "case: kernel_peak_fraction",
    "case: kernel_share",
    "case: launches",
    // Where the system does not tell.
    "case: peak_rss_mib",
    "ebp doctor: memory_gib",
    "ebp train (sets of vectors): bits_per_dim",
    "ebp train (point patterns): notes",
    // Where as many topics are learned as there are.
    "truth: topic_distance",
    "ebp complete: notes",
    // A sampler of few steps is rejected nearly always.
    "ebp sample, ebp merge (sample): kept",
    "ebp view: notes",
    "scored set: pareto_k",
    "scored set: neighbours",
    "ablation row: emd",
    "model on a dataset: log_partition",
];

/// Commands whose result is text for a shell.
const WITHOUT: [&str; 1] = ["ebp completions"];

/// What commands printed, each with its name on the page.
type Printed = Vec<(&'static str, Value)>;

/// Arguments in one line; settings follow as `key=value`.
fn words<'a>(line: &'a str, settings: &[&'a str]) -> Vec<&'a str> {
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    line.split_whitespace().chain(settings).collect()
}

fn ask(folder: &Path, line: &str, settings: &[&str]) -> Value {
    json(folder, &words(&format!("{line} --json"), settings))
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("a file");
}

fn curves(at: &Path) -> Printed {
    let train = "train lines -q --json --out m --set evaluation.num_sets=2 --set evaluation.num_locations=5";
    let train = [&words(train, &["train.num_steps=40"])[..], &TINY_CURVES].concat();
    write(at, "at.csv", "t,x\n0.5,0.45\n0.6,0.2\n");
    write(at, "known.csv", "t,x\n0.1,0.2\n");
    let predict = "predict m --context known.csv --at at.csv --grid 20 --samples 2 --picture p.png";
    let calibrate = "calibrate m -q --sets 30 --draws 9 --simulations 20 --keep";
    let mut found = vec![
        ("ebp train (curves)", json(at, &train)),
        ("ebp train --print-config", ask(at, "train lines --print-config", &[])),
        ("ebp predict", ask(at, predict, &[])),
        ("ebp calibrate", ask(at, calibrate, &[])),
        // With a temperature that was kept.
        ("ebp calibrate", ask(at, calibrate, &[])),
        ("ebp predict", ask(at, predict, &[])),
        ("ebp plot", ask(at, "plot m", &[])),
        ("ebp export", ask(at, "export m --out e", &[])),
        ("ebp view --live", live(at)),
    ];
    assert!(at.join("p.png").is_file());
    let laws = [
        ("ebp reproduce sbc", "reproduce sbc --simulations 200"),
        (
            "ebp reproduce consistency",
            "reproduce consistency --models gp --pairs 6 --integrals 2 --draws 4 -q",
        ),
        ("ebp reproduce figure1", "reproduce figure1 --datasets lines --models gp --seeds 1 -q"),
    ];
    found.extend(laws.map(|(name, line)| (name, ask(at, line, &[]))));
    let share = "reproduce figure1 --datasets lines --models gp --seeds 1 --shard 1/1 -q";
    found.push(("ebp reproduce figure1 --shard", ask(at, share, &[])));
    found
}

/// The first thing that a server says.
fn live(at: &Path) -> Value {
    let mut server = Command::new(env!("CARGO_BIN_EXE_ebp"))
        .args(["view", "--live", "m", "--json"])
        .current_dir(at)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let lines = BufReader::new(server.stdout.take().expect("stdout")).lines();
    let mut text = String::new();
    for line in lines.map(|line| line.expect("text")) {
        text += &line;
        if line == "}" {
            break;
        }
    }
    server.kill().expect("a server");
    server.wait().expect("a dead server");
    serde_json::from_str(&text).expect("JSON")
}

fn clouds(at: &Path) -> Printed {
    let with = |line: &str, further: &[&str]| {
        let line = format!("{line} -q --json");
        json(at, &[&words(&line, further)[..], &TINY_CLOUDS].concat())
    };
    let mut found = vec![
        ("ebp train (clouds)", with("train shapes --out run", &[])),
        ("ebp train (clouds)", with("train shapes --out ade", &["model.estimator=ade"])),
        ("ebp sample", ask(at, "sample run -n 3 --points 40 -o x.npy", &[])),
        (
            "ebp sample",
            ask(
                at,
                "sample ade -n 2 --points 30 -o many --method mala --steps 3 --start sampler",
                &[],
            ),
        ),
        ("ebp score", ask(at, "score ade x.npy --draws 2 --most-draws 4 --proposals 200", &[])),
        ("ebp score --codes-only", ask(at, "score run x.npy --codes-only", &[])),
        ("ebp denoise", ask(at, "denoise run x.npy -o clean --steps 2", &[])),
        ("ebp encode", ask(at, "encode run x.npy -o f.npy", &[])),
        ("ebp render", ask(at, "render x.npy -o r.png --size 40x40", &[])),
        ("ebp view", ask(at, "view x.npy -o x.html", &[])),
        ("ebp distance", ask(at, "distance many/00000.ply many/00001.ply --emd sinkhorn", &[])),
        ("ebp distance", ask(at, "distance many/00000.ply many/00001.ply --points 20", &[])),
        ("ebp metrics", ask(at, "metrics x.npy many --no-cache -q", &[])),
    ];
    good(at, &words("sample run -n 4 --points 40 -o y.npy", &[]));
    let metrics =
        "metrics x.npy y.npy --emd sinkhorn --oracle y.npy --points 20 --subset 3 --no-cache -q";
    found.push(("ebp metrics", ask(at, metrics, &[])));
    found.extend(shares(at));
    let few = ["data.num_shapes=20"];
    for (name, line, further) in [
        ("ebp reproduce generation", "generation --splits 2 --priors kernel,gaussian", &few[..]),
        (
            "ebp reproduce generation",
            "generation --priors gaussian --out b",
            &["model.estimator=ade"],
        ),
        ("ebp reproduce denoising", "denoising --steps 2 --out r", &[]),
        ("ebp reproduce energies", "energies --out r", &[]),
        ("ebp reproduce table1", "table1 --classes chair --out t", &[]),
        ("ebp reproduce table2", "table2 --folds 2 --turn-axis 2 --out c", &few),
        ("ebp reproduce ablation", "ablation --variants importance --out a", &[]),
    ] {
        // What is typed last counts.
        let line = format!("reproduce {line}");
        let settings = [&TINY_CLOUDS[..], &words("", further)].concat();
        let line = format!("{line} -q --json");
        found.push((name, json(at, &[&words(&line, &[])[..], &settings].concat())));
    }
    // Codes of sets that are not there any more.
    good(at, &words("data shapes -n 12 --points 80 own", &[]));
    good(
        at,
        &[&words("train shapes --data own/chair.npy --out gone -q", &[])[..], &TINY_CLOUDS]
            .concat(),
    );
    fs::remove_file(at.join("own/chair.npy")).expect("a file");
    fs::remove_file(at.join("gone/codes.npy")).expect("codes");
    found.push(("ebp export", ask(at, "export gone --out weights", &[])));
    found
}

/// Commands in one share, and what is made of it.
fn shares(at: &Path) -> Printed {
    let score = "score run x.npy --draws 2 --most-draws 4 --proposals 200";
    let commands = [
        ("ebp metrics --shard", "ebp merge (metrics)", "metrics x.npy y.npy --emd off", ""),
        ("ebp score --shard", "ebp merge (score)", score, ""),
        ("ebp score --shard", "ebp merge (score --codes-only)", "score run x.npy --codes-only", ""),
        ("ebp encode --shard", "ebp merge (encode)", "encode run x.npy", "-o g.npy"),
        ("ebp sample --shard", "ebp merge (sample)", "sample run -n 3 --points 40", "-o z.npy"),
    ];
    let mut found = Printed::new();
    for (number, (share, merge, line, out)) in commands.into_iter().enumerate() {
        let part = format!("part-{number}");
        found.push((share, ask(at, &format!("{line} --shard 1/1 -o {part} -q"), &[])));
        found.push((merge, ask(at, &format!("merge {part} {out} -q"), &[])));
    }
    found
}

fn pictures(at: &Path) -> Printed {
    let train = "train digits -q --out run";
    let settings = [&TINY_PICTURES[..], &["train.num_steps=6"]].concat();
    let picture = image::GrayAlphaImage::from_fn(8, 8, |x, y| {
        image::LumaA([if x == y { 255 } else { 0 }, if x < 4 { 255 } else { 0 }])
    });
    picture.save(at.join("torn.png")).expect("a picture");
    let wanted = ["evaluation.rounds=2", "evaluation.classifies=true"];
    let rounds = [&settings[..], &wanted].concat();
    let mut found = vec![
        ("ebp train (pictures)", ask(at, train, &rounds)),
        ("ebp complete", ask(at, "complete run --image torn.png -k 2", &[])),
        (
            "ebp reproduce completion",
            ask(at, "reproduce completion -q --models ebp-exact --out r", &rounds),
        ),
    ];
    found.push(("ebp data strokes", {
        fs::create_dir(at.join("pictures")).expect("a folder");
        picture.save(at.join("pictures/one.png")).expect("a picture");
        ask(at, "data strokes pictures s.npy --points 9", &[])
    }));
    found
}

fn sets(at: &Path) -> Printed {
    let few = ["train.num_steps=3", "evaluation.every=100"];
    let train = |preset: &str, settings: &[&str]| {
        ask(at, &format!("train {preset} -q --out {preset}"), settings)
    };
    let number = ["evaluation.num_sets=4", "evaluation.num_draws=4", "data.num_sets=4"];
    let of_sets = [&few[..], &number].concat();
    let sticks = ["train.num_steps=3", "data.num_sets=12", "evaluation.num_sets=4"];
    let rows = ["gplvm.evaluations_per_step=4", "train.num_steps=2", "evaluation.every=100"];
    let held_out = [&rows[..], &["data.held_out=6"]].concat();
    let pattern = [
        "data.num_patterns=2",
        "evaluation.num_errors=4",
        "evaluation.num_envelope=3",
        "evaluation.steps_per_point=30",
    ];
    let effort = ["method=maximum-likelihood", "likelihood.num_patterns=60"];
    let effort = [&effort[..], &["likelihood.num_chains=3", "likelihood.num_rounds=1"]].concat();
    vec![
        ("ebp train (energies of sets)", train("sticks", &sticks)),
        ("ebp train (rows of a table)", train("gplvm", &held_out)),
        (
            "ebp train (sets of vectors)",
            train("bruno", &[&of_sets[..], &["bruno.hidden_width=8"]].concat()),
        ),
        (
            "ebp train (sets of vectors)",
            train("statistician", &[&of_sets[..], &["statistician.hidden_width=8"]].concat()),
        ),
        ("ebp train (sets of vectors)", train("arcs", &of_sets)),
        ("ebp train (point patterns)", train("strauss", &pattern)),
        ("ebp train (point patterns)", train("hawkes", &pattern)),
        ("ebp train (point patterns)", train("hardcore", &[&pattern[..], &effort].concat())),
        ("ebp sample (point patterns)", ask(at, "sample strauss -n 2 -o drawn", &[])),
        (
            "ebp reproduce simulation",
            ask(at, "reproduce simulation -n 5 --steps-per-point 20 -q", &[]),
        ),
    ]
}

fn documents(at: &Path) -> Printed {
    let few = ["data.num_documents=40", "data.document_length=15", "evaluation.every=100"];
    let lda = [&few[..], &["lda.num_topics=10", "train.num_steps=8"]].concat();
    let steps = [&few[..], &["train.num_steps=2"]].concat();
    write(at, "news.feat", &"0 1:2 2:2\n1 2:1 3:1\n0 1:1 3:2\n".repeat(5));
    write(at, "news.vocab", "god 12\nspace 3\ncar 2\n");
    vec![
        ("ebp train (documents)", ask(at, "train lda -q --out lda", &lda)),
        ("ebp query", ask(at, "query lda --document 3 -n 2", &[])),
        ("ebp query", ask(at, "query news.feat --like god,space", &[])),
        (
            "ebp reproduce documents",
            ask(at, "reproduce documents --families lda --seeds 1 --parts 4 -q", &steps),
        ),
    ]
}

fn data_and_machine(at: &Path) -> Printed {
    let mut found: Printed = [
        ("ebp data shapes", "data shapes --class chair,lamp -n 6 --points 32 --meshes s"),
        ("ebp data import", "data import s a.ebp --points 20 --test 0.2 -q"),
        ("ebp data split", "data split a.ebp"),
        ("ebp data import --shards", "data import s shards --shards 2 --points 20 -q"),
        ("ebp data shapes --shards", "data shapes drawn -n 4 --points 20 --shards 2"),
        ("ebp data inspect", "data inspect shards"),
        ("ebp data inspect", "data inspect a.ebp --sheet a.png"),
        ("ebp data inspect", "data inspect s/lamp.npy"),
        ("ebp data sample-mesh", "data sample-mesh s/lamp all.npy --points 10 -q"),
        ("ebp data info", "data info"),
        ("ebp data info (one set)", "data info mnist"),
        ("ebp man", "man pages"),
        ("ebp reference", "reference pages"),
        ("ebp doctor", "doctor"),
        (
            "ebp bench",
            "bench small --sets 2 --points 8 --cases energy_value,mnist_step --repeats 1 -q",
        ),
    ]
    .map(|(name, line)| (name, ask(at, line, &[])))
    .into();
    // A copy that is not there: the object is printed, and the command fails.
    let wrong = ebp(at, &["data", "info", "modelnet10-off", "s", "--json"]);
    assert_eq!(wrong.status.code(), Some(1));
    let printed: Value = serde_json::from_slice(&wrong.stdout).expect("one JSON object");
    assert_eq!(printed["is_complete"], false);
    found.push(("ebp data info (one set)", printed));
    // Two blobs, and features that say nothing about the class without an item.
    let mut values = vec![0.0_f32; 2 * 40];
    Stream::new(1, "blobs").fill_normal(0, 0, &mut values);
    values.chunks_exact_mut(2).enumerate().for_each(|(item, row)| row[item % 2] += 4.0);
    let array = Array::new(vec![40, 2], values).expect("a shape that fits");
    write_npy(&at.join("f.npy"), &array, Precision::Single).expect("a file");
    write(at, "names.txt", &"bed\nlamp\n".repeat(20));
    let folds = "classify f.npy --labels names.txt --picture c.png -q";
    found.push(("ebp classify", ask(at, folds, &[])));
    let test =
        "classify f.npy --labels names.txt --test f.npy --test-labels names.txt --picture d.png -q";
    found.push(("ebp classify --test", ask(at, test, &[])));
    found
}

#[test]
fn every_command_prints_what_the_page_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let mut schema = Schema::of_page(&fs::read_to_string(path).expect("the page"));
    let groups: [fn(&Path) -> Printed; 6] =
        [curves, clouds, pictures, sets, documents, data_and_machine];
    let printed: Vec<Printed> = std::thread::scope(|scope| {
        let begin = |group: fn(&Path) -> Printed| {
            scope.spawn(move || {
                let folder = tempfile::tempdir().expect("a folder");
                group(folder.path())
            })
        };
        let threads = groups.map(begin);
        threads.into_iter().map(|thread| thread.join().expect("a group that works")).collect()
    });
    for (name, object) in printed.iter().flatten() {
        let first = name
            .trim_start_matches("ebp ")
            .trim_start_matches("merge (")
            .split([' ', '(', ')'])
            .next()
            .unwrap_or_default();
        let command = object["command"].as_str().expect("a command");
        assert!(command.starts_with(first), "{name}: {command}");
        assert_eq!(object["version"], env!("CARGO_PKG_VERSION"));
        assert!(object["elapsed_s"].as_f64().is_some_and(|seconds| seconds >= 0.0));
        schema.compare(name, object);
    }
    let (complaints, unseen) = schema.verdict();
    assert!(complaints.is_empty(), "docs/json.md:\n{}", complaints.join("\n"));
    let stale: Vec<&String> =
        unseen.iter().filter(|field| !MAY_BE_UNSEEN.contains(&field.as_str())).collect();
    assert!(stale.is_empty(), "of docs/json.md nothing printed {stale:?} with a value");
}

/// Names of the page are commands of the program, and every command has its place.
#[test]
fn the_page_has_all_commands_and_no_other() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let schema = Schema::of_page(&fs::read_to_string(path).expect("the page"));
    let on_page: Vec<&String> = schema.commands.values().flatten().collect();
    let folder = tempfile::tempdir().expect("a folder");
    good(folder.path(), &["man", "pages"]);
    let mut commands = Vec::new();
    for entry in fs::read_dir(folder.path().join("pages")).expect("pages") {
        let path = entry.expect("a page").path();
        let text = fs::read_to_string(&path).expect("a page").replace("\\-", "-");
        // Commands with commands below them do nothing themselves.
        if !text.contains(".SH SUBCOMMANDS") {
            let name = path.file_stem().expect("a name").to_string_lossy().replace('-', " ");
            commands.push(name.replace("sample mesh", "sample-mesh"));
        }
    }
    for command in &commands {
        let has_place = on_page
            .iter()
            .any(|known| *known == command || known.starts_with(&[command, " "].concat()));
        assert_eq!(has_place, !WITHOUT.contains(&command.as_str()), "`{command}`");
    }
    for known in on_page {
        let is_command = commands
            .iter()
            .any(|command| known == command || known.starts_with(&[command, " "].concat()));
        assert!(is_command, "`{known}` is no command");
    }
}
