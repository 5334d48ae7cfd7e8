//! Columns in another order.

use std::sync::Arc;

use super::{Array, Device, Tape, Var, cuda};
use crate::{Error, Result};

/// An order of columns: where each column of the result comes from, and the way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub(super) forth: Vec<u32>,
    pub(super) back: Vec<u32>,
}

/// Whether columns are brought into an order or out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forth,
    Back,
}

impl Order {
    /// Column j of the result is column `from[j]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless every column occurs once.
    pub fn new(from: &[usize]) -> Result<Self> {
        let mut back = vec![u32::MAX; from.len()];
        let mut forth = Vec::with_capacity(from.len());
        for (place, &from_column) in (0_u32..).zip(from) {
            match (u32::try_from(from_column), back.get_mut(from_column)) {
                (Ok(column), Some(free @ &mut u32::MAX)) => {
                    *free = place;
                    forth.push(column);
                }
                _ => return Err(Error::invalid("order", "every column once", format!("{from:?}"))),
            }
        }
        Ok(Self { forth, back })
    }
}

fn arrange(device: &Device, x: &Array, order: &Arc<Order>, way: Way) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let x = x.host()?;
            let from = if way == Way::Forth { &order.forth } else { &order.back };
            let mut out = Vec::with_capacity(x.len());
            for row in x.chunks_exact(from.len().max(1)) {
                out.extend(from.iter().map(|&from| row[from as usize]));
            }
            Ok(out.into())
        }
        Device::Cuda(gpu) => cuda::arrange(gpu, x.cuda()?, order, way),
    }
}

impl Tape {
    /// The columns of a matrix in another order.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn arrange(&mut self, x: Var, order: &Arc<Order>) -> Result<Var> {
        self.arrange_by(x, order, [Way::Forth, Way::Back])
    }

    /// The columns that [`arrange`](Self::arrange) brought into an order, as they were.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn arrange_back(&mut self, x: Var, order: &Arc<Order>) -> Result<Var> {
        self.arrange_by(x, order, [Way::Back, Way::Forth])
    }

    fn arrange_by(&mut self, x: Var, order: &Arc<Order>, [way, other]: [Way; 2]) -> Result<Var> {
        let shape = self.shape(x);
        self.check("columns", x, (shape.0, order.forth.len()))?;
        let value = arrange(self.device(), self.array(x), order, way)?;
        let order = Arc::clone(order);
        Ok(self.record(&[x], value, shape, move |reversal| {
            Ok(vec![Some(arrange(reversal.device, reversal.cotangent()?, &order, other)?)])
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_and_the_way_back_undo_each_other() {
        let order = Arc::new(Order::new(&[2, 0, 1]).unwrap());
        let device = Device::default();
        let mut tape = device.tape();
        let x = tape.variable(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0].into(), (2, 3)).unwrap();
        let y = tape.arrange(x, &order).unwrap();
        assert_eq!(tape.download(y).unwrap(), [3.0, 1.0, 2.0, 6.0, 4.0, 5.0]);
        let back = tape.arrange_back(y, &order).unwrap();
        assert_eq!(tape.download(back).unwrap(), tape.download(x).unwrap());
        let weights = tape.upload(vec![1.0, 10.0, 100.0], (1, 3)).unwrap();
        let weighted = tape.multiply(y, weights).unwrap();
        let gradient = tape.gradient(weighted, x).unwrap();
        assert_eq!(device.download(&gradient).unwrap(), [10.0, 100.0, 1.0, 10.0, 100.0, 1.0]);
        for wrong in [&[0, 0, 1][..], &[0, 3, 1]] {
            assert!(Order::new(wrong).is_err());
        }
    }
}
