//! log Z(t; θ), or its gradient: what makes potentials a law.
//!
//! [`Partition`] is what a training step asks: the likelihood's part of the loss, in nats per element.
//! `exact` sums over a finite alphabet, `importance` weighs candidates (`cells`, `around`, `own_points`,
//! or the learned sampler's), `ade` is the paper's learned sampler, `score_matching` does without.
//! `learned` is a sampler with the optimiser that lets it follow the energy, `near` what stands beside its draws.

mod ade;
mod around;
mod cells;
mod exact;
mod importance;
mod learned;
mod near;
mod own_points;
mod score_matching;

use std::fmt::Debug;
use std::sync::Arc;

use self::ade::Ade;
pub(crate) use self::around::{WIDTHS, around};
pub(crate) use self::cells::stratified;
use self::exact::Exact;
use self::importance::ImportanceSampling;
pub(crate) use self::importance::{CandidateArrays, CandidateRows, Importance};
pub(crate) use self::learned::{LearnedSampler, WriteTargets};
pub(crate) use self::own_points::{GridMixture, Proposals, Workspace};
use self::score_matching::ScoreMatching;
pub(crate) use self::score_matching::{NoisyArrays, NoisyRows};

use crate::energy::{ElementEnergy, Energy, SymbolRows, WordRows};
use crate::nn::Step;
use crate::recipe::{EnergyBasedConfig, Estimator, Space};
use crate::sampler::{Draws, Places};
use crate::tape::{Array, Device, ParameterSet, Points, Tape, Var};
use crate::{Error, Result, SetOffsets};

/// An estimator of log Z in a training step.
pub(crate) trait Partition: Debug + Send + Sync {
    /// The likelihood's part of the loss. A learned sampler takes its steps here.
    fn loss(&mut self, tape: &mut Tape, round: &Round<'_>) -> Result<Estimate>;

    /// The sampler that learns beside the energy, where there is one.
    fn sampler(&self) -> Option<&LearnedSampler> {
        None
    }

    /// The same, to be restored.
    fn sampler_mut(&mut self) -> Option<&mut LearnedSampler> {
        None
    }
}

/// The partition that the settings name, beside an energy of `num_features` per location.
pub(crate) fn partition(
    config: &EnergyBasedConfig,
    space: &Space,
    num_features: usize,
    (seed, device): (u64, &Device),
) -> Result<Box<dyn Partition>> {
    let importance = Importance::new(config, space);
    let sampler = if config.has_sampler() {
        Some(LearnedSampler::new(config, space, num_features, (seed, device))?)
    } else {
        None
    };
    Ok(match (config.estimator, sampler) {
        (Estimator::Exact, _) => Box::new(Exact),
        (Estimator::Importance, sampler) => {
            let num_sampled = config.proposal.num_sampled(config.num_proposals, config.estimator);
            Box::new(ImportanceSampling { importance, sampler, num_sampled })
        }
        (Estimator::Ade, Some(sampler)) => Box::new(Ade::new(config, importance, sampler)),
        (Estimator::Ade, None) => {
            return Err(Error::invalid("estimator", "one with a sampler", "ade without"));
        }
        (Estimator::ScoreMatching, _) => {
            Box::new(ScoreMatching { importance, noises: config.score_noises.clone() })
        }
    })
}

/// What a step asks a [`Partition`] about.
#[derive(Debug)]
pub(crate) struct Round<'a> {
    pub(crate) energy: &'a Energy,
    /// The parameters of energy and posterior, as they are before the step.
    pub(crate) model: &'a ParameterSet,
    /// θ, `[sets, k]`.
    pub(crate) theta: Var,
    /// The elements that are explained, with everything they see.
    pub(crate) targets: Targets,
    /// What was made ahead for the step.
    pub(crate) made: Made<'a>,
    pub(crate) step: &'a Step,
}

/// Parts of a batch, of which an estimator needs its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made<'a> {
    /// The targets, to be written on tapes of the sampler.
    pub(crate) targets: &'a dyn WriteTargets,
    pub(crate) candidates: Option<&'a CandidateArrays>,
    pub(crate) noisy: Option<&'a NoisyArrays>,
    pub(crate) symbols: Option<&'a SymbolRows>,
    /// Words of a vocabulary, and the share of every set in the loss per word, `[sets]`.
    pub(crate) words: Option<(&'a WordRows, &'a Array)>,
}

impl<'a> Round<'a> {
    /// The energy of single elements.
    pub(crate) fn element_energy(&self) -> Result<&'a ElementEnergy> {
        match self.energy {
            Energy::Element(energy) => Ok(energy),
            Energy::Levels(_) | Energy::Words(_) => {
                Err(Error::invalid("energy", "`element` for this estimator", "another"))
            }
        }
    }

    fn candidates(&self) -> Result<&'a CandidateArrays> {
        let missing = || Error::invalid("batch", "with candidates for log Z", "without");
        self.made.candidates.ok_or_else(missing)
    }
}

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
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    /// The likelihood's part of the loss, nats per element, `[1, 1]`.
    pub(crate) loss: Var,
    /// Negative log density per element, `[1, 1]`; known up to an estimate of log Z.
    pub(crate) nats: Var,
    /// Figures to be recorded: their names, and one row of as many numbers.
    pub(crate) figures: Vec<(&'static [&'static str], Var)>,
    /// Draws of the sampler as constants, where slopes may be penalised.
    pub(crate) draws: Option<Draws>,
    /// Whether the model should wait for the sampler in this step.
    pub(crate) waits: bool,
}

impl Estimate {
    /// Of a loss that is the negative log density itself.
    fn of_nats(nats: Var) -> Self {
        Self { loss: nats, nats, figures: Vec::new(), draws: None, waits: false }
    }
}
