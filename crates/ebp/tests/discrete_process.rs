//! The energy-based process over a finite alphabet: exact masses, exchangeability, consistency,
//! training that goes on bit for bit.

use std::sync::Arc;

use ebp::IndexedSet;
use ebp::data::Grid;
use ebp::data::digits::draw_digits;
use ebp::data::image::{Images, KnownPart};
use ebp::nn::Step;
use ebp::process::neural::{GridPathConfig, Likelihood, NeuralProcess, NeuralProcessConfig};
use ebp::process::{
    EnergyBasedProcess, Hypotheses, LEVEL_CELL, LatentProcess, Learner, Process, Rendering, Task,
    picture_task,
};
use ebp::recipe::{EnergyBasedConfig, EnergyForm, Estimator, PosteriorForm, Space, TrainingMode};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::train::{PictureTaskConfig, Pictures, Trainable};

const SIDE: usize = 8;

fn config(posterior: PosteriorForm, energy: EnergyForm) -> EnergyBasedConfig {
    EnergyBasedConfig {
        latent_dim: 4,
        posterior,
        encoder_widths: vec![12],
        head_widths: vec![8],
        energy,
        energy_widths: vec![12],
        embedding_dim: 8,
        canvas_widths: vec![6],
        local_side: 3,
        location_frequencies: 2,
        value_frequencies: 2,
        window: 1,
        likelihood_points: 16,
        num_draws: 3,
        learning_rate_warm_up: 1,
        learning_rate: 5e-3,
        ..EnergyBasedConfig::pictures()
    }
}

fn space(channels: usize) -> Space {
    Space::picture(Grid::new(SIDE, SIDE).expect("it fits"), channels)
}

fn process(config: EnergyBasedConfig, channels: usize) -> EnergyBasedProcess {
    EnergyBasedProcess::new(config, space(channels), 5, &Device::default()).expect("it fits")
}

/// Every form that there is.
fn forms() -> Vec<(EnergyBasedConfig, usize)> {
    let mut forms = Vec::new();
    for posterior in [PosteriorForm::Table, PosteriorForm::DeepSets] {
        for energy in [EnergyForm::Levels, EnergyForm::Element] {
            for channels in [1, 3] {
                // Sums over all colours of an energy of one value are refused (see below).
                if energy == EnergyForm::Element && channels > 1 {
                    continue;
                }
                let config = EnergyBasedConfig { levels: 32, ..config(posterior, energy) };
                forms.push((config, channels));
            }
        }
    }
    for channels in [1, 3] {
        let config = EnergyBasedConfig {
            attention_heads: 2,
            attention_width: 8,
            levels: 32,
            ..config(PosteriorForm::Table, EnergyForm::Levels)
        };
        forms.push((config, channels));
    }
    for posterior in [PosteriorForm::Table, PosteriorForm::DeepSets] {
        for (canvas_dim, local_dim, attention_heads) in [(3, 0, 0), (0, 2, 0), (3, 2, 2)] {
            for channels in [1, 3] {
                let config = EnergyBasedConfig {
                    canvas_dim,
                    local_dim,
                    attention_heads,
                    attention_width: 8,
                    levels: 32,
                    ..config(posterior, EnergyForm::Levels)
                };
                forms.push((config, channels));
            }
        }
    }
    for (posterior, local_dim, canvas_dim) in
        [(PosteriorForm::Grid, 0, 0), (PosteriorForm::Grid, 2, 3), (PosteriorForm::Table, 2, 0)]
    {
        for channels in [1, 3] {
            forms.push((with_view(posterior, local_dim, canvas_dim), channels));
        }
    }
    let energy = EnergyForm::Element;
    forms.push((EnergyBasedConfig { energy, ..with_view(PosteriorForm::Grid, 0, 0) }, 1));
    for canvas_dim in [0, 3] {
        let config = EnergyBasedConfig {
            mode: TrainingMode::FullSet,
            canvas_dim,
            levels: 32,
            ..config(PosteriorForm::Table, EnergyForm::Levels)
        };
        forms.push((config, 1));
    }
    forms
}

/// With a convolutional view of the context on two grids.
fn with_view(posterior: PosteriorForm, local_dim: usize, canvas_dim: usize) -> EnergyBasedConfig {
    let encoder_widths = if posterior == PosteriorForm::Grid { vec![5, 7] } else { vec![12] };
    EnergyBasedConfig {
        encoder_widths,
        grid_widths: vec![6, 8],
        grid_side: 3,
        window: 0,
        local_dim,
        canvas_dim,
        levels: 32,
        ..config(posterior, EnergyForm::Levels)
    }
}

fn images(channels: usize) -> Images {
    let (grey, _) = draw_digits(SIDE, 0, 12, 1).expect("it fits");
    if channels == 1 {
        return grey;
    }
    let pixels = grey.pixels.iter().flat_map(|&x| [x, x / 2, 255 - x]).collect();
    Images::new(SIDE, SIDE, 3, pixels, grey.names).expect("it fits")
}

fn task(channels: usize, known: usize) -> Task {
    let stream = Stream::new(2, "task");
    let mask = KnownPart::Random(known).mask(SIDE, SIDE, stream);
    picture_task(&images(channels), 0, &mask, stream.child(1)).expect("it fits")
}

fn hypotheses(
    process: &EnergyBasedProcess,
    context: &IndexedSet,
    target: &IndexedSet,
) -> Hypotheses {
    let cell = 2.0 / process.config().levels as f64;
    process.hypotheses(context, target, cell, 3, Stream::new(4, "theta")).expect("it fits")
}

fn reversed(set: &IndexedSet) -> IndexedSet {
    set.select(&(0..set.len()).rev().collect::<Vec<_>>())
}

/// Σ over all symbols of exp log p = 1 for every draw, whatever the form: log Z is no estimate.
#[test]
fn masses_of_all_symbols_sum_to_one() {
    for (config, channels) in forms() {
        if channels > 1 {
            continue; // 32³ colours: the chain is checked by its first channel in the grey forms
        }
        let levels = config.levels;
        let process = process(config, channels);
        let task = task(1, 9);
        let location = task.target.location(0).to_vec();
        let mut totals = [0.0; 3];
        for symbol in 0..levels {
            let value = (2.0 * symbol as f64 + 1.0) / levels as f64 - 1.0;
            let target = IndexedSet::new(2, 1, location.clone(), vec![value]).unwrap();
            let found = hypotheses(&process, &task.context, &target);
            totals.iter_mut().zip(&found.log_mass).for_each(|(sum, mass)| *sum += mass.exp());
        }
        for total in totals {
            assert!((total - 1.0).abs() < 1e-5, "{:?}: {total}", process.config());
        }
    }
}

/// A small alphabet of three channels can be summed whole: 4³ colours.
#[test]
fn a_chain_of_channels_is_one_law() {
    let config =
        EnergyBasedConfig { levels: 4, ..config(PosteriorForm::Table, EnergyForm::Levels) };
    let process = process(config, 3);
    let task = task(3, 9);
    let location = task.target.location(0).to_vec();
    let mut total = 0.0;
    let values = [-0.75, -0.25, 0.25, 0.75];
    for red in values {
        for green in values {
            for blue in values {
                let target = IndexedSet::new(2, 3, location.clone(), vec![red, green, blue]);
                let found = hypotheses(&process, &task.context, &target.unwrap());
                total += found.log_mass[0].exp();
            }
        }
    }
    assert!((total - 1.0).abs() < 1e-5, "{total}");
}

/// The order of the context does not matter to a bit, nor that of the targets; and what is said of
/// a few targets is what is said of them among others, for every n.
#[test]
fn sets_are_exchangeable_and_consistent_for_every_size() {
    for (config, channels) in forms() {
        let process = process(config, channels);
        for known in [1, 2, 17, 60] {
            let Task { context, target } = task(channels, known);
            let all = hypotheses(&process, &context, &target);
            assert_eq!(all, hypotheses(&process, &reversed(&context), &target));
            let m = target.len();
            let backwards = hypotheses(&process, &context, &reversed(&target));
            let few = target.select(&[m - 1, 0]);
            let some = hypotheses(&process, &context, &few);
            for draw in 0..3 {
                for index in 0..m {
                    let other = backwards.log_mass[draw * m + m - 1 - index];
                    let found = all.log_mass[draw * m + index];
                    assert!((found - other).abs() < 1e-4, "{found} {other}");
                }
                let (last, first) = (all.log_mass[draw * m + m - 1], all.log_mass[draw * m]);
                assert!((some.log_mass[2 * draw] - last).abs() < 1e-4);
                assert!((some.log_mass[2 * draw + 1] - first).abs() < 1e-4);
            }
        }
        // Nothing known at all: the prior.
        let nothing = IndexedSet::empty(2, channels).unwrap();
        let Task { target, .. } = task(channels, 1);
        assert!(hypotheses(&process, &nothing, &target).log_mass.iter().all(|x| x.is_finite()));
    }
}

/// A draw follows the masses: mean over many draws of one pixel against its exact mean.
#[test]
fn draws_follow_the_exact_law() {
    let process = process(config(PosteriorForm::Table, EnergyForm::Levels), 1);
    let Task { context, target } = task(1, 20);
    let predictive = process.predict_levels(&context).unwrap();
    let count = 4000;
    let location = target.location(0);
    let mean_of = |rendering| {
        let stream = Stream::new(8, "draws");
        let found = predictive.render(location, count, rendering, stream).unwrap();
        let mean = found.values.iter().sum::<f64>() / count as f64;
        let spread: f64 = found.values.iter().map(|x| (x - mean).powi(2)).sum();
        (mean, (spread / count as f64 / count as f64).sqrt())
    };
    let ((drawn, error), (exact, _)) = (mean_of(Rendering::Draw), mean_of(Rendering::Mean));
    // The same θ in both: only the draw of the level differs.
    assert!((drawn - exact).abs() < 4.0 * error, "{drawn} {exact} {error}");
}

/// The bound of the joint law by draws given everything is above that by draws given the context, and
/// below the sum of what is said pixel by pixel where latents say nothing of several pixels.
#[test]
fn joint_masses_are_bounds_that_better_draws_tighten() {
    for config in
        [config(PosteriorForm::Table, EnergyForm::Levels), with_view(PosteriorForm::Grid, 2, 0)]
    {
        let mut trained = trained(config);
        let process = trained.process_mut();
        process.use_average();
        let (images, cell) = (images(1), LEVEL_CELL);
        let mut sums = [0.0; 3];
        for index in 0..images.len() {
            let stream = Stream::new(6, "test").child(index as u64);
            let mask = KnownPart::Random(6).mask(SIDE, SIDE, stream);
            let cut = picture_task(&images, index, &mask, stream.child(1)).unwrap();
            let (context, target) = (&cut.context, &cut.target);
            let joint = |count: usize, stream: Stream| {
                process.log_joint_mass(context, target, cell, count, stream).unwrap()
            };
            sums[0] += joint(64, stream.child(2));
            sums[1] += joint(2, stream.child(3));
            let found = process.hypotheses(context, target, cell, 2, stream.child(4)).unwrap();
            let draws = found.log_mass.chunks_exact(target.len());
            let best = draws.map(|draw| draw.iter().sum::<f64>()).fold(f64::MIN, f64::max);
            sums[2] += best - 2_f64.ln();
        }
        // More draws, and draws that have seen the pixels, come closer to the joint law from below.
        assert!(sums[0] > sums[1] - 1.0, "{sums:?}");
        assert!(sums[0] > sums[2], "{sums:?}");
    }
}

/// With a network over (x, t) and candidates for log Z, gradients reach the view, and predictions read it.
#[test]
fn energies_of_one_value_read_the_view() {
    let config = EnergyBasedConfig {
        energy: EnergyForm::Element,
        estimator: Estimator::Importance,
        ..with_view(PosteriorForm::Grid, 0, 0)
    };
    let before = process(config.clone(), 1).state().unwrap();
    let mut model = trained(config);
    let after = model.state().unwrap();
    for (name, tensor) in &before {
        if name.starts_with("parameters/model.view") {
            assert_ne!(after[name].as_f32(), tensor.as_f32(), "{name}");
        }
    }
    let process = model.process_mut();
    process.use_average();
    let Task { context, target } = task(1, 20);
    let nats = |context: &IndexedSet| -> f64 {
        let found = process.condition(context).unwrap().log_density(&target).unwrap();
        -found.iter().map(|density| density.value).sum::<f64>() / target.len() as f64
    };
    let nothing = IndexedSet::empty(2, 1).unwrap();
    // A uniform law on [−1, 1] has log 2 nats, and the known pixels say something.
    assert!(nats(&context) < nats(&nothing) && nats(&context) < 2_f64.ln());
}

/// The same network reads a larger picture.
#[test]
fn a_view_reads_pictures_of_any_size() {
    let config = EnergyBasedConfig { smooths: false, ..with_view(PosteriorForm::Grid, 2, 0) };
    let small = process(config.clone(), 1);
    let larger = Space::picture(Grid::new(13, 11).unwrap(), 1);
    let mut large = EnergyBasedProcess::new(config, larger, 9, &Device::default()).unwrap();
    large.restore(&small.state().unwrap()).unwrap();
    let grid = Grid::new(13, 11).unwrap();
    let locations = |places: [usize; 2]| places.iter().flat_map(|&p| grid.location(p)).collect();
    let context = IndexedSet::new(2, 1, locations([0, 60]), vec![-0.9, 0.7]).unwrap();
    let target = IndexedSet::new(2, 1, locations([5, 142]), vec![0.1, 0.2]).unwrap();
    let found = hypotheses(&large, &context, &target);
    assert!(found.log_mass.iter().all(|mass| mass.is_finite() && *mass < 0.0));
}

/// A process after 200 steps on its pictures.
fn trained(config: EnergyBasedConfig) -> Pictures<EnergyBasedProcess> {
    let config = EnergyBasedConfig { levels: 256, ..config };
    let process =
        EnergyBasedProcess::new(config, space(1), 3, &Device::default()).expect("it fits");
    let tasks = PictureTaskConfig {
        num_pictures: 6,
        min_context: 3,
        max_context: 40,
        ..PictureTaskConfig::default()
    };
    let mut model = Pictures::new(Box::new(process), Arc::new(images(1)), tasks).expect("it fits");
    for number in 0..200 {
        model.step(&step(number)).expect("a step");
    }
    model
}

/// With or without what latents paint and a second level; two codes stand for a view and its posterior.
fn model(seed: u64, local_dim: usize) -> Pictures<EnergyBasedProcess> {
    let base = match local_dim {
        2 => EnergyBasedConfig { levels: 256, ..with_view(PosteriorForm::Grid, 2, 0) },
        _ => config(PosteriorForm::Table, EnergyForm::Levels),
    };
    let config = EnergyBasedConfig { latent_dim: 3, canvas_dim: 2 * local_dim, local_dim, ..base };
    let process =
        EnergyBasedProcess::new(config, space(1), seed, &Device::default()).expect("it fits");
    let tasks = PictureTaskConfig {
        num_pictures: 6,
        min_context: 3,
        max_context: 40,
        mirrors: local_dim > 0,
        ..PictureTaskConfig::default()
    };
    Pictures::new(Box::new(process), Arc::new(images(1)), tasks).expect("it fits")
}

fn step(number: u64) -> Step {
    let stream = Stream::new(1, "train").child(number);
    Step { number, num_steps: 400, stream, learning_rate_factor: 1.0 }
}

fn bytes(model: &Pictures<EnergyBasedProcess>) -> Vec<(String, Vec<u32>)> {
    let state = model.state().expect("it fits");
    state
        .into_iter()
        .filter(|(name, _)| !name.ends_with("num_steps"))
        .map(|(name, tensor)| {
            let numbers = tensor.as_f32().expect("numbers").to_vec();
            (name, numbers.into_iter().map(f32::to_bits).collect())
        })
        .collect()
}

#[test]
fn training_is_the_same_for_any_number_of_threads_and_goes_on_bit_for_bit() {
    for local_dim in [0, 1, 2] {
        let with_threads = |count| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
            pool.install(|| {
                let mut model = model(3, local_dim);
                (0..6).for_each(|number| drop(model.step(&step(number)).unwrap()));
                bytes(&model)
            })
        };
        let whole = with_threads(1);
        assert_eq!(whole, with_threads(2));

        let mut first = model(3, local_dim);
        (0..3).for_each(|number| drop(first.step(&step(number)).unwrap()));
        let saved = first.state().unwrap();
        let mut second = model(9, local_dim);
        second.restore(&saved).unwrap();
        (3..6).for_each(|number| drop(second.step(&step(number)).unwrap()));
        assert_eq!(bytes(&second), whole);

        let mut damaged = saved.clone();
        let name = saved.keys().find(|name| name.starts_with("average/model.energy"));
        damaged.remove(name.unwrap());
        assert!(second.restore(&damaged).is_err());
    }
}

/// Training lowers the held-out bits of its own pictures, well below 8 and below the best that
/// knows nothing but how often each level occurs.
#[test]
fn training_learns_where_the_ink_is() {
    let mut model = model(3, 0);
    (0..400).for_each(|number| drop(model.step(&step(number)).unwrap()));
    let process = model.process_mut();
    process.use_average();
    let images = images(1);
    let (mut nats, mut count) = (0.0, 0);
    for index in 0..images.len() {
        let stream = Stream::new(6, "test").child(index as u64);
        let mask = KnownPart::Random(20).mask(SIDE, SIDE, stream);
        let cut = picture_task(&images, index, &mask, stream.child(1)).unwrap();
        let found = process.condition(&cut.context).unwrap().log_density(&cut.target).unwrap();
        nats -= found.iter().map(|x| x.value + LEVEL_CELL.ln()).sum::<f64>();
        count += cut.target.len();
    }
    let bits = nats / count as f64 / 2_f64.ln();
    let mut histogram = [0_u32; 256];
    images.pixels.iter().for_each(|&level| histogram[usize::from(level)] += 1);
    let total = images.pixels.len() as f64;
    let entropy: f64 = histogram
        .iter()
        .filter(|count| **count > 0)
        .map(|&count| -f64::from(count) / total * (f64::from(count) / total).log2())
        .sum();
    assert!(bits < entropy, "{bits} {entropy}");
}

/// Rivals over a grid, with and without a latent of every place, in both likelihoods: masses of all
/// levels add up, the order of the context does not matter, and training learns.
#[test]
fn convolutional_rivals_are_processes_that_learn() {
    let grid = GridPathConfig {
        grid: Grid::new(SIDE, SIDE).unwrap(),
        widths: vec![8, 8],
        blocks: 1,
        side: 3,
    };
    for (kind, likelihood) in [
        (NeuralProcessConfig::convolutional(grid.clone()), Likelihood::Gaussian),
        (NeuralProcessConfig::convolutional(grid.clone()), Likelihood::Levels),
        (NeuralProcessConfig::convolutional_latent(grid), Likelihood::Levels),
        (NeuralProcessConfig::latent(), Likelihood::Levels),
    ] {
        let mut config = kind;
        (config.network.location_dim, config.network.value_dim) = (2, 1);
        config.network.likelihood = likelihood;
        config.network.average_decay = 0.9;
        config.network.decoder_widths = vec![16];
        if let Some(latent) = &mut config.latent {
            (latent.latent_dim, latent.training_draws) = (3, 2);
        }
        let process = NeuralProcess::new(config, 5, &Device::default()).unwrap();
        let tasks =
            PictureTaskConfig { num_pictures: 6, max_context: 40, ..PictureTaskConfig::default() };
        let mut model = Pictures::new(Box::new(process), Arc::new(images(1)), tasks).unwrap();
        let losses: Vec<f64> =
            (0..60).map(|number| model.step(&step(number)).unwrap()[0].1).collect();
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        assert!(mean(&losses[50..]) < mean(&losses[..10]) - 0.2, "{losses:?}");
        let process = model.process_mut();
        Learner::use_average(process).unwrap();
        let (context, target) = {
            let task = task(1, 9);
            (task.context, task.target)
        };
        let stream = Stream::new(4, "z");
        let location = target.location(0).to_vec();
        let mut totals = [0.0; 2];
        for level in 0..256 {
            let value = (2.0 * f64::from(level) + 1.0) / 256.0 - 1.0;
            let one = IndexedSet::new(2, 1, location.clone(), vec![value]).unwrap();
            let found = process.hypotheses(&context, &one, LEVEL_CELL, 2, stream).unwrap();
            totals.iter_mut().zip(&found.log_mass).for_each(|(sum, mass)| *sum += mass.exp());
        }
        for total in totals {
            assert!((total - 1.0).abs() < 1e-5, "{total}");
        }
        let found = process.hypotheses(&context, &target, LEVEL_CELL, 2, stream).unwrap();
        let other = process.hypotheses(&reversed(&context), &target, LEVEL_CELL, 2, stream);
        let pairs = found.log_mass.iter().zip(other.unwrap().log_mass);
        pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} {b}"));
        let joint = process.log_joint_mass(&context, &target, LEVEL_CELL, 8, stream).unwrap();
        assert!(joint.is_finite() && joint < 0.0);
        let drawn = process.condition(&context).unwrap().sample(&location, 3, stream).unwrap();
        assert_eq!(drawn.len(), 3);
    }
}

/// Masses of a Gaussian's cells add up, and agree with its density where cells are narrow.
#[test]
fn gaussian_rivals_are_scored_on_the_same_levels() {
    let mut config = NeuralProcessConfig::latent();
    config.network.location_dim = 2;
    let rival = NeuralProcess::new(config, 3, &ebp::tape::Device::default()).unwrap();
    let Task { context, target } = task(1, 10);
    let location = target.location(0).to_vec();
    let mut total = 0.0;
    for level in 0..256_u16 {
        let value = (f64::from(level) + 0.5) / 128.0 - 1.0;
        let target = IndexedSet::new(2, 1, location.clone(), vec![value]).unwrap();
        let stream = Stream::new(1, "z");
        let found = rival.hypotheses(&context, &target, LEVEL_CELL, 1, stream).unwrap();
        total += found.log_mass[0].exp();
        if (1..255).contains(&level) {
            let by_density = found.log_density[0] + LEVEL_CELL.ln();
            assert!((found.log_mass[0] - by_density).abs() < 1e-2);
        }
    }
    assert!((total - 1.0).abs() < 1e-5, "{total}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let process = process(config(PosteriorForm::Table, EnergyForm::Levels), 1);
    let refuse = |locations: Vec<f64>, values: Vec<f64>| {
        let set = IndexedSet::new(2, 1, locations, values).unwrap();
        process.predict_levels(&set).unwrap_err().to_string()
    };
    assert!(refuse(vec![0.1, 0.1], vec![0.0]).contains("a place of the grid"));
    assert!(refuse(vec![1.0, 1.0], vec![1.5]).contains("between -1 and 1"));
    assert!(refuse(vec![1.0, 1.0, 1.0, 1.0], vec![0.5, 0.5]).contains("one element per place"));
    let colours = IndexedSet::new(2, 3, vec![1.0, 1.0], vec![0.0; 3]).unwrap();
    assert!(process.predict_levels(&colours).is_err());
    let grey = IndexedSet::new(2, 1, vec![1.0, 1.0], vec![0.0]).unwrap();
    assert!(process.hypotheses(&grey, &grey, 0.5, 1, Stream::new(1, "a")).is_err());
    let colours = config(PosteriorForm::Table, EnergyForm::Element);
    let error = EnergyBasedProcess::new(colours, space(3), 1, &Device::default()).unwrap_err();
    assert!(error.to_string().contains("`energy` must be `levels`"), "{error}");
    let wrong = |change: fn(&mut EnergyBasedConfig)| {
        let mut config = config(PosteriorForm::Table, EnergyForm::Levels);
        change(&mut config);
        EnergyBasedProcess::new(config, space(1), 1, &Device::default()).unwrap_err().to_string()
    };
    assert!(wrong(|config| config.levels = 1).contains("`levels`"));
    assert!(wrong(|config| config.latent_dim = 0).contains("`latent_dim`"));
    assert!(wrong(|config| config.encoder_widths = vec![4, 4]).contains("`encoder_widths`"));
    assert!(wrong(|config| config.local_side = 0).contains("`local_side`"));
    let element = |config: &mut EnergyBasedConfig| {
        (config.energy, config.canvas_dim) = (EnergyForm::Element, 2);
    };
    assert!(wrong(element).contains("`canvas_dim`"));
    assert!(wrong(|config| config.learning_rate = f64::NAN).contains("`learning_rate`"));
}
