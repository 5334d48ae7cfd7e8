//! Two small models that are trained: one of a few numbers, and one that uses most operations.

use std::sync::Arc;

use ebp::point::{Activation, MlpConfig, MlpShape, Pooling};
use ebp::rng::Stream;
use ebp::tape::{
    AdamConfig, AttentionSets, CandidateVars, Choice, Device, Gaussian, Initialiser, Parameter,
    ParameterBuilder, ParameterSet, Points, Tape, Var,
};
use ebp::tensor::Tensors;
use ebp::{Result, SetOffsets};

/// Two parameters of awkward sizes and a buffer.
pub(crate) struct Small {
    pub(crate) set: ParameterSet,
    weight: Parameter,
    pub(crate) bias: Parameter,
    running: Parameter,
}

const NORMAL: Initialiser = Initialiser::Normal { mean: 0.0, std_dev: 1.0 };

impl Small {
    pub(crate) fn new(seed: u64, config: AdamConfig, average_decay: Option<f32>) -> Self {
        Self::on(&Device::default(), seed, config, average_decay)
    }

    pub(crate) fn on(
        device: &Device,
        seed: u64,
        config: AdamConfig,
        average_decay: Option<f32>,
    ) -> Self {
        let mut builder = ParameterBuilder::new(seed);
        let mut group = builder.group("model");
        let weight = group.trained("weight", &[3, 5], NORMAL).unwrap();
        let bias = group.group("inner").trained("bias", &[3], NORMAL).unwrap();
        let running = group.buffer("running", &[3], Initialiser::Ones).unwrap();
        let set = ParameterSet::new(builder, device, config, average_decay).unwrap();
        Self { set, weight, bias, running }
    }

    /// ½ Σ (weight − t)² + Σ bias·c with t and c that change from step to step.
    pub(crate) fn step(&mut self, step: u64) -> Result<f64> {
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

    pub(crate) fn values(&self) -> Vec<f32> {
        [self.weight, self.bias, self.running]
            .iter()
            .flat_map(|parameter| self.set.values(parameter).unwrap())
            .collect()
    }
}

/// A small model that uses most operations: encoder, draw, attention, flow, candidates.
pub(crate) struct Model {
    pub(crate) set: ParameterSet,
    encoder: (Arc<MlpShape>, Parameter),
    energy: (Arc<MlpShape>, Parameter),
    layers: Parameter,
    projection: Parameter,
    offsets: Arc<SetOffsets>,
}

const LATENT: usize = 6;
const DRAWS: usize = 9;

impl Model {
    pub(crate) fn on(device: &Device) -> Self {
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
        let set = ParameterSet::new(builder, device, config, Some(0.99)).unwrap();
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

    /// Some steps: their losses, and everything that is saved.
    pub(crate) fn train(mut self, steps: u64) -> (Vec<f32>, Tensors) {
        let mut losses = Vec::new();
        for step in 0..steps {
            let mut tape = self.set.device().tape();
            tape.train(&self.set);
            let loss = self.loss(&mut tape, Stream::new(step, "step")).unwrap();
            losses.extend(tape.download(loss).unwrap());
            let gradients = tape.backward(loss).unwrap();
            self.set.step(&gradients, 1e-3).unwrap();
        }
        (losses, self.set.export().unwrap())
    }
}
