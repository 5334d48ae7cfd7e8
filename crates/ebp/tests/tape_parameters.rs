//! Parameters of the tape: Adam with its average, saving and restoring, threads, and what is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use std::sync::Arc;

use ebp::point::{Activation, MlpConfig, MlpShape, Pooling};
use ebp::rng::Stream;
use ebp::tape::{
    AdamConfig, AttentionSets, CandidateVars, Choice, Device, Gaussian, Initialiser, Parameter,
    ParameterBuilder, ParameterSet, Points, Tape, Var, check_taken,
};
use ebp::tensor::{Tensor, Tensors};
use ebp::{Error, Result, SetOffsets};

/// Two parameters of awkward sizes and a buffer.
struct Small {
    set: ParameterSet,
    weight: Parameter,
    bias: Parameter,
    running: Parameter,
}

const NORMAL: Initialiser = Initialiser::Normal { mean: 0.0, std_dev: 1.0 };

impl Small {
    fn new(seed: u64, config: AdamConfig, average_decay: Option<f32>) -> Self {
        let mut builder = ParameterBuilder::new(seed);
        let mut group = builder.group("model");
        let weight = group.trained("weight", &[3, 5], NORMAL).unwrap();
        let bias = group.group("inner").trained("bias", &[3], NORMAL).unwrap();
        let running = group.buffer("running", &[3], Initialiser::Ones).unwrap();
        let set = ParameterSet::new(builder, &Device::default(), config, average_decay).unwrap();
        Self { set, weight, bias, running }
    }

    /// ½ Σ (weight − t)² + Σ bias·c with t and c that change from step to step.
    fn step(&mut self, step: u64) -> Result<f64> {
        let mut tape = self.set.device().tape();
        tape.train(&self.set);
        let weight = tape.parameter(&self.weight)?;
        let target = tape.normals((3, 5), Stream::new(step, "target"))?;
        let way = tape.subtract(weight, target)?;
        let square = tape.square(way)?;
        let sum = tape.sum(square)?;
        let half = tape.affine(sum, 0.5, 0.0)?;
        let bias = tape.parameter(&self.bias)?;
        let slope = tape.normals((1, 3), Stream::new(step, "slope"))?;
        let product = tape.multiply(bias, slope)?;
        let product = tape.sum(product)?;
        let loss = tape.add(half, product)?;
        let running = tape.parameter(&self.running)?;
        let doubled = tape.affine(running, 1.5, 0.0)?;
        let value = tape.array(doubled).clone();
        tape.keep(&self.running, value);
        let gradients = tape.backward(loss)?;
        Ok(self.set.step(&gradients, 0.05)?.gradient_norm)
    }

    fn values(&self) -> Vec<f32> {
        [self.weight, self.bias, self.running]
            .iter()
            .flat_map(|parameter| self.set.values(parameter).unwrap())
            .collect()
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn normal(step: u64, name: &str, index: usize) -> f64 {
    f64::from(Stream::new(step, name).normal(0, index as u64))
}

#[test]
fn adam_and_its_average_agree_with_a_plain_loop() {
    let config = AdamConfig {
        weight_decay: 0.1,
        max_gradient_norm: Some(2.0),
        beta1: 0.5,
        ..AdamConfig::default()
    };
    let mut small = Small::new(4, config, Some(0.9));
    let mut w: Vec<f64> = small.values()[..18].iter().copied().map(f64::from).collect();
    let (mut m, mut v, mut average) = (vec![0.0; 18], vec![0.0; 18], w.clone());
    for step in 0..12_u64 {
        let gradient: Vec<f64> = (0..18)
            .map(|i| {
                if i < 15 {
                    w[i] - normal(step, "target", i)
                } else {
                    normal(step, "slope", i - 15)
                }
            })
            .collect();
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let found = small.step(step).unwrap();
        assert!((found - norm).abs() < 1e-5 * norm, "{found} {norm}");
        let scale = (2.0 / norm).min(1.0);
        let t = i32::try_from(step + 1).unwrap();
        for i in 0..18 {
            let g = scale * gradient[i];
            m[i] = 0.5 * m[i] + 0.5 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            let (first, second) =
                (m[i] / (1.0 - 0.5_f64.powi(t)), v[i] / (1.0 - 0.999_f64.powi(t)));
            w[i] -= 0.05 * 0.1 * w[i] + 0.05 * first / (second.sqrt() + 1e-8);
            average[i] += 0.1 * (w[i] - average[i]);
        }
        let found = small.values();
        for i in 0..18 {
            assert!(
                (f64::from(found[i]) - w[i]).abs() < 1e-5,
                "step {step}: {} {}",
                found[i],
                w[i]
            );
        }
    }
    let trained = small.values();
    small.set.use_average(true);
    let found = small.values();
    for i in 0..18 {
        assert!((f64::from(found[i]) - average[i]).abs() < 1e-5, "{} {}", found[i], average[i]);
    }
    // Buffers have no average: 1.5 to the number of steps.
    assert!((found[18] - 1.5_f32.powi(12)).abs() < 1e-2);
    small.set.use_average(true);
    small.set.use_average(false);
    assert_eq!(bits(&small.values()), bits(&trained));
}

#[test]
fn a_step_leaves_the_average_and_trains_the_parameters() {
    let config = AdamConfig::default();
    let (mut one, mut other) = (Small::new(4, config, Some(0.9)), Small::new(4, config, Some(0.9)));
    one.step(0).unwrap();
    other.step(0).unwrap();
    // Somebody looked at the average in between.
    one.set.use_average(true);
    one.step(1).unwrap();
    other.step(1).unwrap();
    assert_eq!(bits(&one.values()), bits(&other.values()));
    assert_eq!(one.set.export().unwrap(), other.set.export().unwrap());
}

#[test]
fn a_restored_set_goes_on_bit_by_bit() {
    for average in [None, Some(0.9)] {
        let config = AdamConfig { max_gradient_norm: Some(1.0), ..AdamConfig::default() };
        let mut whole = Small::new(4, config, average);
        (0..3).for_each(|step| drop(whole.step(step).unwrap()));
        // What is used at the moment must not matter.
        whole.set.use_average(true);
        let mut state = whole.set.export().unwrap();
        whole.set.use_average(false);
        let mut restored = Small::new(99, config, average);
        assert_ne!(bits(&restored.values()), bits(&whole.values()));
        restored.set.import(&mut state).unwrap();
        assert!(state.is_empty(), "{state:?}");
        check_taken(&state).unwrap();
        assert_eq!(restored.set.export().unwrap(), whole.set.export().unwrap());
        for step in 3..6 {
            let (a, b) = (whole.step(step).unwrap(), restored.step(step).unwrap());
            assert_eq!(a.to_bits(), b.to_bits());
        }
        assert_eq!(bits(&restored.values()), bits(&whole.values()));
        assert_eq!(restored.set.export().unwrap(), whole.set.export().unwrap());
    }
}

#[test]
fn a_state_that_does_not_fit_is_refused_by_name_and_changes_nothing() {
    let config = AdamConfig::default();
    let mut trained = Small::new(4, config, Some(0.9));
    trained.step(0).unwrap();
    let state = trained.set.export().unwrap();
    let names: Vec<String> = state.keys().cloned().collect();
    assert_eq!(names.len(), 2 * 4 + 1 + 1, "{names:?}");
    let refused = |state: &mut Tensors| {
        let mut fresh = Small::new(5, config, Some(0.9));
        let (before, kept) = (fresh.set.export().unwrap(), state.clone());
        let message = fresh.set.import(state).unwrap_err().to_string();
        assert_eq!(fresh.set.export().unwrap(), before, "the set is as it was");
        assert_eq!(*state, kept, "the state is as it was");
        message
    };
    for name in &names {
        let mut missing = state.clone();
        missing.remove(name);
        assert!(refused(&mut missing).contains(&format!("`{name}`")), "{name}");
        let mut misshapen = state.clone();
        misshapen.insert(name.clone(), Tensor::new(vec![5, 3], vec![0.0; 15]).unwrap());
        assert!(refused(&mut misshapen).contains(&format!("`{name}`")), "{name}");
    }
    let mut unknown = state;
    unknown.insert("parameters/other".into(), Tensor::integer(1));
    Small::new(5, config, Some(0.9)).set.import(&mut unknown).unwrap();
    let message = check_taken(&unknown).unwrap_err().to_string();
    assert!(message.contains("`parameters/other`"), "{message}");
}

#[test]
fn a_gradient_that_is_no_number_names_its_parameter_and_changes_nothing() {
    let mut small = Small::new(4, AdamConfig::default(), Some(0.9));
    small.step(0).unwrap();
    let before = small.set.export().unwrap();
    for (slope, expected) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut tape = Device::default().tape();
        tape.train(&small.set);
        let bias = tape.parameter(&small.bias).unwrap();
        let slopes = tape.upload(vec![1.0, slope, 2.0], (1, 3)).unwrap();
        let product = tape.multiply(bias, slopes).unwrap();
        let loss = tape.sum(product).unwrap();
        let gradients = tape.backward(loss).unwrap();
        let error = small.set.step(&gradients, 0.1).unwrap_err();
        let Error::NonFiniteGradient { parameter, index, value } = &error else {
            panic!("another error: {error}");
        };
        assert_eq!((parameter.as_str(), *index), ("model.inner.bias", 1));
        assert_eq!(value.to_string(), expected);
        assert_eq!(small.set.export().unwrap(), before);
    }
}

#[test]
fn names_are_used_once_and_settings_have_ranges() {
    let mut builder = ParameterBuilder::new(1);
    builder.group("a").trained("w", &[2], Initialiser::Ones).unwrap();
    let error = builder.group("a").buffer("w", &[2], Initialiser::Ones).unwrap_err();
    assert!(error.to_string().contains("a.w"), "{error}");
    let refused = |config: AdamConfig, average: Option<f32>| {
        let mut builder = ParameterBuilder::new(1);
        builder.group("a").trained("w", &[2], Initialiser::Ones).unwrap();
        ParameterSet::new(builder, &Device::default(), config, average).unwrap_err().to_string()
    };
    let plain = AdamConfig::default();
    assert!(refused(AdamConfig { beta1: 1.0, ..plain }, None).contains("beta1"));
    assert!(refused(AdamConfig { weight_decay: -1.0, ..plain }, None).contains("weight_decay"));
    let short = AdamConfig { max_gradient_norm: Some(0.0), ..plain };
    assert!(refused(short, None).contains("max_gradient_norm"));
    assert!(refused(plain, Some(1.0)).contains("average_decay"));
}

/// A small model that uses most operations: encoder, draw, attention, flow, candidates.
struct Model {
    set: ParameterSet,
    encoder: (Arc<MlpShape>, Parameter),
    energy: (Arc<MlpShape>, Parameter),
    layers: Parameter,
    projection: Parameter,
    offsets: Arc<SetOffsets>,
}

const LATENT: usize = 6;
const DRAWS: usize = 9;

impl Model {
    fn new() -> Self {
        let network = |value_dim: usize, context_dim: usize, output_dim: usize| {
            let config = MlpConfig {
                value_dim,
                context_dim,
                output_dim,
                hidden_widths: vec![33, 20],
                activation: Activation::Silu,
                ..MlpConfig::default()
            };
            Arc::new(MlpShape::new(config).unwrap())
        };
        let (encoder, energy) = (network(2, 0, 2 * LATENT), network(2, LATENT, 1));
        let mut builder = ParameterBuilder::new(8);
        let mut group = builder.group("model");
        let of_encoder = group.point_mlp("encoder", &encoder).unwrap();
        let of_energy = group.point_mlp("energy", &energy).unwrap();
        let small = Initialiser::Normal { mean: 0.0, std_dev: 0.3 };
        let layers = group.trained("layers", &[1, 15], small).unwrap();
        let projection = group.trained("projection", &[1, LATENT], Initialiser::Ones).unwrap();
        let config = AdamConfig::default();
        let set = ParameterSet::new(builder, &Device::default(), config, Some(0.99)).unwrap();
        // Larger than the pieces that threads are given.
        let offsets = SetOffsets::from_sizes((0..70).map(|set| 1 + set * 7 % 40)).unwrap();
        Self {
            set,
            encoder: (encoder, of_encoder),
            energy: (energy, of_energy),
            layers,
            projection,
            offsets: Arc::new(offsets),
        }
    }

    fn loss(&self, tape: &mut Tape, stream: Stream) -> Result<Var> {
        let (sets, total) = (self.offsets.num_sets(), self.offsets.num_elements());
        let elements = tape.normals((total, 2), stream.child(0))?;
        let points = Points {
            shape: Arc::clone(&self.encoder.0),
            parameters: tape.parameter(&self.encoder.1)?,
            elements,
            context: None,
            offsets: Arc::clone(&self.offsets),
        };
        let pooled = tape.point_pool(&points, Pooling::Max)?;
        let mean = tape.columns(pooled, 0, LATENT)?;
        let log_std_dev = tape.columns(pooled, LATENT, LATENT)?;
        let law = Gaussian { mean, log_std_dev: tape.clamp(log_std_dev, -3.0, 1.0)? };
        let theta = tape.draw(law, stream.child(1))?;
        let prior = tape.standard_gaussian((sets, LATENT))?;
        let kl = tape.kl(law, prior)?;
        let kl = tape.mean(kl)?;
        let of_sets = AttentionSets::from_sizes((0..sets / 2).map(|_| (2, 2)));
        let seen = tape.attention(theta, theta, theta, &Arc::new(of_sets), 2)?;
        let projection = tape.parameter(&self.projection)?;
        let context = tape.multiply(seen, projection)?;
        let (context, _, _) = tape.normalise_columns(context)?;
        let layers = tape.parameter(&self.layers)?;
        let all = Arc::new(Choice::new(1, vec![0; sets])?);
        let layers = tape.gather(layers, &all)?;
        let draws = tape.planar(layers, 2, DRAWS, stream.child(2))?;
        let density = tape.reshape(draws.log_density, (sets, DRAWS))?;
        let density = tape.detach(density);
        let candidates = CandidateVars {
            values: draws.values,
            count: DRAWS,
            is_shared: false,
            locations: None,
            log_weights: Some(tape.affine(density, -1.0, 0.0)?),
            offsets: Arc::new(SetOffsets::uniform(sets, 1)?),
        };
        let parameters = tape.parameter(&self.energy.1)?;
        let network = (&self.energy.0, parameters, Some(context));
        let partition = tape.log_partition(network, &candidates)?;
        let points = Points {
            shape: Arc::clone(&self.energy.0),
            parameters,
            elements,
            context: Some(context),
            offsets: Arc::clone(&self.offsets),
        };
        let energies = tape.point_sums(&points)?;
        let way = tape.subtract(partition.log_partition, energies)?;
        let way = tape.mean(way)?;
        tape.add(way, kl)
    }

    /// Three steps; the bits of everything that is saved.
    fn train(mut self) -> Tensors {
        for step in 0..3 {
            let mut tape = self.set.device().tape();
            tape.train(&self.set);
            let loss = self.loss(&mut tape, Stream::new(step, "step")).unwrap();
            let gradients = tape.backward(loss).unwrap();
            self.set.step(&gradients, 1e-3).unwrap();
        }
        self.set.export().unwrap()
    }
}

#[test]
fn steps_give_the_same_bytes_on_any_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Model::new().train())
    };
    let (one, four) = (run(1), run(4));
    assert_eq!(one.len(), four.len());
    for (name, tensor) in &one {
        let values = |tensor: &Tensor| tensor.as_f32().map(bits);
        assert_eq!(values(tensor), values(&four[name]), "{name}");
    }
}
