//! Dynamics after a generator, with learned step sizes and a tracked density.
//!
//! With u = f/τ less the base measure, and g = clip(∇ₓu), draws x take steps with momenta beside them:
//! `langevin`, or `leapfrog`, plain or with networks in it. What is tracked is
//! L = log q(x, momenta) − log N(momenta at the end), for which
//!
//! ```text
//! E[ exp(u(x) − L) ] = ∫ exp u dx = Z        and        E[ L − u(x) ] ≥ −log Z :
//! ```
//!
//! a proper weight for importance sampling, and the dual objective of the paper with its
//! momentum terms. Points of the energy's own law can be walked back to where a draw would have begun:
//! there E[ L − u(x) ] ≤ −log Z.

use super::langevin::LangevinLayers;
use super::leapfrog::LeapfrogLayers;
use super::{Draws, Followed};
use crate::Result;
use crate::energy::element_rows;
use crate::point::Clip;
use crate::recipe::{Dynamics, SamplerConfig};
use crate::rng::Stream;
use crate::tape::{Group, MotionRules, Points, Tape, Var};

/// What moves a draw.
#[derive(Clone, Debug)]
pub(super) enum DynamicsLayers {
    Langevin(LangevinLayers),
    Leapfrog(Box<LeapfrogLayers>),
}

/// Where points were before all steps, and what the steps add to L.
pub(super) struct WalkedBack {
    pub(super) values: Var,
    pub(super) gained: Var,
}

impl DynamicsLayers {
    /// `None` where nothing moves. Elements have values of `dims` numbers, `num_features` of their location and
    /// sets a θ of `latent_dim`.
    pub(super) fn new(
        config: &SamplerConfig,
        (dims, num_features, latent_dim): (usize, usize, usize),
        base_std_dev: Option<f32>,
        group: &mut Group<'_>,
    ) -> Result<Option<Self>> {
        let slopes = Slopes::new(config, base_std_dev);
        Ok(match config.dynamics {
            Dynamics::None => None,
            Dynamics::Langevin => Some(Self::Langevin(LangevinLayers::new(config, slopes, group)?)),
            Dynamics::Hamiltonian | Dynamics::GeneralizedHamiltonian => {
                let sizes = (dims, num_features, latent_dim);
                let layers = LeapfrogLayers::new(config, sizes, slopes, group)?;
                Some(Self::Leapfrog(Box::new(layers)))
            }
        })
    }

    /// Moves draws; differentiable with respect to the layers' parameters and the first draws.
    pub(super) fn run(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: Draws,
        stream: Stream,
    ) -> Result<Draws> {
        match self {
            Self::Langevin(layers) => layers.run(tape, followed, draws, stream),
            Self::Leapfrog(layers) => layers.run(tape, followed, draws, stream),
        }
    }

    /// Walks back from values that follow the law of the energy; `None` where the way back is a random walk,
    /// whose bound says nothing.
    pub(super) fn walk_back(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        ends: &Draws,
        stream: Stream,
    ) -> Result<Option<WalkedBack>> {
        match self {
            Self::Langevin(layers) => layers.walk_back(tape, followed, ends, stream),
            Self::Leapfrog(layers) => layers.walk_back(tape, followed, ends, stream).map(Some),
        }
    }
}

/// g = clip(∇ₓu).
#[derive(Clone, Copy, Debug)]
pub(super) struct Slopes {
    base_std_dev: Option<f32>,
    /// Coordinates of gradients are at most so large.
    pub(super) clip: f32,
}

impl Slopes {
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(super) fn new(config: &SamplerConfig, base_std_dev: Option<f32>) -> Self {
        Self { base_std_dev, clip: config.clip as f32 }
    }

    /// What brings slopes to order one: they are expected between 1 and the clip.
    pub(super) fn unit(self) -> f64 {
        1.0 / f64::from(self.clip).sqrt()
    }

    /// The same for the tape's own runs of steps.
    pub(super) fn rules(self) -> MotionRules {
        MotionRules {
            clip: Clip::Elementwise(self.clip),
            base_std_dev: self.base_std_dev,
            ..MotionRules::default()
        }
    }

    /// g of draws at their present values.
    pub(super) fn at(
        self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: &Draws,
        values: Var,
    ) -> Result<Var> {
        let points = points(tape, followed, draws, values)?;
        let mut slope = tape.point_score(&points)?;
        if let Some(std_dev) = self.base_std_dev {
            let pull = tape.affine(values, -1.0 / f64::from(std_dev).powi(2), 0.0)?;
            slope = tape.add(slope, pull)?;
        }
        tape.clamp(slope, -self.clip, self.clip)
    }
}

/// ½ ‖v‖² of every row.
pub(super) fn kinetic(tape: &mut Tape, momentum: Var) -> Result<Var> {
    let squares = tape.square(momentum)?;
    let sums = tape.row_sums(squares)?;
    tape.affine(sums, 0.5, 0.0)
}

/// The energy over draws at their present values.
pub(super) fn points(
    tape: &mut Tape,
    followed: Followed<'_>,
    draws: &Draws,
    values: Var,
) -> Result<Points> {
    let rows = element_rows(tape, values, draws.features)?;
    Ok(followed.energy.points(followed.parameters, rows, followed.theta, &draws.offsets))
}
