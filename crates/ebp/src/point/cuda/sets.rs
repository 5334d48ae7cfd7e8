//! Which rows belong to which set, on the GPU; and batches in chunks of rows that fit into its memory.

use std::ops::Range;

use super::buffer::Buffer;
use super::device::Device;
use super::launch::{flat, per_set};
use crate::{Result, SetOffsets};

/// [`SetOffsets`], on the host and on the GPU. Made once for a batch, it serves every operation on it.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    offsets: SetOffsets,
    /// Where each set begins, and the end, `[sets + 1]`.
    starts: Buffer<u32>,
    /// The set of each row, `[total]`.
    set: Buffer<u32>,
}

impl Sets {
    /// Sends them.
    pub(crate) fn new(device: &Device, offsets: &SetOffsets) -> Result<Self> {
        let ends = (0..offsets.num_sets()).map(|set| offsets.range(set).end as u32);
        let starts: Vec<u32> = std::iter::once(0).chain(ends).collect();
        Self::with_starts(device, offsets.clone(), device.upload(&starts)?)
    }

    /// From offsets that the GPU has already.
    pub(super) fn with_starts(
        device: &Device,
        offsets: SetOffsets,
        starts: Buffer<u32>,
    ) -> Result<Self> {
        let set = device.buffer::<u32>(offsets.num_elements())?;
        device.kernels.name_sets(device, per_set(offsets.num_sets(), 1), &starts, &set, 0)?;
        Ok(Self { offsets, starts, set })
    }

    /// On the host.
    pub(crate) fn offsets(&self) -> &SetOffsets {
        &self.offsets
    }

    /// How many sets.
    pub(crate) fn num_sets(&self) -> usize {
        self.offsets.num_sets()
    }

    /// How many rows in all sets together.
    pub(crate) fn num_elements(&self) -> usize {
        self.offsets.num_elements()
    }

    /// Where each set begins, and the end, `[sets + 1]`.
    pub(crate) fn starts(&self) -> &Buffer<u32> {
        &self.starts
    }

    /// The set of each row, `[total]`.
    pub(crate) fn set_of_row(&self) -> &Buffer<u32> {
        &self.set
    }

    /// in `[sets, n]` with each row divided by the size of its set; `out` may be `input`.
    pub(super) fn over_sizes(&self, device: &Device, input: &Buffer, out: &Buffer) -> Result<()> {
        let sets = self.num_sets();
        let (grid, n) = (flat(input.len()), (input.len() / sets) as u32);
        device.kernels.over_sizes(device, grid, input, &self.starts, out, sets as u32, n)
    }

    /// factor / (sets · size) of every set, `[sets]`: what each row counts in a mean over sets of
    /// means over rows.
    pub(super) fn shares(&self, device: &Device, factor: f32) -> Result<Buffer> {
        let sets = self.num_sets();
        let out = device.buffer::<f32>(sets)?;
        device.kernels.set_shares(device, flat(sets), &self.starts, &out, sets as u32, factor)?;
        Ok(out)
    }

    /// All rows in chunks of at most `most`; a set may lie in several.
    pub(super) fn chunks(&self, most: usize) -> Vec<Chunk> {
        chunks(&self.offsets, most)
    }

    /// Where the sets of a chunk begin, counted from its first row.
    pub(super) fn starts_of(&self, device: &Device, chunk: &Chunk) -> Result<Buffer<u32>> {
        if chunk.rows.len() == self.num_elements() {
            Ok(self.starts.clone())
        } else {
            device.upload(&chunk.starts)
        }
    }
}

/// A chunk of rows and the sets it touches.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) rows: Range<usize>,
    pub(super) first_set: usize,
    /// From the chunk's first row.
    pub(super) starts: Vec<u32>,
}

/// Cuts a batch into chunks of at most `most` rows; a set may lie in several.
fn chunks(offsets: &SetOffsets, most: usize) -> Vec<Chunk> {
    let mut out = Vec::new();
    let total = offsets.num_elements();
    let (mut begin, mut set) = (0, 0);
    while begin < total {
        let end = total.min(begin + most.max(1));
        let first_set = set;
        let mut starts = vec![0];
        while set < offsets.num_sets() {
            let stop = offsets.range(set).end.min(end);
            starts.push((stop - begin) as u32);
            if offsets.range(set).end > end {
                break;
            }
            set += 1;
            if stop == end {
                break;
            }
        }
        out.push(Chunk { rows: begin..end, first_set, starts });
        begin = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_row_once_and_know_its_set() {
        let offsets = SetOffsets::from_sizes([3, 1, 7, 2]).unwrap();
        for most in 1..=14 {
            let mut next = 0;
            for chunk in chunks(&offsets, most) {
                assert_eq!(chunk.rows.start, next);
                assert!(chunk.rows.len() <= most && !chunk.rows.is_empty());
                assert_eq!(*chunk.starts.last().unwrap() as usize, chunk.rows.len());
                for (local, bounds) in chunk.starts.windows(2).enumerate() {
                    let set = offsets.range(chunk.first_set + local);
                    assert!(bounds[0] < bounds[1]);
                    assert!(set.contains(&(chunk.rows.start + bounds[0] as usize)));
                    assert!(set.contains(&(chunk.rows.start + bounds[1] as usize - 1)));
                }
                next = chunk.rows.end;
            }
            assert_eq!(next, 13);
        }
    }
}
