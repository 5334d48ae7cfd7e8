//! Summary functions of a pattern between those of simulated patterns.
//!
//! m simulations and the data are exchangeable if the model is right: at one distance the data leave the
//! range of the simulations with probability 2/(m + 1), and the largest deviation from the simulations'
//! mean over all distances has rank R with p = R/(m + 1).

use rayon::prelude::*;

use super::summary::Summary;
use super::window::Pattern;
use crate::{Error, Result};

/// A summary of data and of simulations, at the same distances.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// Which.
    pub summary: Summary,
    /// r.
    pub distances: Vec<f64>,
    /// Of the data: the mean over patterns where there are several.
    pub observed: Vec<f64>,
    /// The mean over simulations.
    pub mean: Vec<f64>,
    /// The least of the simulations.
    pub low: Vec<f64>,
    /// The greatest of the simulations.
    pub high: Vec<f64>,
    /// Of the largest deviation over all distances.
    pub p_value: f64,
}

impl Envelope {
    /// Data beside simulations. Where there are several patterns of data, the simulations are averaged in
    /// groups of as many.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are no data or not two groups; as [`Summary::of`].
    pub fn new(
        summary: Summary,
        data: &[Pattern],
        simulated: &[Pattern],
        distances: &[f64],
    ) -> Result<Self> {
        let groups: Vec<&[Pattern]> = simulated.chunks_exact(data.len().max(1)).collect();
        if data.is_empty() || groups.len() < 2 {
            return Err(Error::refused(
                "an envelope needs data and at least two simulations of them",
            ));
        }
        let mean_of = |patterns: &[Pattern]| -> Result<Vec<f64>> {
            let mut mean = vec![0.0; distances.len()];
            for pattern in patterns {
                let values = summary.of(pattern, distances)?;
                mean.iter_mut().zip(values).for_each(|(sum, v)| *sum += v / patterns.len() as f64);
            }
            Ok(mean)
        };
        let observed = mean_of(data)?;
        let curves = groups.par_iter().map(|group| mean_of(group)).collect::<Result<Vec<_>>>()?;
        let at = |index: usize| curves.iter().map(move |curve| curve[index]);
        let each = |fold: &dyn Fn(usize) -> f64| (0..distances.len()).map(fold).collect::<Vec<_>>();
        let mean = each(&|i| at(i).sum::<f64>() / curves.len() as f64);
        // Leaving oneself out of the mean makes data and simulations exchangeable.
        let count = curves.len() as f64;
        let deviation = |curve: &[f64], is_data: bool| {
            let others = |i: usize| {
                let all = mean[i] * count + observed[i] - curve[i];
                if is_data { mean[i] } else { all / count }
            };
            (0..distances.len()).map(|i| (curve[i] - others(i)).abs()).fold(0.0, f64::max)
        };
        let of_data = deviation(&observed, true);
        let larger = curves.iter().filter(|curve| deviation(curve, false) >= of_data).count();
        Ok(Self {
            summary,
            low: each(&|i| at(i).fold(f64::INFINITY, f64::min)),
            high: each(&|i| at(i).fold(f64::NEG_INFINITY, f64::max)),
            mean,
            observed,
            distances: distances.to_vec(),
            p_value: (1 + larger) as f64 / (count + 1.0),
        })
    }
}
