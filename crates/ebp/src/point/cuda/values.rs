//! Values, gradients and scores of every element.

use std::time::Instant;

use super::Precision;
use super::buffer::Buffer;
use super::device::Device;
use super::inputs::{DeviceBatch, DeviceCotangent, DeviceMlp};
use super::launch::flat;
use super::network::{Keep, Network};
use super::products::Factor;
use super::rows::Rows;
use super::sets::Chunk;
use super::whole::Whole;
use crate::Result;
use crate::point::{Backward, Gradients, Score, Wanted};
use crate::rng::Stream;

/// The network of a call, and its batch in chunks.
pub(super) fn prepare<'a>(
    device: &'a Device,
    mlp: &DeviceMlp<'a>,
    batch: &DeviceBatch<'_>,
    keep: Keep,
) -> Result<(Network<'a>, Vec<Chunk>)> {
    let network = Network::new(device, mlp, batch.context, batch.sets.num_sets())?;
    let chunks = batch.sets.chunks(network.rows_at_once(keep));
    Ok((network, chunks))
}

/// The cotangent of a chunk's outputs, `[count, outputs]`.
pub(super) fn of_chunk(
    device: &Device,
    (chunk, rows): (&Chunk, &Rows),
    outputs: usize,
    cotangent: DeviceCotangent<'_>,
) -> Result<Buffer> {
    let length = rows.count * outputs;
    match cotangent {
        DeviceCotangent::PerElement(given) => Ok(given.view(chunk.rows.start * outputs, length)),
        DeviceCotangent::PerSet(given) => {
            let out = device.buffer::<f32>(length)?;
            let (count, n) = (rows.count as u64, outputs as u32);
            device.kernels.spread(device, flat(length), given, Some(&rows.set), &out, count, n)?;
            Ok(out)
        }
    }
}

impl Device {
    /// f of every element, `[total, output_dim]`.
    pub(crate) fn values(&self, mlp: &DeviceMlp<'_>, batch: &DeviceBatch<'_>) -> Result<Buffer> {
        let (network, chunks) = prepare(self, mlp, batch, Keep::Output)?;
        let outputs = mlp.shape.config().output_dim;
        let mut values = Whole::new(self, batch.sets.num_elements() * outputs);
        for chunk in &chunks {
            let rows = network.rows(batch.elements, batch.sets, chunk)?;
            let output = network.forward(&rows, Keep::Output)?.output;
            values.put(chunk.rows.start * outputs, output)?;
        }
        Ok(values.done())
    }

    /// f, and the gradients of L = Σ ⟨cotangent, f⟩.
    pub(crate) fn backward(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
        cotangent: DeviceCotangent<'_>,
        wanted: Wanted,
    ) -> Result<Backward<Buffer>> {
        let (network, chunks) = prepare(self, mlp, batch, Keep::Slopes)?;
        let (outputs, d) = (mlp.shape.config().output_dim, mlp.shape.element_dim());
        let sums = network.sums(wanted)?;
        let total = batch.sets.num_elements();
        let mut values = Whole::new(self, total * outputs);
        let mut elements = Whole::new(self, total * d);
        for chunk in &chunks {
            let rows = network.rows(batch.elements, batch.sets, chunk)?;
            let trace = network.forward(&rows, Keep::Slopes)?;
            let g = of_chunk(self, (chunk, &rows), outputs, cotangent)?;
            let back = network.backward(&rows, &trace, Some(&g), sums.as_ref(), wanted.elements)?;
            values.put(chunk.rows.start * outputs, trace.output)?;
            if wanted.elements {
                elements.put(chunk.rows.start * d, back)?;
            }
        }
        let mut gradients = network.finish(sums)?;
        gradients.elements = wanted.elements.then(|| elements.done());
        Ok(Backward { values: values.done(), gradients })
    }

    /// f and ∇ₓ f of every element, for one output.
    pub(crate) fn score(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
    ) -> Result<Score<Buffer>> {
        let (network, chunks) = prepare(self, mlp, batch, Keep::Slopes)?;
        let (d, dx) = (mlp.shape.element_dim(), mlp.shape.config().value_dim);
        let total = batch.sets.num_elements();
        let (mut values, mut score) = (Whole::new(self, total), Whole::new(self, total * dx));
        for chunk in &chunks {
            let rows = network.rows(batch.elements, batch.sets, chunk)?;
            let trace = network.forward(&rows, Keep::Slopes)?;
            let gradient = network.backward(&rows, &trace, None, None, true)?;
            values.put(chunk.rows.start, trace.output)?;
            score.put(chunk.rows.start * dx, self.first_columns(gradient, d, dx)?)?;
        }
        Ok(Score { values: values.done(), score: score.done() })
    }

    /// Gradients of L = Σ ⟨v, ∇ₓ f⟩ + Σ u f, with v `[total, d_x]` and u `[total]` or none.
    pub(crate) fn score_backward(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
        (v, u): (&Buffer, Option<&Buffer>),
        wanted: Wanted,
    ) -> Result<Gradients<Buffer>> {
        let (network, chunks) = prepare(self, mlp, batch, Keep::Curvatures)?;
        let (d, dx) = (mlp.shape.element_dim(), mlp.shape.config().value_dim);
        let sums = network.sums(wanted)?;
        let mut elements = Whole::new(self, batch.sets.num_elements() * d);
        for chunk in &chunks {
            let rows = network.rows(batch.elements, batch.sets, chunk)?;
            let direction = self.padded(&v.view(chunk.rows.start * dx, rows.count * dx), dx, d)?;
            let u = u.map(|u| u.view(chunk.rows.start, rows.count));
            let back = network.score_backward(
                &rows,
                &direction,
                u.as_ref(),
                sums.as_ref(),
                wanted.elements,
            )?;
            if wanted.elements {
                elements.put(chunk.rows.start * d, back)?;
            }
        }
        let mut gradients = network.finish(sums)?;
        gradients.elements = wanted.elements.then(|| elements.done());
        Ok(gradients)
    }

    /// The first `n` columns of an array `[rows, width]`.
    pub(super) fn first_columns(&self, from: Buffer, width: usize, n: usize) -> Result<Buffer> {
        if n == width {
            return Ok(from);
        }
        let rows = from.len() / width;
        let out = self.buffer::<f32>(rows * n)?;
        let (grid, count) = (flat(rows * n), rows as u64);
        self.kernels.take_columns(self, grid, &from, &out, count, width as u32, 0, n as u32)?;
        Ok(out)
    }

    /// An array `[rows, n]` with zeros behind each row, `[rows, width]`.
    fn padded(&self, from: &Buffer, n: usize, width: usize) -> Result<Buffer> {
        if n == width {
            return Ok(from.clone());
        }
        let rows = from.len() / n;
        let out = self.buffer::<f32>(rows * width)?;
        let (grid, count) = (flat(rows * width), rows as u64);
        self.kernels.pad_columns(self, grid, from, &out, count, n as u32, width as u32)?;
        Ok(out)
    }
}

/// 10⁹ operations per second of products of 8192 × 8192 matrices.
pub(super) fn peak(device: &Device) -> Result<f64> {
    const SIDE: usize = 8192;
    let numbers = device.buffer::<f32>(SIDE * SIDE)?;
    // Random numbers: zeros run faster than anything real.
    device.normals(&numbers, Stream::new(1, "peak"), 0, 0)?;
    let rounded = device.rounded(&numbers, SIDE * SIDE)?;
    let factor = match device.precision {
        Precision::Bf16 => Factor::new(&rounded, SIDE),
        Precision::F32 | Precision::Tf32 => Factor::new(&numbers, SIDE),
    };
    let out = device.buffer::<f32>(SIDE * SIDE)?;
    let mut fastest = f64::INFINITY;
    for _ in 0..6 {
        device.synchronize()?;
        let start = Instant::now();
        let sides = (SIDE, SIDE, SIDE);
        device.multiply(sides, (factor, factor), (&out, false), device.precision)?;
        device.synchronize()?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    Ok(2.0 * (SIDE as f64).powi(3) / fastest / 1e9)
}
