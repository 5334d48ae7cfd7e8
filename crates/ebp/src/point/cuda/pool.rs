//! Pools of sets, and their gradients.

use super::buffer::Buffer;
use super::critical::CriticalRows;
use super::device::Device;
use super::inputs::{DeviceBatch, DeviceCotangent, DeviceMlp};
use super::launch::per_set;
use super::network::{Keep, Network};
use super::rows::Rows;
use super::sets::Chunk;
use super::values::prepare;
use super::whole::Whole;
use crate::Result;
use crate::point::{Gradients, Pooling, Wanted};

/// Sets' pooled outputs, as [`Pooled`](crate::point::Pooled).
#[derive(Debug)]
pub(crate) struct DevicePooled {
    pub(crate) pooling: Pooling,
    /// `[sets, output_dim]`.
    pub(crate) values: Buffer,
    /// Maxima: the row that attains each, `[sets, output_dim]`; else empty.
    pub(crate) critical: Buffer<u32>,
    /// Maxima: these rows, which [`pool_backward`](Device::pool_backward) needs.
    pub(crate) rows: Option<CriticalRows>,
}

impl Device {
    /// Pools the outputs of each set. A backward pass may follow if `will_go_back`: maxima then have
    /// their critical rows gathered, and their number is on its way to the host.
    pub(crate) fn pool(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
        pooling: Pooling,
        will_go_back: bool,
    ) -> Result<DevicePooled> {
        let (network, chunks) = prepare(self, mlp, batch, Keep::Output)?;
        let n = mlp.shape.config().output_dim;
        let length = batch.sets.num_sets() * n;
        let is_max = pooling == Pooling::Max;
        let values = self.filled(if is_max { f32::NEG_INFINITY } else { 0.0 }, length)?;
        let critical = self.zeros::<u32>(if is_max { length } else { 0 })?;
        for chunk in &chunks {
            let rows = network.rows(batch.elements, batch.sets, chunk)?;
            if is_max {
                take_maxima(&network, (chunk, &rows), (&values, &critical))?;
                continue;
            }
            let output = network.forward(&rows, Keep::Output)?.output;
            rows.add_sums(self, (&output, n), &values)?;
        }
        if pooling == Pooling::Mean {
            batch.sets.over_sizes(self, &values, &values)?;
        }
        let rows = if is_max && will_go_back {
            Some(CriticalRows::find(self, mlp.shape, batch, &critical)?)
        } else {
            None
        };
        Ok(DevicePooled { pooling, values, critical, rows })
    }

    /// Gradients of L = Σ ⟨cotangent, pooled⟩, `cotangent` being `[sets, output_dim]`. Maxima wait for
    /// the number of their critical rows, which left the GPU after [`pool`](Self::pool).
    pub(crate) fn pool_backward(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
        pooled: &DevicePooled,
        cotangent: &Buffer,
        wanted: Wanted,
    ) -> Result<Gradients<Buffer>> {
        let of_sums = match (pooled.pooling, &pooled.rows) {
            (Pooling::Sum, _) => cotangent.clone(),
            (Pooling::Mean, _) => {
                let scaled = self.buffer::<f32>(cotangent.len())?;
                batch.sets.over_sizes(self, cotangent, &scaled)?;
                scaled
            }
            (Pooling::Max, Some(rows)) => {
                return self.max_backward(mlp, batch, rows, cotangent, wanted);
            }
            (Pooling::Max, None) => {
                let rows = CriticalRows::find(self, mlp.shape, batch, &pooled.critical)?;
                return self.max_backward(mlp, batch, &rows, cotangent, wanted);
            }
        };
        Ok(self.backward(mlp, batch, DeviceCotangent::PerSet(&of_sums), wanted)?.gradients)
    }

    /// Gradients reach only the critical rows: these are computed again, and the rest is left.
    fn max_backward(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
        critical: &CriticalRows,
        cotangent: &Buffer,
        wanted: Wanted,
    ) -> Result<Gradients<Buffer>> {
        let sets = critical.sets(self)?;
        let gathered =
            DeviceBatch { elements: critical.elements(), sets: &sets, context: batch.context };
        let (network, chunks) = prepare(self, mlp, &gathered, Keep::Slopes)?;
        let (n, d) = (mlp.shape.config().output_dim, mlp.shape.element_dim());
        let sums = network.sums(wanted)?;
        let mut elements = Whole::new(self, sets.num_elements() * d);
        for chunk in &chunks {
            let rows = network.rows(gathered.elements, &sets, chunk)?;
            let trace = network.forward(&rows, Keep::Slopes)?;
            let g = critical.cotangent(self, cotangent, &chunk.rows, n)?;
            let back = network.backward(&rows, &trace, Some(&g), sums.as_ref(), wanted.elements)?;
            if wanted.elements {
                elements.put(chunk.rows.start * d, back)?;
            }
        }
        let mut gradients = network.finish(sums)?;
        if wanted.elements {
            gradients.elements = Some(critical.spread(self, batch.sets, &elements.done(), d)?);
        }
        Ok(gradients)
    }
}

/// Takes the rows of a chunk into the maxima so far and the rows that attain them.
fn take_maxima(
    network: &Network<'_>,
    (chunk, rows): (&Chunk, &Rows),
    (values, critical): (&Buffer, &Buffer<u32>),
) -> Result<()> {
    let n = network.shape.config().output_dim;
    let unpooled = network.unpooled(rows)?;
    let (kind, leak) = unpooled.activation;
    network.device.kernels.pool_max(
        network.device,
        per_set(rows.num_sets, n),
        &unpooled.z,
        &rows.starts,
        unpooled.shift.as_ref(),
        i32::from(unpooled.has_context),
        kind,
        leak,
        values,
        critical,
        rows.first_set as u32,
        chunk.rows.start as u32,
        n as u32,
    )
}
