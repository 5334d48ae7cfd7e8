//! f(x₁, …, xₙ): a log potential of the whole set that no order of its elements can change.
//!
//! ```text
//! Deep Sets   f = Σᵢ e(xᵢ; pool_j φ(xⱼ))
//! attention   f = Σᵢ e(xᵢ, oᵢ),   oᵢ = Σⱼ softmax_j(⟨φ(xᵢ), φ(xⱼ)⟩/√d) h(xⱼ)
//! written     f ← f + Σᵢ max(−60, log Σ_m π_m N(xᵢ; μ_m, T_m T_mᵀ)),   π, μ, T written from the summary, or oᵢ
//! base        u = f − Σᵢ ‖xᵢ‖²/(2 s₀²),   or   u = f + log q(x₁, …, xₙ),   q the first guess (`hierarchy.rs`)
//! ```
//!
//! Of a guess, f is all that whole draws of it differ by: they weigh exp f each, whatever log q is, and where f
//! says nothing sets have the guess's law.
//!
//! The written part is a potential like e, no density: its summary has seen xᵢ too. Where e has to multiply the
//! place of an element with what the set looks like, and grows steep slowly, it says both in one layer.
//!
//! The paper's attention is the case where e returns one coordinate of oᵢ. All networks are smooth
//! (SiLU) and go through the primitive; gradients reach the elements along both ways, through e and
//! through the summary.

use std::sync::Arc;

use super::config::{Interaction, SetBase, SetEnergyConfig, SummaryPooling};
use super::hierarchy::Hierarchy;
use super::written::WrittenMixture;
use crate::nn::{Network, Sets};
use crate::point::{Activation, ContextAt, MlpConfig, Pooling};
use crate::tape::{Array, AttentionSets, Group, Tape, Var};
use crate::{Result, SetOffsets};

/// No element costs its set more than this in the written part, nats: elsewhere e and the base measure decide.
const LEAST_WRITTEN: f32 = -60.0;
/// Width of the network that writes.
const WRITER_WIDTH: usize = 128;

/// What f is added to.
#[derive(Debug)]
enum Base {
    /// Elements on their own, with s₀.
    Gaussian(f64),
    Guess(Arc<Hierarchy>),
}

/// The networks of the energy.
#[derive(Debug)]
pub(super) struct SetEnergy {
    element_dim: usize,
    pooling: Pooling,
    num_heads: usize,
    input_scale: f64,
    base: Base,
    /// φ; of attention also h.
    summary: Network,
    values: Option<Network>,
    element: Network,
    written: Option<WrittenMixture>,
}

/// The sizes of sets, and who may look at whom.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) offsets: Arc<SetOffsets>,
    pairs: Arc<AttentionSets>,
    pub(super) is_uniform: bool,
}

impl Layout {
    pub(super) fn new(offsets: SetOffsets) -> Self {
        let sizes = (0..offsets.num_sets()).map(|set| offsets.size(set));
        let pairs = Arc::new(AttentionSets::from_sizes(sizes.map(|size| (size, size))));
        let is_uniform = (1..offsets.num_sets()).all(|set| offsets.size(set) == offsets.size(0));
        Self { offsets: Arc::new(offsets), pairs, is_uniform }
    }

    /// `num_sets` sets of `size` elements.
    pub(super) fn uniform(num_sets: usize, size: usize) -> Result<Self> {
        Ok(Self::new(SetOffsets::uniform(num_sets, size)?))
    }
}

impl SetEnergy {
    /// `guess` is what draws the first guess, where it has a density at data.
    pub(super) fn new(
        config: &SetEnergyConfig,
        guess: Option<Arc<Hierarchy>>,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let (hidden, width) = match config.summary_widths.split_last() {
            Some((&width, hidden)) => (hidden.to_vec(), width),
            None => (Vec::new(), 1),
        };
        let mlp = |value_dim, context_dim, hidden_widths, output_dim| MlpConfig {
            value_dim,
            location_dim: 0,
            context_dim,
            hidden_widths,
            output_dim,
            activation: Activation::Silu,
            context_at: ContextAt::EveryLayer,
            activate_output: false,
        };
        let dim = config.element_dim;
        let summary = mlp(dim, 0, hidden, width);
        let has_attention = config.interaction == Interaction::Attention;
        let element = if has_attention {
            mlp(dim + width, 0, config.energy_widths.clone(), 1)
        } else {
            mlp(dim, width, config.energy_widths.clone(), 1)
        };
        let values = if has_attention {
            Some(Network::new(group, "values", summary.clone())?)
        } else {
            None
        };
        let written = if config.energy_components > 0 {
            let sizes = (config.energy_components, dim);
            let group = &mut group.group("written");
            Some(WrittenMixture::new(sizes, (width, &[WRITER_WIDTH]), group)?)
        } else {
            None
        };
        Ok(Self {
            written,
            element_dim: dim,
            pooling: match config.pooling {
                SummaryPooling::Mean => Pooling::Mean,
                SummaryPooling::Sum => Pooling::Sum,
                SummaryPooling::Max => Pooling::Max,
            },
            num_heads: config.num_heads,
            input_scale: config.input_scale,
            base: match (config.base, guess) {
                (SetBase::Guess, Some(guess)) => Base::Guess(guess),
                _ => Base::Gaussian(config.base_std_dev),
            },
            summary: Network::new(group, "summary", summary)?,
            values,
            element: Network::new(group, "element", element)?,
        })
    }

    /// u of every set, `[sets, 1]`, from elements `[total, d]`; u + log q(z | x) where z is given, `[sets, h]`, and
    /// a guess is the base, which is then exact.
    pub(super) fn log_potential(
        &self,
        tape: &mut Tape,
        (elements, hidden): (Var, Option<Var>),
        layout: &Layout,
    ) -> Result<Var> {
        let f = self.change(tape, elements, layout)?;
        let base = match (&self.base, hidden) {
            (Base::Guess(guess), Some(hidden)) => {
                guess.log_joint(tape, (hidden, elements), layout)?
            }
            (Base::Guess(guess), None) => guess.log_density(tape, elements, layout)?,
            (Base::Gaussian(std_dev), _) => {
                let squares = tape.square(elements)?;
                let squares = tape.row_sums(squares)?;
                let squares = tape.set_sums(squares, &layout.offsets)?;
                tape.affine(squares, -0.5 / std_dev.powi(2), 0.0)?
            }
        };
        tape.add(f, base)
    }

    /// The guess that the energy is a change of, if it is.
    pub(super) fn guess(&self) -> Option<&Hierarchy> {
        match &self.base {
            Base::Guess(guess) => Some(guess),
            Base::Gaussian(_) => None,
        }
    }

    /// f of every set, `[sets, 1]`.
    pub(super) fn change(&self, tape: &mut Tape, elements: Var, layout: &Layout) -> Result<Var> {
        let (offsets, places) = (&layout.offsets, elements);
        let elements = tape.affine(elements, self.input_scale, 0.0)?;
        let sets = Sets { elements, context: None, offsets };
        let (mut f, seen) = if let Some(values) = &self.values {
            let looks = self.summary.values(tape, sets)?;
            let values = values.values(tape, sets)?;
            let seen = tape.attention(looks, looks, values, &layout.pairs, self.num_heads)?;
            let elements = tape.concat(&[elements, seen])?;
            (self.element.sums(tape, Sets { elements, ..sets })?, seen)
        } else {
            let summary = self.summary.pool(tape, sets, self.pooling)?;
            (self.element.sums(tape, Sets { context: Some(summary), ..sets })?, summary)
        };
        if let Some(written) = &self.written {
            let seen = tape.silu(seen)?;
            let mut mixtures = written.write(tape, seen)?;
            if !layout.is_uniform && self.values.is_none() {
                mixtures = tape.spread(mixtures, offsets)?;
            }
            let logs = written.log_density(tape, mixtures, places)?;
            let logs = tape.clamp(logs, LEAST_WRITTEN, f32::MAX)?;
            let logs = tape.set_sums(logs, offsets)?;
            f = tape.add(f, logs)?;
        }
        Ok(f)
    }

    /// u and ∇ₓ u at `elements`, with or without z as in [`log_potential`](Self::log_potential), on a tape that reads
    /// the parameters.
    pub(super) fn score(
        &self,
        mut tape: Tape,
        (elements, hidden): (Array, Option<Array>),
        layout: &Layout,
    ) -> Result<[Array; 2]> {
        let shape = (layout.offsets.num_elements(), self.element_dim);
        let elements = tape.variable(elements, shape)?;
        let sets = layout.offsets.num_sets();
        let hidden = match hidden {
            Some(hidden) => {
                let width = hidden.len() / sets;
                Some(tape.constant(hidden, (sets, width))?)
            }
            None => None,
        };
        let u = self.log_potential(&mut tape, (elements, hidden), layout)?;
        let value = tape.array(u).clone();
        Ok([value, tape.gradient(u, elements)?])
    }
}
