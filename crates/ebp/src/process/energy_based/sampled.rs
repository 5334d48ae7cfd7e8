//! Draws of the learned sampler as places with weights, which the energy corrects.

use std::sync::Arc;

use super::grid::Weighted;
use super::points::PointStart;
use super::{Energy, EnergyBasedProcess};
use crate::point::{PointBatch, PointMlp};
use crate::rng::Stream;
use crate::sampler::{Followed, Places};
use crate::{Error, Result, SetOffsets};

impl EnergyBasedProcess {
    /// Whether a sampler was trained beside the energy.
    pub fn has_sampler(&self) -> bool {
        self.ade.is_some()
    }

    /// `count` draws for each θ of `theta`, with log exp(u)/q; all weights are equal where they
    /// are taken as they are.
    pub(super) fn sampler_weighted(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        count: usize,
        start: PointStart,
        stream: Stream,
    ) -> Result<Vec<Weighted>> {
        let Some(ade) = &self.ade else {
            return Err(Error::invalid("start", "the grid, as no sampler was trained", "sampler"));
        };
        if start != PointStart::Sampler && !self.config.sampler.has_densities() {
            let expected = "sampler or grid, as this sampler's draws have no density each";
            return Err(Error::invalid("start", expected, format!("{start:?}")));
        }
        let Energy::Element(energy) = &self.parts.energy else {
            return Err(Error::invalid("start", "the grid, as no sampler was trained", "sampler"));
        };
        let (k, dim) = (self.config.latent_dim, self.space.value_dim);
        let sets = theta.len() / k;
        let mut tape = self.device.tape();
        tape.read(&self.parameters);
        tape.read(&ade.parameters);
        let codes = tape.upload(theta.to_vec(), (sets, k))?;
        let parameters = energy.calibrated(&mut tape, false)?;
        let followed = Followed { energy, parameters, theta: codes };
        let places = Places { features: None, offsets: Arc::new(SetOffsets::uniform(sets, 1)?) };
        let draws = ade.sampler.draw(&mut tape, followed, &places, (count, false), stream)?;
        let values = tape.download(draws.values)?;
        let log_densities = tape.download(draws.log_density)?;
        let batch = PointBatch { elements: &values, offsets: &draws.offsets, context: theta };
        let f = self.device.backend().values(mlp, &batch)?;
        let half = self.space.high;
        let weigh = |row: usize| {
            let x = &values[row * dim..(row + 1) * dim];
            if start == PointStart::Sampler {
                return 0.0;
            }
            let is_inside = x.iter().all(|x| x.abs() <= half);
            let log_weight = f64::from(f[row] + self.base(x) - log_densities[row]);
            if is_inside { log_weight } else { f64::NEG_INFINITY }
        };
        Ok((0..theta.len() / k)
            .map(|set| {
                let first = draws.offsets.range(set).start;
                Weighted {
                    values: values[first * dim..(first + count) * dim].to_vec(),
                    log_weights: (first..first + count).map(weigh).collect(),
                }
            })
            .collect())
    }
}
