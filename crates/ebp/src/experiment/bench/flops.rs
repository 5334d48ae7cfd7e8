//! How much arithmetic an operation must do, by formula.
//!
//! Only matrix products count, a multiplication and an addition as two. For a layer from a to b
//! numbers, k being the size of the context:
//!
//! ```text
//! forward            z = W a + …      2 a b   per element
//! data gradient      Wᵀ δ             2 a b   per element, the first layer only where the
//!                                             elements themselves need a gradient
//! weight gradient    δ aᵀ             2 a b   per element
//! context map        C c              2 k b   per set, where the layer receives the context
//! … its gradients    Cᵀ δ and δ cᵀ    2 k b   per set each
//! ```
//!
//! Activations, biases, pooling, noise and log-sum-exp are left out, so a fraction of the peak
//! below one includes them.

use std::collections::BTreeSet;

use crate::point::{MlpShape, Pooled};

/// How many rows and sets an operation visits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Elements, or candidates of all anchors.
    pub(super) rows: usize,
    /// Sets.
    pub(super) sets: usize,
}

/// f of every row.
pub(super) fn forward(shape: &MlpShape, extent: Extent) -> u64 {
    extent.rows as u64 * products(shape) + extent.sets as u64 * context_maps(shape)
}

/// f and the gradients with respect to parameters and context.
pub(super) fn backward(shape: &MlpShape, extent: Extent) -> u64 {
    let rows = products(shape) + products(shape) + inner_products(shape);
    extent.rows as u64 * rows + extent.sets as u64 * 3 * context_maps(shape)
}

/// f and ∇ₓ f of every row, `evaluations` times with one context.
pub(super) fn scores(shape: &MlpShape, extent: Extent, evaluations: u64) -> u64 {
    let first = shape.layers().first().map_or(0, |layer| layer.outputs);
    let rows = products(shape) + inner_products(shape) + dense(shape.config().value_dim, first);
    evaluations * extent.rows as u64 * rows + extent.sets as u64 * context_maps(shape)
}

/// Gradients of ⟨v, ∇ₓ f⟩ + u f with respect to parameters and context, for a smooth σ.
///
/// ⟨v, ∇ₓ f⟩ is the derivative of f along v. Two streams go forward, z and its tangent along v,
/// and two come back: twice a [`backward`], but the context has no tangent.
pub(super) fn score_backward(shape: &MlpShape, extent: Extent) -> u64 {
    let rows = products(shape) + products(shape) + inner_products(shape);
    extent.rows as u64 * 2 * rows + extent.sets as u64 * 3 * context_maps(shape)
}

/// log Z of every anchor, then its gradients with respect to parameters and context.
///
/// The second operation gets the candidates and log Z, not the activations of the first, so the
/// forward pass counts twice. The location's part of the first layer counts once per anchor, as
/// the context's counts once per set.
pub(super) fn log_partition_and_backward(shape: &MlpShape, extent: Extent, anchors: usize) -> u64 {
    let first = shape.layers().first().map_or(0, |layer| layer.outputs);
    let location = dense(shape.config().location_dim, first);
    let per_row = 3 * (products(shape) - location) + inner_products(shape);
    extent.rows as u64 * per_row
        + anchors as u64 * 3 * location
        + extent.sets as u64 * 4 * context_maps(shape)
}

/// Max pooling of every row, then its gradients with respect to the parameters.
///
/// The forward pass counts for all rows. Going back, an output sends its gradient only to the row
/// that attains its maximum. So the hidden layers count, forward and backward, for the distinct
/// critical rows alone, and the last layer for one output per maximum (its value, its data and
/// its weight gradient), not for the many products that a dense backward pass would make in vain.
pub(super) fn max_pool_and_backward(shape: &MlpShape, extent: Extent, pooled: &Pooled) -> u64 {
    let distinct = pooled.critical.iter().collect::<BTreeSet<_>>().len() as u64;
    let last = shape.layers().last().map_or(0, |layer| dense(layer.inputs, layer.outputs));
    let inputs = shape.layers().last().map_or(0, |layer| layer.inputs);
    let hidden = 2 * (products(shape) - last) + inner_products(shape).saturating_sub(last);
    forward(shape, extent)
        + distinct * hidden
        + pooled.critical.len() as u64 * 3 * dense(inputs, 1)
        + extent.sets as u64 * 3 * context_maps(shape)
}

/// 2ab.
fn dense(inputs: usize, outputs: usize) -> u64 {
    2 * inputs as u64 * outputs as u64
}

/// All layers, per row.
fn products(shape: &MlpShape) -> u64 {
    shape.layers().iter().map(|layer| dense(layer.inputs, layer.outputs)).sum()
}

/// All layers but the first, per row.
fn inner_products(shape: &MlpShape) -> u64 {
    shape.layers().iter().skip(1).map(|layer| dense(layer.inputs, layer.outputs)).sum()
}

/// All maps of the context, per set.
fn context_maps(shape: &MlpShape) -> u64 {
    let receiving = shape.layers().iter().filter(|layer| layer.context_weight.is_some());
    receiving.map(|layer| dense(shape.config().context_dim, layer.outputs)).sum()
}

#[cfg(test)]
mod tests {
    use crate::point::{ContextAt, MlpConfig, Pooling};

    use super::*;

    fn shape(config: MlpConfig) -> MlpShape {
        MlpShape::new(config).unwrap()
    }

    /// 3 → 128 → 64 → 1 with a context of 512: per point 2·3·128 + 2·128·64 + 2·64 = 17 280,
    /// per set 2·512·128 = 131 072.
    #[test]
    fn the_paper_energy_by_hand() {
        let shape = shape(MlpConfig::default());
        let extent = Extent { rows: 131_072, sets: 64 };
        assert_eq!(forward(&shape, extent), 131_072 * 17_280 + 64 * 131_072);
        // Data gradients without the first layer: 2·128·64 + 2·64 = 16 512.
        assert_eq!(backward(&shape, extent), 131_072 * (34_560 + 16_512) + 64 * 3 * 131_072);
        assert_eq!(scores(&shape, extent, 21), 21 * 131_072 * 34_560 + 64 * 131_072);
        assert_eq!(
            score_backward(&shape, extent),
            131_072 * 2 * (34_560 + 16_512) + 64 * 3 * 131_072
        );
    }

    #[test]
    fn every_layer_that_receives_the_context_counts_it() {
        let config = MlpConfig { context_at: ContextAt::EveryLayer, ..MlpConfig::default() };
        let maps = context_maps(&shape(config));
        assert_eq!(maps, 2 * 512 * (128 + 64));
    }

    #[test]
    fn locations_have_no_score() {
        let config = MlpConfig {
            value_dim: 1,
            location_dim: 2,
            context_dim: 0,
            hidden_widths: vec![5],
            ..MlpConfig::default()
        };
        // Forward 2·3·5 + 2·5, back 2·5 + 2·1·5.
        assert_eq!(scores(&shape(config), Extent { rows: 1, sets: 1 }, 1), 40 + 20);
    }

    #[test]
    fn candidates_share_the_location_of_their_anchor() {
        let config = MlpConfig {
            value_dim: 1,
            location_dim: 2,
            context_dim: 6,
            hidden_widths: vec![5],
            ..MlpConfig::default()
        };
        // Two anchors of ten candidates in one set; 1 → 5 → 1 per candidate, forward twice,
        // weight gradients, and the data gradient of 5 → 1; 2 → 5 per anchor, 6 → 5 per set.
        assert_eq!(
            log_partition_and_backward(&shape(config), Extent { rows: 20, sets: 1 }, 2),
            20 * (3 * 20 + 10) + 2 * 3 * 20 + 4 * 60
        );
    }

    #[test]
    fn only_critical_rows_are_counted_on_the_way_back() {
        let config = MlpConfig {
            value_dim: 2,
            context_dim: 0,
            hidden_widths: vec![5, 7],
            output_dim: 4,
            activate_output: true,
            ..MlpConfig::default()
        };
        // Three of ten rows are critical, row 3 for two outputs.
        let pooled = Pooled {
            pooling: Pooling::Max,
            values: vec![1.0, 0.5, 2.0, 0.0],
            critical: vec![3, 8, 3, 9],
        };
        let forward_per_row = 2 * (2 * 5 + 5 * 7 + 7 * 4);
        // Forward and weight gradients of the hidden layers, data gradients of all but the first;
        // of the last layer three products of length 7 per maximum.
        let per_critical_row = 2 * (2 * 2 * 5 + 3 * 5 * 7);
        let per_maximum = 3 * 2 * 7;
        assert_eq!(
            max_pool_and_backward(&shape(config), Extent { rows: 10, sets: 1 }, &pooled),
            10 * forward_per_row + 3 * per_critical_row + 4 * per_maximum
        );
    }

    #[test]
    fn a_linear_map_has_no_inner_layers() {
        let config = MlpConfig {
            hidden_widths: vec![],
            context_dim: 0,
            output_dim: 2,
            ..MlpConfig::default()
        };
        let extent = Extent { rows: 10, sets: 2 };
        assert_eq!(backward(&shape(config), extent), 10 * 2 * (2 * 3 * 2));
    }
}
