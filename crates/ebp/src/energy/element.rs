//! f(x, t; θ) by one network over value and location, and its parameters in the forms that training
//! and predictions need.

use std::sync::Arc;

use crate::nn::Initialiser;
use crate::point::{ContextAt, MlpConfig, MlpShape, PointMlp};
use crate::recipe::{EnergyBasedConfig, LatentAt};
use crate::tape::{Group, Operators, Parameter, ParameterSet, Points, Tape, Var};
use crate::{Result, SetOffsets};

/// Power iterations before training, after which one per step keeps up with the weights.
const FIRST_ITERATIONS: usize = 30;

#[derive(Clone, Debug)]
pub(crate) struct ElementEnergy {
    pub(crate) shape: Arc<MlpShape>,
    parameters: Parameter,
    spectral_norm: Option<(Arc<Operators>, Parameter)>,
    temperature: f64,
}

impl ElementEnergy {
    /// Values of `value_dim` numbers beside `num_features` of the location.
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        (value_dim, num_features): (usize, usize),
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let shape = MlpShape::new(MlpConfig {
            value_dim,
            location_dim: num_features,
            context_dim: config.latent_dim,
            hidden_widths: config.energy_widths.clone(),
            output_dim: 1,
            activation: config.activation,
            context_at: match config.latent_at {
                LatentAt::FirstLayer => ContextAt::FirstLayer,
                LatentAt::EveryLayer => ContextAt::EveryLayer,
            },
            activate_output: false,
        })?;
        let parameters = group.point_mlp("elements", &shape)?;
        let biases = group.stream("first biases");
        let layer = &shape.layers()[0];
        let flat = group.values_mut(&parameters);
        flat[layer.weight.clone()].iter_mut().for_each(|weight| *weight *= config.input_scale);
        if config.bias_scale > 0.0 {
            // Kinks and waves of the first layer all over the domain, not only at the origin.
            let square: f32 = flat[layer.weight.clone()].iter().map(|w| w * w).sum();
            let std_dev = (square / layer.weight.len() as f32).sqrt();
            let to = &mut flat[layer.bias.clone()];
            biases.fill_normal(0, 0, to);
            for bias in to {
                *bias *= config.bias_scale * std_dev;
            }
        }
        let spectral_norm = if config.spectral_norm {
            let operators = Operators::new(&shape);
            let law = Initialiser::Normal { mean: 0.0, std_dev: 1.0 };
            let left = group.buffer("left_vectors", &[operators.num_rows()], law)?;
            let weights = group.values_mut(&parameters).to_vec();
            let start = group.values_mut(&left).to_vec();
            let settled = operators.iterate(&weights, &start, FIRST_ITERATIONS);
            group.values_mut(&left).copy_from_slice(&settled);
            Some((Arc::new(operators), left))
        } else {
            None
        };
        let (shape, temperature) = (Arc::new(shape), config.temperature);
        Ok(Self { shape, parameters, spectral_norm, temperature })
    }

    /// The parameters of f. A training step moves the power iterations on by one.
    pub(crate) fn parameters(&self, tape: &mut Tape, is_training: bool) -> Result<Var> {
        let flat = tape.parameter(&self.parameters)?;
        let Some((operators, left)) = &self.spectral_norm else { return Ok(flat) };
        let left_vectors = tape.parameter(left)?;
        let (normalised, moved) = tape.spectral_norm(flat, left_vectors, operators, is_training)?;
        if is_training {
            let moved = tape.array(moved).clone();
            tape.keep(left, moved);
        }
        Ok(normalised)
    }

    /// The parameters of f/τ: the last layer is divided by τ.
    pub(crate) fn calibrated(&self, tape: &mut Tape, is_training: bool) -> Result<Var> {
        let parameters = self.parameters(tape, is_training)?;
        if (self.temperature - 1.0).abs() < f64::EPSILON {
            return Ok(parameters);
        }
        let layers = self.shape.layers();
        let start = layers[layers.len() - 1].weight.start;
        #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
        let factor = (1.0 / self.temperature) as f32;
        tape.scale_from(parameters, start, factor)
    }

    /// The network of f/τ with its parameters on the host.
    pub(crate) fn network(&self, set: &ParameterSet) -> Result<PointMlp> {
        let mut tape = set.device().tape();
        tape.read(set);
        let flat = self.calibrated(&mut tape, false)?;
        PointMlp::new((*self.shape).clone(), tape.download(flat)?)
    }

    /// The same with f divided by a further temperature.
    pub(crate) fn network_at(&self, set: &ParameterSet, temperature: f64) -> Result<PointMlp> {
        let network = self.network(set)?;
        let layers = self.shape.layers();
        let start = layers[layers.len() - 1].weight.start;
        let mut flat = network.parameters().to_vec();
        #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
        flat[start..].iter_mut().for_each(|w| *w = (f64::from(*w) / temperature) as f32);
        PointMlp::new((*self.shape).clone(), flat)
    }

    /// The network over some elements.
    pub(crate) fn points(
        &self,
        parameters: Var,
        elements: Var,
        theta: Var,
        offsets: &Arc<SetOffsets>,
    ) -> Points {
        Points {
            shape: Arc::clone(&self.shape),
            parameters,
            elements,
            context: Some(theta),
            offsets: Arc::clone(offsets),
        }
    }
}

/// [x, t] from values and the numbers of their locations.
pub(crate) fn element_rows(tape: &mut Tape, values: Var, features: Option<Var>) -> Result<Var> {
    match features {
        Some(features) => tape.concat(&[values, features]),
        None => Ok(values),
    }
}

/// −‖x‖²/(2 s₀²) of every row of `values`, `[rows, 1]`.
pub(crate) fn base_measure(tape: &mut Tape, values: Var, std_dev: f32) -> Result<Var> {
    let squares = tape.square(values)?;
    let sums = tape.row_sums(squares)?;
    tape.affine(sums, -0.5 / f64::from(std_dev).powi(2), 0.0)
}
