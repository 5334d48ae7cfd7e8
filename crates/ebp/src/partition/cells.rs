//! Candidate values for log Z in training: one in each cell of a grid, at a random place.
//!
//! With one draw per cell the estimate of ∫ exp f is unbiased and far less noisy than with
//! independent draws, and every peak wider than a cell is met at every step.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "dimensions are few, and cells are counted from zero"
)]

use crate::rng::Stream;

/// Candidates `[anchors, K, dims]` and the log weight log(volume / K) that each carries.
pub(crate) struct Proposals {
    pub(crate) values: Vec<f32>,
    pub(crate) num_candidates: usize,
    pub(crate) log_weight: f32,
}

/// About `wanted` candidates per anchor, at least 2^dims: ⌊wanted^(1/dims)⌋ cells per coordinate.
pub(crate) fn stratified(
    num_anchors: usize,
    wanted: usize,
    dims: usize,
    (low, high): (f32, f32),
    stream: Stream,
) -> Proposals {
    let mut per_dim = 2_usize;
    while (per_dim + 1).checked_pow(dims as u32).is_some_and(|cells| cells <= wanted) {
        per_dim += 1;
    }
    let num_candidates = per_dim.pow(dims as u32);
    let mut values = vec![0.0; num_anchors * num_candidates * dims];
    stream.fill_uniform(0, 0, &mut values);
    let width = (high - low) / per_dim as f32;
    for (row, value) in values.chunks_exact_mut(dims).enumerate() {
        let mut cell = row % num_candidates;
        for x in value {
            *x = low + ((cell % per_dim) as f32 + *x) * width;
            cell /= per_dim;
        }
    }
    Proposals { values, num_candidates, log_weight: dims as f32 * width.ln() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_gets_one_candidate_and_weights_sum_to_the_volume() {
        let proposals = stratified(3, 30, 2, (-1.0, 3.0), Stream::new(1, "proposals"));
        assert_eq!(proposals.num_candidates, 25);
        let volume = 25.0 * proposals.log_weight.exp();
        assert!((volume - 16.0).abs() < 1e-4, "volume {volume}");
        for anchor in proposals.values.chunks_exact(50) {
            let mut cells: Vec<_> = anchor
                .chunks_exact(2)
                .map(|x| (((x[0] + 1.0) / 0.8) as usize, ((x[1] + 1.0) / 0.8) as usize))
                .collect();
            cells.sort_unstable();
            cells.dedup();
            assert_eq!(cells.len(), 25);
        }
    }
}
