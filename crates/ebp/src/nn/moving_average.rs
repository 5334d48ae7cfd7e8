//! An exponential moving average of parameters, to be used in place of the last ones.
//!
//! ```text
//! a ← decay · a + (1 − decay) · w
//! ```
//!
//! It averages over about 1/(1 − decay) steps, and removes the noise with which an adversarial
//! game circles its solution. The average starts at the parameters' values when it is made.

use candle_core::Var;
use rayon::prelude::*;

use super::Parameters;
use super::host::{HostView, update};
use super::parameters::check_matching;
use crate::tensor::{Tensor, Tensors};
use crate::{Error, Result};

/// Entries that one thread takes at a time.
const PART: usize = 1 << 15;

/// The averages of the trained variables of a group, and a switch to use them.
///
/// ```
/// use ebp::nn::{Initialiser, MovingAverage, Parameters};
///
/// let parameters = Parameters::new(7);
/// let w = parameters.trained("w", &[1], Initialiser::Zeros)?;
/// let mut average = MovingAverage::new(&parameters, 0.75)?;
/// w.set(&w.ones_like()?)?;
/// average.update()?;
/// average.swap_in()?;
/// assert_eq!(w.to_vec1::<f32>()?, [0.25]);
/// average.swap_out()?;
/// assert_eq!(w.to_vec1::<f32>()?, [1.0]);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Debug)]
pub struct MovingAverage {
    decay: f32,
    /// The variables, and beside each its average, or its own value while swapped in.
    slots: Vec<(String, Var, Vec<f32>)>,
    is_swapped_in: bool,
}

impl MovingAverage {
    /// Averages the variables that `group` trains at this moment, starting at their values.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless `decay` is in [0, 1).
    pub fn new(group: &Parameters, decay: f32) -> Result<Self> {
        if !(0.0..1.0).contains(&decay) {
            return Err(Error::invalid("decay", "in [0, 1)", decay));
        }
        let slots = group
            .trained_variables()
            .into_iter()
            .map(|(name, variable)| {
                let average = HostView::new(&name, &variable)?.to_vec();
                Ok((name, variable, average))
            })
            .collect::<Result<_>>()?;
        Ok(Self { decay, slots, is_swapped_in: false })
    }

    /// Takes the present values into the average: call it after each optimiser step.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] while swapped in.
    pub fn update(&mut self) -> Result<()> {
        self.check_swapped(false)?;
        let gain = 1.0 - self.decay;
        for (name, variable, average) in &mut self.slots {
            let values = HostView::new(name, variable)?;
            let parts = average.par_chunks_mut(PART).zip(values.par_chunks(PART));
            parts.for_each(|(average, values)| {
                for (a, w) in average.iter_mut().zip(values) {
                    // a + (1 − decay)(w − a): a value that stays the same is averaged exactly.
                    *a += gain * (w - *a);
                }
            });
        }
        Ok(())
    }

    /// The average of every variable, in the order of their names; their own values while swapped in.
    pub(crate) fn averages(&self) -> impl Iterator<Item = &[f32]> {
        self.slots.iter().map(|(_, _, average)| average.as_slice())
    }

    /// As [`averages`](Self::averages), to be overwritten.
    pub(crate) fn averages_mut(&mut self) -> impl Iterator<Item = &mut [f32]> {
        self.slots.iter_mut().map(|(_, _, average)| average.as_mut_slice())
    }

    /// Puts the averages into the variables and keeps the variables' own values aside.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if they are in already.
    pub fn swap_in(&mut self) -> Result<()> {
        self.check_swapped(false)?;
        self.swap()
    }

    /// Puts the variables' own values back.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the averages are not in.
    pub fn swap_out(&mut self) -> Result<()> {
        self.check_swapped(true)?;
        self.swap()
    }

    /// Whether the variables hold the averages at the moment.
    pub fn is_swapped_in(&self) -> bool {
        self.is_swapped_in
    }

    /// A copy of the averages by full name of the parameter.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] while swapped in.
    pub fn export(&self) -> Result<Tensors> {
        self.check_swapped(false)?;
        let tensors = self.slots.iter().map(|(name, variable, average)| {
            Ok((name.clone(), Tensor::new(variable.dims().to_vec(), average.clone())?))
        });
        tensors.collect()
    }

    /// Takes over exported averages.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] while swapped in, or naming a tensor that is missing, unknown or
    /// of another shape; nothing changes then.
    pub fn import(&mut self, tensors: &Tensors) -> Result<()> {
        self.check_swapped(false)?;
        let variables =
            self.slots.iter().map(|(name, variable, _)| (name.clone(), variable.clone()));
        check_matching(&variables.collect(), tensors)?;
        for (name, _, average) in &mut self.slots {
            *average = tensors[name].as_f32().unwrap_or_default().to_vec();
        }
        Ok(())
    }

    fn swap(&mut self) -> Result<()> {
        for (_, variable, average) in &mut self.slots {
            update(variable, |values| values.swap_with_slice(average))?;
        }
        self.is_swapped_in = !self.is_swapped_in;
        Ok(())
    }

    fn check_swapped(&self, expected: bool) -> Result<()> {
        if self.is_swapped_in == expected {
            return Ok(());
        }
        let word = |is_in| if is_in { "swapped in" } else { "swapped out" };
        Err(Error::invalid("moving average", word(expected), word(self.is_swapped_in)))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;
    use crate::nn::Initialiser;

    fn first(variable: &Var) -> f32 {
        variable.to_vec1::<f32>().unwrap()[0]
    }

    /// For wₜ = t from a₀ = 0, after T steps:  a = T − (d/(1−d)) (1 − dᵀ).
    #[test]
    fn a_ramp_is_averaged_in_closed_form() {
        let parameters = Parameters::new(1);
        let w = parameters.trained("w", &[1], Initialiser::Zeros).unwrap();
        let decay = 0.9_f32;
        let mut average = MovingAverage::new(&parameters, decay).unwrap();
        for step in 1..=50_u8 {
            w.set(&Tensor::new(&[f32::from(step)], &Device::Cpu).unwrap()).unwrap();
            average.update().unwrap();
        }
        average.swap_in().unwrap();
        let expected = 50.0 - 9.0 * (1.0 - 0.9_f64.powi(50));
        // 50 roundings of numbers below 50, each at most 2⁻²⁴ · 64.
        assert!((f64::from(first(&w)) - expected).abs() < 2e-4, "{} {expected}", first(&w));
    }

    #[test]
    fn swapping_and_restoring_keep_every_bit_and_the_order_of_calls() {
        let parameters = Parameters::new(1);
        let w = parameters.trained("w", &[3], Initialiser::FanIn).unwrap();
        parameters.buffer("u", &[3], Initialiser::Ones).unwrap();
        let before = w.to_vec1::<f32>().unwrap();
        let mut average = MovingAverage::new(&parameters, 0.99).unwrap();
        w.set(&w.zeros_like().unwrap()).unwrap();
        let saved = average.export().unwrap();
        assert_eq!(saved.keys().collect::<Vec<_>>(), ["w"]);
        assert!(average.swap_out().is_err());
        average.swap_in().unwrap();
        assert_eq!(w.to_vec1::<f32>().unwrap(), before);
        let message = average.update().unwrap_err().to_string();
        assert_eq!(message, "`moving average` must be swapped out, found swapped in");
        average.swap_out().unwrap();
        assert_eq!(w.to_vec1::<f32>().unwrap(), [0.0; 3]);

        average.update().unwrap();
        average.import(&saved).unwrap();
        average.swap_in().unwrap();
        assert_eq!(w.to_vec1::<f32>().unwrap(), before);
        assert!(MovingAverage::new(&parameters, 1.0).is_err());
    }
}
