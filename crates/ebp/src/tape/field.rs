//! A gradient as a value: g(x) = ∇ₓu of sets, through which gradients flow back.
//!
//! The derivative of v·g is H v with the symmetric H = ∇²u, which is the derivative of g along v:
//!
//! ```text
//! H v = ‖v‖ ( g(x + h v/‖v‖) − g(x − h v/‖v‖) ) / (2 h) + O(h²),   ‖v‖ the root mean square over a set
//! ```
//!
//! Two more gradients in the place of second derivatives of every operation that u is made of; the gradient
//! itself is exact. Sets do not see each other, so each has its own ‖v‖.

use std::sync::Arc;

use super::{Array, Device, Tape, Var};
use crate::error::check_length;
use crate::{Result, SetOffsets};

/// h: small against the least width of a law that is drawn from (0.03), large against the rounding of g.
const DIFFERENCE: f64 = 1e-3;
/// Keeps the logarithm of a mean square finite where nothing flows back.
const TINY: f64 = 1e-30;

impl Tape {
    /// g of elements `[total, d]`, where `field` finds it at any elements, on a tape that reads what this
    /// one reads. Gradients flow to the elements alone.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine), and what `field` reports.
    pub fn gradient_field(
        &mut self,
        x: Var,
        offsets: &Arc<SetOffsets>,
        field: impl Fn(Self, Array) -> Result<Array> + 'static,
    ) -> Result<Var> {
        let (shape, elements) = (self.shape(x), self.array(x).clone());
        check_length("rows", shape.0, offsets.num_elements(), || "elements of the sets".into())?;
        let value = field(self.reader(), elements.clone())?;
        check_length("gradient", value.len(), shape.0 * shape.1, || "as the elements".into())?;
        let (readers, offsets) = ([self.reader(), self.reader()], Arc::clone(offsets));
        Ok(self.record(&[x], value, shape, move |reversal| {
            let (device, v) = (reversal.device, reversal.cotangent()?);
            let (along, norms) = directions(device, v, &offsets, shape.1)?;
            let mut found = Vec::with_capacity(2);
            for (reader, sign) in readers.into_iter().zip([1.0, -1.0]) {
                let mut tape = Self::new(device);
                let at = tape.constant(elements.clone(), shape)?;
                let along = tape.constant(along.clone(), shape)?;
                let along = tape.affine(along, sign * DIFFERENCE, 0.0)?;
                let at = tape.add(at, along)?;
                found.push(field(reader, tape.array(at).clone())?);
            }
            let mut tape = Self::new(device);
            let mut slopes = [x; 2];
            for (slope, found) in slopes.iter_mut().zip(found) {
                *slope = tape.constant(found, shape)?;
            }
            let difference = tape.subtract(slopes[0], slopes[1])?;
            let norms = tape.constant(norms, (shape.0, 1))?;
            let product = tape.multiply(difference, norms)?;
            let product = tape.affine(product, 0.5 / DIFFERENCE, 0.0)?;
            Ok(vec![Some(tape.array(product).clone())])
        }))
    }
}

/// v/‖v‖ of every element, `[total, d]`, and ‖v‖ of its set, `[total, 1]`.
fn directions(
    device: &Device,
    v: &Array,
    offsets: &Arc<SetOffsets>,
    dims: usize,
) -> Result<(Array, Array)> {
    let (sets, total) = (offsets.num_sets(), offsets.num_elements());
    let mut tape = Tape::new(device);
    let v = tape.constant(v.clone(), (total, dims))?;
    let squares = tape.square(v)?;
    let squares = tape.row_sums(squares)?;
    let squares = tape.set_sums(squares, offsets)?;
    let shares = (0..sets).map(|set| 1.0 / (offsets.size(set) * dims) as f32).collect();
    let shares = tape.upload(shares, (sets, 1))?;
    let squares = tape.multiply(squares, shares)?;
    let squares = tape.affine(squares, 1.0, TINY)?;
    let log_squares = tape.log(squares)?;
    let mut powers = [v; 2];
    for (power, exponent) in powers.iter_mut().zip([-0.5, 0.5]) {
        let log = tape.affine(log_squares, exponent, 0.0)?;
        let own = tape.exp(log)?;
        *power = tape.spread(own, offsets)?;
    }
    let along = tape.multiply(v, powers[0])?;
    Ok((tape.array(along).clone(), tape.array(powers[1]).clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// u = (Σᵢⱼ xᵢⱼ)³/6 of a set with sum s: g = s²/2 in every place, and H v = s Σ v.
    fn cubic(tape: &mut Tape, x: Var, offsets: &Arc<SetOffsets>) -> Result<Var> {
        let sums = tape.row_sums(x)?;
        let sums = tape.set_sums(sums, offsets)?;
        let squares = tape.square(sums)?;
        let cubes = tape.multiply(squares, sums)?;
        tape.affine(cubes, 1.0 / 6.0, 0.0)
    }

    #[test]
    fn what_flows_back_is_the_hessian_times_the_cotangent() {
        let offsets = Arc::new(SetOffsets::from_sizes([2, 1]).unwrap());
        let device = Device::default();
        let mut tape = device.tape();
        let numbers = vec![0.5, 0.25, -0.125, 0.375, 2.0, -0.5];
        let x = tape.variable(numbers.into(), (3, 2)).unwrap();
        let sets = Arc::clone(&offsets);
        let field = move |mut tape: Tape, at: Array| {
            let x = tape.variable(at, (3, 2))?;
            let u = cubic(&mut tape, x, &sets)?;
            tape.gradient(u, x)
        };
        let g = tape.gradient_field(x, &offsets, field).unwrap();
        // s = 1 and 1.5.
        assert_eq!(tape.download(g).unwrap(), [0.5, 0.5, 0.5, 0.5, 1.125, 1.125]);
        let v = tape.upload(vec![1.0, 0.0, 3.0, -1.0, 0.0, 100.0], (3, 2)).unwrap();
        let terms = tape.multiply(g, v).unwrap();
        let found = tape.gradient(terms, x).unwrap();
        let found = device.download(&found).unwrap();
        // Σ v = 3 and 100. g is a square, whose central difference is exact: rounding of 1e-7 over 2 h.
        for (found, expected) in found.iter().zip([3.0, 3.0, 3.0, 3.0, 150.0, 150.0]) {
            assert!((found - expected).abs() < 1e-3 * expected, "{found} {expected}");
        }
    }

    #[test]
    fn sets_that_do_not_fit_are_refused() {
        let device = Device::default();
        let mut tape = device.tape();
        let x = tape.upload(vec![0.0; 4], (2, 2)).unwrap();
        let offsets = Arc::new(SetOffsets::uniform(1, 3).unwrap());
        let error = tape.gradient_field(x, &offsets, |_, x| Ok(x)).unwrap_err();
        assert!(error.to_string().contains("rows"), "{error}");
    }
}
