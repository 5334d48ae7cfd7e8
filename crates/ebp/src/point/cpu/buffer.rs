//! Memory that starts on a cache line.

/// One cache line, also the widest vector.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// Floats per cache line. Widths are padded to it, so that rows hold whole vectors.
pub(super) const LINE: usize = 16;

/// The next multiple of [`LINE`].
pub(super) fn padded(width: usize) -> usize {
    width.next_multiple_of(LINE)
}

/// Zero-initialised floats, aligned to 64 bytes.
#[derive(Clone, Default)]
pub(super) struct Buffer {
    lines: Vec<Line>,
}

impl Buffer {
    /// At least `length` zeros.
    pub(super) fn zeros(length: usize) -> Self {
        Self { lines: vec![Line([0.0; LINE]); length.div_ceil(LINE)] }
    }
}

impl std::ops::Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `Line` is `repr(C)` around an array, so lines are contiguous floats.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * LINE) }
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`; the borrow is unique.
        unsafe {
            std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * LINE)
        }
    }
}

/// Rows of `width` floats, `stride` apart.
#[derive(Clone, Default)]
pub(super) struct Matrix {
    pub(super) data: Buffer,
    pub(super) width: usize,
    pub(super) stride: usize,
}

impl Matrix {
    /// Zeros, with one spare line per row: rows a power of two apart would all fall into the same
    /// few sets of the cache.
    pub(super) fn zeros(rows: usize, width: usize) -> Self {
        let width = padded(width);
        let stride = width + LINE;
        Self { data: Buffer::zeros(rows * stride), width, stride }
    }

    /// Zeros without padding, for rows that no kernel reads as whole vectors.
    pub(super) fn compact(rows: usize, width: usize) -> Self {
        Self { data: Buffer::zeros(rows * width), width, stride: width }
    }

    /// Appends the first `width` numbers of the first `rows` rows.
    pub(super) fn push_rows(&self, rows: usize, width: usize, into: &mut Vec<f32>) {
        let used = &self.data[..rows * self.stride];
        if width == 1 {
            into.extend(used.iter().step_by(self.stride));
        } else if width == self.stride {
            into.extend_from_slice(used);
        } else {
            for row in used.chunks_exact(self.stride) {
                into.extend_from_slice(&row[..width]);
            }
        }
    }

    pub(super) fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.stride..][..self.width]
    }

    pub(super) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.data[row * self.stride..][..self.width]
    }
}
