//! Exact log-probabilities on a finite alphabet.
//!
//! ```text
//! log p(x) = f_x − log Σ_k exp f_k,    ∂ log p(x) / ∂f_k = 1[k = x] − p(k)
//! ```
//!
//! The sum runs over every symbol, so Z is no estimate. Rows are worked on in parallel, each by
//! one thread, and nothing but one number per row is kept for the backward pass.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

use std::sync::Arc;

use rayon::prelude::*;

use super::elementwise::{Join, Spread, join};
use super::lanes::{LANES, exponential};
use super::{Array, Device, Shape, Tape, Var, cuda};
use crate::error::check_length;
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};
use crate::{Error, Result};

/// Rows per piece of work.
const CHUNK: usize = 64;

impl Tape {
    /// log p of the symbol that stands in each row, under the softmax of the row's log potentials:
    /// `[rows, 1]` from `[rows, alphabet]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine), and if a symbol is not in the alphabet.
    pub fn log_mass(&mut self, potentials: Var, symbols: &Arc<Vec<u32>>) -> Result<Var> {
        let (rows, size) = self.shape(potentials);
        check_length("symbols", symbols.len(), rows, || "one per row".into())?;
        if let Some(found) = symbols.iter().find(|symbol| **symbol as usize >= size) {
            return Err(Error::invalid("symbols", format!("below {size}"), found));
        }
        let array = self.array(potentials).clone();
        let value = forward(self.device(), &array, size, symbols)?;
        let (symbols, result) = (Arc::clone(symbols), value.clone());
        Ok(self.record(&[potentials], value, (rows, 1), move |reversal| {
            let arrays = [&array, &result, reversal.cotangent()?];
            Ok(vec![Some(backward(reversal.device, arrays, size, &symbols)?)])
        }))
    }

    /// The share of every symbol in its row, a constant.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn softmax(&mut self, potentials: Var) -> Result<Var> {
        let shape = self.shape(potentials);
        let value = shares(self.device(), self.array(potentials), shape)?;
        self.constant(value, shape)
    }
}

/// The softmax of every row.
fn shares(device: &Device, potentials: &Array, shape: Shape) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let mut shares = potentials.host()?.to_vec();
            softmax_rows(&mut shares, shape.1);
            Ok(shares.into())
        }
        Device::Cuda(gpu) => cuda::softmax(gpu, potentials.cuda()?, shape),
    }
}

impl Tape {
    /// log Σ exp of every row, `[rows, 1]`; the gradient of an entry is its softmax.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn log_sum_exp(&mut self, potentials: Var) -> Result<Var> {
        let (rows, size) = self.shape(potentials);
        let value = match self.device() {
            Device::Cpu(_) => {
                let vectoriser = Vectoriser::new();
                let log_sum = |row: &[f32]| {
                    let (largest, sum) = vectoriser.run(LogSum(row));
                    largest + sum.ln()
                };
                let rows = self.array(potentials).host()?.par_chunks_exact(size.max(1));
                rows.map(log_sum).collect::<Vec<_>>().into()
            }
            Device::Cuda(gpu) => {
                cuda::log_sum_exp(gpu, self.array(potentials).cuda()?, (rows, size))?
            }
        };
        let array = self.array(potentials).clone();
        Ok(self.record(&[potentials], value, (rows, 1), move |reversal| {
            let shares = shares(reversal.device, &array, (rows, size))?;
            let right = (reversal.cotangent()?, Spread::PerRow);
            Ok(vec![Some(join(reversal.device, (&shares, size), right, Join::Multiply)?)])
        }))
    }
}

fn forward(
    device: &Device,
    potentials: &Array,
    size: usize,
    symbols: &Arc<Vec<u32>>,
) -> Result<Array> {
    match device {
        Device::Cpu(_) => Ok(log_masses(potentials.host()?, size, symbols).into()),
        Device::Cuda(gpu) => cuda::log_mass(gpu, potentials.cuda()?, size, symbols),
    }
}

/// ∂L/∂f from the potentials, the log masses and their cotangents.
fn backward(
    device: &Device,
    [potentials, result, cotangent]: [&Array; 3],
    size: usize,
    symbols: &Arc<Vec<u32>>,
) -> Result<Array> {
    if let Device::Cuda(gpu) = device {
        let arrays = [potentials.cuda()?, result.cuda()?, cotangent.cuda()?];
        return cuda::log_mass_backward(gpu, arrays, size, symbols);
    }
    let (result, cotangent) = (result.host()?, cotangent.host()?);
    let mut gradient = potentials.host()?.to_vec();
    let vectoriser = Vectoriser::new();
    gradient.par_chunks_mut(CHUNK * size).enumerate().for_each(|(chunk, rows)| {
        for (index, row) in rows.chunks_exact_mut(size).enumerate() {
            let index = chunk * CHUNK + index;
            let (symbol, cotangent) = (symbols[index] as usize, cotangent[index]);
            // log Z = f_x − log p(x)
            let log_partition = row[symbol] - result[index];
            vectoriser.run(Exponentials { row, log_partition });
            for share in row.iter_mut() {
                *share *= -cotangent;
            }
            row[symbol] += cotangent;
        }
    });
    Ok(gradient.into())
}

/// log p of one symbol per row of `size` potentials.
fn log_masses(potentials: &[f32], size: usize, symbols: &[u32]) -> Vec<f32> {
    let vectoriser = Vectoriser::new();
    let mut result = vec![0.0; symbols.len()];
    result
        .par_chunks_mut(CHUNK)
        .zip(symbols.par_chunks(CHUNK))
        .zip(potentials.par_chunks(CHUNK * size))
        .for_each(|((out, symbols), rows)| {
            for ((out, &symbol), row) in out.iter_mut().zip(symbols).zip(rows.chunks_exact(size)) {
                let (largest, sum) = vectoriser.run(LogSum(row));
                // The chosen term alone, before the sum, so that a certain symbol gets exactly 0.
                *out = (row[symbol as usize] - largest) - sum.ln();
            }
        });
    result
}

/// Turns rows of potentials into probabilities, in place.
pub(crate) fn softmax_rows(rows: &mut [f32], size: usize) {
    let vectoriser = Vectoriser::new();
    rows.par_chunks_mut(CHUNK * size).for_each(|rows| {
        for row in rows.chunks_exact_mut(size) {
            let (largest, sum) = vectoriser.run(LogSum(row));
            let log_partition = largest + sum.ln();
            vectoriser.run(Exponentials { row, log_partition });
        }
    });
}

/// The largest of a row, and Σ exp(f − largest).
struct LogSum<'a>(&'a [f32]);

impl VectorLoop for LogSum<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run(self) -> (f32, f32) {
        let (whole, rest) = self.0.as_chunks::<LANES>();
        let mut lanes = [f32::NEG_INFINITY; LANES];
        for block in whole {
            for lane in 0..LANES {
                lanes[lane] = lanes[lane].max(block[lane]);
            }
        }
        let largest = lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0.0; LANES];
        for block in whole {
            for lane in 0..LANES {
                sums[lane] += exponential(block[lane] - largest);
            }
        }
        let sum =
            sums.iter().sum::<f32>() + rest.iter().map(|f| exponential(f - largest)).sum::<f32>();
        (largest, sum)
    }
}

/// f ← exp(f − log Z).
struct Exponentials<'a> {
    row: &'a mut [f32],
    log_partition: f32,
}

impl VectorLoop for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (whole, rest) = self.row.as_chunks_mut::<LANES>();
        for block in whole {
            for value in block {
                *value = exponential(*value - self.log_partition);
            }
        }
        for value in rest {
            *value = exponential(*value - self.log_partition);
        }
    }
}
