//! The rows that attain a maximum. They are found and gathered on the GPU; only how many there are must
//! be known to the host, and is by the time it is needed.

use std::ops::Range;

use super::buffer::Buffer;
use super::device::Device;
use super::inputs::DeviceBatch;
use super::landing::Landing;
use super::launch::{blocks, flat};
use super::sets::Sets;
use crate::point::MlpShape;
use crate::{Result, SetOffsets};

/// Critical rows of sets, each once and in its order.
#[derive(Debug)]
pub(crate) struct CriticalRows {
    /// The row that attains each maximum, `[sets, width]`.
    critical: Buffer<u32>,
    /// The number of each such row within its set, from 1; 0 for other rows. `[total]`.
    rank: Buffer<u32>,
    /// Where each set's rows begin in `gathered`, and their number.
    places: Buffer<u32>,
    /// The rows, `[rows, d]`, in an array for as many as there may be.
    gathered: Buffer,
    /// `places`, on its way to the host.
    landing: Landing<u32>,
}

impl CriticalRows {
    /// Gathers the rows of a batch that `critical` `[sets, output_dim]` names.
    pub(super) fn find(
        device: &Device,
        shape: &MlpShape,
        batch: &DeviceBatch<'_>,
        critical: &Buffer<u32>,
    ) -> Result<Self> {
        let (sets, offsets, kernels) =
            (batch.sets.num_sets(), batch.sets.offsets(), &device.kernels);
        let (n, d) = (shape.config().output_dim, shape.element_dim());
        let starts = batch.sets.starts();
        let rank = device.zeros::<u32>(batch.sets.num_elements())?;
        let (sizes, places) = (device.buffer::<u32>(sets)?, device.buffer::<u32>(sets + 1)?);
        let most: usize = (0..sets).map(|set| offsets.size(set).min(n)).sum();
        let gathered = device.buffer::<f32>(most * d)?;
        kernels.mark(device, flat(sets * n), critical, &rank, (sets * n) as u32)?;
        kernels.rank_marked(device, blocks(sets, 1024), starts, &rank, &sizes)?;
        kernels.first_places(device, blocks(1, 32), &sizes, &places, sets as u32)?;
        kernels.gather_marked(
            device,
            blocks(sets, 1024),
            batch.elements,
            starts,
            &rank,
            &places,
            &gathered,
            d as u32,
        )?;
        let landing = device.land(&places)?;
        Ok(Self { critical: critical.clone(), rank, places, gathered, landing })
    }

    /// Which of the gathered rows belong to which set; waits for the host to know.
    pub(super) fn sets(&self, device: &Device) -> Result<Sets> {
        let places = self.landing.read()?;
        let sizes = places.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        Sets::with_starts(device, SetOffsets::from_sizes(sizes)?, self.places.clone())
    }

    pub(super) fn elements(&self) -> &Buffer {
        &self.gathered
    }

    /// ∂L/∂f of gathered rows, `[rows, n]`: each entry of ∂L/∂maxima at the row that attains it.
    pub(super) fn cotangent(
        &self,
        device: &Device,
        of_maxima: &Buffer,
        rows: &Range<usize>,
        n: usize,
    ) -> Result<Buffer> {
        let g = device.zeros::<f32>(rows.len() * n)?;
        device.kernels.scatter_marked(
            device,
            flat(self.critical.len()),
            of_maxima,
            &self.critical,
            &self.rank,
            &self.places,
            &g,
            self.critical.len() as u32,
            n as u32,
            rows.start as u32,
            rows.len() as u32,
        )?;
        Ok(g)
    }

    /// The gradient of all elements `[total, d]` from that of the gathered rows.
    pub(super) fn spread(
        &self,
        device: &Device,
        sets: &Sets,
        of_rows: &Buffer,
        d: usize,
    ) -> Result<Buffer> {
        let out = device.buffer::<f32>(sets.num_elements() * d)?;
        device.kernels.spread_marked(
            device,
            blocks(sets.num_sets(), 1024),
            of_rows,
            sets.starts(),
            &self.rank,
            &self.places,
            &out,
            d as u32,
        )?;
        Ok(out)
    }
}
