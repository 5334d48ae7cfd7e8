//! A network that writes the numbers of a law: from θ for a whole set, or from θ and the location of
//! every anchor.

use std::sync::Arc;

use super::Places;
use crate::Result;
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::point::{Activation, ContextAt, MlpConfig, MlpShape};
use crate::recipe::SamplerConfig;
use crate::tape::{Group, Parameter, Points, Tape, Var};

/// How much smaller the network's last layer starts: laws begin near those of its biases.
const OUTPUT_SCALE: f32 = 0.1;

#[derive(Clone, Debug)]
pub(super) enum Writer {
    /// One law per set.
    OfSets(Dense),
    /// One law per element.
    OfElements { shape: Arc<MlpShape>, parameters: Parameter },
}

impl Writer {
    /// Writes as many numbers as `start` has, which are those of the first laws.
    pub(super) fn new(
        config: &SamplerConfig,
        (num_features, latent_dim): (usize, usize),
        start: &[f32],
        group: &mut Group<'_>,
    ) -> Result<Self> {
        if num_features == 0 {
            let layers = DenseConfig {
                inputs: latent_dim,
                hidden: &config.hyper_widths,
                outputs: start.len(),
                activation: Activation::Relu,
                weights: Initialiser::He,
                output_scale: OUTPUT_SCALE,
            };
            let dense = Dense::new(group, "hypernetwork", &layers)?;
            begin_at(dense.shape(), start, group.values_mut(dense.parameters()));
            return Ok(Self::OfSets(dense));
        }
        let shape = MlpShape::new(MlpConfig {
            // What the network reads is the location; it has no value.
            value_dim: num_features,
            location_dim: 0,
            context_dim: latent_dim,
            hidden_widths: config.hyper_widths.clone(),
            output_dim: start.len(),
            activation: Activation::Relu,
            context_at: ContextAt::FirstLayer,
            activate_output: false,
        })?;
        let parameters = group.point_mlp("hypernetwork", &shape)?;
        let flat = group.values_mut(&parameters);
        let last = shape.layers()[shape.layers().len() - 1].weight.clone();
        flat[last].iter_mut().for_each(|weight| *weight *= OUTPUT_SCALE);
        begin_at(&shape, start, flat);
        Ok(Self::OfElements { shape: Arc::new(shape), parameters })
    }

    /// The numbers of every anchor, `[anchors, outputs]`.
    pub(super) fn write(&self, tape: &mut Tape, theta: Var, places: &Places) -> Result<Var> {
        match (self, places.features) {
            (Self::OfElements { shape, parameters }, Some(features)) => {
                let points = Points {
                    shape: Arc::clone(shape),
                    parameters: tape.parameter(parameters)?,
                    elements: features,
                    context: Some(theta),
                    offsets: Arc::clone(&places.offsets),
                };
                tape.point_values(&points)
            }
            (Self::OfSets(dense), _) => dense.forward(tape, theta),
            (Self::OfElements { .. }, None) => {
                Err(crate::Error::invalid("places", "with locations", "without"))
            }
        }
    }
}

/// The last layer's biases are the numbers of the first laws.
fn begin_at(shape: &MlpShape, start: &[f32], flat: &mut [f32]) {
    let biases = shape.layers()[shape.layers().len() - 1].bias.clone();
    flat[biases].copy_from_slice(start);
}
