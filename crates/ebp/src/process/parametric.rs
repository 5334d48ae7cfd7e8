//! What processes have in common whose whole state is one set of parameters on a device.

use crate::tape::{ParameterSet, check_taken};
use crate::tensor::Tensors;
use crate::{Error, Result};

/// A process that is its parameters.
pub trait Parametric {
    /// Them, with their moments and averages.
    fn parameters(&self) -> &ParameterSet;

    /// The same, to be changed.
    fn parameters_mut(&mut self) -> &mut ParameterSet;

    /// Whether the averages stand in the place of the parameters.
    fn use_average(&mut self, is_wanted: bool) {
        self.parameters_mut().use_average(is_wanted);
    }

    /// Everything that a later step depends on.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    fn state(&self) -> Result<Tensors> {
        self.parameters().export()
    }

    /// Takes back what [`state`](Self::state) gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming an entry that is missing, does not fit or is not known.
    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let mut state = state.clone();
        self.parameters_mut().import(&mut state)?;
        check_taken(&state)
    }
}

/// That densities are numbers.
#[expect(clippy::cast_possible_truncation, reason = "an error shows a number")]
pub(super) fn check_densities(densities: &[f64]) -> Result<()> {
    match densities.iter().position(|density| !density.is_finite()) {
        None => Ok(()),
        Some(index) => Err(Error::NonFinite {
            field: "log density",
            index,
            value: densities[index] as f32,
            remedy: "look for elements far from those of the training",
        }),
    }
}
