//! The law of further elements once some are known, p(x | C) = E_q(θ | C) p(x | θ).
//!
//! q(θ | C) is the encoder's; with no context it is N(0, I). θ is drawn once and for all from the model's
//! seed, so that equal questions get equal answers.

use super::HiddenLocationProcess;
use crate::process::statistician::{repeated, rounded};
use crate::process::task::check_dimensions;
use crate::process::{LogDensity, Predictive};
use crate::rng::Stream;
use crate::tape::{Array, Gaussian, Tape, Var};
use crate::{Error, IndexedSet, Result, SetOffsets};

/// What a context says about further elements.
#[derive(Debug)]
pub(super) struct HiddenLocationPredictive<'a> {
    process: &'a HiddenLocationProcess,
    /// Mean and log σ of q(θ | C); `None` without a context.
    posterior: Option<[Array; 2]>,
}

impl<'a> HiddenLocationPredictive<'a> {
    pub(super) fn new(process: &'a HiddenLocationProcess, context: &IndexedSet) -> Result<Self> {
        if context.is_empty() {
            return Ok(Self { process, posterior: None });
        }
        let values = rounded(context.values());
        process.check_inside(&values)?;
        let mut tape = process.tape();
        let law = process.read(&mut tape, &values, &SetOffsets::uniform(1, context.len())?)?;
        let posterior = [law.mean, law.log_std_dev].map(|var| tape.array(var).clone());
        Ok(Self { process, posterior: Some(posterior) })
    }

    /// Draws of θ, `[count, k]`.
    fn theta(&self, tape: &mut Tape, count: usize, stream: Stream) -> Result<Var> {
        let dim = self.process.config.latent_dim;
        let Some([mean, log_std_dev]) = &self.posterior else {
            return tape.normals((count, dim), stream);
        };
        let mean = tape.constant(mean.clone(), (1, dim))?;
        let log_std_dev = tape.constant(log_std_dev.clone(), (1, dim))?;
        let law = repeated(tape, Gaussian { mean, log_std_dev }, count)?;
        tape.draw(law, stream)
    }
}

impl Predictive for HiddenLocationPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        check_dimensions("targets", targets, 0, self.process.dim)?;
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let set = rounded(targets.values());
        let size = self.process.check_set(&set)?;
        let count = self.process.config.num_draws;
        let mut tape = self.process.tape();
        let theta = self.theta(&mut tape, count, self.process.stream)?;
        let found = self.process.densities(&mut tape, &set, theta)?;
        let found = tape.download(found.log_density)?;
        let density = |element: usize| {
            let terms: Vec<f64> =
                (0..count).map(|draw| f64::from(found[draw * size + element])).collect();
            LogDensity::of_mean(&terms)
        };
        Ok((0..size).map(density).collect())
    }

    /// `locations` must be empty, since nobody sees them: `count` draws of one element each.
    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        if !locations.is_empty() {
            let found = format!("{} numbers", locations.len());
            return Err(Error::invalid("locations", "empty, as they are hidden", found));
        }
        let mut drawn = Vec::with_capacity(count * self.process.dim);
        for number in 0..count {
            let stream = stream.child(number as u64);
            let mut tape = self.process.tape();
            let theta = self.theta(&mut tape, 1, stream.child(0))?;
            let element = self.process.draw_given(tape, theta, 1, stream.child(1))?;
            drawn.extend(element.into_iter().map(f64::from));
        }
        Ok(drawn)
    }
}
