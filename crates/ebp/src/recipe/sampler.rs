//! Settings of the learned sampler.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What draws first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplerKind {
    /// A mixture of Gaussians that a network writes for every element, or for every set of points.
    Mixture,
    /// A flow that a network writes for every element, or for every set of points.
    Flow,
    /// The paper's: an LSTM that draws blocks of elements one after the other.
    Block,
}

/// What moves a draw afterwards, along the gradient of the log density. Every kind tracks its
/// density on the space of draws and momenta.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dynamics {
    /// Nothing.
    None,
    /// Langevin steps.
    Langevin,
    /// Leapfrog steps from a normal momentum.
    Hamiltonian,
    /// Leapfrog steps with networks in them: scales and shifts of the momentum that depend on the slope and the
    /// place, and of the place that depend on the momentum.
    GeneralizedHamiltonian,
}

/// How the energy's step uses the sampler's draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NegativePhase {
    /// E_q[∇u], as in the paper: right where the sampler has the energy's law.
    Plain,
    /// E_q[w ∇u] with w ∝ exp(u − L): the sampler proposes, the energy decides.
    Weighted,
}

/// The kernel that a Langevin step's way back is measured by, in L.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReverseKernel {
    /// A step without drift, the paper's: cheaper by one score, and loose where steps drift.
    RandomWalk,
    /// A Langevin step from where the step ended.
    Langevin,
}

/// The noise of Langevin steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseSchedule {
    /// The same in every step: draws have a density.
    Constant,
    /// Falling. With the reverse kernel of Langevin steps to a tenth; without, to zero: draws end on
    /// the surfaces of sharp laws, and have no density of their own.
    Annealed,
}

/// Settings of the learned sampler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplerConfig {
    /// What draws first.
    pub kind: SamplerKind,
    /// Gaussians of the mixture.
    pub num_components: usize,
    /// ε, the share of the mixture that is uniform on the domain in training.
    pub uniform_share: f64,
    /// The share of Gaussians around the target's own value in the density of the energy's candidates, at four
    /// scales from half a grey level to a tenth of the domain: f can grow no spike at the data that they do not
    /// see. Weighted draws of a mixture at locations only.
    pub around_share: f64,
    /// How the energy's step uses draws.
    pub negative_phase: NegativePhase,
    /// The energy waits for the sampler in steps in which the effective share of draws is smaller; 0
    /// for never.
    pub wait_below: f64,
    /// Planar layers of the flow (10 in the paper).
    pub num_layers: usize,
    /// Hidden widths of the network that writes them.
    pub hyper_widths: Vec<usize>,
    /// k, elements of a block of the LSTM: a picture's row or 512 points in the paper.
    pub block_elements: usize,
    /// Widths of the network between LSTM and a block's elements.
    pub block_widths: Vec<usize>,
    /// Width of the LSTM.
    pub block_state: usize,
    /// What follows.
    pub dynamics: Dynamics,
    /// T, how many steps of it.
    pub num_dynamics_steps: usize,
    /// Hidden widths of the networks in generalized Hamiltonian steps.
    pub dynamics_widths: Vec<usize>,
    /// η of every step at the start of training; each is learned.
    pub step_size: f64,
    /// s of the noise of Langevin steps; 0 for √η at the start. With the reverse kernel of Langevin steps
    /// each step's is learned.
    pub noise: f64,
    /// How L measures the way back of Langevin steps.
    pub reverse_kernel: ReverseKernel,
    /// Whether it falls.
    pub noise_schedule: NoiseSchedule,
    /// The gradient of the log density is clamped to this, coordinate by coordinate.
    pub clip: f64,
    /// Draws in a step, per target element or per set of points.
    pub num_draws: usize,
    /// Updates of the sampler per update of the energy.
    pub updates_per_step: usize,
    /// The sampler's learning rate.
    pub learning_rate: f64,
    /// The sampler's β₁.
    pub beta1: f64,
    /// The sampler's learning rate never falls below this share of its start, so that it keeps
    /// up with the energy to the end.
    pub learning_rate_floor: f64,
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self {
            kind: SamplerKind::Mixture,
            num_components: 8,
            uniform_share: 0.1,
            around_share: 0.0,
            negative_phase: NegativePhase::Weighted,
            wait_below: 0.0,
            num_layers: 16,
            hyper_widths: vec![256, 256],
            block_elements: 28,
            block_widths: vec![64, 128, 512],
            block_state: 256,
            dynamics: Dynamics::None,
            num_dynamics_steps: 5,
            dynamics_widths: vec![64],
            step_size: 0.005,
            noise: 0.0,
            reverse_kernel: ReverseKernel::Langevin,
            noise_schedule: NoiseSchedule::Constant,
            clip: 20.0,
            num_draws: 16,
            updates_per_step: 1,
            learning_rate: 2e-3,
            beta1: 0.5,
            learning_rate_floor: 0.4,
        }
    }
}

impl SamplerConfig {
    /// For sets of points.
    pub fn points() -> Self {
        Self {
            num_components: 256,
            num_layers: 24,
            hyper_widths: vec![512, 512],
            block_elements: 512,
            num_dynamics_steps: 20,
            step_size: 1e-3,
            noise: 0.0316,
            clip: 100.0,
            num_draws: 1024,
            learning_rate: 1e-3,
            learning_rate_floor: 0.1,
            ..Self::default()
        }
    }

    /// The same with draws as the paper uses them: nothing uniform, no weights, and a random walk as the
    /// way back of Langevin steps. A flow or a block is used like this.
    #[must_use]
    pub fn as_published(self) -> Self {
        Self {
            uniform_share: 0.0,
            around_share: 0.0,
            negative_phase: NegativePhase::Plain,
            reverse_kernel: ReverseKernel::RandomWalk,
            ..self
        }
    }

    /// s.
    pub(crate) fn noise(&self) -> f64 {
        if self.noise > 0.0 { self.noise } else { self.step_size.sqrt() }
    }

    /// Whether draws carry L with E exp(u − L) = Z each.
    pub(crate) fn has_densities(&self) -> bool {
        self.kind != SamplerKind::Block
            && (self.dynamics != Dynamics::Langevin
                || self.noise_schedule == NoiseSchedule::Constant
                || self.reverse_kernel == ReverseKernel::Langevin)
    }

    /// Uniform draws of an anchor beside those of the components.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
    pub(crate) fn num_uniform(&self) -> usize {
        if self.uniform_share == 0.0 {
            return 0;
        }
        ((self.uniform_share * self.num_draws as f64).round() as usize).max(1)
    }

    /// Refuses combinations that mean nothing, with the reason.
    fn check_combination(&self) -> Result<()> {
        let is_mixture = self.kind == SamplerKind::Mixture;
        if is_mixture && !self.num_draws.is_multiple_of(self.num_components) {
            let expected = format!(
                "a multiple of {}, so that every component of the mixture is drawn as often",
                self.num_components
            );
            return Err(Error::invalid("sampler.num_draws", expected, self.num_draws));
        }
        if !is_mixture && self.uniform_share > 0.0 {
            let expected = "0 for this sampler: only a mixture knows its density at uniform places";
            return Err(Error::invalid("sampler.uniform_share", expected, self.uniform_share));
        }
        let knows_density = is_mixture && self.dynamics == Dynamics::None;
        let is_weighted = self.negative_phase == NegativePhase::Weighted;
        if self.around_share > 0.0 && !(knows_density && is_weighted) {
            let expected = "0 unless draws of a mixture without dynamics are weighted: the density of \
                            all candidates must be known everywhere";
            return Err(Error::invalid("sampler.around_share", expected, self.around_share));
        }
        if is_weighted && !self.has_densities() {
            let expected = "`plain` for this sampler, whose draws have no density each to weigh \
                            them by";
            return Err(Error::invalid("sampler.negative_phase", expected, "weighted"));
        }
        Ok(())
    }

    pub(crate) fn check(&self) -> Result<()> {
        for (field, found) in [
            ("sampler.num_components", self.num_components),
            ("sampler.num_layers", self.num_layers),
            ("sampler.block_elements", self.block_elements),
            ("sampler.block_widths", self.block_widths.len()),
            ("sampler.block_state", self.block_state),
            ("sampler.num_dynamics_steps", self.num_dynamics_steps),
            ("sampler.updates_per_step", self.updates_per_step),
            ("sampler.num_draws", self.num_draws),
        ] {
            if found == 0 {
                return Err(Error::invalid(field, "at least 1", found));
            }
        }
        for (field, found) in [
            ("sampler.step_size", self.step_size),
            ("sampler.clip", self.clip),
            ("sampler.learning_rate", self.learning_rate),
        ] {
            if !(found > 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", found));
            }
        }
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            return Err(Error::invalid("sampler.noise", "at least 0 and finite", self.noise));
        }
        for (field, found) in [
            ("sampler.learning_rate_floor", self.learning_rate_floor),
            ("sampler.wait_below", self.wait_below),
        ] {
            if !(0.0..=1.0).contains(&found) {
                return Err(Error::invalid(field, "in [0, 1]", found));
            }
        }
        for (field, found) in [
            ("sampler.uniform_share", self.uniform_share),
            ("sampler.around_share", self.around_share),
        ] {
            if !(0.0..1.0).contains(&found) {
                return Err(Error::invalid(field, "in [0, 1)", found));
            }
        }
        self.check_combination()
    }
}
