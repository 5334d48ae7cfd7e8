//! Columns in another order.

use std::sync::Arc;

use super::rows::{Choice, gather};
use super::{Array, Device, Tape, Var};
use crate::{Error, Result};

/// An order of columns: where each column of the result comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order(Vec<u32>);

impl Order {
    /// Column j of the result is column `from[j]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless every column occurs once.
    pub fn new(from: Vec<usize>) -> Result<Self> {
        let mut sorted = from.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..from.len()) {
            return Err(Error::invalid("order", "every column once", format!("{from:?}")));
        }
        let narrow = |place: usize| {
            u32::try_from(place).map_err(|error| Error::invalid("order", "below 2³²", error))
        };
        Ok(Self(from.into_iter().map(narrow).collect::<Result<_>>()?))
    }

    /// The order that undoes this one.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let mut inverse = vec![0; self.0.len()];
        for (place, &from) in (0_u32..).zip(&self.0) {
            inverse[from as usize] = place;
        }
        Self(inverse)
    }
}

fn arrange(device: &Device, x: &Array, order: &Order) -> Result<Array> {
    let columns = order.0.len();
    if let Device::Cuda(_) = device {
        // Every number is a row of its own.
        let narrow = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let starts = (0..x.len()).step_by(columns).map(narrow);
        let places = starts.flat_map(|start| order.0.iter().map(move |from| start + from));
        return gather(device, x, &Choice::new(x.len(), places.collect())?, 1);
    }
    let x = x.host()?;
    let mut out = Vec::with_capacity(x.len());
    for row in x.chunks_exact(columns) {
        out.extend(order.0.iter().map(|&from| row[from as usize]));
    }
    Ok(out.into())
}

impl Tape {
    /// The columns of a matrix in another order.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn arrange(&mut self, x: Var, order: &Arc<Order>) -> Result<Var> {
        let shape = self.shape(x);
        self.check("columns", x, (shape.0, order.0.len()))?;
        let value = arrange(self.device(), self.array(x), order)?;
        let inverse = order.inverse();
        Ok(self.record(&[x], value, shape, move |reversal| {
            Ok(vec![Some(arrange(reversal.device, reversal.cotangent()?, &inverse)?)])
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_and_its_inverse_undo_each_other_forth_and_back() {
        let order = Arc::new(Order::new(vec![2, 0, 1]).unwrap());
        let device = Device::default();
        let mut tape = device.tape();
        let x = tape.variable(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0].into(), (2, 3)).unwrap();
        let y = tape.arrange(x, &order).unwrap();
        assert_eq!(tape.download(y).unwrap(), [3.0, 1.0, 2.0, 6.0, 4.0, 5.0]);
        let back = tape.arrange(y, &Arc::new(order.inverse())).unwrap();
        assert_eq!(tape.download(back).unwrap(), tape.download(x).unwrap());
        let weights = tape.upload(vec![1.0, 10.0, 100.0], (1, 3)).unwrap();
        let weighted = tape.multiply(y, weights).unwrap();
        let gradient = tape.gradient(weighted, x).unwrap();
        assert_eq!(device.download(&gradient).unwrap(), [10.0, 100.0, 1.0, 10.0, 100.0, 1.0]);
        assert!(Order::new(vec![0, 0, 1]).is_err());
    }
}
