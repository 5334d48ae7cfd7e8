//! Steps cut into shards: the bytes do not know how many replicas and threads computed them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ebp::data::CurveFamily;
use ebp::exchange::{Seat, Shard};
use ebp::model::{Data, Device, Model, Settings, TrainOptions};
use ebp::process::EnergyBasedProcess;
use ebp::recipe::{EnergyBasedConfig, Space};
use ebp::rng::Stream;
use ebp::tape::{AdamConfig, Initialiser, Parameter, ParameterBuilder, ParameterSet};
use ebp::tensor::Tensors;
use ebp::train::{
    Event, Existing, Observer, OnDivergence, Record, Regression, Replicas, Session, Shardable,
    Silent, Step, TaskConfig, TaskSource, Trainable, Trainer, TrainerConfig,
};
use ebp::{Error, Result};

/// Settings that make steps of a preset take milliseconds.
const CLOUDS: &[&str] = &[
    "data.num_shapes=12",
    "data.num_points=40",
    "data.held_out=3",
    "evaluation.num_sets=3",
    "evaluation.every=100",
    "batch_size=8",
    "model.encoder_widths=[8, 12]",
    "model.head_widths=[8]",
    "model.energy_widths=[12]",
    "model.latent_dim=3",
    "model.num_proposals=16",
    "model.encoder_points=20",
    "model.likelihood_points=10",
    "model.sampler.num_draws=4",
    "model.sampler.num_components=4",
    "model.sampler.hyper_widths=[8]",
];
const CURVES: &[&str] = &[
    "evaluation.num_sets=2",
    "evaluation.num_locations=5",
    "evaluation.every=100",
    "tasks.num_sets=4",
    "tasks.set_size=12",
    "tasks.max_context=8",
    "model.encoder_widths=[8]",
    "model.head_widths=[]",
    "model.energy_widths=[8]",
    "neural.encoder_widths=[8]",
    "neural.representation_dim=8",
    "neural.decoder_widths=[8]",
    "neural.embedding_widths=[8]",
    "implicit.hidden_widths=[8]",
    "exact.num_restarts=0",
];
const PICTURES: &[&str] = &[
    "data.side=8",
    "data.num_training=60",
    "data.num_test=12",
    "evaluation.every=1000",
    "evaluation.num_pictures=2",
    "evaluation.num_draws=2",
    "evaluation.parts=[\"10\"]",
    "evaluation.drawn=[]",
    "evaluation.classifies=false",
    "tasks.num_pictures=8",
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
];

fn settings(preset: &str, small: &[&str], more: &[&str]) -> Settings {
    let base = ["train.shards=4", "train.checkpoint_every=50", "seed=3"];
    Settings::preset(preset, &[small, &base, more].concat()).unwrap()
}

fn cpus(count: usize) -> Vec<Device> {
    vec![Device::cpu(); count]
}

/// What a run left: the newest state and everything that was recorded.
fn bytes(folder: &Path) -> (Vec<u8>, Vec<u8>) {
    let checkpoints = folder.join("checkpoints");
    let last = fs::read_to_string(checkpoints.join("last")).unwrap();
    let state = fs::read(checkpoints.join(last.trim()).join("state.safetensors")).unwrap();
    (state, fs::read(folder.join("metrics.jsonl")).unwrap())
}

fn train(settings: &Settings, data: &Data, folder: &Path, replicas: usize, threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let learn = || {
        let (directory, replicas) = (Some(folder.to_owned()), cpus(replicas));
        let options = TrainOptions { directory, replicas, ..TrainOptions::default() };
        Model::train_on(settings.clone(), data, options)
    };
    pool.install(learn).unwrap();
}

/// One, two and four replicas, with one, two and three threads.
fn assert_same_bytes(preset: &str, small: &[&str], more: &[&str]) {
    let settings = settings(preset, small, more);
    let data = Data::load(&settings).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = |(replicas, threads): (usize, usize)| {
        let place = folder.path().join(format!("{replicas}-{threads}"));
        train(&settings, &data, &place, replicas, threads);
        bytes(&place)
    };
    let one = run((1, 1));
    assert!(!one.1.is_empty());
    for many in [(2, 2), (4, 3)] {
        let found = run(many);
        assert!(found.0 == one.0, "{preset} {more:?}: states of {many:?} replicas, threads differ");
        assert!(found.1 == one.1, "{preset} {more:?}: records of {many:?} replicas differ");
    }
}

const LONG: &str = "train.num_steps=200";
const SHORT: &str = "train.num_steps=30";

#[test]
fn clouds_by_importance() {
    assert_same_bytes("shapes", CLOUDS, &[LONG]);
}

/// Networks so large that their gradients travel in several parts.
#[test]
fn clouds_whose_gradients_travel_in_parts() {
    let large = ["model.encoder_widths=[256, 300]", "model.energy_widths=[300, 300]"];
    assert_same_bytes("shapes", CLOUDS, &[&["train.num_steps=6"][..], &large].concat());
}

#[test]
fn clouds_by_ade_whose_energy_waits() {
    let waiting = ["model.sampler.wait_below=0.6", "model.sampler.updates_per_step=2"];
    assert_same_bytes("cloud-ade", CLOUDS, &[&[LONG, "data.source=chair"][..], &waiting].concat());
}

#[test]
fn clouds_by_ade_as_published() {
    // Batch norm of the block LSTM keeps statistics of every shard's own draws.
    let small = [
        SHORT,
        "data.source=chair",
        "model.sampler.block_elements=4",
        "model.sampler.block_widths=[8]",
        "model.sampler.block_state=8",
        "model.sampler.num_draws=8",
        "model.sampler.num_dynamics_steps=2",
    ];
    assert_same_bytes("paper/cloud", CLOUDS, &small);
}

#[test]
fn curves_and_rivals() {
    assert_same_bytes("sines", CURVES, &[LONG]);
    assert_same_bytes("sines", CURVES, &[SHORT, "model.estimator=ade", "model.spectral_norm=true"]);
    for rival in ["rival/cnp", "rival/np", "rival/vip"] {
        assert_same_bytes(rival, CURVES, &[SHORT]);
    }
}

#[test]
fn pictures_by_every_estimator() {
    assert_same_bytes("digits", PICTURES, &[LONG, "process=importance"]);
    assert_same_bytes("digits", PICTURES, &[LONG, "process=ade"]);
    assert_same_bytes("digits", PICTURES, &[SHORT, "process=exact"]);
}

/// Three shards, of which two replicas have one and two, and of whose sum not every node is full.
#[test]
fn numbers_of_shards_that_are_no_powers_of_two() {
    let settings = settings("shapes", CLOUDS, &[SHORT, "train.shards=3", "batch_size=6"]);
    let data = Data::load(&settings).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = |replicas: usize| {
        let place = folder.path().join(replicas.to_string());
        train(&settings, &data, &place, replicas, 2);
        bytes(&place)
    };
    assert!(run(1) == run(2));
}

/// Raises its flag after a step.
#[derive(Debug)]
struct StopAfter<'a>(u64, &'a AtomicBool);

impl Observer for StopAfter<'_> {
    fn observe(&mut self, event: &Event<'_>) -> Result<()> {
        if let Event::Step(numbers) = event
            && numbers.step == self.0
        {
            self.1.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_replicas() {
    let settings = settings("shapes", CLOUDS, &["train.num_steps=60"]);
    let data = Data::load(&settings).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [whole, stopped] = ["whole", "stopped"].map(|name| folder.path().join(name));
    train(&settings, &data, &whole, 2, 2);
    for (replicas, last) in [(4, 17), (1, 38), (2, 1000)] {
        let stop = AtomicBool::new(false);
        let mut observer = StopAfter(last, &stop);
        let options = TrainOptions {
            directory: Some(stopped.clone()),
            existing: Some(Existing::Resume),
            replicas: cpus(replicas),
            observer: Some(&mut observer),
            stop: Some(&stop),
            ..TrainOptions::default()
        };
        let result = Model::train_on(settings.clone(), &data, options);
        assert_eq!(matches!(result, Err(Error::Interrupted { .. })), last < 60);
    }
    assert!(bytes(&whole) == bytes(&stopped));
}

fn small_curves(num_sets: usize) -> Regression {
    let config = EnergyBasedConfig {
        encoder_widths: vec![8],
        head_widths: vec![],
        energy_widths: vec![8],
        ..EnergyBasedConfig::default()
    };
    let space = Space::regression(1, 1, (-2.0, 2.0));
    let process = EnergyBasedProcess::new(config, space, 1, &ebp::tape::Device::default()).unwrap();
    let tasks = TaskConfig { num_sets, ..TaskConfig::default() };
    let family = CurveFamily::parse("sines").unwrap();
    Regression::new(Box::new(process), TaskSource::Curves(family), tasks).unwrap()
}

/// A step that is not cut is the step that it always was.
#[test]
fn one_shard_is_the_model_alone() {
    let config = TrainerConfig { num_steps: 20, ..TrainerConfig::default() };
    let trainer = Trainer::new(config, 5).unwrap();
    let mut alone = small_curves(4);
    trainer.run(&mut alone, Session::new(&mut Silent)).unwrap();
    let mut one = Replicas::new(1, 1, None, |shard, _| {
        assert_eq!(shard, Shard::WHOLE);
        Ok(small_curves(4))
    })
    .unwrap();
    trainer.run(&mut one, Session::new(&mut Silent)).unwrap();
    assert_eq!(alone.state().unwrap(), one.state().unwrap());
}

/// w falls towards 0 by the mean of what shards say of it; a shard may fail.
#[derive(Debug)]
struct Falling {
    parameters: ParameterSet,
    w: Parameter,
    shard: Shard,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Not finite in one shard of step 7, until the stream is another.
    NaN,
    /// An error of another kind.
    Broken,
}

impl Falling {
    fn replicas(num_replicas: usize, fault: Fault) -> Replicas<Self> {
        Replicas::new(4, num_replicas, None, |shard, _| {
            let mut builder = ParameterBuilder::new(2);
            let w = builder.group("toy").trained("w", &[3], Initialiser::Constant(1.0))?;
            let device = ebp::tape::Device::default();
            let parameters = ParameterSet::new(builder, &device, AdamConfig::default(), None)?;
            Ok(Self { parameters, w, shard, fault })
        })
        .unwrap()
    }
}

impl Trainable for Falling {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let is_hit = self.shard.index() == 2 && step.number == 7;
        let first = self.shard.stream(Stream::new(5, "train").child(7));
        let mut slope = (1 + self.shard.index()) as f64;
        match self.fault {
            Fault::NaN if is_hit && step.stream == first => slope = f64::NAN,
            Fault::Broken if is_hit => {
                return Err(Error::Failed { message: "the toy broke".into(), help: None });
            }
            _ => {}
        }
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let w = tape.parameter(&self.w)?;
        let squares = tape.square(w)?;
        let sum = tape.sum(squares)?;
        let loss = tape.affine(sum, slope, 0.0)?;
        let said = f64::from(tape.download(loss)?[0]);
        self.parameters.step(&tape.backward(loss)?, 0.01 * step.learning_rate_factor)?;
        Ok(vec![("loss", said), ("shard", self.shard.index() as f64)])
    }

    fn state(&self) -> Result<Tensors> {
        self.parameters.export()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.parameters.import(&mut state.clone())
    }
}

impl Shardable for Falling {
    fn join(&mut self, seat: &Arc<Seat>) -> Result<()> {
        self.parameters.join(seat);
        Ok(())
    }
}

fn toy_trainer() -> Trainer {
    let config = TrainerConfig {
        num_steps: 20,
        checkpoint_every: 5,
        on_divergence: OnDivergence::Rollback,
        shards: 4,
        ..TrainerConfig::default()
    };
    Trainer::new(config, 5).unwrap()
}

#[test]
fn a_number_that_is_none_in_one_shard_sends_all_back() {
    let run = |num_replicas, fault| {
        let mut model = Falling::replicas(num_replicas, fault);
        let outcome = toy_trainer().run(&mut model, Session::new(&mut Silent));
        (outcome.map(|_| model.state().unwrap()), model)
    };
    let (found, mut model) = run(2, Fault::NaN);
    let found = found.unwrap();
    assert_eq!(found, run(4, Fault::NaN).0.unwrap());
    assert_ne!(found, run(1, Fault::None).0.unwrap(), "half the rate from step 5 on");
    // What is recorded is the mean over shards: 0, 1, 2 and 3.
    let stream = Stream::new(5, "train").child(3);
    let step = Step { number: 3, num_steps: 20, stream, learning_rate_factor: 1.0 };
    assert_eq!(model.step(&step).unwrap()[1], ("shard", 1.5));
}

#[test]
fn an_error_in_one_shard_ends_the_run_of_all() {
    for num_replicas in [1, 2, 4] {
        let mut model = Falling::replicas(num_replicas, Fault::Broken);
        let error = toy_trainer().run(&mut model, Session::new(&mut Silent)).unwrap_err();
        assert_eq!(error.to_string(), "shard 2 of 4: the toy broke");
    }
}

#[test]
fn what_cannot_be_cut_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let message = |preset: &str, small: &[&str], more: &[&str], replicas: usize| {
        let settings = Settings::preset(preset, &[small, more].concat()).unwrap();
        let directory = Some(folder.path().join("run"));
        let options =
            TrainOptions { directory, replicas: cpus(replicas), ..TrainOptions::default() };
        Model::train(settings, options).unwrap_err().to_string()
    };
    let four = &["train.shards=4"][..];
    assert_eq!(message("rival/gp", CURVES, four, 1), "steps of `gp` cannot be cut into shards");
    assert!(message("lda", &[], four, 1).contains("`train.shards` must be 1"));
    assert!(message("lda", &[], &[], 2).contains("computes on one device"));
    assert!(message("shapes", CLOUDS, &[], 2).contains("`train.shards` must be at least 2"));
    let uneven = message("shapes", CLOUDS, &["train.shards=3"], 1);
    assert_eq!(uneven, "`batch_size` must be a multiple of `train.shards` = 3, found 8");
    assert!(message("sines", CURVES, &["train.shards=0"], 1).contains("train.shards"));
}
