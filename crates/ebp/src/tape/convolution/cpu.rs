//! Convolutions on the host: a picture is one thread's, and sums over pictures are taken in their
//! order. The same bits on any number of threads.

use rayon::prelude::*;

use super::Convolution;
use crate::point::CpuBackend;
use crate::point::cpu::{Window, WindowMemory};

impl Convolution {
    pub(super) fn memory(self) -> WindowMemory {
        let Self { width, height, side, stride } = self;
        WindowMemory::new(Window { width, height, side, stride })
    }

    /// Numbers of a picture on the finer and on the coarser grid.
    fn lengths(self, channels: usize) -> (usize, usize) {
        (self.num_fine() * channels, self.num_coarse() * channels)
    }
}

pub(super) fn forward(cpu: CpuBackend, window: Convolution, x: &[f32], w: &[f32]) -> Vec<f32> {
    correlate(cpu, window, (x, w), false)
}

fn correlate(
    cpu: CpuBackend,
    window: Convolution,
    (x, w): (&[f32], &[f32]),
    is_turned: bool,
) -> Vec<f32> {
    let (fine, coarse) = window.lengths(w.len() / window.num_weights());
    let mut out = vec![0.0; x.len() / fine * coarse];
    out.par_chunks_mut(coarse).zip(x.par_chunks(fine)).for_each_init(
        || window.memory(),
        |memory, (out, picture)| cpu.convolve(memory, (picture, w), is_turned, out),
    );
    out
}

pub(super) fn transposed(cpu: CpuBackend, window: Convolution, y: &[f32], w: &[f32]) -> Vec<f32> {
    if window.stride == 1 {
        return correlate(cpu, window, (y, w), true);
    }
    let (fine, coarse) = window.lengths(w.len() / window.num_weights());
    let mut out = vec![0.0; y.len() / coarse * fine];
    out.par_chunks_mut(fine).zip(y.par_chunks(coarse)).for_each_init(
        || window.memory(),
        |memory, (out, own)| cpu.convolve_transposed(memory, (own, w), out),
    );
    out
}

pub(super) fn of_weights(
    cpu: CpuBackend,
    window: Convolution,
    (x, y): (&[f32], &[f32]),
    channels: usize,
) -> Vec<f32> {
    let (fine, coarse) = window.lengths(channels);
    let length = window.num_weights() * channels;
    let of_picture = |memory: &mut WindowMemory, pair: (&[f32], &[f32])| {
        let mut sums = vec![0.0; length];
        cpu.convolve_weights(memory, pair, &mut sums);
        sums
    };
    let pictures = x.par_chunks(fine).zip(y.par_chunks(coarse));
    let parts: Vec<Vec<f32>> = pictures.map_init(|| window.memory(), of_picture).collect();
    let sum = |at: usize| parts.iter().map(|part| f64::from(part[at])).sum::<f64>();
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    (0..length).map(|at| sum(at) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three passes over eleven pictures, by one thread and by three.
    #[test]
    fn threads_do_not_change_a_bit() {
        let (cpu, window) = (CpuBackend::new(), Convolution::new((9, 7), 5, 2).unwrap());
        let (channels, sets) = (19, 11);
        let numbers = |count: usize, factor: usize| -> Vec<f32> {
            (0..count).map(|i| ((i * factor) % 101) as f32 * 0.37 - 18.0).collect()
        };
        let x = numbers(sets * window.num_fine() * channels, 7);
        let y = numbers(sets * window.num_coarse() * channels, 5);
        let w = numbers(window.num_weights() * channels, 3);
        let found = [1, 3].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let all = pool.install(|| {
                let passes = [forward(cpu, window, &x, &w), transposed(cpu, window, &y, &w)];
                [passes.concat(), of_weights(cpu, window, (&x, &y), channels)].concat()
            });
            all.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        });
        assert!(found[0] == found[1]);
    }
}
