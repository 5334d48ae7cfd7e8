//! BRUNO and the Neural Statistician: no order, any n, consistency, steps that can be repeated; and the
//! models of rows and sets through the one driver.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ebp::model::{Model, SampleOptions, Settings, TrainOptions};
use ebp::nn::Step;
use ebp::process::bruno::{BrunoConfig, BrunoProcess};
use ebp::process::statistician::{StatisticianConfig, StatisticianProcess};
use ebp::process::{Parametric, Process};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::tensor::Tensors;
use ebp::{IndexedSet, SetOffsets};

const DIM: usize = 3;

fn elements(count: usize, seed: u64) -> Vec<f32> {
    let mut values = vec![0.0; DIM * count];
    Stream::new(seed, "elements").fill_normal(0, 0, &mut values);
    values
}

fn set_of(values: &[f32]) -> IndexedSet {
    IndexedSet::new(0, DIM, Vec::new(), values.iter().map(|&x| f64::from(x)).collect()).unwrap()
}

fn step(number: u64) -> Step {
    let stream = Stream::new(9, "step").child(number);
    Step { number, num_steps: 10, stream, learning_rate_factor: 1.0 }
}

fn bruno(is_student_t: bool) -> BrunoProcess {
    let config =
        BrunoConfig { num_couplings: 3, hidden_width: 8, is_student_t, ..Default::default() };
    let mut process = BrunoProcess::new(config, DIM, 4, &Device::default()).unwrap();
    // Couplings begin as the identity: a few steps away from it.
    for number in 0..5 {
        process.learn(elements(24, number), 6, &step(number)).unwrap();
    }
    process
}

fn statistician(num_layers: usize) -> StatisticianProcess {
    let config = StatisticianConfig {
        num_layers,
        hidden_width: 8,
        context_dim: 3,
        num_draws: 8,
        num_inner: 4,
        ..Default::default()
    };
    StatisticianProcess::new(config, DIM, 4, &Device::default()).unwrap()
}

const ORDER: [usize; 7] = [4, 0, 6, 2, 5, 1, 3];

fn mixed(values: &[f32]) -> Vec<f32> {
    ORDER.iter().flat_map(|&i| values[i * DIM..][..DIM].to_vec()).collect()
}

/// log p of a set has no order, and is the sum of what the recurrence says about every element given those
/// before it: both to 1e-6 of it, as the network computes in f32 and rounds batches of other sizes
/// otherwise. The processes by themselves, in f64, agree to 1e-10: `process/bruno/exchangeable.rs`.
#[test]
fn bruno_is_exchangeable_and_its_conditionals_add_up() {
    for is_student_t in [false, true] {
        let process = bruno(is_student_t);
        let values = elements(7, 77);
        let one = SetOffsets::from_sizes([7]).unwrap();
        let joint = process.log_densities(&values, &one).unwrap()[0];
        let again = process.log_densities(&mixed(&values), &one).unwrap()[0];
        assert!((joint - again).abs() < 1e-6 * joint.abs().max(1.0), "{joint} {again}");
        let set = set_of(&values);
        let mut total = 0.0;
        for n in 0..7 {
            let before = set.select(&(0..n).collect::<Vec<_>>());
            let predictive = process.condition(&before).unwrap();
            total += predictive.log_density(&set.select(&[n])).unwrap()[0].value;
        }
        assert!((joint - total).abs() < 1e-6 * joint.abs().max(1.0), "{joint} {total}");
        // Sets in one batch do not see each other.
        let two = SetOffsets::from_sizes([3, 4]).unwrap();
        let parts = process.log_densities(&values, &two).unwrap();
        let alone = process.log_densities(&values[..9], &SetOffsets::from_sizes([3]).unwrap());
        assert!((parts[0] - alone.unwrap()[0]).abs() < 1e-5);
    }
}

/// Consistency: the density of one element more integrates to 1 whatever is known, so that the law of n
/// is that of n + 1 with one integrated out. By importance sampling from the model's own draws of a wider
/// law it would be noisy; in one dimension without a network it is a sum over a grid.
#[test]
fn bruno_conditionals_integrate_to_one() {
    let config = BrunoConfig { num_couplings: 0, ..Default::default() };
    let process = BrunoProcess::new(config, 1, 1, &Device::default()).unwrap();
    let context = IndexedSet::new(0, 1, Vec::new(), vec![0.4, -1.0, 2.0]).unwrap();
    let predictive = process.condition(&context).unwrap();
    let nodes: Vec<f64> = (-2000..2000).map(|k| 0.01 * (f64::from(k) + 0.5)).collect();
    let targets = IndexedSet::new(0, 1, Vec::new(), nodes).unwrap();
    let densities = predictive.log_density(&targets).unwrap();
    let mass: f64 = densities.iter().map(|d| 0.01 * d.value.exp()).sum();
    // Rounding of nodes to f32 moves a density by 1e-6 of itself, with both signs.
    assert!((mass - 1.0).abs() < 1e-6, "{mass}");
}

/// Draws have the law's mean and variance: one coordinate without a network.
#[test]
fn bruno_draws_follow_its_law() {
    let config = BrunoConfig { num_couplings: 0, ..Default::default() };
    let process = BrunoProcess::new(config, 1, 1, &Device::default()).unwrap();
    let law = process.laws().unwrap()[0];
    let count = 4000;
    let sets = process.sample(count, 2, Stream::new(3, "draws")).unwrap();
    let mean = |f: &dyn Fn(&[f32]) -> f64| sets.chunks_exact(2).map(f).sum::<f64>() / count as f64;
    let product = mean(&|pair| f64::from(pair[0]) * f64::from(pair[1]));
    let square = mean(&|pair| f64::from(pair[1]).powi(2));
    // Nearly normal (ν = 102): variances 2 of a square and 1 + ρ² of a product, four standard errors.
    assert!((square - law.variance).abs() < 4.0 * (2.1_f64 / count as f64).sqrt(), "{square}");
    let error = 4.0 * (1.2_f64 / count as f64).sqrt();
    assert!((product - law.correlation).abs() < error, "{product}");
}

#[test]
fn the_statistician_has_no_order_and_takes_any_number() {
    for num_layers in [1, 3] {
        let process = statistician(num_layers);
        let values = elements(7, 5);
        let one = SetOffsets::from_sizes([7]).unwrap();
        let [first, second] =
            [values.clone(), mixed(&values)].map(|set| process.encode(&set, &one).unwrap());
        for (a, b) in first.concat().iter().zip(second.concat()) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
        let targets = set_of(&elements(4, 6));
        for n in [0, 1, 2, 30] {
            let context = set_of(&elements(n, 8));
            let predictive = process.condition(&context).unwrap();
            let together = predictive.log_density(&targets).unwrap();
            assert!(together.iter().all(|d| d.value.is_finite() && d.std_error >= 0.0));
            assert_eq!(predictive.sample(&[], 5, Stream::new(1, "a")).unwrap().len(), 5 * DIM);
            assert!(predictive.sample(&[1.0], 5, Stream::new(1, "a")).is_err());
        }
        assert!(process.condition(&IndexedSet::empty(1, DIM).unwrap()).is_err());
        assert_eq!(process.sample(2, 9, Stream::new(1, "sets")).unwrap().len(), 2 * 9 * DIM);
    }
}

/// Importance sampling is unbiased, so that averages of p̂ over many repetitions agree whatever the number
/// of draws, and log p̂ rises with it; n = 1 and two layers.
#[test]
fn estimates_of_different_numbers_of_draws_agree() {
    let process = statistician(2);
    let set = elements(1, 3);
    let estimate = |draws: [usize; 2], seed: u64| {
        let repeat = |i: u64| {
            let stream = Stream::new(seed, "estimate").child(i);
            process.score(&set, draws, stream).unwrap().log_density.value
        };
        let values: Vec<f64> = (0..100).map(|i| repeat(i).exp()).collect();
        let mean = values.iter().sum::<f64>() / 100.0;
        let spread = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 99.0;
        (mean, (spread / 100.0).sqrt())
    };
    let ((few, few_error), (many, many_error)) = (estimate([2, 2], 1), estimate([16, 8], 2));
    let error = 4.0 * few_error.hypot(many_error);
    assert!((few - many).abs() < error, "{few} {many} {error}");
    // A standard error that could hide anything would prove nothing.
    assert!(error < many, "{error} {many}");
}

fn bits(state: &Tensors) -> Vec<(String, Vec<u32>)> {
    let floats = state.iter().filter_map(|(name, tensor)| Some((name, tensor.as_f32()?)));
    floats.map(|(name, x)| (name.clone(), x.iter().map(|x| x.to_bits()).collect())).collect()
}

#[test]
fn restored_processes_go_on_to_the_last_bit() {
    let mut process = bruno(true);
    let saved = process.state().unwrap();
    process.learn(elements(24, 50), 6, &step(6)).unwrap();
    let mut other = bruno(true);
    other.learn(elements(24, 99), 6, &step(7)).unwrap();
    other.restore(&saved).unwrap();
    other.learn(elements(24, 50), 6, &step(6)).unwrap();
    assert_eq!(bits(&process.state().unwrap()), bits(&other.state().unwrap()));
    let mut process = statistician(2);
    process.learn(elements(24, 1), 6, &step(0)).unwrap();
    let saved = process.state().unwrap();
    process.learn(elements(24, 2), 6, &step(1)).unwrap();
    let mut other = statistician(2);
    other.restore(&saved).unwrap();
    other.learn(elements(24, 2), 6, &step(1)).unwrap();
    assert_eq!(bits(&process.state().unwrap()), bits(&other.state().unwrap()));
    assert!(other.restore(&Tensors::new()).is_err());
}

fn trained(preset: &str, changes: &[&str]) -> Model {
    Model::train(Settings::preset(preset, changes).unwrap(), TrainOptions::default()).unwrap()
}

#[test]
fn every_preset_trains_and_answers() {
    let quick = ["train.num_steps=2", "evaluation.every=2"];
    let model = trained("gplvm", &[&quick[..], &["gplvm.evaluations_per_step=5"]].concat());
    let rows = model.latents().unwrap();
    let found = rows.embed(&[0.3; 12]).unwrap();
    assert!(found.latent.len() == 2 && found.log_density.is_finite());
    assert!(rows.embed(&[0.3; 11]).is_err());
    assert!(rows.process().is_ok());
    assert!(model.sample(&SampleOptions::default()).is_err());
    for preset in ["arcs", "bruno", "statistician"] {
        let model = trained(preset, &quick);
        let options = SampleOptions { count: 3, num_points: Some(5), ..SampleOptions::default() };
        let sets = model.sample(&options).unwrap();
        assert_eq!((sets.sets.len(), sets.sets[0].len()), (3, 5 * sets.dim));
        assert!(model.latents().unwrap().embed(&[0.0]).is_err());
    }
}

#[test]
fn a_run_goes_on_to_the_last_bit() {
    let folder = tempfile::tempdir().unwrap();
    for (preset, more) in [
        ("gplvm", "gplvm.evaluations_per_step=6"),
        ("gplvm", "gplvm.is_bayesian=true"),
        ("bruno", "bruno.hidden_width=8"),
        ("statistician", "statistician.hidden_width=8"),
        ("arcs", "hidden_locations.hidden_width=8"),
    ] {
        let run = |name: &str, steps: u64, existing| {
            let steps = format!("train.num_steps={steps}");
            let changes =
                [steps.as_str(), more, "train.checkpoint_every=1", "gplvm.num_inducing=5"];
            let settings = Settings::preset(preset, &changes).unwrap();
            let directory = Some(folder.path().join(format!("{preset}-{more}-{name}")));
            let options = TrainOptions { directory, existing, ..TrainOptions::default() };
            Model::train(settings, options).unwrap()
        };
        let resume = Some(ebp::train::Existing::Resume);
        // Rates fall with the share of all steps, so a run of two steps is not the start of one of three:
        // only the climbing of maps may be cut short and go on.
        if preset == "gplvm" {
            run("cut", 2, None);
            let cut = run("cut", 3, resume);
            let whole = run("whole", 3, None);
            let latents = |model: &Model| model.latents().unwrap().embed(&[0.1; 12]).unwrap();
            assert_eq!(latents(&cut), latents(&whole), "{more}");
        } else {
            let whole = run("whole", 3, None);
            let again = Model::load(whole.directory().unwrap()).unwrap();
            let draw =
                |model: &Model| model.latents().unwrap().sample(2, 4, Stream::new(1, "a")).unwrap();
            assert_eq!(draw(&whole), draw(&again), "{preset}");
        }
    }
}

#[test]
fn bad_data_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    let table = |text: &str, changes: &[&str]| {
        std::fs::write(&path, text).unwrap();
        let source = format!("data.source={:?}", path.to_str().unwrap());
        let changes = [&[source.as_str(), "data.held_out=0"][..], changes].concat();
        let settings = Settings::preset("gplvm", &changes).unwrap();
        Model::train(settings, TrainOptions::default()).unwrap_err().to_string()
    };
    let flat = table("a,b\n1,2\n1,3\n1,5\n1,7\n", &[]);
    assert!(flat.contains("column `a` is constant"), "{flat}");
    assert!(table("a,b\n1,2\n2,nan\n", &[]).contains("a finite number"));
    let few = table("a,b\n1,2\n2,4\n", &[]);
    assert!(few.contains("more rows than"), "{few}");
    let many = table("a,b\n1,2\n2,4\n3,1\n", &["gplvm.latent_dim=3"]);
    assert!(many.contains("more rows than"), "{many}");
    let line = table("a,b\n1,2\n2,4\n3,6\n4,8\n", &[]);
    assert!(line.contains("directions in which the rows vary"), "{line}");
    let sets = |changes: &[&str]| {
        let settings = Settings::preset("bruno", changes).unwrap();
        Model::train(settings, TrainOptions::default()).unwrap_err().to_string()
    };
    assert!(sets(&["data.set_size=1"]).contains("at least 2"));
    assert!(sets(&["data.source=nowhere"]).contains("there are no sets"));
    assert!(sets(&["data.source=families"]).contains("num_couplings"));
    assert!(sets(&["bruno.hidden_width=0"]).contains("hidden_width"));
    let process = bruno(true);
    assert!(process.log_densities(&[0.0; 4], &SetOffsets::from_sizes([1]).unwrap()).is_err());
    assert!(process.sample(0, 1, Stream::new(1, "a")).is_err());
    let far = process.log_densities(&[f32::NAN; 3], &SetOffsets::from_sizes([1]).unwrap());
    assert!(far.is_err());
}
