//! A process of standardised numbers, asked and answering in the units of the data.

use super::{LogDensity, Predictive, Process};
use crate::data::Standardiser;
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// Translates questions and answers of a process that was trained on standardised data.
///
/// ```text
/// log p(x | t, C) = log p(z | s, D) − Σ_j log s_j        z, s and D: x, t and C standardised
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Standardised<'a> {
    process: &'a dyn Process,
    standardiser: &'a Standardiser,
}

impl<'a> Standardised<'a> {
    /// `process` has learned from what `standardiser` made of the data.
    pub fn new(process: &'a dyn Process, standardiser: &'a Standardiser) -> Self {
        Self { process, standardiser }
    }

    /// The law of further elements, given a context in the units of the data. It does not borrow
    /// from `self`.
    ///
    /// # Errors
    ///
    /// As [`Process::condition`].
    pub fn predict(&self, context: &IndexedSet) -> Result<StandardisedPredictive<'a>> {
        let inner = self.process.condition(&self.standardiser.apply(context)?)?;
        Ok(StandardisedPredictive { inner, standardiser: self.standardiser })
    }
}

impl Process for Standardised<'_> {
    fn name(&self) -> &'static str {
        self.process.name()
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(self.predict(context)?))
    }
}

/// What [`Standardised`] says, given a context.
#[derive(Debug)]
pub struct StandardisedPredictive<'a> {
    inner: Box<dyn Predictive + 'a>,
    standardiser: &'a Standardiser,
}

impl<'a> StandardisedPredictive<'a> {
    /// `inner` is given a standardised context and answers in standardised numbers.
    pub fn new(inner: Box<dyn Predictive + 'a>, standardiser: &'a Standardiser) -> Self {
        Self { inner, standardiser }
    }
}

impl Predictive for StandardisedPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let correction = self.standardiser.log_density_correction();
        let mut densities = self.inner.log_density(&self.standardiser.apply(targets)?)?;
        for density in &mut densities {
            density.value += correction;
        }
        Ok(densities)
    }

    fn log_joint(&self, targets: &IndexedSet) -> Result<Option<LogDensity>> {
        let correction = self.standardiser.log_density_correction() * targets.len() as f64;
        let joint = self.inner.log_joint(&self.standardiser.apply(targets)?)?;
        Ok(joint.map(|joint| LogDensity { value: joint.value + correction, ..joint }))
    }

    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        let locations = self.standardiser.apply_locations(locations)?;
        let samples = self.inner.sample(&locations, count, stream)?;
        self.standardiser.invert_values(&samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rbf;
    use crate::process::{ExactProcessConfig, GaussianProcess};

    /// In the units of the data a density still integrates to one, and draws follow it.
    #[test]
    fn densities_and_draws_are_in_the_units_of_the_data() {
        let data = IndexedSet::new(1, 1, vec![0.0, 50.0, 100.0], vec![990.0, 1000.0, 1040.0]);
        let data = data.unwrap();
        let standardiser = Standardiser::fit([&data]).unwrap();
        let kernel = Box::new(Rbf::new(1.0, 1.0).unwrap());
        let inner = GaussianProcess::new(kernel, &ExactProcessConfig::default()).unwrap();
        let process = Standardised::new(&inner, &standardiser);
        let predictive = process.condition(&data).unwrap();
        let values: Vec<f64> = (0..4000).map(|i| 800.0 + 0.1 * f64::from(i)).collect();
        let line = IndexedSet::new(1, 1, vec![70.0; 4000], values.clone()).unwrap();
        let densities = predictive.log_density(&line).unwrap();
        let mass: f64 = densities.iter().map(|d| 0.1 * d.value.exp()).sum();
        assert!((mass - 1.0).abs() < 1e-6, "{mass}");
        let mean: f64 = densities.iter().zip(&values).map(|(d, x)| 0.1 * d.value.exp() * x).sum();
        let draws = predictive.sample(&[70.0], 4000, Stream::new(1, "draws")).unwrap();
        let found = draws.iter().sum::<f64>() / 4000.0;
        assert!((found - mean).abs() < 4.0 * 30.0 / 4000_f64.sqrt(), "{found} {mean}");
    }
}
