//! f(x₁, …, xₙ): a log potential of the whole set that no order of its elements can change.
//!
//! ```text
//! Deep Sets   f = Σᵢ e(xᵢ; pool_j φ(xⱼ))
//! attention   f = Σᵢ e(xᵢ, oᵢ),   oᵢ = Σⱼ softmax_j(⟨φ(xᵢ), φ(xⱼ)⟩/√d) h(xⱼ)
//! written     f ← f + Σᵢ max(−60, log Σ_m π_m N(xᵢ; μ_m, T_m T_mᵀ)),   π, μ, T written from the summary, or oᵢ
//! both        u = f − Σᵢ ‖xᵢ‖²/(2 s₀²)
//! ```
//!
//! The written part is a potential like e, no density: its summary has seen xᵢ too. Where e has to multiply the
//! place of an element with what the set looks like, and grows steep slowly, it says both in one layer.
//!
//! The paper's attention is the case where e returns one coordinate of oᵢ. All networks are smooth
//! (SiLU) and go through the primitive; gradients reach the elements along both ways, through e and
//! through the summary.

use std::sync::Arc;

use super::config::{Interaction, SetEnergyConfig, SummaryPooling};
use super::written::WrittenMixture;
use crate::nn::{Network, Sets};
use crate::point::{Activation, ContextAt, MlpConfig, Pooling};
use crate::tape::{Array, AttentionSets, Group, ParameterSet, Tape, Var};
use crate::{Result, SetOffsets};

/// No element costs its set more than this in the written part, nats: elsewhere e and the base measure decide.
const LEAST_WRITTEN: f32 = -60.0;
/// Width of the network that writes.
const WRITER_WIDTH: usize = 128;

/// The networks of the energy.
#[derive(Debug)]
pub(super) struct SetEnergy {
    element_dim: usize,
    pooling: Pooling,
    num_heads: usize,
    input_scale: f64,
    base_std_dev: f64,
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
    is_uniform: bool,
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
    pub(super) fn new(config: &SetEnergyConfig, group: &mut Group<'_>) -> Result<Self> {
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
            base_std_dev: config.base_std_dev,
            summary: Network::new(group, "summary", summary)?,
            values,
            element: Network::new(group, "element", element)?,
        })
    }

    /// u of every set, `[sets, 1]`, from elements `[total, d]`.
    pub(super) fn log_potential(
        &self,
        tape: &mut Tape,
        elements: Var,
        layout: &Layout,
    ) -> Result<Var> {
        let (offsets, places) = (&layout.offsets, elements);
        let squares = tape.square(elements)?;
        let squares = tape.row_sums(squares)?;
        let squares = tape.set_sums(squares, offsets)?;
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
        let base = tape.affine(squares, 0.5 / self.base_std_dev.powi(2), 0.0)?;
        tape.subtract(f, base)
    }

    /// ∇ₓ u at `elements`, found on a tape of its own.
    pub(super) fn score(
        &self,
        parameters: &ParameterSet,
        elements: &Array,
        layout: &Layout,
    ) -> Result<Array> {
        let mut tape = parameters.device().tape();
        tape.read(parameters);
        self.score_on(tape, elements.clone(), layout)
    }

    /// The same on a tape that reads the parameters.
    pub(super) fn score_on(
        &self,
        mut tape: Tape,
        elements: Array,
        layout: &Layout,
    ) -> Result<Array> {
        let shape = (layout.offsets.num_elements(), self.element_dim);
        let elements = tape.variable(elements, shape)?;
        let u = self.log_potential(&mut tape, elements, layout)?;
        tape.gradient(u, elements)
    }
}
