//! Values between the cells of a coarse grid: four cells and weights for every place.

use std::sync::Arc;

use super::{Array, Choice, Device, Tape, Var, cuda};
use crate::Result;
use crate::error::check_length;

/// The four cells around every place, and their weights.
#[derive(Debug)]
pub struct Interpolation {
    num_cells: usize,
    pub(super) cells: Vec<[(u32, f32); 4]>,
}

impl Interpolation {
    /// Cells are numbered below `num_cells`.
    pub(crate) fn new(num_cells: usize, cells: Vec<[(u32, f32); 4]>) -> Self {
        Self { num_cells, cells }
    }

    /// Cells of a set.
    pub fn num_cells(&self) -> usize {
        self.num_cells
    }

    /// The cells of a row, set · places + place, among those of all sets.
    pub(super) fn around(&self, row: u32) -> impl Iterator<Item = (usize, f32)> {
        let (set, place) = (row as usize / self.cells.len(), row as usize % self.cells.len());
        let first = set * self.num_cells;
        self.cells[place].into_iter().map(move |(cell, weight)| (first + cell as usize, weight))
    }
}

fn forward(
    device: &Device,
    x: &Array,
    interpolation: &Arc<Interpolation>,
    rows: &Arc<Choice>,
    columns: usize,
) -> Result<Array> {
    if let Device::Cuda(gpu) = device {
        return cuda::interpolate(gpu, x.cuda()?, interpolation, rows, columns);
    }
    let x = x.host()?;
    let mut out = vec![0.0; rows.len() * columns];
    for (to, &row) in out.chunks_exact_mut(columns).zip(&rows.rows) {
        for (cell, weight) in interpolation.around(row) {
            let from = &x[cell * columns..][..columns];
            to.iter_mut().zip(from).for_each(|(to, x)| *to += weight * x);
        }
    }
    Ok(out.into())
}

fn backward(
    device: &Device,
    g: &Array,
    interpolation: &Arc<Interpolation>,
    rows: &Arc<Choice>,
    (num_cells, columns): (usize, usize),
) -> Result<Array> {
    if let Device::Cuda(gpu) = device {
        return cuda::interpolate_backward(
            gpu,
            g.cuda()?,
            interpolation,
            rows,
            (num_cells, columns),
        );
    }
    let g = g.host()?;
    let mut out = vec![0.0; num_cells * columns];
    for (from, &row) in g.chunks_exact(columns).zip(&rows.rows) {
        for (cell, weight) in interpolation.around(row) {
            let to = &mut out[cell * columns..][..columns];
            to.iter_mut().zip(from).for_each(|(to, g)| *to += weight * g);
        }
    }
    Ok(out.into())
}

impl Tape {
    /// What stands at chosen places, each set · places + place, between the cells `[sets · cells,
    /// columns]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn interpolate(
        &mut self,
        cells: Var,
        interpolation: &Arc<Interpolation>,
        rows: &Arc<Choice>,
    ) -> Result<Var> {
        let (num_cells, columns) = self.shape(cells);
        let sets = rows.num_rows / interpolation.cells.len().max(1);
        check_length("cells", num_cells, sets * interpolation.num_cells, || "of all sets".into())?;
        let array = self.array(cells);
        let value = forward(self.device(), array, interpolation, rows, columns)?;
        let (interpolation, rows) = (Arc::clone(interpolation), Arc::clone(rows));
        Ok(self.record(&[cells], value, (rows.len(), columns), move |reversal| {
            let g = reversal.cotangent()?;
            let shape = (num_cells, columns);
            Ok(vec![Some(backward(reversal.device, g, &interpolation, &rows, shape)?)])
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{CudaBackend, Precision};

    /// Three places of two sets of four cells, some chosen twice and some never.
    fn case() -> (Arc<Interpolation>, Arc<Choice>) {
        let cells = vec![
            [(0, 0.5), (1, 0.25), (2, 0.125), (3, 0.125)],
            [(3, 0.75), (2, 0.25), (0, 0.0), (1, 0.0)],
            [(1, 1.0), (1, 0.0), (3, 0.0), (2, 0.0)],
        ];
        let choice = Choice::new(6, vec![5, 0, 3, 3, 1]).expect("rows of six");
        (Arc::new(Interpolation::new(4, cells)), Arc::new(choice))
    }

    fn arrays(device: &Device) -> Result<(Vec<f32>, Vec<f32>)> {
        let (interpolation, choice) = case();
        let numbers = |count: u8, factor: f32| (0..count).map(|i| f32::from(i) * factor).collect();
        let (x, g) = (device.upload(numbers(16, 1.0))?, device.upload(numbers(10, 0.5))?);
        let value = forward(device, &x, &interpolation, &choice, 2)?;
        let back = backward(device, &g, &interpolation, &choice, (8, 2))?;
        Ok((device.download(&value)?, device.download(&back)?))
    }

    #[test]
    fn values_lie_between_cells_and_the_way_back_is_the_transpose() {
        let (value, back) = arrays(&Device::default()).expect("the CPU is there");
        // Row 0 is the first place of the first set: ½·0 + ¼·2 + ⅛·4 + ⅛·6.
        assert_eq!(value[2..4], [1.75, 2.75]);
        // ⟨A x, g⟩ = ⟨x, Aᵀ g⟩
        let left: f32 = (0_u8..).zip(&value).map(|(i, y)| f32::from(i) * 0.5 * y).sum();
        let right: f32 = (0_u8..).zip(&back).map(|(i, b)| f32::from(i) * b).sum();
        assert!((left - right).abs() < 1e-4, "{left} {right}");
        match CudaBackend::new(0, Precision::F32) {
            Ok(gpu) => {
                let found = arrays(&Device::Cuda(gpu)).expect("the GPU is there");
                assert_eq!(found, (value, back));
            }
            Err(reason) => {
                #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
                {
                    eprintln!("SKIPPED on a GPU: {reason}");
                }
            }
        }
    }
}
