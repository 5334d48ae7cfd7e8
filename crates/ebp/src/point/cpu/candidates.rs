//! Many candidate values per anchor: log-partitions by exact sums or importance sampling.
//!
//! A row of the tile is one candidate of one anchor. The first layer factors once more,
//!
//! ```text
//! z₁ = Wₓ x + (W_t t + b + C c)
//! ```
//!
//! and the bracket is computed once per anchor in the tile, not once per candidate.

use std::ops::Range;

use rayon::prelude::*;

use super::accumulator::Accumulator;
use super::buffer::Matrix;
use super::call::{Call, concat};
use super::kernel::{Finish, Outer, Product, RowSum, Start};
use super::packed::Needs;
use super::schedule::{run_chunks, tile_rows, tiles};
use super::tile::{Keep, Network, Tile, row_capacity};
use crate::point::{CandidateValues, Candidates, Gradients, LogPartition, LogWeights, Wanted};

/// A tile of candidates and the anchors they belong to.
struct CandidateTile {
    tile: Tile,
    /// Locations of the anchors in the tile.
    locations: Matrix,
    /// The set of each anchor, as rows of the shift table.
    anchor_sets: Vec<u32>,
    /// Gradient of the anchors' shifts.
    anchor_gradient: Matrix,
    anchors: Range<usize>,
}

/// A call on candidates: the batch inside `call` has the anchors as its elements.
pub(super) struct CandidateCall<'a> {
    pub(super) call: Call<'a>,
    pub(super) candidates: &'a Candidates<'a>,
}

impl CandidateCall<'_> {
    fn value_of(&self, row: usize) -> &[f32] {
        let dims = self.call.value_dim();
        match self.candidates.values {
            CandidateValues::PerAnchor(values) => &values[row * dims..][..dims],
            CandidateValues::Shared(values) => {
                &values[row % self.candidates.num_candidates * dims..][..dims]
            }
        }
    }

    fn log_weight(&self, row: usize) -> f32 {
        match self.candidates.log_weights {
            LogWeights::Zero => 0.0,
            LogWeights::PerAnchor(weights) => weights[row],
            LogWeights::Shared(weights) => weights[row % self.candidates.num_candidates],
        }
    }

    /// Whether anchors have shifts of their own. A network of one narrow layer works on dot
    /// products and takes the location as part of the element instead.
    fn has_anchor_shifts(&self, net: &Network<'_>) -> bool {
        self.call.mlp.shape().config().location_dim > 0 && !net.packed.layers[0].is_narrow
    }

    fn num_rows(&self) -> usize {
        self.candidates.num_anchors() * self.candidates.num_candidates
    }

    fn sets_of(&self, rows: &Range<usize>) -> Range<usize> {
        let k = self.candidates.num_candidates;
        self.call.sets_of(&(rows.start / k..(rows.end - 1) / k + 1))
    }

    fn tile(&self, net: &Network<'_>, capacity: usize, keep: Keep) -> CandidateTile {
        let config = self.call.mlp.shape().config();
        let anchors = row_capacity(capacity / self.candidates.num_candidates + 2);
        let mut tile = Tile::new(net, capacity, keep);
        let width = net.packed.layers[0].output_width;
        if self.has_anchor_shifts(net) {
            tile.first_rows = Some(vec![0; capacity]);
            tile.first_shifts = Matrix::zeros(anchors, width);
        }
        CandidateTile {
            tile,
            locations: Matrix::zeros(anchors, config.location_dim.max(1)),
            anchor_sets: vec![0; anchors],
            anchor_gradient: Matrix::zeros(anchors, width),
            anchors: 0..0,
        }
    }

    /// Fills the tile with candidates `rows` and computes their anchors' shifts.
    fn load(&self, net: &Network<'_>, part: &mut CandidateTile, rows: Range<usize>) {
        let k = self.candidates.num_candidates;
        let config = self.call.mlp.shape().config();
        let (dims, location_dim) = (config.value_dim, config.location_dim);
        let anchors = rows.start / k..(rows.end - 1) / k + 1;
        let tile = &mut part.tile;
        let locations = self.candidates.locations;
        tile.rows = rows.len();
        for (local, row) in rows.clone().enumerate() {
            let element = tile.elements.row_mut(local);
            element[..dims].copy_from_slice(self.value_of(row));
            if tile.first_rows.is_none() {
                let location = &locations[row / k * location_dim..][..location_dim];
                element[dims..dims + location_dim].copy_from_slice(location);
            }
        }
        tile.runs.clear();
        let offsets = self.candidates.offsets;
        let mut row = rows.start;
        while row < rows.end {
            let set = offsets.set_of(row / k);
            let end = (offsets.range(set).end * k).min(rows.end);
            tile.push_run(set, row - rows.start..end - rows.start);
            row = end;
        }
        if let Some(first_rows) = &mut tile.first_rows {
            for (local, first_row) in first_rows.iter_mut().enumerate() {
                let row = (rows.start + local).min(rows.end - 1);
                *first_row = (row / k - anchors.start) as u32;
            }
            for (local, anchor) in anchors.clone().enumerate() {
                let location = &locations[anchor * location_dim..][..location_dim];
                part.locations.row_mut(local)[..location_dim].copy_from_slice(location);
            }
            let table = &net.shifts[0];
            let last = anchors.len() - 1;
            for (local, set) in part.anchor_sets.iter_mut().enumerate() {
                let anchor = anchors.start + local.min(last);
                *set = if table.is_per_set { offsets.set_of(anchor) as u32 } else { 0 };
            }
            net.kernels.product(Product {
                rows: anchors.len(),
                inputs: &part.locations.data,
                input_stride: part.locations.stride,
                depth: location_dim,
                panels: net.packed.layers[0].forward_panels(dims),
                start: Start::Shift {
                    table: &table.data,
                    stride: table.width,
                    rows: &part.anchor_sets,
                },
                out_stride: tile.first_shifts.stride,
                finish: Finish::Store(&mut tile.first_shifts.data),
            });
        }
        part.anchors = anchors;
    }
}

impl CandidateTile {
    /// Adds the gradients that reach the anchors' shifts: locations' weights, and set shifts.
    fn accumulate_anchors(&mut self, net: &Network<'_>, into: &mut Accumulator) {
        let Some(first_rows) = &self.tile.first_rows else { return };
        let config = net.packed.mlp.shape().config();
        let width = self.anchor_gradient.width;
        let gradient = &self.tile.slopes[0];
        let mut row = 0;
        for (local, _) in self.anchors.clone().enumerate() {
            let end =
                row + first_rows[row..self.tile.rows].partition_point(|&r| r as usize <= local);
            let sum = self.anchor_gradient.row_mut(local);
            sum.fill(0.0);
            net.kernels.row_sum(RowSum {
                rows: end - row,
                from: &gradient.data[row * gradient.stride..],
                stride: gradient.stride,
                width,
                into: sum,
            });
            row = end;
            let set = self.anchor_sets[local] as usize;
            let set = if net.shifts[0].is_per_set { set } else { into.first_set };
            let target = into.shift_row(0, set);
            for (total, term) in target.iter_mut().zip(self.anchor_gradient.row(local)) {
                *total += term;
            }
        }
        if let Some(weights) = into.weights.first_mut() {
            net.kernels.outer(Outer {
                rows: self.anchors.len(),
                left: &self.locations.data,
                left_stride: self.locations.stride,
                left_width: config.location_dim,
                right: &self.anchor_gradient.data,
                right_stride: self.anchor_gradient.stride,
                right_width: width,
                gradient: &mut weights[config.value_dim * width..],
                gradient_stride: width,
            });
        }
    }
}

pub(super) fn log_partition(task: &CandidateCall<'_>) -> LogPartition {
    let k = task.candidates.num_candidates;
    let net = task.call.network(Needs::default());
    let capacity = tile_rows(&net.packed, 1);
    let values = concat(run_chunks(
        task.num_rows(),
        capacity,
        || task.tile(&net, capacity, Keep::Values),
        |part, chunk| {
            let mut values = Vec::with_capacity(chunk.len());
            for rows in tiles(chunk, capacity) {
                task.load(&net, part, rows);
                part.tile.forward(&net, Keep::Values, false);
                part.tile.push_outputs(1, &mut values);
            }
            values
        },
    ));
    let log_partition = values
        .par_chunks_exact(k)
        .enumerate()
        .map(|(anchor, values)| log_sum_exp(task, anchor * k, values))
        .collect();
    LogPartition { log_partition, values }
}

/// log Σ exp(f + ω), shifted by the largest term so that nothing overflows.
fn log_sum_exp(task: &CandidateCall<'_>, first: usize, values: &[f32]) -> f32 {
    let terms = || {
        values.iter().enumerate().map(|(k, value)| f64::from(value + task.log_weight(first + k)))
    };
    // A NaN must reach the result: f64::max would drop it.
    let largest = terms().fold(f64::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a });
    if !largest.is_finite() {
        return largest as f32;
    }
    (largest + terms().map(|term| (term - largest).exp()).sum::<f64>().ln()) as f32
}

pub(super) fn log_partition_backward(
    task: &CandidateCall<'_>,
    log_partition: &[f32],
    cotangent: &[f32],
    wanted: Wanted,
) -> Gradients {
    let k = task.candidates.num_candidates;
    let dims = task.call.value_dim();
    // Only what is wanted is computed: of an element its value, or with it the location behind it.
    let element_dims = match wanted {
        Wanted { locations: true, .. } => task.call.mlp.shape().element_dim(),
        Wanted { elements: true, .. } => dims,
        _ => 0,
    };
    let net = task.call.network(Needs { backward: true, element_dims });
    let capacity = tile_rows(&net.packed, 2);
    let parts = run_chunks(
        task.num_rows(),
        capacity,
        || task.tile(&net, capacity, Keep::Slopes),
        |part, chunk| {
            let mut sums = Accumulator::new(&net, task.sets_of(&chunk), wanted);
            let mut elements = Vec::new();
            for rows in tiles(chunk, capacity) {
                let first = rows.start;
                task.load(&net, part, rows);
                part.tile.forward(&net, Keep::Slopes, false);
                // ∂ log Σ exp(f + ω) / ∂f_k = exp(f_k + ω_k − log Z)
                part.tile.set_cotangent(&net, |tile, local, gradient| {
                    let row = first + local;
                    let logit = tile.output(local)[0] + task.log_weight(row);
                    gradient[0] = cotangent[row / k] * (logit - log_partition[row / k]).exp();
                });
                part.tile.backward(&net);
                if wanted.parameters || wanted.context {
                    part.tile.accumulate(&net, &mut sums);
                    part.accumulate_anchors(&net, &mut sums);
                }
                if element_dims > 0 {
                    part.tile.backward_to_elements(&net);
                    part.tile.push_element_gradients(element_dims, &mut elements);
                }
            }
            (sums, elements)
        },
    );
    let (sums, elements): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let mut gradients = task.call.finish(&net, &sums, wanted);
    let rows = concat(elements);
    gradients.locations = wanted.locations.then(|| of_locations(&rows, k, (dims, element_dims)));
    gradients.elements = wanted.elements.then(|| of_values(task, rows, element_dims));
    gradients
}

/// What reaches the candidates' values, from the gradients of rows of `width` numbers: summed over
/// anchors where candidates are shared.
fn of_values(task: &CandidateCall<'_>, rows: Vec<f32>, width: usize) -> Vec<f32> {
    let (k, dims) = (task.candidates.num_candidates, task.call.value_dim());
    let values = if width == dims {
        rows
    } else {
        rows.chunks_exact(width).flat_map(|row| &row[..dims]).copied().collect()
    };
    match task.candidates.values {
        CandidateValues::PerAnchor(_) => values,
        CandidateValues::Shared(_) => {
            let mut shared = vec![0.0; k * dims];
            for anchor in values.chunks_exact(k * dims) {
                for (total, term) in shared.iter_mut().zip(anchor) {
                    *total += term;
                }
            }
            shared
        }
    }
}

/// What reaches the anchors' locations, the end of every row, from all of their k candidates.
fn of_locations(rows: &[f32], k: usize, (first, width): (usize, usize)) -> Vec<f32> {
    let of_anchor = |anchor: &[f32]| -> Vec<f32> {
        let sum = |column: usize| {
            anchor.chunks_exact(width).map(|row| f64::from(row[column])).sum::<f64>() as f32
        };
        (first..width).map(sum).collect()
    };
    concat(rows.par_chunks_exact(k * width).map(of_anchor).collect())
}
