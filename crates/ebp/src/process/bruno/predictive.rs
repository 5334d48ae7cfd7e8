//! The law of further elements once some are known: exact densities, and draws one after the other.

use std::sync::Arc;

use super::{BrunoProcess, ExchangeableLaw, Normalised, Recurrent, rounded};
use crate::process::draw::{chi_square, fill_normal};
use crate::process::task::check_dimensions;
use crate::process::{LogDensity, Predictive};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// What the elements of a context say about the next ones.
#[derive(Debug)]
pub(super) struct BrunoPredictive<'a> {
    pub(super) process: &'a BrunoProcess,
    /// One per latent coordinate.
    pub(super) states: Arc<Vec<Recurrent>>,
}

impl Predictive for BrunoPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let dim = self.process.dim;
        check_dimensions("targets", targets, 0, dim)?;
        let Normalised { latents, log_det } = self.process.normalised(rounded(targets.values()))?;
        let rows = latents.chunks_exact(dim).zip(log_det);
        let densities = rows.map(|(row, log_det)| {
            let coordinates = self.states.iter().zip(row);
            let of_laws: f64 = coordinates.map(|(state, &z)| state.log_density(f64::from(z))).sum();
            LogDensity { value: of_laws + log_det, std_error: 0.0 }
        });
        Ok(densities.collect())
    }

    /// `locations` must be empty, since elements have none: `count` draws of one element each.
    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        if !locations.is_empty() {
            let found = format!("{} numbers", locations.len());
            return Err(Error::invalid("locations", "empty, elements have none", found));
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        let drawn = draw_latents(&self.states, count, 1, stream);
        Ok(self.process.generated(drawn)?.into_iter().map(f64::from).collect())
    }
}

/// `num_sets` sets of `size` elements whose coordinates follow `laws`, `[num_sets, size, d]`.
pub fn draw_exchangeable(
    laws: &[ExchangeableLaw],
    num_sets: usize,
    size: usize,
    stream: Stream,
) -> Vec<f32> {
    let states: Vec<Recurrent> = laws.iter().map(|law| law.start()).collect();
    draw_latents(&states, num_sets, size, stream)
}

/// Latents of `num_sets` sets of `size` elements `[num_sets, size, d]`, each element given those before
/// it and what `states` know.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
pub(super) fn draw_latents(
    states: &[Recurrent],
    num_sets: usize,
    size: usize,
    stream: Stream,
) -> Vec<f32> {
    let dim = states.len();
    let mut drawn = vec![0.0; num_sets * size * dim];
    for (set, out) in drawn.chunks_exact_mut(size * dim).enumerate() {
        let of_set = stream.child(set as u64);
        for (d, start) in states.iter().enumerate() {
            let stream = of_set.child(d as u64);
            let mut normals = vec![0.0; size];
            fill_normal(stream.child(0), 0, &mut normals);
            let mut state = *start;
            for (i, normal) in normals.iter().enumerate() {
                let (mean, variance, degrees) = state.moments();
                // √((ν − 2)/χ²_ν) times a normal has variance 1.
                let scale = degrees.map_or(1.0, |degrees| {
                    let chi = chi_square(stream.child(1 + i as u64), degrees);
                    ((degrees - 2.0) / chi).sqrt()
                });
                let z = mean + variance.sqrt() * scale * normal;
                out[i * dim + d] = z as f32;
                state.update(z);
            }
        }
    }
    drawn
}
