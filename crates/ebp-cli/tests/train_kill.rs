//! A training process that is killed, interrupted and resumed leaves the bytes of one that was
//! left alone.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use ebp::rng::Stream;

const NUM_KILLS: usize = 20;
/// Kills come at random moments of the first so many milliseconds.
const LONGEST_LIFE_MS: f32 = 250.0;
/// Long enough that nobody waits for it in vain.
const PATIENCE: Duration = Duration::from_mins(1);

/// Settings with many checkpoints, so that many kills strike one.
const SETTINGS: [&str; 6] = [
    "--set",
    "train.num_steps=3000",
    "--set",
    "train.checkpoint_every=20",
    "--set",
    "train.best_quantity=error",
];

/// The real thing, small: an energy-based process with all that a checkpoint must hold.
fn regression(directory: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebp"));
    command.args(["train", "sines", "-q", "--json", "--out"]).arg(directory);
    let settings = [
        "train.num_steps=400",
        "train.checkpoint_every=10",
        "train.best_quantity=excess",
        "evaluation.every=200",
        "evaluation.num_sets=2",
        "evaluation.num_locations=5",
        "tasks.num_sets=2",
        "tasks.set_size=12",
        "tasks.max_context=8",
        "model.encoder_widths=[8]",
        "model.head_widths=[]",
        "model.energy_widths=[8]",
        "model.estimator=ade",
        "model.spectral_norm=true",
        "model.temperature=0.05",
        "model.sampler.hyper_widths=[8]",
        "model.sampler.num_layers=2",
        "model.sampler.num_components=2",
        "model.sampler.num_draws=4",
        "model.sampler.dynamics=langevin",
    ];
    for setting in settings {
        command.args(["--set", setting]);
    }
    command.args(more).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// The example. `cargo test` builds it; `cargo test --test train_kill` needs `--examples` too.
fn toy(directory: &Path, more: &[&str]) -> Command {
    let mut program = PathBuf::from(env!("CARGO_BIN_EXE_ebp"));
    program.set_file_name("examples");
    program.push("toy_training");
    let mut command = Command::new(program);
    command.arg(directory).args(SETTINGS).args(more);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn finish(mut command: Command) -> Output {
    let output = command.output().expect("the example is built");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {stderr}", output.status);
    output
}

/// Everything that must not depend on the interruptions.
fn results(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let checkpoints = directory.join("checkpoints");
    let mut files = vec![directory.join("metrics.jsonl"), directory.join("config.toml")];
    for pointer in ["last", "best"] {
        // Not every run looks for its best step.
        if pointer == "best" && !checkpoints.join(pointer).exists() {
            continue;
        }
        files.push(checkpoints.join(pointer));
        let name = fs::read_to_string(checkpoints.join(pointer)).expect("a pointer");
        for file in ["state.safetensors", "meta.json"] {
            files.push(checkpoints.join(name.trim()).join(file));
        }
    }
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(directory).expect("a file of the run").display().to_string();
        (name, fs::read(path).expect("a readable file"))
    };
    files.iter().map(read).collect()
}

fn assert_same_results(found: &Path, expected: &Path) {
    assert_eq!(results(found).len(), results(expected).len());
    for (found, expected) in results(found).into_iter().zip(results(expected)) {
        assert_eq!(found.0, expected.0);
        assert!(found.1 == expected.1, "{} differs", found.0);
    }
    let metrics = fs::read_to_string(found.join("metrics.jsonl")).expect("metrics");
    for (number, line) in metrics.lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
        assert_eq!(line["step"], number, "each step stands there once");
    }
    let leftovers: Vec<_> = fs::read_dir(found.join("checkpoints"))
        .expect("checkpoints")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name.starts_with('.') || name.starts_with("damaged"))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

fn wait_for_steps(directory: &Path, child: &mut Child) {
    let started = Instant::now();
    while fs::metadata(directory.join("metrics.jsonl")).map_or(0, |file| file.len()) == 0 {
        assert!(started.elapsed() < PATIENCE, "no step was taken");
        assert!(child.try_wait().expect("a child").is_none(), "ended too early");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn twenty_kills_change_no_byte() {
    kill_and_compare(|directory, is_slow, more| {
        let slow: &[&str] = if is_slow { &["--delay-us", "1000"] } else { &[] };
        toy(directory, &[&["-q"], slow, more].concat())
    });
}

#[test]
fn twenty_kills_change_no_byte_of_an_energy_based_process() {
    kill_and_compare(|directory, _, more| regression(directory, more));
}

/// The paper's draws: of a flow, or of an LSTM, with Langevin steps.
const PUBLISHED: [&str; 6] = [
    "model.estimator=ade",
    "model.sampler.kind=flow",
    "model.sampler.uniform_share=0",
    "model.sampler.negative_phase=plain",
    "model.sampler.reverse_kernel=random-walk",
    "model.sampler.dynamics=langevin",
];
const PUBLISHED_BLOCK: [&str; 6] = {
    let mut settings = PUBLISHED;
    settings[1] = "model.sampler.kind=block";
    settings
};

/// One small run of every estimator and every kind of data: what it is called, its preset, and what
/// its settings add to those of its kind.
const RUNS: [(&str, &str, &[&str]); 20] = [
    ("curves-importance", "sines", &["model.estimator=importance"]),
    ("curves-around", "sines", &["model.proposal.kind=around"]),
    ("curves-score-matching", "sines", &["model.estimator=score-matching"]),
    ("curves-neural", "rival/np", &[]),
    ("clouds-importance", "shapes", &["model.estimator=importance"]),
    ("clouds-score-matching", "shapes", &["model.estimator=score-matching"]),
    ("clouds-ade", "shapes", &["model.estimator=ade", "model.beta1=0.0"]),
    ("clouds-ade-flow", "shapes", &PUBLISHED),
    ("clouds-ade-block", "shapes", &PUBLISHED_BLOCK),
    ("pictures-exact", "digits", &["process=exact"]),
    ("pictures-importance", "digits", &["process=importance"]),
    ("pictures-ade", "digits", &["process=ade"]),
    ("set-energies", "sticks", &[]),
    ("topics-lda", "lda", &[]),
    ("topics-energy-based", "topics", &[]),
    ("patterns-gibbs", "strauss", &[]),
    ("patterns-network", "pairwise", &[]),
    ("latents-gplvm", "gplvm", &["gplvm.evaluations_per_step=2"]),
    ("latents-bruno", "bruno", &["bruno.hidden_width=8", "bruno.num_couplings=2"]),
    ("latents-statistician", "statistician", &["statistician.hidden_width=8"]),
];

/// What makes a step of a preset take milliseconds.
#[expect(clippy::too_many_lines, reason = "a table of settings, a few lines a preset")]
fn small(preset: &str) -> &'static [&'static str] {
    match preset {
        "topics" => &[
            "evaluation.every=1000",
            "data.num_documents=30",
            "data.document_length=12",
            "energy_based.documents=8",
            "energy_based.model.encoder_widths=[8]",
            "energy_based.model.latent_dim=3",
        ],
        "lda" => &[
            "evaluation.every=1000",
            "data.num_documents=30",
            "data.document_length=12",
            "lda.num_topics=3",
        ],
        "strauss" => &[
            "data.num_patterns=2",
            "evaluation.num_errors=2",
            "evaluation.num_envelope=2",
            "evaluation.steps_per_point=20",
        ],
        "pairwise" => &[
            "data.num_patterns=2",
            "evaluation.num_envelope=2",
            "evaluation.steps_per_point=20",
            "interaction.num_knots=4",
            "interaction.width=2",
        ],
        "bruno" | "statistician" => &[
            "evaluation.every=1000",
            "evaluation.num_sets=4",
            "evaluation.num_draws=4",
            "data.num_sets=4",
            "data.set_size=6",
        ],
        "gplvm" => &["evaluation.every=1000", "evaluation.num_sets=4"],
        "sines" => &[
            "evaluation.every=1000",
            "evaluation.num_sets=2",
            "evaluation.num_locations=5",
            "tasks.num_sets=2",
            "tasks.set_size=12",
            "tasks.max_context=8",
            "model.encoder_widths=[8]",
            "model.head_widths=[]",
            "model.energy_widths=[8]",
        ],
        "rival/np" => &[
            "evaluation.every=1000",
            "evaluation.num_sets=2",
            "evaluation.num_locations=5",
            "tasks.num_sets=2",
            "neural.encoder_widths=[8]",
            "neural.decoder_widths=[8]",
        ],
        "shapes" => &[
            "data.num_shapes=12",
            "data.num_points=80",
            "data.held_out=4",
            "evaluation.every=1000",
            "evaluation.num_sets=4",
            "evaluation.num_points=60",
            "batch_size=3",
            "model.encoder_widths=[8, 12]",
            "model.energy_widths=[12]",
            "model.latent_dim=3",
            "model.num_proposals=40",
            "model.sampler.num_layers=2",
            "model.sampler.hyper_widths=[8]",
            "model.sampler.block_elements=16",
            "model.sampler.block_widths=[8]",
            "model.sampler.block_state=8",
            "model.sampler.num_components=4",
            "model.sampler.num_draws=16",
            "model.sampler.num_dynamics_steps=2",
        ],
        "digits" => &[
            "data.side=8",
            "data.num_training=60",
            "data.num_test=12",
            "evaluation.every=1000",
            "evaluation.num_pictures=2",
            "evaluation.num_draws=2",
            "evaluation.parts=[\"10\"]",
            "evaluation.drawn=[]",
            "evaluation.classifies=false",
            "tasks.num_pictures=4",
            "tasks.max_context=40",
            "model.encoder_widths=[8]",
            "model.head_widths=[8]",
            "model.energy_widths=[8]",
            "model.canvas_widths=[8]",
            "model.latent_dim=2",
            "element_model.encoder_widths=[8]",
            "element_model.head_widths=[8]",
            "element_model.energy_widths=[8]",
            "element_model.latent_dim=2",
            "element_model.sampler.hyper_widths=[8]",
            "element_model.sampler.num_components=2",
            "element_model.sampler.num_draws=2",
        ],
        _ => &["evaluation.every=1000", "evaluation.num_sets=4", "data.num_sets=4"],
    }
}

/// A run with one thread that is left alone, and one with two threads that is killed on its way.
#[test]
fn every_estimator_and_kind_of_data_goes_on_with_any_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut num_struck = 0;
    for (number, (name, preset, further)) in RUNS.into_iter().enumerate() {
        let start = |out: &Path, threads: &str, more: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_ebp"));
            command.args(["train", preset, "-q", "--json", "--threads", threads, "--out"]).arg(out);
            let steps = ["train.num_steps=40", "train.checkpoint_every=4", "train.record_every=1"];
            for setting in small(preset).iter().chain(&steps).chain(further) {
                command.args(["--set", setting]);
            }
            command.args(more).stdout(Stdio::null()).stderr(Stdio::piped());
            command
        };
        let (whole, killed) = (folder.path().join(name), folder.path().join(name.to_owned() + "-"));
        finish(start(&whole, "1", &[]));
        let mut lives = [0.0; 3];
        Stream::new(12, "kills").fill_uniform(u32::try_from(number).unwrap(), 0, &mut lives);
        for life in lives {
            let resume: &[&str] = if killed.exists() { &["--resume"] } else { &[] };
            let mut command = start(&killed, "2", resume);
            let mut child = command.stderr(Stdio::null()).spawn().expect("the program");
            // Data and networks are made first, which takes longer than steps of this size.
            let started = Instant::now();
            while !killed.join("checkpoints/last").exists() {
                assert!(started.elapsed() < PATIENCE, "{name} did not begin");
                thread::sleep(Duration::from_millis(2));
            }
            thread::sleep(Duration::from_secs_f32(life * LONGEST_LIFE_MS / 1000.0));
            num_struck += u32::from(child.try_wait().expect("a child").is_none());
            child.kill().expect("SIGKILL");
            child.wait().expect("a dead child");
        }
        finish(start(&killed, "2", &["--resume"]));
        assert_same_results(&killed, &whole);
    }
    assert!(num_struck > 6, "kills must meet living processes, {num_struck} did");
}

/// Trains once undisturbed and once killed 20 times; `start` is given the folder, whether steps may
/// be slowed down, and further arguments.
fn kill_and_compare(start: impl Fn(&Path, bool, &[&str]) -> Command) {
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    finish(start(&whole, false, &[]));

    let stream = Stream::new(11, "kills");
    let mut lives = [0.0; NUM_KILLS];
    stream.fill_uniform(0, 0, &mut lives);
    let mut num_struck = 0;
    for life in lives {
        let resume: &[&str] = if killed.exists() { &["--resume"] } else { &[] };
        let mut command = start(&killed, true, resume);
        let mut child = command.stderr(Stdio::null()).spawn().expect("the example is built");
        thread::sleep(Duration::from_secs_f32(life * LONGEST_LIFE_MS / 1000.0));
        num_struck += u32::from(child.try_wait().expect("a child").is_none());
        child.kill().expect("SIGKILL"); // kill -9
        child.wait().expect("a dead child");
    }
    assert!(num_struck > 10, "most kills must meet a living process, {num_struck} did");
    finish(start(&killed, false, &["--resume"]));
    assert_same_results(&killed, &whole);
}

#[test]
fn an_interrupt_saves_and_the_run_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    finish(toy(&whole, &["-q"]));

    let mut child = toy(&stopped, &["--delay-us", "3000"]).spawn().expect("the example is built");
    wait_for_steps(&stopped, &mut child);
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
    let output = child.wait_with_output().expect("a child");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted and saved after step"), "{stderr}");

    let refused = toy(&stopped, &[]).output().expect("the example is built");
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("found a run") && message.contains("--resume"), "{message}");

    let changed = toy(&stopped, &["--resume", "--set", "learning_rate=0.5"]).output();
    let changed = changed.expect("the example is built");
    assert_eq!(changed.status.code(), Some(2));
    let message = String::from_utf8_lossy(&changed.stderr).into_owned();
    assert!(message.contains("`learning_rate` changed"), "{message}");

    let output = finish(toy(&stopped, &["--resume"]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("going on after step"), "{stderr}");
    assert!(stderr.contains("step 3000 of 3000") && stderr.contains("steps/s"), "{stderr}");
    assert_same_results(&stopped, &whole);
}

#[test]
fn a_second_interrupt_ends_the_process_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    // The second step would take an hour.
    let mut child = toy(&run, &["-q", "--delay-us", "3600000000"]).spawn().expect("an example");
    let started = Instant::now();
    while !run.join("checkpoints/last").exists() {
        assert!(started.elapsed() < PATIENCE, "the run did not begin");
        thread::sleep(Duration::from_millis(5));
    }
    while child.try_wait().expect("a child").is_none() {
        assert!(started.elapsed() < PATIENCE, "the process did not end");
        let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        status.expect("kill runs");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(child.wait().expect("a child").code(), Some(130));
}

#[test]
fn a_run_says_how_it_came_about_and_can_be_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let short = ["-q", "--set", "train.num_steps=50"];
    finish(toy(&run, &short));
    fs::write(run.join("notes.txt"), "mine").expect("a note");
    let text = fs::read_to_string(run.join("run.json")).expect("a description");
    let description: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(description["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(description["seed"], 1);
    assert_eq!(description["device"], "cpu");
    assert!(description["arguments"].to_string().contains("train.num_steps=50"));
    let config = fs::read_to_string(run.join("config.toml")).expect("a configuration");
    assert!(config.contains("num_steps = 50") && config.contains("learning_rate = 0.02"));

    finish(toy(&run, &[&short[..], &["--force", "--set", "seed=2"]].concat()));
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).expect("metrics");
    assert_eq!(metrics.lines().count(), 50);
    assert_eq!(fs::read_to_string(run.join("notes.txt")).expect("a note"), "mine");

    let other = folder.path().join("other");
    fs::create_dir(&other).expect("a folder");
    fs::write(other.join("thesis.tex"), "mine").expect("a file");
    let refused = toy(&other, &["--force"]).output().expect("the example is built");
    assert_eq!(refused.status.code(), Some(2));
    assert!(other.join("thesis.tex").exists());
}
