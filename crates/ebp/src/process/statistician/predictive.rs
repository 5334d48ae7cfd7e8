//! The law of further elements once some are known, p(x | C) = E_q(c | C) p(x | c).
//!
//! q(c | C) is the statistic network's; with no context it is N(0, I). c is drawn once and for all from
//! the model's seed, so that equal questions get equal answers; p(x | c) by importance sampling of z.

use std::sync::Arc;

use super::networks::Elements;
use super::{StatisticianProcess, repeated};
use crate::process::task::check_dimensions;
use crate::process::{LogDensity, Predictive};
use crate::rng::Stream;
use crate::tape::{Array, Gaussian, Tape};
use crate::{Error, IndexedSet, Result, SetOffsets};

/// What a context says about further elements.
#[derive(Debug)]
pub(super) struct StatisticianPredictive<'a> {
    process: &'a StatisticianProcess,
    /// Mean and log σ of q(c | C); `None` without a context.
    posterior: Option<[Array; 2]>,
}

impl<'a> StatisticianPredictive<'a> {
    pub(super) fn new(process: &'a StatisticianProcess, context: &IndexedSet) -> Result<Self> {
        if context.is_empty() {
            return Ok(Self { process, posterior: None });
        }
        let mut tape = process.tape();
        let values = tape.upload(rounded(context.values()), (context.len(), process.dim))?;
        let offsets = Arc::new(SetOffsets::uniform(1, context.len())?);
        let law =
            process.networks.context_law(&mut tape, Elements { values, offsets: &offsets })?;
        let posterior = [law.mean, law.log_std_dev].map(|var| tape.array(var).clone());
        Ok(Self { process, posterior: Some(posterior) })
    }

    /// q(c | C), `count` times over.
    fn law(&self, tape: &mut Tape, count: usize) -> Result<Gaussian> {
        let dim = self.process.config.context_dim;
        match &self.posterior {
            None => tape.standard_gaussian((count, dim)),
            Some([mean, log_std_dev]) => {
                let mean = tape.constant(mean.clone(), (1, dim))?;
                let log_std_dev = tape.constant(log_std_dev.clone(), (1, dim))?;
                repeated(tape, Gaussian { mean, log_std_dev }, count)
            }
        }
    }
}

impl Predictive for StatisticianPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        check_dimensions("targets", targets, 0, self.process.dim)?;
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let (count, size) = (self.process.config.num_draws, targets.len());
        let mut tape = self.process.tape();
        let law = self.law(&mut tape, count)?;
        let stream = self.process.stream;
        let context = tape.draw(law, stream.child(0))?;
        let inner = self.process.config.num_inner;
        let set = rounded(targets.values());
        let found = self.process.element_densities(tape, &set, context, inner, stream.child(1))?;
        let density = |element: usize| {
            let terms: Vec<f64> = (0..count).map(|draw| found[draw * size + element]).collect();
            LogDensity::of_mean(&terms)
        };
        Ok((0..size).map(density).collect())
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
        let mut tape = self.process.tape();
        let law = self.law(&mut tape, count)?;
        let context = tape.draw(law, stream.child(0))?;
        let offsets = Arc::new(SetOffsets::uniform(count, 1)?);
        let networks = &self.process.networks;
        let drawn = networks.generate(&mut tape, context, &offsets, stream.child(1))?;
        Ok(tape.download(drawn)?.into_iter().map(f64::from).collect())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
pub(in crate::process) fn rounded(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&x| x as f32).collect()
}
