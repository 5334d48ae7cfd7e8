//! The networks of the Neural Statistician, and one walk from a set to its latents and back.

use std::sync::Arc;

use super::StatisticianConfig;
use crate::nn::{Dense, DenseConfig, Initialiser, Network, Sets};
use crate::point::{Activation, ContextAt, MlpConfig, Pooling};
use crate::rng::Stream;
use crate::tape::{Gaussian, Group, Tape, Var};
use crate::{Result, SetOffsets};

/// |log σ| of every law stays below this: no element's density can grow beyond e⁵ by collapsing.
const LARGEST_LOG_STD_DEV: f64 = 5.0;

#[derive(Debug)]
pub(super) struct Networks {
    element_dim: usize,
    context_dim: usize,
    latent_dim: usize,
    /// φ, pooled over the set.
    statistic: Network,
    /// From the pooled φ and log n to q(c | set).
    of_context: Dense,
    /// q(z_l | z_{l−1}, x, c), the first layer on top.
    inference: Vec<Network>,
    /// p(z₁ | c).
    top: Dense,
    /// p(z_l | z_{l−1}, c) of the layers below.
    priors: Vec<Network>,
    /// p(x | z, c).
    decoder: Network,
}

/// Elements and which set they belong to.
#[derive(Clone, Copy)]
pub(super) struct Elements<'a> {
    /// `[total, d]`.
    pub(super) values: Var,
    pub(super) offsets: &'a Arc<SetOffsets>,
}

/// How q(z)/p(z) is paid for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Price {
    /// KL in closed form: the bound that is trained.
    Kl,
    /// log q(z)/p(z) at the draw: an importance weight.
    Weight,
}

impl Networks {
    pub(super) fn new(
        config: &StatisticianConfig,
        element_dim: usize,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let (context_dim, latent_dim) = (config.context_dim, config.latent_dim);
        let width = config.hidden_width;
        let hidden = vec![width; config.num_hidden];
        let mlp = |value_dim, context_dim, output_dim| MlpConfig {
            value_dim,
            location_dim: 0,
            context_dim,
            hidden_widths: hidden.clone(),
            output_dim,
            activation: Activation::Silu,
            context_at: ContextAt::FirstLayer,
            activate_output: false,
        };
        let dense = |inputs, outputs| DenseConfig {
            hidden: &hidden,
            ..DenseConfig::linear(inputs, outputs, Initialiser::He)
        };
        let (mut inference, mut priors) = (Vec::new(), Vec::new());
        for layer in 0..config.num_layers {
            let above = if layer == 0 { 0 } else { latent_dim };
            let name = format!("inference{layer}");
            let shape = mlp(element_dim + above, context_dim, 2 * latent_dim);
            inference.push(Network::new(group, &name, shape)?);
            if layer > 0 {
                let shape = mlp(latent_dim, context_dim, 2 * latent_dim);
                priors.push(Network::new(group, &format!("prior{layer}"), shape)?);
            }
        }
        let all = config.num_layers * latent_dim;
        Ok(Self {
            element_dim,
            context_dim,
            latent_dim,
            statistic: Network::new(group, "statistic", mlp(element_dim, 0, width))?,
            of_context: Dense::new(group, "context", &dense(width + 1, 2 * context_dim))?,
            inference,
            top: Dense::new(group, "prior0", &dense(context_dim, 2 * latent_dim))?,
            priors,
            decoder: Network::new(group, "decoder", mlp(all, context_dim, 2 * element_dim))?,
        })
    }

    /// q(c | set) of every set.
    pub(super) fn context_law(&self, tape: &mut Tape, sets: Elements<'_>) -> Result<Gaussian> {
        let Elements { values, offsets } = sets;
        let sets = Sets { elements: values, context: None, offsets };
        let pooled = self.statistic.pool(tape, sets, Pooling::Mean)?;
        let pooled = tape.silu(pooled)?;
        // The mean forgets n, and q must be narrower for larger sets.
        let count = offsets.num_sets();
        let sizes = (0..count).map(|set| (offsets.size(set) as f32).ln()).collect();
        let sizes = tape.upload(sizes, (count, 1))?;
        let pooled = tape.concat(&[pooled, sizes])?;
        let raw = self.of_context.forward(tape, pooled)?;
        law(tape, raw, self.context_dim)
    }

    /// For c `[sets, context_dim]` and z drawn from q: log p(x | z, c) `[total, 1]`, and what z costs,
    /// `[total, 1]`.
    pub(super) fn walk(
        &self,
        tape: &mut Tape,
        sets: Elements<'_>,
        context: Var,
        price: Price,
        stream: Stream,
    ) -> Result<[Var; 2]> {
        let Elements { values, offsets } = sets;
        let mut drawn: Vec<Var> = Vec::new();
        let mut costs: Vec<Var> = Vec::new();
        for (layer, inference) in self.inference.iter().enumerate() {
            let above = drawn.last().map(|&above| (layer - 1, above));
            let seen = match above {
                None => values,
                Some((_, above)) => tape.concat(&[values, above])?,
            };
            let seen = Sets { elements: seen, context: Some(context), offsets };
            let raw = inference.values(tape, seen)?;
            let posterior = law(tape, raw, self.latent_dim)?;
            let z = tape.draw(posterior, stream.child(layer as u64))?;
            let prior = self.prior(tape, above, context, offsets)?;
            let terms = match price {
                Price::Kl => tape.kl(posterior, prior)?,
                Price::Weight => {
                    let of_posterior = tape.log_density(z, posterior)?;
                    let of_prior = tape.log_density(z, prior)?;
                    tape.subtract(of_posterior, of_prior)?
                }
            };
            let terms = tape.row_sums(terms)?;
            costs.push(terms);
            drawn.push(z);
        }
        let law = self.decode(tape, &drawn, context, offsets)?;
        let fit = tape.log_density(values, law)?;
        let fit = tape.row_sums(fit)?;
        let costs = tape.concat(&costs)?;
        Ok([fit, tape.row_sums(costs)?])
    }

    /// p(z | z above, c) of every element.
    fn prior(
        &self,
        tape: &mut Tape,
        above: Option<(usize, Var)>,
        context: Var,
        offsets: &Arc<SetOffsets>,
    ) -> Result<Gaussian> {
        let Some((layer, above)) = above else {
            let raw = self.top.forward(tape, context)?;
            let raw = tape.spread(raw, offsets)?;
            return law(tape, raw, self.latent_dim);
        };
        let sets = Sets { elements: above, context: Some(context), offsets };
        let raw = self.priors[layer].values(tape, sets)?;
        law(tape, raw, self.latent_dim)
    }

    fn decode(
        &self,
        tape: &mut Tape,
        drawn: &[Var],
        context: Var,
        offsets: &Arc<SetOffsets>,
    ) -> Result<Gaussian> {
        let elements = tape.concat(drawn)?;
        let sets = Sets { elements, context: Some(context), offsets };
        let raw = self.decoder.values(tape, sets)?;
        law(tape, raw, self.element_dim)
    }

    /// New elements `[total, d]` for c `[sets, context_dim]`.
    pub(super) fn generate(
        &self,
        tape: &mut Tape,
        context: Var,
        offsets: &Arc<SetOffsets>,
        stream: Stream,
    ) -> Result<Var> {
        let mut drawn: Vec<Var> = Vec::new();
        for layer in 0..self.inference.len() {
            let above = drawn.last().map(|&above| (layer - 1, above));
            let prior = self.prior(tape, above, context, offsets)?;
            drawn.push(tape.draw(prior, stream.child(layer as u64))?);
        }
        let law = self.decode(tape, &drawn, context, offsets)?;
        tape.draw(law, stream.child(1 << 16))
    }
}

/// The first half of each row is the mean, the second gives log σ = 5 tanh(s/5).
fn law(tape: &mut Tape, raw: Var, dim: usize) -> Result<Gaussian> {
    let mean = tape.columns(raw, 0, dim)?;
    let s = tape.columns(raw, dim, dim)?;
    let s = tape.affine(s, 1.0 / LARGEST_LOG_STD_DEV, 0.0)?;
    let s = tape.tanh(s)?;
    Ok(Gaussian { mean, log_std_dev: tape.affine(s, LARGEST_LOG_STD_DEV, 0.0)? })
}
