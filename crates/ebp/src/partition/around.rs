//! Candidates that cover a value itself: one in each cell of a grid, and as many in Gaussians of
//! some widths around the value.
//!
//! ```text
//! w(y) = 1 / ( K_cells / volume + Σ_s K_s N(y; x, σ_s²) ),   0 outside the domain
//! ```
//!
//! Σ_k exp u(y_k) w(y_k) estimates Z without bias whatever x is, and a spike of f at the data that
//! falls between all cells is seen, so it gains nothing. Three-dimensional values need this: with
//! 64 candidates a cell of [−1, 1]³ is half a unit wide.

use super::cells::stratified;
use crate::rng::Stream;
use crate::tape::NOTHING;

/// σ_s of values as shares of the domain's width: from a few levels of a picture to a tenth of all.
pub(crate) const WIDTHS: [f32; 3] = [0.01, 0.03, 0.1];
/// √2π.
const ROOT_TAU: f32 = 2.506_628_3;

/// Candidates `[anchors, K, dims]` with their log w, `[anchors, K]`.
pub(crate) struct Around {
    pub(crate) values: Vec<f32>,
    pub(crate) log_weights: Vec<f32>,
    pub(crate) num_candidates: usize,
}

/// About `wanted` candidates for each of the values `[n, dims]`, some around them at `widths`.
pub(crate) fn around(
    anchors: &[f32],
    (dims, wanted): (usize, usize),
    (low, high): (f32, f32),
    widths: &[f32],
    stream: Stream,
) -> Around {
    let n = anchors.len() / dims;
    let cells = stratified(n, wanted.div_ceil(2), dims, (low, high), stream.child(0));
    let per_width = (wanted / 2).div_ceil(widths.len()).max(1);
    let num_near = per_width * widths.len();
    let num_candidates = cells.num_candidates + num_near;
    let mut near = vec![0.0; n * num_near * dims];
    stream.child(1).fill_normal(0, 0, &mut near);

    let std_devs: Vec<f32> = widths.iter().map(|width| width * (high - low)).collect();
    let scale = |std_dev: f32| (0..dims).fold(1.0, |scale, _| scale * std_dev * ROOT_TAU);
    let scales: Vec<f32> = std_devs.iter().map(|&std_dev| scale(std_dev)).collect();
    // One in each cell: together they have the density K / volume.
    let from_cells = (-cells.log_weight).exp();
    let mut values = Vec::with_capacity(n * num_candidates * dims);
    let mut log_weights = Vec::with_capacity(n * num_candidates);
    let rows = cells.values.chunks_exact(cells.num_candidates * dims);
    for ((anchor, cells), near) in
        anchors.chunks_exact(dims).zip(rows).zip(near.chunks_exact(num_near * dims))
    {
        let start = values.len();
        values.extend_from_slice(cells);
        for (number, noise) in near.chunks_exact(dims).enumerate() {
            let std_dev = std_devs[number / per_width];
            values.extend(anchor.iter().zip(noise).map(|(x, noise)| x + std_dev * noise));
        }
        for candidate in values[start..].chunks_exact(dims) {
            if candidate.iter().any(|y| !(low..=high).contains(y)) {
                log_weights.push(NOTHING);
                continue;
            }
            let square: f32 = candidate.iter().zip(anchor).map(|(y, x)| (y - x).powi(2)).sum();
            let densities = std_devs
                .iter()
                .zip(&scales)
                .map(|(std_dev, scale)| (-0.5 * square / (std_dev * std_dev)).exp() / scale);
            log_weights.push(-(from_cells + per_width as f32 * densities.sum::<f32>()).ln());
        }
    }
    Around { values, log_weights, num_candidates }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights of exp u average to ∫ exp u: of a constant, the volume; of a spike at the value that
    /// no grid of cells would meet, the spike's own mass.
    #[test]
    fn volumes_and_spikes_are_both_seen() {
        for dims in [1, 3] {
            let n = 400;
            let anchor = [0.3, -0.9, 0.98];
            let anchors = anchor[..dims].repeat(n);
            let found =
                around(&anchors, (dims, 96), (-1.0, 1.0), &WIDTHS, Stream::new(1, "around"));
            assert_eq!(found.log_weights.len(), n * found.num_candidates);
            let std_dev = 0.01_f64;
            let (mut volumes, mut spikes) = (Vec::new(), Vec::new());
            let rows = found.values.chunks_exact(found.num_candidates * dims);
            for (row, weights) in rows.zip(found.log_weights.chunks_exact(found.num_candidates)) {
                let spike = |y: &[f32]| -> f64 {
                    let square = y.iter().zip(&anchor).map(|(y, x)| f64::from(y - x).powi(2));
                    (-0.5 * square.sum::<f64>() / std_dev.powi(2)).exp()
                };
                volumes.push(weights.iter().map(|w| f64::from(*w).exp()).sum::<f64>());
                let terms = row.chunks_exact(dims).zip(weights);
                spikes.push(terms.map(|(y, w)| spike(y) * f64::from(*w).exp()).sum::<f64>());
            }
            // The third coordinate lies two standard deviations from a wall: Φ(2) is left.
            let cut = if dims == 3 { 0.977_25 } else { 1.0 };
            let mass =
                cut * (std_dev * std::f64::consts::TAU.sqrt()).powi(if dims == 3 { 3 } else { 1 });
            for (found, expected) in [(volumes, if dims == 3 { 8.0 } else { 2.0 }), (spikes, mass)]
            {
                let count = found.len() as f64;
                let mean = found.iter().sum::<f64>() / count;
                let variance = found.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                let error = (variance / count).sqrt();
                assert!(
                    (mean - expected).abs() < 4.0 * error + 1e-6,
                    "{mean} ± {error}, {expected}"
                );
                assert!(error < 0.05 * expected, "{error} of {expected}");
            }
        }
    }
}
