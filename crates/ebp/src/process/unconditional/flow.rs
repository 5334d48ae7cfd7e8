//! Every point for itself: a network writes the planar flow of a set from θ.

use candle_core::Tensor;
use candle_nn::Module;

use super::config::UnconditionalConfig;
use crate::Result;
use crate::nn::{Initialiser, Linear, Parameters, linear, normals, planar_flow};
use crate::rng::Stream;

/// Flows begin near the identity: N(0, 1) in the units of the standardised data, which covers it.
const OUTPUT_SCALE: f64 = 0.1;

#[derive(Debug)]
pub(super) struct FlowGenerator {
    dim: usize,
    layers: Vec<Linear>,
}

impl FlowGenerator {
    pub(super) fn new(config: &UnconditionalConfig, group: &Parameters) -> Result<Self> {
        let dim = config.value_dim;
        let width = config.sampler.num_layers * (2 * dim + 1);
        let layers = stack(group, config.latent_dim, &config.sampler.hyper_widths, width)?;
        Ok(Self { dim, layers })
    }

    /// `count` points for each row of `theta`, `[sets · count, d]`, and their log q.
    pub(super) fn draw(
        &self,
        theta: &Tensor,
        count: usize,
        stream: Stream,
    ) -> Result<(Tensor, Tensor)> {
        let written = (forward(&self.layers, theta)? * OUTPUT_SCALE)?;
        let num_sets = theta.dim(0)?;
        let noise = normals((num_sets, count, self.dim), stream)?;
        let flow = planar_flow(&written, &noise)?;
        let values = flow.values.reshape((num_sets * count, self.dim))?;
        Ok((values, flow.log_density.flatten_all()?))
    }
}

/// Linear layers for ReLU between them.
pub(in crate::process) fn stack(
    group: &Parameters,
    inputs: usize,
    hidden: &[usize],
    outputs: usize,
) -> Result<Vec<Linear>> {
    let widths: Vec<usize> =
        std::iter::once(inputs).chain(hidden.iter().copied()).chain([outputs]).collect();
    let layer = |(number, widths): (usize, &[usize])| {
        linear(&group.group(&number.to_string()), widths[0], widths[1], Initialiser::He)
    };
    widths.windows(2).enumerate().map(layer).collect()
}

/// Through the layers, with ReLU between them.
pub(in crate::process) fn forward(layers: &[Linear], input: &Tensor) -> Result<Tensor> {
    let mut out = input.clone();
    for (number, layer) in layers.iter().enumerate() {
        out = layer.forward(&if number == 0 { out } else { out.relu()? })?;
    }
    Ok(out)
}
