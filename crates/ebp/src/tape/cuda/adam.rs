//! A step of the optimiser.

use super::super::adam::{Numbers, non_finite};
use super::super::elementwise::{Join, Spread};
use super::super::{Array, adam as on_host};
use super::Gpu;
use super::entries::join_into;
use super::store::open;
use crate::Result;
use crate::point::cuda::{AdamNumbers, AdamState};

/// One step on parameters and moments, in place: all who share the arrays see it. The length of the
/// gradient is all that comes back; a gradient that is not finite changes nothing.
pub(in super::super) fn adam(
    gpu: &Gpu,
    [trained, first, second]: [&Array; 3],
    average: Option<&Array>,
    parts: &[(usize, &Array)],
    numbers: Numbers,
) -> Result<f64> {
    let gpu = open(gpu)?;
    let parameters = trained.cuda()?;
    let gradient = gpu.zeros::<f32>(parameters.len())?;
    let mut is_written: Vec<usize> = Vec::with_capacity(parts.len());
    for (start, part) in parts {
        let part = part.cuda()?;
        let place = gradient.view(*start, part.len());
        if is_written.contains(start) {
            // A parameter that was used twice.
            join_into(&gpu, (&place, 1), (part, Spread::Same), Join::Add, &place)?;
        } else {
            gpu.copy(part, &place)?;
            is_written.push(*start);
        }
    }
    let state = AdamState {
        parameters,
        first: first.cuda()?,
        second: second.cuda()?,
        average: average.map(Array::cuda).transpose()?,
    };
    let on_host::Numbers { beta1, gain1, beta2, gain2, keep, rate, root, floor, .. } = numbers;
    let on_host::Numbers { average_gain, limit, .. } = numbers;
    let numbers =
        AdamNumbers { beta1, gain1, beta2, gain2, keep, rate, root, floor, average_gain, limit };
    let (squares, square) = (gpu.square_parts(&gradient)?, gpu.buffer::<f64>(1)?);
    gpu.adam(&state, (&gradient, &squares), numbers, &square)?;
    let square = gpu.download(&square)?[0];
    if square.is_finite() {
        return Ok(square.sqrt());
    }
    Err(non_finite(&gpu.download(&gradient)?))
}
