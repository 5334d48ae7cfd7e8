//! Networks of the primitive that see an element's own numbers from the start.

use crate::Result;
use crate::nn::Network;
use crate::point::MlpConfig;
use crate::tape::Group;

/// What an element's own d numbers weigh at the start, whatever the size of the context and of
/// the representation beside them: the first layer's weights for them are N(0, gain²/d).
///
/// [`PointMlp::random`](crate::point::PointMlp::random) counts the context into the fan-in, so
/// that a location of one number next to a context of 128 would hardly be seen, and training
/// would stall at predictions that are flat in t.
const INPUT_GAIN: f32 = 2.0;

/// A network whose flat parameters are called `name`. The first `num_own` numbers of an element
/// are its own; the others were computed by another network.
///
/// The first layer has weights of standard deviation gain/√d for an element's own d numbers, and
/// biases of standard deviation gain, so that its units bend at different places rather than all
/// at 0. Other weights stay as they are drawn.
pub(super) fn network(
    group: &mut Group<'_>,
    name: &str,
    config: MlpConfig,
    num_own: usize,
) -> Result<Network> {
    let network = Network::new(group, name, config)?;
    let biases = group.stream(&format!("{name}.biases"));
    let (shape, values) = (network.shape(), group.values_mut(network.parameters()));
    let layer = &shape.layers()[0];
    let context = layer.context_weight.as_ref().map_or(0, |_| shape.config().context_dim);
    let is_rectified = shape.layers().len() > 1 && shape.config().activation.is_piecewise_linear();
    let found = (if is_rectified { 2.0 } else { 1.0 } / (layer.inputs + context) as f32).sqrt();
    let wanted = INPUT_GAIN / (num_own as f32).sqrt();
    for row in values[layer.weight.clone()].chunks_exact_mut(layer.inputs) {
        row[..num_own].iter_mut().for_each(|weight| *weight *= wanted / found);
    }
    biases.fill_normal(0, 0, &mut values[layer.bias.clone()]);
    values[layer.bias.clone()].iter_mut().for_each(|bias| *bias *= INPUT_GAIN);
    Ok(network)
}
