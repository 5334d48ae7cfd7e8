//! log Z(t; θ), or its gradient: what makes potentials a law.
//!
//! Sums over a finite alphabet are exact (`energy::levels`), `importance` weighs candidates (`cells`, `around`,
//! `own_points`, or the learned sampler's), `ade` is the paper's learned sampler, `score_matching`
//! does without. Each gives a training step its part of the loss, in nats per element.

mod ade;
mod around;
mod cells;
mod importance;
mod own_points;
mod score_matching;

use std::sync::Arc;

pub(crate) use self::ade::{Ade, Game, WriteTargets};
pub(crate) use self::around::around;
pub(crate) use self::cells::stratified;
pub(crate) use self::importance::{CandidateArrays, CandidateRows, Importance};
pub(crate) use self::own_points::{GridMixture, Proposals, Workspace};
pub(crate) use self::score_matching::{NoisyArrays, NoisyRows, noisy_loss};

use crate::energy::ElementEnergy;
use crate::sampler::Places;
use crate::tape::{Points, Tape, Var};
use crate::{Result, SetOffsets};

/// The elements whose likelihood is taken, on a tape.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    /// x, `[n, d_x]`.
    pub(crate) values: Var,
    /// Numbers of the location, `[n, features]`.
    pub(crate) features: Option<Var>,
    /// [x, t].
    pub(crate) elements: Var,
    /// Which element belongs to which set.
    pub(crate) offsets: Arc<SetOffsets>,
    /// Mean over sets of the mean of the base measure, a constant.
    pub(crate) base: f64,
}

impl Targets {
    /// Where values could stand: the elements' locations, or the set as a whole.
    pub(crate) fn places(&self) -> Result<Places> {
        let offsets = match self.features {
            Some(_) => Arc::clone(&self.offsets),
            None => Arc::new(SetOffsets::uniform(self.offsets.num_sets(), 1)?),
        };
        Ok(Places { features: self.features, offsets })
    }

    /// The energy over the elements.
    pub(crate) fn points(&self, energy: &ElementEnergy, parameters: Var, theta: Var) -> Points {
        energy.points(parameters, self.elements, theta, &self.offsets)
    }
}

/// What an estimator says of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    /// The likelihood's part of the loss, nats per element, `[1, 1]`.
    pub(crate) loss: Var,
    /// Negative log density per element, `[1, 1]`; known up to an estimate of log Z.
    pub(crate) nats: Var,
    /// Effective candidates, share near the data, largest share, `[1, 3]`.
    pub(crate) figures: Option<Var>,
    /// Draws of the sampler with their features, where slopes may be penalised.
    pub(crate) draws: Option<(Var, Option<Var>)>,
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
