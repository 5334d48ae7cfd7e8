//! f(x₁, …, xₙ): a log potential of the whole set that no order of its elements can change.
//!
//! ```text
//! Deep Sets   f = Σᵢ e(xᵢ; pool_j φ(xⱼ))
//! attention   f = Σᵢ e(xᵢ, oᵢ),   oᵢ = Σⱼ softmax_j(⟨φ(xᵢ), φ(xⱼ)⟩/√d) h(xⱼ)
//! both        u = f − Σᵢ ‖xᵢ‖²/(2 s₀²)
//! ```
//!
//! The paper's attention is the case where e returns one coordinate of oᵢ. All networks are smooth
//! (SiLU) and go through the primitive; gradients reach the elements along both ways, through e and
//! through the summary.

use std::sync::Arc;

use candle_core::{D, Device, Tensor, Var};

use super::config::{Interaction, SetEnergyConfig, SummaryPooling};
use crate::nn::{AttentionSets, Parameters, PointModule, TensorBatch, attention};
use crate::point::{Activation, ContextAt, MlpConfig, MlpShape, PointBackend, Pooling};
use crate::{Result, SetOffsets};

/// The networks of the energy and their parameters.
#[derive(Debug)]
pub(super) struct SetEnergy {
    pooling: Pooling,
    num_heads: usize,
    input_scale: f64,
    base_std_dev: f64,
    /// φ; of attention also h.
    summary: Network,
    values: Option<Network>,
    element: Network,
}

#[derive(Debug)]
struct Network {
    module: PointModule,
    variable: Var,
}

/// Parameters at one moment: in the graph, or constants.
pub(super) struct Weights {
    summary: Tensor,
    values: Option<Tensor>,
    element: Tensor,
}

impl Network {
    fn new(
        config: MlpConfig,
        group: &Parameters,
        name: &str,
        backend: &Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let shape = MlpShape::new(config)?;
        let variable = group.point_mlp(name, &shape)?;
        Ok(Self { module: PointModule::new(shape, Arc::clone(backend)), variable })
    }
}

impl SetEnergy {
    pub(super) fn new(
        config: &SetEnergyConfig,
        group: &Parameters,
        backend: &Arc<dyn PointBackend>,
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
            Some(Network::new(summary.clone(), group, "values", backend)?)
        } else {
            None
        };
        Ok(Self {
            pooling: match config.pooling {
                SummaryPooling::Mean => Pooling::Mean,
                SummaryPooling::Sum => Pooling::Sum,
                SummaryPooling::Max => Pooling::Max,
            },
            num_heads: config.num_heads,
            input_scale: config.input_scale,
            base_std_dev: config.base_std_dev,
            summary: Network::new(summary, group, "summary", backend)?,
            values,
            element: Network::new(element, group, "element", backend)?,
        })
    }

    /// The parameters in the graph.
    pub(super) fn weights(&self) -> Weights {
        Weights {
            summary: self.summary.variable.as_tensor().clone(),
            values: self.values.as_ref().map(|network| network.variable.as_tensor().clone()),
            element: self.element.variable.as_tensor().clone(),
        }
    }

    /// u of every set, `[sets]`; differentiable by elements `[total, d]` and weights.
    pub(super) fn log_potential(
        &self,
        elements: &Tensor,
        offsets: &SetOffsets,
        weights: &Weights,
    ) -> Result<Tensor> {
        let squares = elements.sqr()?.sum(D::Minus1)?;
        let elements = &(elements * self.input_scale)?;
        let batch = |parameters| TensorBatch { elements, context: None, parameters, offsets };
        let f = if let (Some(values), Some(value_weights)) = (&self.values, &weights.values) {
            let queries = self.summary.module.values(&batch(&weights.summary))?;
            let values = values.module.values(&batch(value_weights))?;
            let sizes = (0..offsets.num_sets()).map(|set| offsets.size(set));
            let sets = AttentionSets::from_sizes(sizes.map(|size| (size, size)));
            let seen = attention(&queries, &queries, &values, &sets, self.num_heads)?;
            let rows = Tensor::cat(&[elements, &seen], 1)?;
            let parameters = &weights.element;
            let batch = TensorBatch { elements: &rows, context: None, parameters, offsets };
            self.element.module.set_sums(&batch)?
        } else {
            let summary = self.summary.module.pool(&batch(&weights.summary), self.pooling)?;
            let batch = TensorBatch { context: Some(&summary), ..batch(&weights.element) };
            self.element.module.set_sums(&batch)?
        };
        let owner: Vec<u32> = (0_u32..)
            .zip(0..offsets.num_sets())
            .flat_map(|(number, set)| std::iter::repeat_n(number, offsets.size(set)))
            .collect();
        let owner = Tensor::from_vec(owner, squares.dims1()?, &Device::Cpu)?;
        let f = f.squeeze(1)?;
        let sums = f.zeros_like()?.index_add(&owner, &squares, 0)?;
        Ok((f - (sums * (0.5 / self.base_std_dev.powi(2)))?)?)
    }

    /// ∇ₓ u at `elements`, a constant.
    pub(super) fn score(
        &self,
        elements: &Tensor,
        offsets: &SetOffsets,
        weights: &Weights,
    ) -> Result<Tensor> {
        let place = Var::from_tensor(&elements.detach())?;
        let total = self.log_potential(place.as_tensor(), offsets, weights)?.sum_all()?;
        let gradients = total.backward()?;
        match gradients.get(&place) {
            Some(gradient) => Ok(gradient.detach()),
            None => Ok(elements.zeros_like()?),
        }
    }
}

impl Weights {
    /// The same numbers as constants.
    pub(super) fn detached(&self) -> Self {
        Self {
            summary: self.summary.detach(),
            values: self.values.as_ref().map(Tensor::detach),
            element: self.element.detach(),
        }
    }
}
