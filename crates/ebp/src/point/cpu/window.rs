//! Windows that move over a picture, every channel by its own: sixteen channels at a time.
//!
//! They are copied into a plane with a border of zeros, sixteen numbers side by side for every place:
//! no loop asks where a picture ends, and a place's neighbours lie in the cache's next lines.

use super::CpuBackend;
use super::buffer::{Buffer, LINE};
use super::kernel::{Convolve, ConvolveTransposed, ConvolveWeights, Kernels, Layout};

/// A window of `side` by `side` on a grid, moved by `stride` places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Columns of the grid.
    pub(crate) width: usize,
    /// Its rows.
    pub(crate) height: usize,
    /// Odd.
    pub(crate) side: usize,
    /// At most `side`.
    pub(crate) stride: usize,
}

impl Window {
    fn reach(self) -> usize {
        self.side / 2
    }

    fn layout(self) -> Layout {
        Layout {
            plane_width: self.width + 2 * self.reach(),
            side: self.side,
            stride: self.stride,
            rows: self.height.div_ceil(self.stride),
            columns: self.width.div_ceil(self.stride),
        }
    }
}

/// Memory for one picture after the other.
pub(crate) struct WindowMemory {
    window: Window,
    layout: Layout,
    plane: Buffer,
    /// What stands at the windows' own places.
    own: Buffer,
    weights: Buffer,
}

/// Some channels of all: the first, how many, and of how many.
#[derive(Clone, Copy)]
struct Channels {
    first: usize,
    count: usize,
    all: usize,
}

impl Channels {
    fn blocks(all: usize) -> impl Iterator<Item = Self> {
        let block = move |first: usize| Self { first, count: LINE.min(all - first), all };
        (0..all).step_by(LINE).map(block)
    }

    /// Their numbers of rows `[n, all]` to lines `[n, 16]`. What stands in other lanes is not looked at.
    fn pack<'a>(self, rows: &[f32], lines: impl Iterator<Item = &'a mut [f32]>) {
        let lines = lines.zip(rows.chunks_exact(self.all));
        if self.count == LINE {
            // A length that the compiler knows: two instructions in place of a call.
            let whole = |row: &'_ [f32]| row[self.first..].first_chunk::<LINE>().copied();
            lines.for_each(|(line, row)| {
                if let (Some(line), Some(row)) = (line.first_chunk_mut::<LINE>(), whole(row)) {
                    *line = row;
                }
            });
            return;
        }
        for (line, row) in lines {
            line[..self.count].copy_from_slice(&row[self.first..self.first + self.count]);
        }
    }

    /// The way back from `pack`.
    fn unpack(self, lines: &[f32], rows: &mut [f32]) {
        let pairs = lines.chunks_exact(LINE).zip(rows.chunks_exact_mut(self.all));
        if self.count == LINE {
            pairs.for_each(|(line, row)| {
                let row = row[self.first..].first_chunk_mut::<LINE>();
                if let (Some(row), Some(line)) = (row, line.first_chunk::<LINE>()) {
                    *row = *line;
                }
            });
            return;
        }
        for (line, row) in pairs {
            row[self.first..self.first + self.count].copy_from_slice(&line[..self.count]);
        }
    }
}

impl WindowMemory {
    pub(crate) fn new(window: Window) -> Self {
        let layout = window.layout();
        let height = window.height + 2 * window.reach();
        Self {
            window,
            layout,
            plane: Buffer::zeros(layout.plane_width * height * LINE),
            own: Buffer::zeros(layout.rows * layout.columns * LINE),
            weights: Buffer::zeros(window.side * window.side * LINE),
        }
    }

    /// The lines of a row of the picture within the plane.
    fn row(&self, row: usize) -> std::ops::Range<usize> {
        let reach = self.window.reach();
        let start = (row + reach) * self.layout.plane_width + reach;
        start * LINE..(start + self.window.width) * LINE
    }

    /// A picture `[height, width, all]` to the plane.
    fn fill(&mut self, channels: Channels, picture: &[f32]) {
        let rows = picture.chunks_exact(self.window.width * channels.all);
        for (number, row) in rows.enumerate() {
            let range = self.row(number);
            channels.pack(row, self.plane[range].chunks_exact_mut(LINE));
        }
    }

    /// What stands at the windows' own places, `[rows, columns, all]`.
    fn fill_own(&mut self, channels: Channels, own: &[f32]) {
        channels.pack(own, self.own.chunks_exact_mut(LINE));
    }

    /// Windows `[k², all]`, turned around if asked for.
    fn fill_weights(&mut self, channels: Channels, weights: &[f32], is_turned: bool) {
        let lines = self.weights.chunks_exact_mut(LINE);
        if is_turned { channels.pack(weights, lines.rev()) } else { channels.pack(weights, lines) }
    }
}

impl CpuBackend {
    /// What windows `[k², channels]` find around their places in a picture `[height, width, channels]`:
    /// `[rows, columns, channels]`.
    pub(crate) fn convolve(
        self,
        memory: &mut WindowMemory,
        (picture, weights): (&[f32], &[f32]),
        is_turned: bool,
        out: &mut [f32],
    ) {
        let kernels: &Kernels = self.simd.kernels();
        let all = weights.len() / (memory.window.side * memory.window.side);
        for channels in Channels::blocks(all) {
            memory.fill(channels, picture);
            memory.fill_weights(channels, weights, is_turned);
            let WindowMemory { layout, plane, own, weights, .. } = &mut *memory;
            kernels.convolve(Convolve { layout: *layout, plane, weights, out: own });
            channels.unpack(&memory.own, out);
        }
    }

    /// The transpose: a picture from what stands at the windows' own places.
    pub(crate) fn convolve_transposed(
        self,
        memory: &mut WindowMemory,
        (own, weights): (&[f32], &[f32]),
        out: &mut [f32],
    ) {
        let kernels: &Kernels = self.simd.kernels();
        let all = weights.len() / (memory.window.side * memory.window.side);
        for channels in Channels::blocks(all) {
            memory.fill_own(channels, own);
            memory.fill_weights(channels, weights, false);
            memory.plane.fill(0.0);
            let WindowMemory { layout, plane, own, weights, .. } = &mut *memory;
            kernels.convolve_transposed(ConvolveTransposed {
                layout: *layout,
                from: own,
                weights,
                plane,
            });
            let rows = out.chunks_exact_mut(memory.window.width * all).enumerate();
            rows.for_each(|(number, row)| channels.unpack(&memory.plane[memory.row(number)], row));
        }
    }

    /// Σ over windows of what stands at their own places times what they find, `[k², channels]`.
    pub(crate) fn convolve_weights(
        self,
        memory: &mut WindowMemory,
        (picture, own): (&[f32], &[f32]),
        sums: &mut [f32],
    ) {
        let kernels: &Kernels = self.simd.kernels();
        let all = sums.len() / (memory.window.side * memory.window.side);
        for channels in Channels::blocks(all) {
            memory.fill(channels, picture);
            memory.fill_own(channels, own);
            let WindowMemory { layout, plane, own, weights, .. } = &mut *memory;
            kernels.convolve_weights(ConvolveWeights {
                layout: *layout,
                plane,
                from: own,
                sums: weights,
            });
            channels.unpack(&memory.weights, sums);
        }
    }
}
