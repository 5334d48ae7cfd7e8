//! Every estimator of log Z on every kind of data is the same process: it learns, it is
//! exchangeable, consistent and of any size, and goes on from its state to the last bit. What means
//! nothing is refused with the reason.
//!
//! ```text
//! exact, importance, ade, score-matching  ×  curve, table, cloud, grey and colour pictures  ×  CPU, GPU
//! exact                                    ×  bags of words                               ×  CPU, GPU
//! ade with leapfrog steps and networks in them  ×  curve, cloud, grey pictures                ×  CPU, GPU
//! ```

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

use std::sync::OnceLock;

use ebp::IndexedSet;
use ebp::data::Grid;
use ebp::data::image::{Images, KnownPart};
use ebp::nn::Step;
use ebp::point::{CudaBackend, Precision};
use ebp::process::{EnergyBasedProcess, Learner, Process, Task, picture_task};
use ebp::recipe::{
    Dynamics, EnergyBasedConfig, EnergyForm, Estimator, LatentLaw, PosteriorForm, ProposalConfig,
    SamplerConfig, Space,
};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::tensor::Tensors;

const SIDE: usize = 6;
const NUM_WORDS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    Curve,
    Table,
    Cloud,
    Grey,
    Colour,
    Bag,
}

use Data::{Bag, Cloud, Colour, Curve, Grey, Table};
use Estimator::{Ade, Exact, Importance, ScoreMatching};

/// The CPU, and the GPU if there is one; otherwise a printed reason.
fn devices() -> Vec<Device> {
    static GPU: OnceLock<Result<CudaBackend, String>> = OnceLock::new();
    let gpu =
        GPU.get_or_init(|| CudaBackend::new(0, Precision::F32).map_err(|error| error.to_string()));
    let mut devices = vec![Device::default()];
    match gpu {
        Ok(backend) => devices.push(Device::Cuda(backend.clone())),
        Err(reason) => eprintln!("SKIPPED, no GPU is tested: {reason}"),
    }
    devices
}

impl Data {
    fn space(self) -> Space {
        match self {
            Self::Curve => Space::regression(1, 1, (-2.0, 2.0)),
            Self::Table => Space::regression(2, 1, (-2.0, 2.0)),
            Self::Cloud => Space::points(3, 2.0),
            Self::Grey => Space::picture(Grid::new(SIDE, SIDE).unwrap(), 1),
            Self::Colour => Space::picture(Grid::new(SIDE, SIDE).unwrap(), 3),
            Self::Bag => Space::bag(NUM_WORDS),
        }
    }

    fn is_picture(self) -> bool {
        self.space().grid.is_some()
    }

    /// Steps of a training that must show. Pixels are of one of two values, which takes longer.
    fn num_steps(self) -> u64 {
        if self.is_picture() { 150 } else { 60 }
    }

    /// One of eight sets, the first elements of which are known.
    fn task(self, number: u64, num_known: usize, stream: Stream) -> Task {
        let kind = number % 8;
        if self.is_picture() {
            let mask = KnownPart::Random(2 * num_known).mask(SIDE, SIDE, stream);
            let images = pictures(self.space().value_dim);
            return picture_task(&images, usize::try_from(kind).unwrap(), &mask, stream.child(1))
                .unwrap();
        }
        let n = 24;
        let Space { location_dim, value_dim, .. } = self.space();
        let mut uniforms = vec![0.0; 2 * n];
        let mut normals = vec![0.0; 3 * n];
        stream.child(2).fill_uniform(0, 0, &mut uniforms);
        stream.child(3).fill_normal(0, 0, &mut normals);
        let noise = |index: usize| 0.05 * f64::from(normals[index]);
        let (mut locations, mut values) = (Vec::new(), Vec::new());
        let phase = kind as f64 / 8.0;
        for (i, u) in uniforms.chunks_exact(2).enumerate() {
            let place = [u[0], u[1]].map(|u| 2.0 * f64::from(u) - 1.0);
            locations.extend(&place[..location_dim]);
            match self {
                Self::Curve => values.push((2.0 * place[0] + phase).sin() + noise(i)),
                Self::Table => values.push(0.8 * place[0] - phase * place[1] + noise(i)),
                // One of four words of its kind.
                Self::Bag => {
                    values.push((2.0 * kind as f64 + (4.0 * f64::from(u[0])).floor()) % 16.0);
                }
                _ => {
                    let (sine, cosine) = (std::f64::consts::PI * place[0]).sin_cos();
                    let radius = 0.6 + 0.6 * phase;
                    values.extend([
                        radius * cosine + noise(3 * i),
                        radius * sine + noise(3 * i + 1),
                        noise(3 * i + 2),
                    ]);
                }
            }
        }
        let all = IndexedSet::new(location_dim, value_dim, locations, values).unwrap();
        let (known, asked): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| i < num_known);
        Task { context: all.select(&known), target: all.select(&asked) }
    }
}

/// Pictures with an edge each, dark on one side and bright on the other.
fn pictures(channels: usize) -> Images {
    let mut pixels = Vec::new();
    for number in 0..8 {
        for place in 0..SIDE * SIDE {
            let along = if number % 2 == 0 { place % SIDE } else { place / SIDE };
            let bright: u8 = if along > number / 2 { 220 } else { 30 };
            pixels.extend([bright, 255 - bright, 128].iter().take(channels));
        }
    }
    let names = (0..8).map(|number| number.to_string()).collect();
    Images::new(SIDE, SIDE, channels, pixels, names).unwrap()
}

/// An estimator of log Z, and what moves the draws of its sampler.
#[derive(Clone, Copy, Debug)]
struct How(Estimator, Dynamics);

impl From<Estimator> for How {
    fn from(estimator: Estimator) -> Self {
        Self(estimator, Dynamics::None)
    }
}

/// Leapfrog steps with networks in them.
const STEPPING: How = How(Ade, Dynamics::GeneralizedHamiltonian);

/// The smallest networks that can learn it.
fn config(data: Data, how: impl Into<How>) -> EnergyBasedConfig {
    let How(estimator, dynamics) = how.into();
    let base = match data {
        Data::Cloud => EnergyBasedConfig::points(),
        Data::Grey | Data::Colour => EnergyBasedConfig::pictures(),
        Data::Bag => EnergyBasedConfig::bags(),
        Data::Curve | Data::Table => EnergyBasedConfig::default(),
    };
    let is_exact = estimator == Exact;
    let proposal = match data {
        Data::Cloud => ProposalConfig::points(),
        Data::Grey | Data::Colour => ProposalConfig::around(),
        Data::Curve | Data::Table | Data::Bag => ProposalConfig::default(),
    };
    let sampler = if data == Data::Cloud { SamplerConfig::points() } else { base.sampler.clone() };
    EnergyBasedConfig {
        estimator,
        energy: match (data, is_exact) {
            (Data::Bag, _) => EnergyForm::Words,
            (_, true) => EnergyForm::Levels,
            (_, false) => EnergyForm::Element,
        },
        latent_dim: 3,
        // Grey pictures by convolutions, colours by a vector per place and a window.
        posterior: if data == Data::Grey { PosteriorForm::Grid } else { base.posterior },
        grid_widths: if data == Data::Grey { vec![6, 8] } else { vec![] },
        grid_side: 3,
        encoder_widths: if data == Data::Grey { vec![8, 16] } else { vec![16] },
        head_widths: vec![],
        energy_widths: vec![16, 16],
        hidden_share: if data == Data::Bag { 0.5 } else { 0.0 },
        embedding_dim: 8,
        input_scale: 3.0,
        levels: 16,
        location_frequencies: base.location_frequencies.min(2),
        window: if data == Data::Grey { 0 } else { base.window.min(1) },
        num_proposals: if data == Data::Cloud { 96 } else { 32 },
        proposal,
        sampler: SamplerConfig {
            num_layers: 4,
            hyper_widths: vec![16],
            num_components: if data == Data::Cloud { 24 } else { 8 },
            dynamics,
            num_dynamics_steps: 2,
            dynamics_widths: vec![8],
            step_size: 0.05,
            around_share: if dynamics == Dynamics::None { sampler.around_share } else { 0.0 },
            num_draws: if data == Data::Cloud { 48 } else { 8 },
            updates_per_step: 3,
            learning_rate: 5e-3,
            ..sampler
        },
        score_noises: vec![0.1, 0.3, 0.6],
        likelihood_points: 16,
        encoder_points: 16,
        learning_rate: if estimator == Ade && !data.is_picture() { 4e-3 } else { 1e-2 },
        blind: 0.0,
        learning_rate_warm_up: 0,
        kl_warm_up: 40,
        num_draws: 3,
        ..base
    }
}

fn process(data: Data, how: impl Into<How>, seed: u64, device: &Device) -> EnergyBasedProcess {
    EnergyBasedProcess::new(config(data, how), data.space(), seed, device).unwrap()
}

/// Takes steps and returns the nats of each.
fn train(process: &mut EnergyBasedProcess, data: Data, steps: std::ops::Range<u64>) -> Vec<f64> {
    steps
        .map(|number| {
            let stream = Stream::new(9, "train").child(number);
            let tasks: Vec<Task> = (0..8_u32)
                .map(|set| {
                    let number = u64::from(set);
                    data.task(number, 3 + set as usize, stream.child(number))
                })
                .collect();
            let stream = stream.child(99);
            let step =
                Step { number, num_steps: data.num_steps(), stream, learning_rate_factor: 1.0 };
            let record = Learner::learn(process, &tasks, &step).unwrap();
            assert!(record.iter().all(|(_, value)| value.is_finite()), "{record:?}");
            record.iter().find(|(name, _)| *name == "nats").unwrap().1
        })
        .collect()
}

/// Mean and its standard error.
fn mean(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

fn log_densities(
    process: &EnergyBasedProcess,
    context: &IndexedSet,
    targets: &IndexedSet,
) -> Vec<f64> {
    let predictive = process.condition(context).unwrap();
    let found = predictive.log_density(targets).unwrap();
    found.iter().map(|density| density.value).collect()
}

fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (a, b) in found.iter().zip(expected) {
        // The same numbers summed in another order: rounding of f32.
        assert!((a - b).abs() < 1e-3 + 1e-4 * b.abs(), "{what}: {a} and {b}");
    }
}

/// The state with every number as its bits.
fn bits(state: &Tensors) -> Vec<(String, Vec<u32>)> {
    state
        .iter()
        .filter_map(|(name, tensor)| {
            let numbers = tensor.as_f32()?;
            Some((name.clone(), numbers.iter().map(|x| x.to_bits()).collect()))
        })
        .collect()
}

fn with_threads<T: Send>(count: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap().install(work)
}

/// The likelihood part falls below its start, by more than its noise.
fn learns(data: Data, how: How, device: &Device) -> EnergyBasedProcess {
    let mut process = process(data, how, 5, device);
    let nats = train(&mut process, data, 0..data.num_steps());
    let ((first, noise), (last, other)) = (mean(&nats[..4]), mean(&nats[nats.len() - 10..]));
    assert!(
        first - last > 4.0 * noise.hypot(other) && first - last > 0.1,
        "{first} ± {noise} to {last} ± {other}"
    );
    process
}

/// Neither the order of the context nor further targets change what is said, for any n.
fn is_a_process(process: &EnergyBasedProcess, data: Data) {
    let Task { context, target } = data.task(2, 9, Stream::new(4, "test"));
    let target = target.select(&[0, 1, 2, 3, 4, 5]);
    let expected = log_densities(process, &context, &target);
    let turned = Stream::new(6, "order").permutation(context.len());
    let permuted = log_densities(process, &context.select(&turned), &target);
    assert_near(&permuted, &expected, "a permuted context");
    let part = log_densities(process, &context, &target.select(&[4, 1]));
    assert_near(&part, &[expected[4], expected[1]], "a part of the targets");
    for n in [0, 1] {
        let few = context.select(&(0..n).collect::<Vec<_>>());
        let found = log_densities(process, &few, &target);
        assert!(found.iter().all(|x| x.is_finite()), "{n} known: {found:?}");
        assert!(log_densities(process, &few, &target.select(&[])).is_empty());
    }
}

/// A restored process takes the steps of the one that went on, on any number of threads.
fn goes_on_bit_for_bit(data: Data, how: How, device: &Device) {
    let whole = |num_threads| {
        with_threads(num_threads, || {
            let mut process = process(data, how, 5, device);
            train(&mut process, data, 0..2);
            let saved = process.state().unwrap();
            train(&mut process, data, 2..4);
            (saved, process.state().unwrap())
        })
    };
    let (saved, expected) = whole(1);
    let (_, on_four) = whole(4);
    assert_eq!(bits(&expected), bits(&on_four), "1 and 4 threads");
    let mut restored = process(data, how, 8, device);
    restored.restore(&saved).unwrap();
    assert_eq!(bits(&saved), bits(&restored.state().unwrap()));
    train(&mut restored, data, 2..4);
    let found = restored.state().unwrap();
    assert_eq!(bits(&expected), bits(&found), "restored");
    assert_eq!(expected, found);
}

fn conforms(data: Data, how: impl Into<How>) {
    let how = how.into();
    for device in devices() {
        let process = learns(data, how, &device);
        is_a_process(&process, data);
        goes_on_bit_for_bit(data, how, &device);
    }
}

/// One test for every cell.
macro_rules! cells {
    ($($name:ident: $data:ident, $estimator:ident;)*) => {
        $(#[test]
        fn $name() {
            conforms($data, $estimator);
        })*
    };
}

cells! {
    exact_curve: Curve, Exact;
    exact_table: Table, Exact;
    exact_cloud: Cloud, Exact;
    exact_grey: Grey, Exact;
    exact_colour: Colour, Exact;
    exact_bag: Bag, Exact;
    importance_curve: Curve, Importance;
    importance_table: Table, Importance;
    importance_cloud: Cloud, Importance;
    importance_grey: Grey, Importance;
    importance_colour: Colour, Importance;
    ade_curve: Curve, Ade;
    ade_table: Table, Ade;
    ade_cloud: Cloud, Ade;
    ade_grey: Grey, Ade;
    ade_colour: Colour, Ade;
    stepping_curve: Curve, STEPPING;
    stepping_cloud: Cloud, STEPPING;
    stepping_grey: Grey, STEPPING;
    score_matching_curve: Curve, ScoreMatching;
    score_matching_table: Table, ScoreMatching;
    score_matching_cloud: Cloud, ScoreMatching;
    score_matching_grey: Grey, ScoreMatching;
    score_matching_colour: Colour, ScoreMatching;
}

#[test]
fn what_means_nothing_is_refused_with_the_reason() {
    let refused = |data: Data, estimator, change: &dyn Fn(&mut EnergyBasedConfig)| {
        let mut config = config(data, estimator);
        change(&mut config);
        let found = EnergyBasedProcess::new(config, data.space(), 1, &Device::default());
        let error = found.unwrap_err();
        assert!(matches!(error, ebp::Error::InvalidValue { .. }), "{error:?}");
        error.to_string()
    };
    for data in [Curve, Table, Cloud, Grey, Colour] {
        for estimator in [Importance, Ade, ScoreMatching] {
            let message = refused(data, estimator, &|config| config.energy = EnergyForm::Levels);
            assert!(message.contains("`estimator`") && message.contains("symbols"), "{message}");
        }
    }
    for data in [Curve, Table, Cloud] {
        let message = refused(data, Exact, &|config| config.window = 1);
        assert!(message.contains("`window`") && message.contains("grid"), "{message}");
        let message = refused(data, Exact, &|config| config.smooths = true);
        assert!(message.contains("`smooths`") && message.contains("grid"), "{message}");
        let message = refused(data, Exact, &|config| config.posterior = PosteriorForm::Table);
        assert!(message.contains("`posterior`") && message.contains("grid"), "{message}");
    }
    for data in [Curve, Grey] {
        let own_points =
            |config: &mut EnergyBasedConfig| config.proposal = ProposalConfig::points();
        let message = refused(data, Importance, &own_points);
        assert!(message.contains("`proposal.kind`") && message.contains("location"), "{message}");
    }
    let cells = |config: &mut EnergyBasedConfig| config.proposal = ProposalConfig::default();
    let message = refused(Cloud, Importance, &cells);
    assert!(message.contains("`proposal.kind`") && message.contains("own-points"), "{message}");
    for data in [Cloud, Colour] {
        let message = refused(data, Exact, &|config| config.energy = EnergyForm::Element);
        assert!(message.contains("`energy`") && message.contains("levels"), "{message}");
    }
    let message = refused(Curve, ScoreMatching, &|config| config.spectral_norm = true);
    assert!(message.contains("`spectral_norm`") && message.contains("slope"), "{message}");
    let message = refused(Grey, Importance, &|config| config.canvas_dim = 2);
    assert!(message.contains("`canvas_dim`") && message.contains("element"), "{message}");
    for estimator in [Importance, Ade, ScoreMatching] {
        let message = refused(Bag, estimator, &|_| ());
        assert!(message.contains("`estimator`") && message.contains("is a sum"), "{message}");
    }
    for form in [EnergyForm::Levels, EnergyForm::Element] {
        let message = refused(Bag, Exact, &|config| config.energy = form);
        assert!(message.contains("`energy`") && message.contains("no order"), "{message}");
    }
    for form in [PosteriorForm::Table, PosteriorForm::DeepSets] {
        let message = refused(Bag, Exact, &|config| config.posterior = form);
        assert!(message.contains("`posterior`") && message.contains("no order"), "{message}");
    }
    let message = refused(Bag, Exact, &|config| config.latent_law = LatentLaw::Dirichlet);
    assert!(message.contains("`latent_law`") && message.contains("topics"), "{message}");
    let message = refused(Cloud, Exact, &|config| config.energy = EnergyForm::Words);
    assert!(message.contains("`energy`") && message.contains("vocabulary"), "{message}");
    let message = refused(Cloud, Exact, &|config| config.posterior = PosteriorForm::Counts);
    assert!(message.contains("`posterior`") && message.contains("vocabulary"), "{message}");
    let message = refused(Cloud, Exact, &|config| config.urn = 3.0);
    assert!(message.contains("`urn`") && message.contains("vocabulary"), "{message}");
    // A table has a vector of weights for every number of a picture; 64 × 64 grey ones have 8192.
    let mut large = config(Grey, Exact);
    large.posterior = PosteriorForm::Table;
    let space = Space::picture(Grid::new(64, 64).unwrap(), 1);
    let message = EnergyBasedProcess::new(large, space, 1, &Device::default()).unwrap_err();
    let message = message.to_string();
    assert!(message.contains("`posterior`") && message.contains("`grid`"), "{message}");
    // What needs a value between symbols, asked of a process that has none.
    let exact = process(Cloud, Exact, 1, &Device::default());
    let message = exact.log_potentials(&[0.0; 3], &[0.0; 3]).unwrap_err().to_string();
    assert!(message.contains("`energy`") && message.contains("levels"), "{message}");
}
