//! All parts together: an energy is trained, stopped and resumed.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::sync::Arc;

use candle_core::{Device, Tensor};
use ebp::SetOffsets;
use ebp::nn::{
    Adam, AdamConfig, Mode, MovingAverage, Parameters, PointModule, SpectralNorm, TensorBatch,
    TensorCandidates,
};
use ebp::point::{Activation, CpuBackend, MlpConfig, MlpShape};
use ebp::rng::Stream;

const NUM_POINTS: usize = 64;
const NUM_NODES: usize = 100;
const LOW: f32 = -3.0;
const HIGH: f32 = 3.0;

/// An energy on a line, fitted to N(0.5, 0.4²) by maximum likelihood with log Z by quadrature.
struct Trainer {
    parameters: Parameters,
    module: PointModule,
    norm: Option<SpectralNorm>,
    adam: Adam,
    average: MovingAverage,
    num_steps: u32,
}

impl Trainer {
    fn new(seed: u64, has_norm: bool) -> Self {
        let parameters = Parameters::new(seed);
        let shape = MlpShape::new(MlpConfig {
            value_dim: 1,
            context_dim: 0,
            hidden_widths: vec![32, 32],
            activation: Activation::Silu,
            ..MlpConfig::default()
        })
        .unwrap();
        parameters.point_mlp("energy", &shape).unwrap();
        let norm =
            has_norm.then(|| SpectralNorm::for_mlp(&parameters.group("norm"), &shape).unwrap());
        Self {
            module: PointModule::new(shape, Arc::new(CpuBackend::new())),
            norm,
            adam: Adam::new(&parameters, AdamConfig { beta1: 0.5, ..AdamConfig::default() })
                .unwrap(),
            average: MovingAverage::new(&parameters, 0.9).unwrap(),
            parameters,
            num_steps: 0,
        }
    }

    /// −log p of fresh data, mean over the points.
    fn loss(&self, step: u32, mode: Mode) -> Tensor {
        let mut data = vec![0.0; NUM_POINTS];
        Stream::new(1, "data").fill_normal(step, 0, &mut data);
        for x in &mut data {
            *x = 0.5 + 0.4 * *x;
        }
        let data = Tensor::from_vec(data, (NUM_POINTS, 1), &Device::Cpu).unwrap();
        let flat = self.parameters.get("energy").unwrap().into_inner();
        let parameters = match &self.norm {
            Some(norm) => norm.normalise(&flat, mode).unwrap(),
            None => flat,
        };
        let batch = TensorBatch {
            elements: &data,
            context: None,
            parameters: &parameters,
            offsets: &SetOffsets::uniform(1, NUM_POINTS).unwrap(),
        };
        let sum = self.module.set_sums(&batch).unwrap().flatten_all().unwrap();
        // Midpoints of equal cells, each with the log of its width as weight.
        let width = (HIGH - LOW) / NUM_NODES as f32;
        let nodes: Vec<f32> = (0..NUM_NODES).map(|k| LOW + width * (k as f32 + 0.5)).collect();
        let candidates = TensorCandidates {
            values: &Tensor::from_vec(nodes, (NUM_NODES, 1), &Device::Cpu).unwrap(),
            context: None,
            parameters: &parameters,
            locations: None,
            log_weights: Some(&Tensor::new(vec![width.ln(); NUM_NODES], &Device::Cpu).unwrap()),
            offsets: &SetOffsets::uniform(1, 1).unwrap(),
        };
        let log_partition = self.module.log_partition(&candidates).unwrap().log_partition;
        let mean = (sum / NUM_POINTS as f64).unwrap();
        (log_partition - mean).unwrap().squeeze(0).unwrap()
    }

    fn train(&mut self, num_steps: u32) {
        for _ in 0..num_steps {
            self.num_steps += 1;
            let gradients = self.loss(self.num_steps, Mode::Train).backward().unwrap();
            self.adam.step(&gradients, 1e-2).unwrap();
            self.average.update().unwrap();
        }
    }

    fn bits(&self) -> Vec<u32> {
        let tensors = self.parameters.export().unwrap().into_values();
        let averages = self.average.export().unwrap().into_values();
        tensors
            .chain(averages)
            .flat_map(|tensor| tensor.as_f32().unwrap().to_vec())
            .map(f32::to_bits)
            .collect()
    }
}

/// The entropy of N(0.5, 0.4²), ½ log(2πe · 0.16) = 0.5026, is the least expected loss. Its
/// estimate from 20 × 64 points has standard error √(½ / 1280) = 0.02; the fit adds a little.
#[test]
fn maximum_likelihood_finds_the_density() {
    let mut trainer = Trainer::new(7, false);
    trainer.train(300);
    trainer.average.swap_in().unwrap();
    let losses = (1000..1020)
        .map(|step| f64::from(trainer.loss(step, Mode::Evaluate).to_scalar::<f32>().unwrap()));
    let loss = losses.sum::<f64>() / 20.0;
    assert!((loss - 0.5026).abs() < 0.1, "{loss}");
}

#[test]
fn a_resumed_run_equals_an_unbroken_one_bit_for_bit() {
    let mut whole = Trainer::new(7, true);
    whole.train(12);
    let mut first = Trainer::new(7, true);
    first.train(5);
    // Another seed: everything that matters must come from what was saved.
    let mut second = Trainer::new(8, true);
    second.parameters.import(&first.parameters.export().unwrap()).unwrap();
    second.adam.import(&first.adam.export().unwrap()).unwrap();
    second.average.import(&first.average.export().unwrap()).unwrap();
    second.num_steps = first.num_steps;
    second.train(7);
    assert_eq!(whole.bits(), second.bits());
    assert_ne!(whole.bits(), first.bits());
}
