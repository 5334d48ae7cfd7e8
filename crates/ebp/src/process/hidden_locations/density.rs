//! log p(x | θ) with the location integrated out, on the tape:
//!
//! ```text
//! p(x | θ) = ∫ p(x | t, θ) p(t) dt ≈ (1/T) Σ_j exp(u(x, t_j; θ) − log Z(t_j; θ))
//! u = f(x, t; θ) − ‖x‖²/(2 s₀²) on [−b, b]ᵈ,     t uniform on [−1, 1]^d_t
//! ```
//!
//! In training the nodes t_j are stratified draws, one in each of T cells, so that the sum is unbiased
//! for p(x | θ), and log Z is by importance sampling from the domain and from kernels around a set's own
//! elements. To score and to draw, the nodes are the middles of many cells, and so are the values over
//! which Z is summed.

use std::sync::Arc;

use super::HiddenLocationConfig;
use crate::energy::{ElementEnergy, push_features};
use crate::linalg::log_sum_exp;
use crate::recipe::EnergyBasedConfig;
use crate::rng::Stream;
use crate::tape::{CandidateVars, Choice, Group, Tape, Var};
use crate::{Result, SetOffsets};

/// Widths of the kernels around a set's own elements, in standard deviations of the data.
const KERNEL_WIDTHS: [f32; 3] = [0.05, 0.15, 0.4];
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_7;

/// f, the domain of values and the law of locations.
#[derive(Clone, Debug)]
pub(super) struct Density {
    energy: ElementEnergy,
    dim: usize,
    location_dim: usize,
    frequencies: usize,
    half_width: f32,
    base_std_dev: f32,
}

/// Features of locations, as many nodes for each set.
pub(super) struct Nodes {
    features: Vec<f32>,
    /// T.
    pub(super) count: usize,
    width: usize,
}

/// Elements of sets whose density is asked.
pub(super) struct Asked<'a> {
    /// `[total, d]`.
    pub(super) values: &'a [f32],
    pub(super) offsets: &'a Arc<SetOffsets>,
    /// θ of every set, `[sets, k]`.
    pub(super) theta: Var,
    /// Of every set, `[sets, T]`.
    pub(super) nodes: &'a Nodes,
}

/// Values over which Z is taken.
pub(super) enum Candidates {
    /// K for each set, `[sets, K, d]`, and the logarithms of their weights.
    Own(Vec<f32>, Vec<f32>, usize),
    /// The same for all sets, `[K, d]`.
    Grid(Vec<f32>, Vec<f32>),
}

/// What comes of them.
pub(super) struct Densities {
    /// log p(x | t_j, θ) − ‖x‖²'s part, `[total, T]`: what the log-sum-exp is over.
    pub(super) given_node: Var,
    /// log p(x | θ), `[total, 1]`.
    pub(super) log_density: Var,
}

impl Density {
    pub(super) fn new(
        config: &HiddenLocationConfig,
        networks: &EnergyBasedConfig,
        dim: usize,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let features = config.location_dim * (1 + 2 * config.location_frequencies);
        Ok(Self {
            energy: ElementEnergy::new(networks, (dim, features), group)?,
            dim,
            location_dim: config.location_dim,
            frequencies: config.location_frequencies,
            half_width: config.half_width,
            base_std_dev: config.base_std_dev,
        })
    }

    /// Nodes on [−1, 1]^d_t for each of `num_sets`: one in each cell of a grid with `per_axis` along an
    /// axis, drawn, or with no stream in the middle.
    pub(super) fn nodes(&self, per_axis: usize, num_sets: usize, draws: Option<Stream>) -> Nodes {
        let count = std::iter::repeat_n(per_axis, self.location_dim).product::<usize>();
        let mut within = vec![0.5_f32; num_sets * count * self.location_dim];
        if let Some(stream) = draws {
            stream.fill_uniform(0, 0, &mut within);
        }
        let mut features = Vec::new();
        for (place, within) in within.chunks_exact(self.location_dim).enumerate() {
            let mut cell = place % count;
            let mut location = Vec::with_capacity(self.location_dim);
            for share in within {
                location.push(2.0 * ((cell % per_axis) as f32 + share) / per_axis as f32 - 1.0);
                cell /= per_axis;
            }
            push_features(&location, self.frequencies, &mut features);
        }
        let width = self.location_dim * (1 + 2 * self.frequencies);
        Nodes { features, count, width }
    }

    /// Whether a value lies in the domain.
    pub(super) fn holds(&self, value: &[f32]) -> bool {
        value.iter().all(|x| x.abs() <= self.half_width)
    }

    /// −‖x‖²/(2 s₀²)
    fn base(&self, value: &[f32]) -> f32 {
        -0.5 * value.iter().map(|x| x * x).sum::<f32>() / self.base_std_dev.powi(2)
    }

    /// `count` candidates for each set: half of them anywhere in the domain, half around its own
    /// elements, weighed by the mixture of both.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place, weights")]
    pub(super) fn candidates(
        &self,
        values: &[f32],
        offsets: &SetOffsets,
        count: usize,
        stream: Stream,
    ) -> Candidates {
        let (dim, num_uniform) = (self.dim, count.div_ceil(2));
        let share = num_uniform as f64 / count as f64;
        let log_volume = dim as f64 * (2.0 * f64::from(self.half_width)).ln();
        let mut drawn = Vec::with_capacity(offsets.num_sets() * count * dim);
        let mut log_weights = Vec::with_capacity(offsets.num_sets() * count);
        for set in 0..offsets.num_sets() {
            let stream = stream.child(set as u64);
            let range = offsets.range(set);
            let own = &values[range.start * dim..range.end * dim];
            let size = range.len();
            let mut places = vec![0.0_f32; count * dim];
            let mut noise = vec![0.0_f32; count * dim];
            let mut picks = vec![0.0_f32; 2 * count];
            stream.child(0).fill_uniform(0, 0, &mut places);
            stream.child(1).fill_normal(0, 0, &mut noise);
            stream.child(2).fill_uniform(0, 0, &mut picks);
            for number in 0..count {
                let mut y: Vec<f32> = (0..dim)
                    .map(|axis| self.half_width * (2.0 * places[number * dim + axis] - 1.0))
                    .collect();
                if number >= num_uniform {
                    let element = ((picks[2 * number] * size as f32) as usize).min(size - 1);
                    let kernel = (picks[2 * number + 1] * KERNEL_WIDTHS.len() as f32) as usize;
                    let width = KERNEL_WIDTHS[kernel.min(KERNEL_WIDTHS.len() - 1)];
                    for (axis, y) in y.iter_mut().enumerate() {
                        *y = own[element * dim + axis] + width * noise[number * dim + axis];
                    }
                }
                let log_weight = if self.holds(&y) {
                    let kernels = self.log_kernels(&y, own);
                    let mixture = [share.ln() - log_volume, (1.0 - share).ln() + kernels];
                    let log_count = (count as f64).ln();
                    self.base(&y) - (log_sum_exp(&mixture) + log_count) as f32
                } else {
                    f32::NEG_INFINITY
                };
                log_weights.push(log_weight);
                drawn.extend(y);
            }
        }
        Candidates::Own(drawn, log_weights, count)
    }

    /// log (1/nW) Σᵢ Σ_w N(y; xᵢ, w² I)
    fn log_kernels(&self, y: &[f32], own: &[f32]) -> f64 {
        let mut sum = 0.0;
        for x in own.chunks_exact(self.dim) {
            let square: f32 = y.iter().zip(x).map(|(y, x)| (y - x) * (y - x)).sum();
            for width in KERNEL_WIDTHS {
                let scaled = f64::from(square) / f64::from(width * width);
                let log_width = self.dim as f64 * (f64::from(width).ln() + LOG_ROOT_TAU);
                sum += (-0.5 * scaled - log_width).exp();
            }
        }
        (sum / (own.len() / self.dim * KERNEL_WIDTHS.len()) as f64).ln()
    }

    /// The middles of `per_axis`ᵈ cells of the domain.
    #[expect(clippy::cast_possible_truncation, reason = "weights of a network")]
    pub(super) fn grid(&self, per_axis: usize) -> Candidates {
        let width = 2.0 * self.half_width / per_axis as f32;
        let log_volume = (self.dim as f64 * f64::from(width).ln()) as f32;
        let mut values = Vec::new();
        let mut log_weights = Vec::new();
        for place in 0..per_axis.pow(self.dim as u32) {
            let mut cell = place;
            let start = values.len();
            for _ in 0..self.dim {
                values.push(((cell % per_axis) as f32 + 0.5) * width - self.half_width);
                cell /= per_axis;
            }
            log_weights.push(self.base(&values[start..]) + log_volume);
        }
        Candidates::Grid(values, log_weights)
    }

    #[cfg(test)]
    pub(super) fn energy_shape(&self) -> &crate::point::MlpShape {
        &self.energy.shape
    }

    #[cfg(test)]
    pub(super) fn network(
        &self,
        set: &crate::tape::ParameterSet,
    ) -> Result<crate::point::PointMlp> {
        self.energy.network(set)
    }

    /// The parameters of f.
    pub(super) fn parameters(&self, tape: &mut Tape, is_training: bool) -> Result<Var> {
        self.energy.calibrated(tape, is_training)
    }

    /// log p(x | θ) of every element.
    pub(super) fn log_densities(
        &self,
        tape: &mut Tape,
        parameters: Var,
        asked: &Asked<'_>,
        candidates: Candidates,
    ) -> Result<Densities> {
        let Asked { values, offsets, theta, nodes } = asked;
        let (num_sets, total, count) = (offsets.num_sets(), offsets.num_elements(), nodes.count);
        let of_set = |set: usize| {
            let size = count * nodes.width;
            nodes.features[set * size..(set + 1) * size].chunks_exact(nodes.width)
        };
        let mut rows = Vec::with_capacity(total * count * (self.dim + nodes.width));
        for (element, value) in values.chunks_exact(self.dim).enumerate() {
            for node in of_set(offsets.set_of(element)) {
                rows.extend_from_slice(value);
                rows.extend_from_slice(node);
            }
        }
        let sizes = (0..num_sets).map(|set| offsets.size(set) * count);
        let row_offsets = Arc::new(SetOffsets::from_sizes(sizes)?);
        let elements = tape.upload(rows, (total * count, self.dim + nodes.width))?;
        let points = self.energy.points(parameters, elements, *theta, &row_offsets);
        let potentials = tape.point_values(&points)?;
        let potentials = tape.reshape(potentials, (total, count))?;

        let (log_partition, _) =
            self.log_partitions(tape, parameters, (*theta, num_sets), nodes, candidates)?;
        let log_partition = tape.reshape(log_partition, (num_sets, count))?;
        let log_partition = tape.spread(log_partition, offsets)?;
        let given_node = tape.subtract(potentials, log_partition)?;
        let summed = tape.log_sum_exp(given_node)?;
        let log_count = (count as f32).ln();
        let base: Vec<f32> =
            values.chunks_exact(self.dim).map(|value| self.base(value) - log_count).collect();
        let base = tape.upload(base, (total, 1))?;
        let log_density = tape.add(summed, base)?;
        Ok(Densities { given_node, log_density })
    }

    /// log Z(t_j; θ) of every set and node, `[sets · T, 1]`, and f of every candidate.
    pub(super) fn log_partitions(
        &self,
        tape: &mut Tape,
        parameters: Var,
        (theta, num_sets): (Var, usize),
        nodes: &Nodes,
        candidates: Candidates,
    ) -> Result<(Var, Var)> {
        let anchors = num_sets * nodes.count;
        let (values, log_weights, count, is_shared) = match candidates {
            Candidates::Grid(values, weights) => {
                let count = weights.len();
                let values = tape.upload(values, (count, self.dim))?;
                (values, tape.upload(weights, (1, count))?, count, true)
            }
            // All nodes of a set have its candidates.
            Candidates::Own(values, weights, count) => {
                let repeated = Arc::new(Choice::repeated(num_sets, nodes.count)?);
                let values = tape.upload(values, (num_sets, count * self.dim))?;
                let values = tape.gather(values, &repeated)?;
                let values = tape.reshape(values, (anchors * count, self.dim))?;
                let weights = tape.upload(weights, (num_sets, count))?;
                (values, tape.gather(weights, &repeated)?, count, false)
            }
        };
        let locations = tape.upload(nodes.features.clone(), (anchors, nodes.width))?;
        let offsets = Arc::new(SetOffsets::uniform(num_sets, nodes.count)?);
        let candidates = CandidateVars {
            values,
            count,
            is_shared,
            locations: Some(locations),
            log_weights: Some(log_weights),
            offsets,
        };
        let network = (&self.energy.shape, parameters, Some(theta));
        let found = tape.log_partition(network, &candidates)?;
        Ok((found.log_partition, found.values))
    }
}
