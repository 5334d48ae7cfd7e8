//! Adversarial dynamics embedding, the paper's estimator, in nats per element.
//!
//! log Z has a dual form, −log Z = min_q E_q[ L − u ] (`sampler` for L), so a learned sampler q
//! stands in for it. The energy rises at the data and falls at the draws, the sampler follows the
//! energy:
//!
//! ```text
//! sampler   min over q:        E_q[ L(x̃ | t, θ) − u(x̃, t; θ) ]
//! energy    max over f, q(θ):  E[ u(x, t; θ) ] − E_q[ u(x̃, t; θ) ] − κ KL / n
//! ```
//!
//! At the saddle u = log p + const. Draws are constants in the energy's step, as in the paper's
//! released code; θ is a constant in the sampler's.

use std::sync::Arc;

use super::{Targets, mean_of_means};
use crate::energy::{ElementEnergy, base_measure, element_rows};
use crate::recipe::{EnergyBasedConfig, Space};
use crate::rng::Stream;
use crate::sampler::{Draws, Followed, Sampler};
use crate::tape::{AdamConfig, Array, Choice, Device, ParameterBuilder, ParameterSet, Tape, Var};
use crate::{Result, SetOffsets};

/// A sampler with the optimiser that trains it.
#[derive(Debug)]
pub(crate) struct Ade {
    pub(crate) sampler: Sampler,
    pub(crate) parameters: ParameterSet,
    num_draws: usize,
    base_std_dev: Option<f32>,
}

/// What the sampler's steps and the energy's have in common: constants of one step.
pub(crate) struct Game<'a> {
    pub(crate) energy: &'a ElementEnergy,
    pub(crate) model: &'a ParameterSet,
    /// θ, `[sets, k]`.
    pub(crate) theta: (Array, (usize, usize)),
    /// What the step's targets are.
    pub(crate) targets: &'a dyn WriteTargets,
}

/// Targets that can be written on any tape.
pub(crate) trait WriteTargets {
    fn write(&self, tape: &mut Tape) -> Result<Targets>;
}

impl Game<'_> {
    /// A tape with the energy as a constant: its parameters of f/τ, θ and the targets.
    fn begin<'b>(&'b self, tape: &mut Tape) -> Result<(Followed<'b>, Targets)> {
        tape.read(self.model);
        let (theta, shape) = &self.theta;
        let theta = tape.constant(theta.clone(), *shape)?;
        let parameters = self.energy.calibrated(tape, false)?;
        let targets = self.targets.write(tape)?;
        Ok((Followed { energy: self.energy, parameters, theta }, targets))
    }
}

impl Ade {
    pub(crate) fn new(
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
            num_draws: config.sampler.num_draws,
            base_std_dev: config.base(),
        })
    }

    /// Some updates of the sampler; its last loss, `[1]` on the device.
    pub(crate) fn train(
        &mut self,
        game: &Game<'_>,
        (updates, learning_rate): (usize, f64),
        stream: Stream,
    ) -> Result<Option<Array>> {
        let mut last = None;
        for round in 0..updates {
            let mut tape = game.model.device().tape();
            tape.train(&self.parameters);
            let (followed, targets) = game.begin(&mut tape)?;
            let places = targets.places()?;
            let stream = stream.child(100 + round as u64);
            let count = (self.num_draws, true);
            let draws = self.sampler.draw(&mut tape, followed, &places, count, stream)?;
            let u = self.log_potentials(&mut tape, followed, &draws)?;
            let gap = tape.subtract(draws.log_density, u)?;
            let loss = mean_of_means(&mut tape, gap, &draws.offsets)?;
            last = Some(tape.array(loss).clone());
            let gradients = tape.backward(loss)?;
            self.parameters.step(&gradients, learning_rate)?;
        }
        Ok(last)
    }

    /// u of draws, `[draws, 1]`.
    fn log_potentials(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: &Draws,
    ) -> Result<Var> {
        let rows = element_rows(tape, draws.values, draws.features)?;
        let points =
            followed.energy.points(followed.parameters, rows, followed.theta, &draws.offsets);
        let f = tape.point_values(&points)?;
        match self.base_std_dev {
            Some(std_dev) => {
                let base = base_measure(tape, draws.values, std_dev)?;
                tape.add(f, base)
            }
            None => Ok(f),
        }
    }

    /// Draws at the targets' places as they are now.
    pub(crate) fn draw(&self, game: &Game<'_>, stream: Stream) -> Result<(Array, Arc<SetOffsets>)> {
        let mut tape = game.model.device().tape();
        tape.read(&self.parameters);
        let (followed, targets) = game.begin(&mut tape)?;
        let places = targets.places()?;
        let draws =
            self.sampler.draw(&mut tape, followed, &places, (self.num_draws, true), stream)?;
        Ok((tape.array(draws.values).clone(), draws.offsets))
    }

    /// The mean of u at the draws less that at the data, and the draws on the tape with their features.
    pub(crate) fn gap(
        tape: &mut Tape,
        energy: &ElementEnergy,
        targets: &Targets,
        (theta, parameters): (Var, Var),
        (draws, offsets): &(Array, Arc<SetOffsets>),
    ) -> Result<(Var, (Var, Option<Var>))> {
        let dims = tape.shape(targets.values).1;
        let values = tape.constant(draws.clone(), (draws.len() / dims, dims))?;
        let features = match targets.features {
            Some(features) => {
                let anchors = targets.offsets.num_elements();
                let count = draws.len() / dims / anchors;
                let choice = Arc::new(Choice::repeated(anchors, count)?);
                Some(tape.gather(features, &choice)?)
            }
            None => None,
        };
        let rows = element_rows(tape, values, features)?;
        let fake = energy.points(parameters, rows, theta, offsets);
        let fake = tape.point_values(&fake)?;
        let fake = mean_of_means(tape, fake, offsets)?;
        let real = tape.point_values(&targets.points(energy, parameters, theta))?;
        let real = mean_of_means(tape, real, &targets.offsets)?;
        // The base measure is no function of the parameters: it has no part in the gradient.
        Ok((tape.subtract(fake, real)?, (values, features)))
    }
}
