//! A mixture of Gaussians for every anchor, written by a network from θ and its location.
//!
//! ```text
//! training   every component is drawn and weighed by its π; with a share ε of draws uniform on the
//!            domain:  q = (1 − ε) Σ_j π_j N_j + ε/volume
//! use        independent draws of Σ_j π_j N_j
//! ```
//!
//! The density is that of the whole mixture, so entropy and the gradient of π are exact: a flow must
//! tear one Gaussian into pieces to meet two branches, and the reverse divergence hardly pays for it;
//! here a component moves to each. In one dimension the first components stand side by side over the
//! domain, in more they lie around its middle. Uniform draws see what no component meets.

use super::writer::Writer;
use super::{Drawn, HALF_DOMAIN, Places, Purpose};
use crate::Result;
use crate::recipe::SamplerConfig;
use crate::rng::Stream;
use crate::tape::{Group, MixtureLaw, Tape, UniformPart, Var};

/// Standard deviation of the first means around the middle of a domain of [−2, 2]ᵈ, d > 1.
const MEANS_STD_DEV: f32 = 0.7;

#[derive(Clone, Debug)]
pub(super) struct MixtureGenerator {
    law: MixtureLaw,
    /// ε, and how many draws of an anchor are uniform.
    uniform: Option<(f64, usize)>,
    writer: Writer,
}

impl MixtureGenerator {
    pub(super) fn new(
        config: &SamplerConfig,
        (dims, num_features, latent_dim): (usize, usize, usize),
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let law = MixtureLaw { components: config.num_components, dims };
        let start = first_components(law, group.stream("means"));
        let writer = Writer::new(config, (num_features, latent_dim), &start, group)?;
        let num_uniform = config.num_uniform();
        let uniform = (num_uniform > 0).then_some((config.uniform_share, num_uniform));
        Ok(Self { law, uniform, writer })
    }

    /// Draws for training, `count` of the components and the uniform ones behind them, per anchor.
    pub(super) fn draw(
        &self,
        tape: &mut Tape,
        theta: Var,
        places: &Places,
        count: usize,
        stream: Stream,
    ) -> Result<Drawn> {
        let (law, dims) = (self.law, self.law.dims);
        let written = self.writer.write(tape, theta, places)?;
        let anchors = places.offsets.num_elements();
        let noise = tape.normals((anchors * count, dims), stream.child(0))?;
        let draws = tape.mixture_draws(written, law, noise)?;
        let (mut values, mut log_shares) = (draws.values, draws.log_shares);
        if let Some((share, num_uniform)) = self.uniform {
            let total = count + num_uniform;
            let even = tape.upload(
                even_places(anchors, num_uniform, dims, stream),
                (anchors, num_uniform * dims),
            )?;
            let own = tape.reshape(values, (anchors, count * dims))?;
            let both = tape.concat(&[own, even])?;
            values = tape.reshape(both, (anchors * total, dims))?;
            let own = tape.reshape(log_shares, (anchors, count))?;
            let own = tape.affine(own, 1.0, (1.0 - share).ln())?;
            #[expect(clippy::cast_possible_truncation, reason = "shares are f32")]
            let log_even = (share / num_uniform as f64).ln() as f32;
            let even =
                tape.upload(vec![log_even; anchors * num_uniform], (anchors, num_uniform))?;
            let both = tape.concat(&[own, even])?;
            log_shares = tape.reshape(both, (anchors * total, 1))?;
        }
        let log_density = tape.mixture_log_density(written, law, self.uniform_part(), values)?;
        Ok(Drawn { values, log_density, log_shares: Some(log_shares) })
    }

    #[expect(clippy::cast_possible_truncation, reason = "shares are f32")]
    fn uniform_part(&self) -> Option<UniformPart> {
        let part =
            |(share, _)| UniformPart { share: share as f32, low: -HALF_DOMAIN, high: HALF_DOMAIN };
        self.uniform.map(part)
    }

    /// `count` independent draws per anchor, as constants.
    pub(super) fn pick(
        &self,
        tape: &mut Tape,
        theta: Var,
        places: &Places,
        count: usize,
        stream: Stream,
    ) -> Result<Drawn> {
        let written = self.writer.write(tape, theta, places)?;
        let written = tape.detach(written);
        let total = places.offsets.num_elements() * count;
        let noise = tape.normals((total, self.law.dims), stream.child(0))?;
        let mut uniforms = vec![0.0; total];
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        let uniforms = tape.upload(uniforms, (total, 1))?;
        let values = tape.mixture_picks(written, self.law, [uniforms, noise])?;
        let log_density = tape.mixture_log_density(written, self.law, None, values)?;
        Ok(Drawn { values, log_density, log_shares: None })
    }

    /// log q of places in the generator's units, as many of every anchor; for training with the
    /// uniform part.
    pub(super) fn log_density(
        &self,
        tape: &mut Tape,
        theta: Var,
        places: &Places,
        (values, purpose): (Var, Purpose),
    ) -> Result<Var> {
        let written = self.writer.write(tape, theta, places)?;
        let part = if purpose == Purpose::Training { self.uniform_part() } else { None };
        tape.mixture_log_density(written, self.law, part, values)
    }
}

/// The numbers of the first components: equal shares; in one dimension each has a cell of the domain
/// and half its width.
fn first_components(law: MixtureLaw, means: Stream) -> Vec<f32> {
    let (dims, count) = (law.dims, law.components);
    let mut numbers = vec![0.0; law.width()];
    let mut drawn = vec![0.0; count * dims];
    means.fill_normal(0, 0, &mut drawn);
    let cells_per_axis = (count as f32).powf(1.0 / dims as f32);
    let log_scale = (HALF_DOMAIN / cells_per_axis).ln();
    for (number, own) in numbers.chunks_exact_mut(law.component_width()).enumerate() {
        for a in 0..dims {
            own[1 + a] = if dims == 1 {
                HALF_DOMAIN * ((2 * number + 1) as f32 / count as f32 - 1.0)
            } else {
                MEANS_STD_DEV * drawn[number * dims + a]
            };
            own[1 + dims + a] = log_scale;
        }
    }
    numbers
}

/// Uniform places of every anchor, `[anchors, count, dims]`: one in each of `count` slices of the first
/// axis.
fn even_places(anchors: usize, count: usize, dims: usize, stream: Stream) -> Vec<f32> {
    let mut places = vec![0.0; anchors * count * dims];
    stream.child(2).fill_uniform(0, 0, &mut places);
    for (number, place) in places.chunks_exact_mut(dims).enumerate() {
        place[0] = ((number % count) as f32 + place[0]) / count as f32;
        for x in place {
            *x = HALF_DOMAIN * (2.0 * *x - 1.0);
        }
    }
    places
}
