//! Every draw for itself: a network writes the planar flow of an anchor from θ and its location.

use std::sync::Arc;

use super::Places;
use crate::Result;
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::point::{Activation, ContextAt, MlpConfig, MlpShape};
use crate::recipe::SamplerConfig;
use crate::rng::Stream;
use crate::tape::{Group, Parameter, Points, Tape, Var};

/// How much smaller the network's last layer starts: flows begin near the identity.
const OUTPUT_SCALE: f32 = 0.1;

#[derive(Clone, Debug)]
pub(super) struct FlowGenerator {
    dims: usize,
    writer: Writer,
}

#[derive(Clone, Debug)]
enum Writer {
    /// One flow per set.
    OfSets(Dense),
    /// One flow per element.
    OfElements { shape: Arc<MlpShape>, parameters: Parameter },
}

impl FlowGenerator {
    pub(super) fn new(
        config: &SamplerConfig,
        (dims, num_features, latent_dim): (usize, usize, usize),
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let outputs = config.num_layers * (2 * dims + 1);
        let writer = if num_features == 0 {
            let layers = DenseConfig {
                inputs: latent_dim,
                hidden: &config.hyper_widths,
                outputs,
                activation: Activation::Relu,
                weights: Initialiser::He,
                output_scale: OUTPUT_SCALE,
            };
            Writer::OfSets(Dense::new(group, "hypernetwork", &layers)?)
        } else {
            let shape = MlpShape::new(MlpConfig {
                // What the network reads is the location; it has no value.
                value_dim: num_features,
                location_dim: 0,
                context_dim: latent_dim,
                hidden_widths: config.hyper_widths.clone(),
                output_dim: outputs,
                activation: Activation::Relu,
                context_at: ContextAt::FirstLayer,
                activate_output: false,
            })?;
            let parameters = group.point_mlp("hypernetwork", &shape)?;
            let last = shape.layers()[shape.layers().len() - 1].weight.clone();
            let weights = &mut group.values_mut(&parameters)[last];
            for weight in weights {
                *weight *= OUTPUT_SCALE;
            }
            Writer::OfElements { shape: Arc::new(shape), parameters }
        };
        Ok(Self { dims, writer })
    }

    /// Values `[anchors · count, d]` and their log q, `[anchors · count, 1]`.
    pub(super) fn draw(
        &self,
        tape: &mut Tape,
        theta: Var,
        places: &Places,
        count: usize,
        stream: Stream,
    ) -> Result<(Var, Var)> {
        let layers = match (&self.writer, places.features) {
            (Writer::OfElements { shape, parameters }, Some(features)) => {
                let points = Points {
                    shape: Arc::clone(shape),
                    parameters: tape.parameter(parameters)?,
                    elements: features,
                    context: Some(theta),
                    offsets: Arc::clone(&places.offsets),
                };
                tape.point_values(&points)?
            }
            (Writer::OfSets(dense), _) => dense.forward(tape, theta)?,
            (Writer::OfElements { .. }, None) => {
                return Err(crate::Error::invalid("places", "with locations", "without"));
            }
        };
        let draws = tape.planar(layers, self.dims, count, stream)?;
        Ok((draws.values, draws.log_density))
    }
}
