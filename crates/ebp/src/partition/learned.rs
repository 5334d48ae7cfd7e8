//! A sampler q(x | t, θ) with the optimiser that lets it follow the energy:
//!
//! ```text
//! min over q:   E_q[ L(x̃ | t, θ) − u(x̃, t; θ) ]  ≥  −log Z(t; θ)
//! ```
//!
//! with equality where q is the energy's law (`sampler` for L). Energy and θ are constants here.
//!
//! Where draws are weighed, those outside of the domain weigh nothing, and nothing holds the energy down
//! there. The sampler then follows u at the nearest place of the domain, less a wall:
//!
//! ```text
//! u(c) − ‖x̃ − c‖²/(2 w²),   c = x̃ cut to the domain,   w a hundredth of its width
//! ```

use std::fmt::Debug;

use super::near::Near;
use super::{Round, Targets};
use crate::Result;
use crate::energy::{ElementEnergy, base_measure, element_rows};
use crate::nn::Step;
use crate::recipe::{Decay, EnergyBasedConfig, NegativePhase, SamplerConfig, Space};
use crate::rng::Stream;
use crate::sampler::{Draws, Followed, Purpose, Sampler};
use crate::tape::{AdamConfig, Array, Device, ParameterBuilder, ParameterSet, Shape, Tape, Var};

/// w of the wall around the domain, as a share of the domain's width.
const WALL: f32 = 0.01;

/// A sampler, its parameters and how they are trained.
#[derive(Debug)]
pub(crate) struct LearnedSampler {
    pub(crate) sampler: Sampler,
    pub(crate) parameters: ParameterSet,
    config: SamplerConfig,
    decay: Decay,
    base_std_dev: Option<f32>,
    /// The domain, where draws are kept inside of it.
    walls: Option<(f32, f32)>,
    /// What stands around targets beside draws.
    near: Option<Near>,
}

/// What the sampler's steps and the energy's have in common: constants of one step.
#[derive(Debug)]
pub(super) struct Game<'a> {
    energy: &'a ElementEnergy,
    model: &'a ParameterSet,
    /// θ, `[sets, k]`.
    theta: (Array, Shape),
    targets: &'a dyn WriteTargets,
    /// Numbers of the targets' locations where parameters have a part in them.
    features: Option<(Array, Shape)>,
}

/// Targets that can be written on any tape.
pub(crate) trait WriteTargets: Debug {
    fn write(&self, tape: &mut Tape) -> Result<Targets>;
}

impl<'a> Game<'a> {
    /// That of a step on its tape.
    pub(super) fn new(tape: &Tape, round: &Round<'a>) -> Result<Self> {
        let numbers = |var: Var| (tape.array(var).clone(), tape.shape(var));
        let features = round.targets.features.filter(|&features| tape.is_tracked(features));
        Ok(Self {
            energy: round.element_energy()?,
            model: round.model,
            theta: numbers(round.theta),
            targets: round.made.targets,
            features: features.map(numbers),
        })
    }

    /// A tape with the energy as a constant: its parameters of f/τ, θ and the targets.
    fn begin<'b>(&'b self, tape: &mut Tape) -> Result<(Followed<'b>, Targets)> {
        tape.read(self.model);
        let (theta, shape) = &self.theta;
        let theta = tape.constant(theta.clone(), *shape)?;
        let parameters = self.energy.calibrated(tape, false)?;
        let mut targets = self.targets.write(tape)?;
        if let Some((features, shape)) = &self.features {
            let features = tape.constant(features.clone(), *shape)?;
            targets.elements = tape.concat(&[targets.values, features])?;
            targets.features = Some(features);
        }
        Ok((Followed { energy: self.energy, parameters, theta }, targets))
    }
}

impl LearnedSampler {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        space: &Space,
        num_features: usize,
        (seed, device): (u64, &Device),
    ) -> Result<Self> {
        let mut builder = ParameterBuilder::new(seed);
        let sampler = Sampler::new(config, space, num_features, &mut builder.group("sampler"))?;
        let adam = AdamConfig {
            beta1: config.sampler.beta1,
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        Ok(Self {
            sampler,
            parameters: ParameterSet::new(builder, device, adam, None)?,
            config: config.sampler.clone(),
            decay: config.decay,
            base_std_dev: config.base(),
            walls: (config.sampler.negative_phase == NegativePhase::Weighted)
                .then_some((space.low, space.high)),
            near: (config.sampler.around_share > 0.0).then_some(Near {
                share: config.sampler.around_share,
                domain: (space.low, space.high),
            }),
        })
    }

    /// The step's updates; the last loss, `[1]` on the device.
    pub(super) fn train(&mut self, game: &Game<'_>, step: &Step) -> Result<Array> {
        // The sampler must keep up with the energy to the end.
        let rate = self.config.learning_rate
            * self.decay.left(step.progress(), self.config.learning_rate_floor)
            * step.learning_rate_factor;
        let mut last = game.model.device().zeros(1)?;
        for round in 0..self.config.updates_per_step {
            let mut tape = game.model.device().tape();
            tape.train(&self.parameters);
            let (followed, targets) = game.begin(&mut tape)?;
            let draws =
                self.at(&mut tape, followed, &targets, step.stream.child(100 + round as u64))?;
            let u = self.log_potentials(&mut tape, followed, &draws)?;
            let gap = tape.subtract(draws.log_density, u)?;
            let loss = draws.expectation(&mut tape, gap)?;
            last = tape.array(loss).clone();
            self.parameters.descend(tape, loss, rate)?;
        }
        Ok(last)
    }

    fn at(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        targets: &Targets,
        stream: Stream,
    ) -> Result<Draws> {
        let count = (self.config.num_draws, Purpose::Training);
        self.sampler.draw(tape, followed, &targets.places()?, count, stream)
    }

    /// u of draws, `[draws, 1]`.
    fn log_potentials(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: &Draws,
    ) -> Result<Var> {
        let mut inside = draws.values;
        if let Some((low, high)) = self.walls {
            inside = tape.clamp(inside, low, high)?;
        }
        let rows = element_rows(tape, inside, draws.features)?;
        let points =
            followed.energy.points(followed.parameters, rows, followed.theta, &draws.offsets);
        let mut u = tape.point_values(&points)?;
        if let Some(std_dev) = self.base_std_dev {
            let base = base_measure(tape, inside, std_dev)?;
            u = tape.add(u, base)?;
        }
        if let Some((low, high)) = self.walls {
            let beyond = tape.subtract(draws.values, inside)?;
            let wall = base_measure(tape, beyond, WALL * (high - low))?;
            u = tape.add(u, wall)?;
        }
        Ok(u)
    }

    /// Draws for training at the targets' places, as constants of another tape, with what stands around the
    /// targets.
    pub(super) fn draw(
        &self,
        tape: &mut Tape,
        game: &Game<'_>,
        features: Option<Var>,
        stream: Stream,
    ) -> Result<Draws> {
        let mut own = game.model.device().tape();
        own.read(&self.parameters);
        let (followed, targets) = game.begin(&mut own)?;
        let mut draws = self.at(&mut own, followed, &targets, stream)?;
        if let Some(near) = self.near {
            let law = (&self.sampler, followed.theta);
            draws = near.beside(&mut own, law, &targets, &draws, stream.child(2))?;
        }
        let mut copy = |var: Var| tape.constant(own.array(var).clone(), own.shape(var));
        let (values, log_density) = (copy(draws.values)?, copy(draws.log_density)?);
        let log_shares = draws.log_shares.map(&mut copy).transpose()?;
        let features = match features {
            Some(features) => {
                let anchors = tape.shape(features).0;
                let choice = crate::tape::Choice::repeated(anchors, draws.count)?;
                Some(tape.gather(features, &std::sync::Arc::new(choice))?)
            }
            None => None,
        };
        let (count, offsets) = (draws.count, draws.offsets);
        Ok(Draws { values, log_density, log_shares, count, features, offsets })
    }
}
