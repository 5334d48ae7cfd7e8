//! How good generated and reconstructed clouds are.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::text::{cells, table};
use crate::Result;
use crate::metric::collection::{CollectionOptions, Estimate, evaluate_on};
use crate::metric::distance::{
    ArrangedCloud, ChamferConvention, EmdMethod, GpuDistances, NearestNeighbours,
};
use crate::model::Device;

/// The radius of the ball of the divergence's grid.
const GRID_RADIUS: f64 = 0.5;
/// Clouds of PointFlow's data may stick out a little; they are not scaled.
const SLACK: f64 = 1.1;

/// The collection metrics by Chamfer distance, in the units of the data.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Generation {
    /// 1-NN accuracy, ½ is ideal.
    pub nna_cd: f64,
    /// Half the width of its 95 % interval.
    pub nna_cd_error: f64,
    /// 1-NN accuracy of the samples alone.
    #[serde(default)]
    pub nna_cd_samples: Option<f64>,
    /// 1-NN accuracy of the held-out clouds alone.
    #[serde(default)]
    pub nna_cd_references: Option<f64>,
    /// Coverage.
    pub cov_cd: f64,
    /// Half the width of its 95 % interval.
    pub cov_cd_error: f64,
    /// Minimum matching distance.
    pub mmd_cd: f64,
    /// Half the width of its 95 % interval.
    pub mmd_cd_error: f64,
    /// Jensen–Shannon divergence on the 28³ grid, `null` unless points have three coordinates.
    pub jsd: Option<f64>,
    /// Half the width of its 95 % interval.
    #[serde(default)]
    pub jsd_error: Option<f64>,
    /// What coordinates were multiplied by for the divergence and for soft matchings, whose
    /// temperatures are lengths, so that they fit the divergence's ball.
    pub jsd_scale: f64,
    /// By the earth mover's distance, where it was asked for.
    #[serde(default)]
    pub emd: Option<GenerationEmd>,
}

/// The metrics by an earth mover's distance, in the units of the data.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct GenerationEmd {
    /// 1-NN accuracy, ½ is ideal.
    pub nna: f64,
    /// Half the width of its 95 % interval.
    pub nna_error: f64,
    /// Coverage.
    pub cov: f64,
    /// Half the width of its 95 % interval.
    pub cov_error: f64,
    /// Minimum matching distance.
    pub mmd: f64,
    /// Half the width of its 95 % interval.
    pub mmd_error: f64,
}

/// A row of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GenerationRow {
    /// Whose clouds.
    pub name: String,
    /// How good they are.
    #[serde(flatten)]
    pub scores: Generation,
}

impl Generation {
    /// Compares clouds `[n, dim]` in the units of the data; at most `num_points` of each count. `emd`
    /// asks for the earth mover's distance too, by a method whose distances are lengths.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a collection is empty or a cloud does
    /// not fit.
    pub fn measure(
        samples: &[Vec<f32>],
        references: &[Vec<f32>],
        dim: usize,
        num_points: usize,
        emd: Option<EmdMethod>,
        device: &Device,
    ) -> Result<Self> {
        let norm = |p: &[f32]| p.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
        let radius = references
            .iter()
            .flat_map(|cloud| cloud.chunks_exact(dim).map(norm))
            .fold(0.0, f64::max);
        let scale = if radius > SLACK * GRID_RADIUS { GRID_RADIUS / radius } else { 1.0 };
        let arrange = |clouds: &[Vec<f32>]| -> Result<Vec<ArrangedCloud>> {
            let clouds: Vec<_> =
                clouds.par_iter().map(|cloud| arranged(cloud, dim, num_points, scale)).collect();
            clouds.into_iter().collect()
        };
        let options = CollectionOptions { emd, cache: None, seed: 0 };
        let (samples, references) = (arrange(samples)?, arrange(references)?);
        let gpu = device.gpu().map(GpuDistances::new);
        let found = evaluate_on(gpu, &samples, &references, &options, &mut |_| ())?;
        let chamfer = found.chamfer;
        // A Chamfer distance of squares in units that are 1/scale as long.
        let back = 1.0 / (scale * scale);
        let half = |estimate: Estimate| 0.5 * (estimate.high - estimate.low);
        let emd = found.emd.map(|emd| emd.metrics).map(|emd| GenerationEmd {
            nna: emd.one_nn_accuracy.value,
            nna_error: half(emd.one_nn_accuracy),
            cov: emd.coverage.value,
            cov_error: half(emd.coverage),
            mmd: emd.matching_distance.value / scale,
            mmd_error: half(emd.matching_distance) / scale,
        });
        let jsd = found.divergence.map(|divergence| divergence.divergence);
        let (nna, cov, mmd) =
            (chamfer.one_nn_accuracy, chamfer.coverage, chamfer.matching_distance);
        Ok(Self {
            nna_cd: nna.value,
            nna_cd_error: half(nna),
            nna_cd_samples: Some(chamfer.sample_accuracy.value),
            nna_cd_references: Some(chamfer.reference_accuracy.value),
            cov_cd: cov.value,
            cov_cd_error: half(cov),
            mmd_cd: back * mmd.value,
            mmd_cd_error: back * half(mmd),
            jsd: jsd.map(|jsd| jsd.value),
            jsd_error: jsd.map(half),
            jsd_scale: scale,
            emd,
        })
    }
}

/// The columns of tables of generation metrics.
pub(super) const GENERATION_HEAD: [&str; 6] =
    ["", "1-NNA-CD %", "samples / real", "COV-CD %", "MMD-CD ×10³", "JSD ×10²"];

/// A number with half of its interval, where it is known.
pub(super) fn maybe(value: Option<f64>, error: Option<f64>, factor: f64) -> String {
    match (value, error) {
        (Some(value), Some(error)) => format!("{:.2} ± {:.2}", factor * value, factor * error),
        (Some(value), None) => format!("{:.2}", factor * value),
        _ => "–".to_owned(),
    }
}

/// A table of generation metrics; ± is half of a 95 % interval over the clouds of both collections.
pub fn generation_table(rows: &[GenerationRow]) -> String {
    let mut lines = vec![cells(GENERATION_HEAD)];
    for GenerationRow { name, scores } in rows {
        lines.push(vec![
            name.clone(),
            format!("{:.1} ± {:.1}", 100.0 * scores.nna_cd, 100.0 * scores.nna_cd_error),
            match (scores.nna_cd_samples, scores.nna_cd_references) {
                (Some(a), Some(b)) => format!("{:.1} / {:.1}", 100.0 * a, 100.0 * b),
                _ => "–".to_owned(),
            },
            format!("{:.1} ± {:.1}", 100.0 * scores.cov_cd, 100.0 * scores.cov_cd_error),
            format!("{:.2} ± {:.2}", 1e3 * scores.mmd_cd, 1e3 * scores.mmd_cd_error),
            maybe(scores.jsd, scores.jsd_error, 100.0),
        ]);
    }
    table(&lines)
}

/// The mean over pairs of clouds of the Chamfer distance, mean of squares.
pub(super) fn chamfer(a: &[Vec<f32>], b: &[Vec<f32>], dim: usize) -> Result<f64> {
    let distances = chamfers(a, b, dim)?;
    Ok(distances.iter().sum::<f64>() / distances.len().max(1) as f64)
}

/// The Chamfer distance, mean of squares, of each pair of clouds.
pub(super) fn chamfers(a: &[Vec<f32>], b: &[Vec<f32>], dim: usize) -> Result<Vec<f64>> {
    let pairs = a.par_iter().zip(b);
    pairs
        .map(|(a, b)| {
            let (a, b) = (arranged(a, dim, usize::MAX, 1.0)?, arranged(b, dim, usize::MAX, 1.0)?);
            let nearest = NearestNeighbours::between(&a, &b)?;
            Ok(nearest.chamfer(ChamferConvention::MeanOfSquares))
        })
        .collect()
}

/// Clouds that are compared with others between two readings of further ones.
const COMPARED_AT_ONCE: usize = 256;

/// The Chamfer distance, mean of squares, from every cloud to the nearest of `count` others, between
/// the first `num_points` points of each. The others are read as they are needed, a few at a time.
pub(super) fn nearest_distances(
    clouds: &[Vec<f32>],
    count: usize,
    read: impl Fn(usize) -> Vec<f32> + Sync,
    (dim, num_points): (usize, usize),
) -> Result<Vec<f64>> {
    let clouds = clouds
        .iter()
        .map(|cloud| arranged(cloud, dim, num_points, 1.0))
        .collect::<Result<Vec<_>>>()?;
    let mut nearest = vec![f64::INFINITY; clouds.len()];
    for first in (0..count).step_by(COMPARED_AT_ONCE) {
        let others = (first..count.min(first + COMPARED_AT_ONCE))
            .into_par_iter()
            .map(|set| arranged(&read(set), dim, num_points, 1.0))
            .collect::<Result<Vec<_>>>()?;
        nearest.par_iter_mut().zip(&clouds).try_for_each(|(least, cloud)| -> Result<()> {
            for other in &others {
                let found = NearestNeighbours::between(cloud, other)?;
                *least = least.min(found.chamfer(ChamferConvention::MeanOfSquares));
            }
            Ok(())
        })?;
    }
    Ok(nearest)
}

fn arranged(cloud: &[f32], dim: usize, num_points: usize, scale: f64) -> Result<ArrangedCloud> {
    let length = cloud.len().min(num_points.saturating_mul(dim));
    let points: Vec<f64> = cloud[..length].iter().map(|&x| scale * f64::from(x)).collect();
    ArrangedCloud::new(dim, &points)
}
