//! A mixture of Gaussians that a network writes from the numbers of a set: a part of the energy, or the law
//! of elements given z.

use crate::Result;
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::rng::Stream;
use crate::tape::{Choice, Group, MixtureLaw, Tape, Var};

/// The first means, components' widths, and how much smaller the last layer starts: components lie over the middle
/// of the data and differ little from set to set.
const MEANS_STD_DEV: f32 = 0.5;
const LOG_SCALE: f32 = -0.8;
const OUTPUT_SCALE: f32 = 0.12;

#[derive(Debug)]
pub(super) struct WrittenMixture {
    law: MixtureLaw,
    writer: Dense,
}

/// Elements of mixtures, as many of each.
pub(super) struct MixtureElements {
    /// `[rows · count, d]`; gradients flow to means and scales of the components that were chosen.
    pub(super) values: Var,
    /// log π of the component of each, `[rows · count, 1]`.
    pub(super) log_shares: Var,
}

impl WrittenMixture {
    /// Of so many components and dimensions, from rows of `inputs` numbers through `hidden` layers.
    pub(super) fn new(
        (components, dims): (usize, usize),
        (inputs, hidden): (usize, &[usize]),
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let law = MixtureLaw { components, dims };
        let config = DenseConfig {
            hidden,
            output_scale: OUTPUT_SCALE,
            ..DenseConfig::linear(inputs, law.width(), Initialiser::He)
        };
        let writer = Dense::new(group, "writer", &config)?;
        let mut means = vec![0.0; components * dims];
        group.stream("means").fill_normal(0, 0, &mut means);
        let biases = writer.shape().layers()[writer.shape().layers().len() - 1].bias.clone();
        let biases = &mut group.values_mut(writer.parameters())[biases];
        for (own, mean) in
            biases.chunks_exact_mut(law.component_width()).zip(means.chunks_exact(dims))
        {
            for (axis, mean) in mean.iter().enumerate() {
                own[1 + axis] = MEANS_STD_DEV * mean;
                own[1 + dims + axis] = LOG_SCALE;
            }
        }
        Ok(Self { law, writer })
    }

    /// The numbers of a mixture for every row.
    pub(super) fn write(&self, tape: &mut Tape, rows: Var) -> Result<Var> {
        self.writer.forward(tape, rows)
    }

    /// log density of places `[rows · count, d]`, `count` of every mixture.
    pub(super) fn log_density(&self, tape: &mut Tape, written: Var, places: Var) -> Result<Var> {
        tape.mixture_log_density(written, self.law, None, places)
    }

    /// `count` independent elements of every mixture as constants, `[rows · count, d]`.
    pub(super) fn draw_constants(
        &self,
        tape: &mut Tape,
        written: Var,
        count: usize,
        stream: Stream,
    ) -> Result<Var> {
        let total = tape.shape(written).0 * count;
        let noise = tape.normals((total, self.law.dims), stream.child(0))?;
        let mut uniforms = vec![0.0; total];
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        let uniforms = tape.upload(uniforms, (total, 1))?;
        tape.mixture_picks(written, self.law, [uniforms, noise])
    }

    /// `count` independent elements of every mixture, through which gradients flow.
    pub(super) fn draw(
        &self,
        tape: &mut Tape,
        written: Var,
        count: usize,
        stream: Stream,
    ) -> Result<MixtureElements> {
        let (rows, components) = (tape.shape(written).0, self.law.components);
        let total = rows * components * count;
        let noise = tape.normals((total, self.law.dims), stream.child(0))?;
        let draws = tape.mixture_draws(written, self.law, noise)?;
        // Of the draws of all components one is kept, by the components' shares.
        let log_shares = tape.affine(draws.log_shares, 1.0, (count as f64).ln())?;
        let shares = tape.download(log_shares)?;
        let mut uniforms = vec![0.0; rows * count];
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        let chosen = uniforms.iter().enumerate().map(|(place, &uniform)| {
            let (row, number) = (place / count, place % count);
            let draw = |component: usize| (row * components + component) * count + number;
            let mut left = uniform;
            let component = (0..components).find(|&component| {
                left -= shares[draw(component)].exp();
                left < 0.0
            });
            u32::try_from(draw(component.unwrap_or(components - 1))).unwrap_or(u32::MAX)
        });
        let choice = std::sync::Arc::new(Choice::new(total, chosen.collect())?);
        Ok(MixtureElements {
            values: tape.gather(draws.values, &choice)?,
            log_shares: tape.gather(log_shares, &choice)?,
        })
    }
}
