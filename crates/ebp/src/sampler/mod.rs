//! The learned sampler q(x | t, θ): a generator, then dynamics along the energy's gradient.
//!
//! `planar` is a flow that a network writes, `block` the paper's LSTM, `dynamics` moves their draws
//! and tracks what that does to densities. Every draw carries L, its log density without dynamics,
//! and with them what takes its place: E exp(u(x) − L) = Z.

mod block;
mod dynamics;
mod planar;

use std::sync::Arc;

use self::block::BlockGenerator;
use self::dynamics::DynamicsLayers;
use self::planar::FlowGenerator;
use crate::energy::ElementEnergy;
use crate::recipe::{EnergyBasedConfig, SamplerKind, Space};
use crate::rng::Stream;
use crate::tape::{Choice, Group, Tape, Var};
use crate::{Result, SetOffsets};

/// A generator's standard normal is stretched to this share of the domain's width, so that its
/// draws reach all of it before anything is learned: what the first draws miss, the energy raises
/// unopposed.
const BASE_SHARE: f64 = 0.25;

/// Where draws are asked for: anchors within sets, each with the numbers of its location; a set of
/// points is one anchor without any.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// `[anchors, features]`.
    pub(crate) features: Option<Var>,
    /// Which anchors belong to which set.
    pub(crate) offsets: Arc<SetOffsets>,
}

/// Draws for every anchor, in the order of the anchors.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    /// `[anchors · count, d_x]`.
    pub(crate) values: Var,
    /// L of every draw, `[anchors · count, 1]`.
    pub(crate) log_density: Var,
    /// The numbers of the locations of the draws.
    pub(crate) features: Option<Var>,
    /// Which draws belong to which set.
    pub(crate) offsets: Arc<SetOffsets>,
}

/// The energy that draws follow: a network and the parameters of f/τ, constants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Followed<'a> {
    pub(crate) energy: &'a ElementEnergy,
    pub(crate) parameters: Var,
    pub(crate) theta: Var,
}

#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    dims: usize,
    centre: f64,
    unit: f64,
    generator: Generator,
    dynamics: Option<DynamicsLayers>,
}

#[derive(Clone, Debug)]
enum Generator {
    Flow(FlowGenerator),
    Block(Box<BlockGenerator>),
}

impl Sampler {
    /// `num_features` are the numbers of a location that the energy reads.
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        space: &Space,
        num_features: usize,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let sampler = &config.sampler;
        let dims = space.value_dim;
        let generator = match sampler.kind {
            SamplerKind::Flow => {
                let mut group = group.group("flow");
                let parts = (dims, num_features, config.latent_dim);
                Generator::Flow(FlowGenerator::new(sampler, parts, &mut group)?)
            }
            SamplerKind::Block => {
                let mut group = group.group("block");
                let parts = (dims, num_features, config.latent_dim);
                Generator::Block(Box::new(BlockGenerator::new(sampler, parts, &mut group)?))
            }
        };
        let dynamics =
            DynamicsLayers::new(sampler, dims, config.base(), &mut group.group("dynamics"))?;
        let (low, high) = (f64::from(space.low), f64::from(space.high));
        let (centre, unit) = (0.5 * (low + high), BASE_SHARE * (high - low));
        Ok(Self { dims, centre, unit, generator, dynamics })
    }

    /// `count` values per anchor, differentiable with respect to the sampler's parameters.
    pub(crate) fn draw(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        places: &Places,
        (count, is_training): (usize, bool),
        stream: Stream,
    ) -> Result<Draws> {
        let theta = followed.theta;
        let (values, log_density) = match &self.generator {
            Generator::Flow(flow) => flow.draw(tape, theta, places, count, stream.child(0))?,
            Generator::Block(block) => {
                block.draw(tape, theta, places, (count, is_training), stream.child(0))?
            }
        };
        // x = centre + unit · y,  log q(x) = log q(y) − d log unit
        let values = tape.affine(values, self.unit, self.centre)?;
        let log_density = tape.affine(log_density, 1.0, -(self.dims as f64) * self.unit.ln())?;
        let anchors = places.offsets.num_elements();
        let features = match places.features {
            Some(features) => {
                let repeated = Arc::new(Choice::repeated(anchors, count)?);
                Some(tape.gather(features, &repeated)?)
            }
            None => None,
        };
        let sizes = (0..places.offsets.num_sets()).map(|set| places.offsets.size(set) * count);
        let offsets = Arc::new(SetOffsets::from_sizes(sizes)?);
        let draws = Draws { values, log_density, features, offsets };
        match &self.dynamics {
            Some(dynamics) => dynamics.run(tape, followed, draws, stream.child(1)),
            None => Ok(draws),
        }
    }
}
