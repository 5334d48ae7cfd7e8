//! The data and the networks the cases run on, all made from one seed.

use super::flops::Extent;
use super::size::BenchSizes;
use crate::SetOffsets;
use crate::point::{
    Activation, CandidateValues, Candidates, LogWeights, MlpConfig, MlpShape, PointBatch, PointMlp,
};
use crate::rng::Stream;
use crate::{Error, Result};

/// K of the case `candidates256`: an alphabet as large as the grey levels of a pixel.
pub(super) const NUM_CANDIDATES: usize = 256;
/// T of the dynamics, as in the paper.
pub(super) const NUM_STEPS: usize = 20;
/// Numbers of an anchor's location in `candidates256`: a pixel's place.
const ANCHOR_LOCATION_DIM: usize = 2;

/// Everything the cases read.
#[derive(Debug)]
pub(super) struct Workload {
    /// The energy f of the given activation.
    pub(super) energy: PointMlp,
    /// The same with an activation that has a second derivative.
    pub(super) smooth_energy: PointMlp,
    /// The energy of values at locations, for the candidates.
    pub(super) located_energy: PointMlp,
    /// The Deep Sets encoder, rectified, without context.
    pub(super) encoder: PointMlp,
    /// Constant `1 / elements`, the gradient of the mean energy.
    pub(super) mean_cotangent: Vec<f32>,
    /// Standard normal, one row per element: initial momenta and cotangents of scores.
    pub(super) directions: Vec<f32>,
    /// Constant `1 / anchors`, the gradient of the mean log partition.
    pub(super) anchor_cotangent: Vec<f32>,
    /// Where the noise of the dynamics comes from.
    pub(super) noise: Stream,
    elements: Vec<f32>,
    offsets: SetOffsets,
    context: Vec<f32>,
    candidates: Vec<f32>,
    anchor_locations: Vec<f32>,
    anchor_offsets: SetOffsets,
}

impl Workload {
    /// Draws data and weights.
    pub(super) fn new(sizes: &BenchSizes, seed: u64) -> Result<Self> {
        let normals = |name: &str, count: usize| {
            let mut values = vec![0.0; count];
            Stream::new(seed, name).fill_normal(0, 0, &mut values);
            values
        };
        let network = |name: &str, config: MlpConfig| -> Result<PointMlp> {
            let shape = MlpShape::new(config).and_then(|shape| {
                shape.check_tile()?;
                Ok(shape)
            });
            let shape = shape.map_err(|error| {
                Error::refused(format!("the {name} cannot have this shape: {error}")).with_help(
                    format!(
                        "its sizes come from `--value-dim`, `--context-dim` and `--{name}-widths`"
                    ),
                )
            })?;
            Ok(PointMlp::random(shape, Stream::new(seed, name)))
        };
        let offsets = |elements_per_set: usize| {
            SetOffsets::uniform(sizes.sets, elements_per_set).map_err(|error| {
                Error::refused(format!("{error}")).with_help("lower `--sets` or `--points`")
            })
        };
        let energy = MlpConfig {
            value_dim: sizes.value_dim,
            location_dim: 0,
            context_dim: sizes.context_dim,
            hidden_widths: sizes.energy_widths.clone(),
            output_dim: 1,
            activation: sizes.activation,
            context_at: sizes.context_at,
            activate_output: false,
        };
        let smooth_energy = MlpConfig {
            activation: match energy.activation {
                piecewise if piecewise.is_piecewise_linear() => Activation::Silu,
                smooth => smooth,
            },
            ..energy.clone()
        };
        let located_energy = MlpConfig { location_dim: ANCHOR_LOCATION_DIM, ..energy.clone() };
        let (encoder_output, encoder_hidden) = match sizes.encoder_widths.split_last() {
            Some((&output, hidden)) => (output, hidden.to_vec()),
            None => (sizes.context_dim, Vec::new()),
        };
        let encoder = MlpConfig {
            context_dim: 0,
            hidden_widths: encoder_hidden,
            output_dim: encoder_output,
            activation: Activation::Relu,
            activate_output: true,
            ..energy.clone()
        };

        let num_elements = sizes.num_elements();
        // As many candidates in all as there are elements, so that the cases compare.
        let anchors_per_set = sizes.points.div_ceil(NUM_CANDIDATES);
        let num_anchors = sizes.sets * anchors_per_set;
        Ok(Self {
            energy: network("energy", energy)?,
            smooth_energy: network("energy", smooth_energy)?,
            located_energy: network("energy", located_energy)?,
            encoder: network("encoder", encoder)?,
            mean_cotangent: vec![1.0 / num_elements as f32; num_elements],
            directions: normals("directions", num_elements * sizes.value_dim),
            anchor_cotangent: vec![1.0 / num_anchors as f32; num_anchors],
            noise: Stream::new(seed, "noise"),
            elements: normals("elements", num_elements * sizes.value_dim),
            offsets: offsets(sizes.points)?,
            context: normals("context", sizes.sets * sizes.context_dim),
            candidates: normals("candidates", NUM_CANDIDATES * sizes.value_dim),
            anchor_locations: normals("locations", num_anchors * ANCHOR_LOCATION_DIM),
            anchor_offsets: offsets(anchors_per_set)?,
        })
    }

    /// The sets with their contexts.
    pub(super) fn batch(&self) -> PointBatch<'_> {
        PointBatch { elements: &self.elements, offsets: &self.offsets, context: &self.context }
    }

    /// The sets alone, for the encoder.
    pub(super) fn plain_batch(&self) -> PointBatch<'_> {
        PointBatch { context: &[], ..self.batch() }
    }

    /// One list of candidates for every anchor.
    pub(super) fn candidates(&self) -> Candidates<'_> {
        Candidates {
            values: CandidateValues::Shared(&self.candidates),
            num_candidates: NUM_CANDIDATES,
            locations: &self.anchor_locations,
            offsets: &self.anchor_offsets,
            context: &self.context,
            log_weights: LogWeights::Zero,
        }
    }

    /// Elements and sets of the batch.
    pub(super) fn extent(&self) -> Extent {
        Extent { rows: self.offsets.num_elements(), sets: self.offsets.num_sets() }
    }

    /// Candidates of all anchors, and sets.
    pub(super) fn candidates_extent(&self) -> Extent {
        Extent { rows: self.num_anchors() * NUM_CANDIDATES, sets: self.anchor_offsets.num_sets() }
    }

    /// Anchors of all sets.
    pub(super) fn num_anchors(&self) -> usize {
        self.anchor_offsets.num_elements()
    }
}
