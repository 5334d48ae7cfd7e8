//! The learned sampler q(x | t, θ): a generator, then dynamics along the energy's gradient.
//!
//! `mixture` and `planar` are laws that a network writes (`writer`), `block` the paper's LSTM, `dynamics`
//! moves their draws (`langevin`, `leapfrog`) and tracks what that does to densities. Every draw carries L, its log density
//! without dynamics, and with them what takes its place, and where draws differ in weight its share
//! in the draws of its anchor: E exp(u(x) − L) = Z.

mod block;
mod dynamics;
mod langevin;
mod leapfrog;
mod mixture;
mod planar;
mod writer;

use std::sync::Arc;

use self::block::BlockGenerator;
use self::dynamics::DynamicsLayers;
use self::mixture::MixtureGenerator;
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
/// The domain is [−2, 2]ᵈ in those units.
const HALF_DOMAIN: f32 = 2.0;

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
    /// log of every draw's share in those of its anchor, `[anchors · count, 1]`; `None` where all are
    /// equal.
    pub(crate) log_shares: Option<Var>,
    /// Draws per anchor.
    pub(crate) count: usize,
    /// The numbers of the locations of the draws.
    pub(crate) features: Option<Var>,
    /// Which draws belong to which set.
    pub(crate) offsets: Arc<SetOffsets>,
}

impl Draws {
    /// E_q of numbers `[anchors · count, 1]`, the mean over sets of the mean over anchors, `[1, 1]`.
    pub(crate) fn expectation(&self, tape: &mut Tape, numbers: Var) -> Result<Var> {
        let Some(log_shares) = self.log_shares else {
            return mean_of_means(tape, numbers, &self.offsets);
        };
        let shares = tape.exp(log_shares)?;
        let terms = tape.multiply(numbers, shares)?;
        // The mean over draws, count times as large, is the mean over anchors.
        let mean = mean_of_means(tape, terms, &self.offsets)?;
        tape.affine(mean, self.count as f64, 0.0)
    }
}

/// Mean over sets of the mean over the rows of each, `[1, 1]`.
pub(crate) fn mean_of_means(tape: &mut Tape, x: Var, offsets: &Arc<SetOffsets>) -> Result<Var> {
    let sums = tape.set_sums(x, offsets)?;
    let sets = offsets.num_sets();
    let shares = (0..sets).map(|set| 1.0 / (sets * offsets.size(set)) as f32).collect();
    let shares = tape.upload(shares, (sets, 1))?;
    let means = tape.multiply(sums, shares)?;
    tape.sum(means)
}

/// What a generator gives, in its own units.
struct Drawn {
    values: Var,
    log_density: Var,
    log_shares: Option<Var>,
}

/// What draws are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Learning: gradients flow, batches are normalised by themselves, draws have shares.
    Training,
    /// Everything else: equal shares.
    Use,
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
    Mixture(MixtureGenerator),
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
        let parts = (dims, num_features, config.latent_dim);
        let generator = match sampler.kind {
            SamplerKind::Mixture => {
                let mut group = group.group("mixture");
                Generator::Mixture(MixtureGenerator::new(sampler, parts, &mut group)?)
            }
            SamplerKind::Flow => {
                let mut group = group.group("flow");
                Generator::Flow(FlowGenerator::new(sampler, parts, &mut group)?)
            }
            SamplerKind::Block => {
                let mut group = group.group("block");
                Generator::Block(Box::new(BlockGenerator::new(sampler, parts, &mut group)?))
            }
        };
        let dynamics =
            DynamicsLayers::new(sampler, parts, config.base(), &mut group.group("dynamics"))?;
        let (low, high) = (f64::from(space.low), f64::from(space.high));
        let (centre, unit) = (0.5 * (low + high), BASE_SHARE * (high - low));
        Ok(Self { dims, centre, unit, generator, dynamics })
    }

    /// About `count` values per anchor ([`Draws::count`]), differentiable with respect to the sampler's
    /// parameters where they are for training.
    pub(crate) fn draw(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        places: &Places,
        (count, purpose): (usize, Purpose),
        stream: Stream,
    ) -> Result<Draws> {
        let theta = followed.theta;
        let is_training = purpose == Purpose::Training;
        let from = stream.child(0);
        let drawn = match &self.generator {
            Generator::Mixture(mixture) if is_training => {
                mixture.draw(tape, theta, places, count, from)?
            }
            Generator::Mixture(mixture) => mixture.pick(tape, theta, places, count, from)?,
            Generator::Flow(flow) => flow.draw(tape, theta, places, count, from)?,
            Generator::Block(block) => {
                block.draw(tape, theta, places, (count, is_training), from)?
            }
        };
        // x = centre + unit · y,  log q(x) = log q(y) − d log unit
        let values = tape.affine(drawn.values, self.unit, self.centre)?;
        let log_density = tape.affine(drawn.log_density, 1.0, -self.log_unit())?;
        let count = tape.shape(values).0 / places.offsets.num_elements();
        let draws = Self::spread(tape, places, (values, log_density, drawn.log_shares, count))?;
        match &self.dynamics {
            Some(dynamics) => dynamics.run(tape, followed, draws, stream.child(1)),
            None => Ok(draws),
        }
    }

    /// d log unit: what the change of units adds to log densities.
    fn log_unit(&self) -> f64 {
        self.dims as f64 * self.unit.ln()
    }

    /// L of values `[anchors · count, d_x]` that follow the energy's law, where it is known anywhere: the
    /// density of a mixture, after a walk back through Langevin steps if there are any. E[u − L] over
    /// such values is at least log Z, as it is at most log Z over the sampler's own draws.
    pub(crate) fn reach(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        places: &Places,
        values: Var,
        stream: Stream,
    ) -> Result<Option<Var>> {
        let Generator::Mixture(mixture) = &self.generator else { return Ok(None) };
        let rows = tape.shape(values).0;
        let count = rows / places.offsets.num_elements();
        let zeros = tape.device().zeros(rows)?;
        let zeros = tape.constant(zeros, (rows, 1))?;
        let (mut first, mut gained) = (values, zeros);
        if let Some(dynamics) = &self.dynamics {
            let ends = Self::spread(tape, places, (values, zeros, None, count))?;
            match dynamics.walk_back(tape, followed, &ends, stream)? {
                Some(found) => (first, gained) = (found.values, found.gained),
                None => return Ok(None),
            }
        }
        let found =
            self.density_of(mixture, tape, followed.theta, places, (first, Purpose::Use))?;
        tape.add(found, gained).map(Some)
    }

    /// The log density of the first draws at any values, as many of every anchor, `[anchors · count, 1]`; `None`
    /// unless it is a mixture.
    pub(crate) fn log_density(
        &self,
        tape: &mut Tape,
        theta: Var,
        places: &Places,
        at: (Var, Purpose),
    ) -> Result<Option<Var>> {
        let Generator::Mixture(mixture) = &self.generator else { return Ok(None) };
        self.density_of(mixture, tape, theta, places, at).map(Some)
    }

    fn density_of(
        &self,
        mixture: &MixtureGenerator,
        tape: &mut Tape,
        theta: Var,
        places: &Places,
        (values, purpose): (Var, Purpose),
    ) -> Result<Var> {
        let own = tape.affine(values, 1.0 / self.unit, -self.centre / self.unit)?;
        let found = mixture.log_density(tape, theta, places, (own, purpose))?;
        tape.affine(found, 1.0, -self.log_unit())
    }

    /// Draws with the locations of their anchors.
    fn spread(
        tape: &mut Tape,
        places: &Places,
        (values, log_density, log_shares, count): (Var, Var, Option<Var>, usize),
    ) -> Result<Draws> {
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
        Ok(Draws { values, log_density, log_shares, count, features, offsets })
    }
}
