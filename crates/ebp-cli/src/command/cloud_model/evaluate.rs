//! How good generated and reconstructed clouds are.

use ebp::metric::collection::{CollectionOptions, evaluate_on};
use ebp::metric::distance::{ArrangedCloud, ChamferConvention, GpuDistances, NearestNeighbours};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::device;
use crate::failure::Failure;
use crate::output;

/// The radius of the ball of the divergence's grid.
const GRID_RADIUS: f64 = 0.5;
/// Clouds of PointFlow's data may stick out a little; they are not scaled.
const SLACK: f64 = 1.1;

/// The collection metrics by Chamfer distance, in the units of the data.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// 1-NN accuracy, ½ is ideal.
    pub(crate) nna_cd: f64,
    /// Half the width of its 95 % interval.
    pub(crate) nna_cd_error: f64,
    /// Coverage.
    pub(crate) cov_cd: f64,
    pub(crate) cov_cd_error: f64,
    /// Minimum matching distance.
    pub(crate) mmd_cd: f64,
    pub(crate) mmd_cd_error: f64,
    /// Jensen–Shannon divergence on the 28³ grid, `null` unless points have three coordinates.
    pub(crate) jsd: Option<f64>,
    /// What coordinates were multiplied by for the divergence, so that they fit its ball.
    pub(crate) jsd_scale: f64,
}

/// A row of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GenerationRow {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) scores: Generation,
}

impl Generation {
    /// Compares clouds `[n, dim]` in the units of the data; at most `num_points` of each count.
    pub(crate) fn measure(
        samples: &[Vec<f32>],
        references: &[Vec<f32>],
        dim: usize,
        num_points: usize,
        seed: u64,
    ) -> Result<Self, Failure> {
        let norm = |p: &[f32]| p.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
        let radius = references
            .iter()
            .flat_map(|cloud| cloud.chunks_exact(dim).map(norm))
            .fold(0.0, f64::max);
        let scale = if radius > SLACK * GRID_RADIUS { GRID_RADIUS / radius } else { 1.0 };
        let arrange = |clouds: &[Vec<f32>]| -> Result<Vec<ArrangedCloud>, Failure> {
            let clouds: Vec<_> =
                clouds.par_iter().map(|cloud| arranged(cloud, dim, num_points, scale)).collect();
            clouds.into_iter().collect()
        };
        let options = CollectionOptions { emd: None, cache: None, seed };
        let (samples, references) = (arrange(samples)?, arrange(references)?);
        let sizes = samples.iter().chain(&references).map(|cloud| cloud.len() as f64);
        let gpu = device::gpu_for_distances(sizes.sum::<f64>().powi(2))?;
        let gpu = gpu.as_ref().map(GpuDistances::new);
        let found = evaluate_on(gpu, &samples, &references, &options, &mut |_| ())?;
        let chamfer = found.chamfer;
        // A Chamfer distance of squares in units that are 1/scale as long.
        let back = 1.0 / (scale * scale);
        let half = |low: f64, high: f64| 0.5 * (high - low);
        let (nna, cov, mmd) =
            (chamfer.one_nn_accuracy, chamfer.coverage, chamfer.matching_distance);
        Ok(Self {
            nna_cd: nna.value,
            nna_cd_error: half(nna.low, nna.high),
            cov_cd: cov.value,
            cov_cd_error: half(cov.low, cov.high),
            mmd_cd: back * mmd.value,
            mmd_cd_error: back * half(mmd.low, mmd.high),
            jsd: found.divergence.map(|divergence| divergence.divergence.value),
            jsd_scale: scale,
        })
    }
}

/// A table of generation metrics.
pub(crate) fn generation_table(rows: &[GenerationRow]) -> String {
    let mut lines =
        vec![["", "1-NNA-CD %", "COV-CD %", "MMD-CD ×10³", "JSD ×10²"].map(String::from).to_vec()];
    for GenerationRow { name, scores } in rows {
        lines.push(vec![
            name.clone(),
            format!("{:.1} ± {:.1}", 100.0 * scores.nna_cd, 100.0 * scores.nna_cd_error),
            format!("{:.1} ± {:.1}", 100.0 * scores.cov_cd, 100.0 * scores.cov_cd_error),
            format!("{:.2} ± {:.2}", 1e3 * scores.mmd_cd, 1e3 * scores.mmd_cd_error),
            scores.jsd.map_or("–".to_owned(), |jsd| format!("{:.2}", 100.0 * jsd)),
        ]);
    }
    output::table(&lines)
}

/// The mean over pairs of clouds of the Chamfer distance, mean of squares.
pub(crate) fn chamfer(a: &[Vec<f32>], b: &[Vec<f32>], dim: usize) -> Result<f64, Failure> {
    let distances: Vec<Result<f64, Failure>> = a
        .par_iter()
        .zip(b)
        .map(|(a, b)| {
            let (a, b) = (arranged(a, dim, usize::MAX, 1.0)?, arranged(b, dim, usize::MAX, 1.0)?);
            let nearest = NearestNeighbours::between(&a, &b)?;
            Ok(nearest.chamfer(ChamferConvention::MeanOfSquares))
        })
        .collect();
    let count = distances.len().max(1) as f64;
    let mut sum = 0.0;
    for distance in distances {
        sum += distance?;
    }
    Ok(sum / count)
}

/// The Chamfer distance, mean of squares, from every cloud to the nearest of `others`, between the
/// first `num_points` points of each.
pub(crate) fn nearest_distances(
    clouds: &[Vec<f32>],
    others: &[Vec<f32>],
    dim: usize,
    num_points: usize,
) -> Result<Vec<f64>, Failure> {
    let arrange = |clouds: &[Vec<f32>]| -> Result<Vec<ArrangedCloud>, Failure> {
        clouds.iter().map(|cloud| arranged(cloud, dim, num_points, 1.0)).collect()
    };
    let (clouds, others) = (arrange(clouds)?, arrange(others)?);
    let nearest: Vec<Result<f64, Failure>> = clouds
        .par_iter()
        .map(|cloud| {
            let mut least = f64::INFINITY;
            for other in &others {
                let found = NearestNeighbours::between(cloud, other)?;
                least = least.min(found.chamfer(ChamferConvention::MeanOfSquares));
            }
            Ok(least)
        })
        .collect();
    nearest.into_iter().collect()
}

fn arranged(
    cloud: &[f32],
    dim: usize,
    num_points: usize,
    scale: f64,
) -> Result<ArrangedCloud, Failure> {
    let length = cloud.len().min(num_points.saturating_mul(dim));
    let points: Vec<f64> = cloud[..length].iter().map(|&x| scale * f64::from(x)).collect();
    Ok(ArrangedCloud::new(dim, &points)?)
}
