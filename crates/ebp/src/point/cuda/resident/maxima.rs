//! φ's maxima over each set, and its gradient through the rows that attain them. Those rows are found
//! and gathered on the GPU; only how many there are is known to the host, by the time it is needed.

use cudarc::driver::{CudaEvent, LaunchConfig, PinnedHostSlice, sys};

use super::super::chunk::chunks;
use super::super::device::{Buffer, Device, driver, flat, launch};
use super::super::network::{Elements, Keep, Network};
use super::super::pool::pool_max;
use crate::point::Wanted;
use crate::{Result, SetOffsets};

pub(super) struct Maxima {
    /// `[sets, width]`.
    pub(super) pooled: Buffer,
    /// The row that attains each, `[sets, width]`.
    critical: Buffer<u32>,
    /// The number of each such row within its set, from 1; 0 for other rows.
    rank: Buffer<u32>,
    /// Where each set's rows begin in `gathered`, and their number.
    places: Buffer<u32>,
    /// The rows, `[rows, d]`.
    gathered: Buffer,
    /// `places` has landed on the host.
    has_landed: CudaEvent,
}

/// A block for each set.
fn blocks(sets: usize, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (sets as u32, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

impl Maxima {
    /// Runs φ over all `points` of `offsets`.
    pub(super) fn find(
        network: &Network<'_>,
        points: &Buffer,
        offsets: &SetOffsets,
        landing: &mut PinnedHostSlice<u32>,
    ) -> Result<Self> {
        let device = network.device;
        let (sets, n) = (offsets.num_sets(), network.shape.config().output_dim);
        let d = network.shape.element_dim();
        let pooled = device.upload(&vec![f32::NEG_INFINITY; sets * n])?;
        let critical = device.zeros::<u32>(sets * n)?;
        for chunk in chunks(offsets, network.rows_at_once(Keep::Output)) {
            let rows = network.rows(Elements::There(points), &chunk)?;
            pool_max(network, (&chunk, &rows), (&pooled, &critical))?;
        }
        let rank = device.zeros::<u32>(offsets.num_elements())?;
        let (sizes, places) = (device.buffer::<u32>(sets)?, device.buffer::<u32>(sets + 1)?);
        let starts: Vec<u32> =
            std::iter::once(0).chain((0..sets).map(|set| offsets.range(set).end as u32)).collect();
        let starts = device.upload(&starts)?;
        let most: usize = (0..sets).map(|set| offsets.size(set).min(n)).sum();
        let gathered = device.buffer::<f32>(most * d)?;
        let count = (sets * n) as u32;
        launch!(device, mark, flat(sets * n), critical.at(0), rank.at(0), count)?;
        launch!(device, rank_marked, blocks(sets, 1024), starts.at(0), rank.at(0), sizes.at(0))?;
        launch!(device, first_places, blocks(1, 32), sizes.at(0), places.at(0), sets as u32)?;
        launch!(
            device,
            gather_marked,
            blocks(sets, 1024),
            points.at(0),
            starts.at(0),
            rank.at(0),
            places.at(0),
            gathered.at(0),
            d as u32
        )?;
        let has_landed = land(device, &places, landing)?;
        Ok(Self { pooled, critical, rank, places, gathered, has_landed })
    }

    /// Adds φ's gradient for ∂L/∂pooled into `gradient`, which holds zeros.
    pub(super) fn backward(
        &self,
        network: &Network<'_>,
        cotangent: &Buffer,
        gradient: Buffer,
        landing: &mut PinnedHostSlice<u32>,
    ) -> Result<()> {
        let failed = |error| driver("wait for the GPU", error);
        let device = network.device;
        let n = network.shape.config().output_dim;
        self.has_landed.synchronize().map_err(failed)?;
        let places = &landing.as_slice().map_err(failed)?[..self.places.len()];
        let sizes = places.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let offsets = SetOffsets::from_sizes(sizes)?;
        let wanted = Wanted { parameters: true, context: false, elements: false };
        let sums = network.sums_into(gradient, wanted)?;
        for chunk in chunks(&offsets, network.rows_at_once(Keep::Slopes)) {
            let rows = network.rows(Elements::There(&self.gathered), &chunk)?;
            let trace = network.forward(&rows, Keep::Slopes)?;
            let g = device.zeros::<f32>(rows.count * n)?;
            let count = self.critical.len();
            launch!(
                device,
                scatter_marked,
                flat(count),
                cotangent.at(0),
                self.critical.at(0),
                self.rank.at(0),
                self.places.at(0),
                g.at(0),
                count as u32,
                n as u32,
                chunk.rows.start as u32,
                rows.count as u32
            )?;
            network.backward(&rows, &trace, Some(g), Some(&sums), false)?;
        }
        network.gather(sums)?;
        Ok(())
    }
}

/// Begins to copy `from` to the host.
fn land(
    device: &Device,
    from: &Buffer<u32>,
    landing: &mut PinnedHostSlice<u32>,
) -> Result<CudaEvent> {
    let failed = |error| driver("copy numbers back", error);
    let to = landing.as_mut_ptr().map_err(failed)?;
    let bytes = from.len() * size_of::<u32>();
    // SAFETY: `landing` has room for every batch (`step` checks), and is read after the event.
    unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from.at(0), bytes, device.stream.cu_stream()) }
        .result()
        .map_err(failed)?;
    device.stream.record_event(None).map_err(failed)
}
