//! Plain loops, compiled for the instruction set of the machine.
//!
//! The compiler turns loops over fixed-size arrays into vector instructions, but only into those
//! that every CPU of the architecture has. [`Vectoriser::run`] calls a loop from inside a function
//! that is compiled for more, so that the same safe code runs two to four times as wide. As Rust
//! never fuses a multiplication with an addition by itself, the bits are the same on every
//! instruction set.

use std::sync::OnceLock;

use super::SimdLevel;

/// A loop to be vectorised. `run` and everything it calls must be `inline(always)`: a function
/// that stays on its own is compiled for the common instruction set.
pub(crate) trait VectorLoop {
    /// What the loop computes.
    type Output;
    /// Runs it.
    fn run(self) -> Self::Output;
}

/// Knows what the machine has; only [`Vectoriser::new`] makes one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vectoriser {
    level: SimdLevel,
}

impl Vectoriser {
    /// For the widest vectors of this machine.
    pub(crate) fn new() -> Self {
        // Asked for at every small loop, found once.
        static LEVEL: OnceLock<SimdLevel> = OnceLock::new();
        let find = || SimdLevel::available().pop().unwrap_or(SimdLevel::Portable);
        Self { level: *LEVEL.get_or_init(find) }
    }

    /// Runs `work` on the machine's instruction set.
    #[inline]
    pub(crate) fn run<L: VectorLoop>(self, work: L) -> L::Output {
        match self.level {
            // SAFETY: `level` is one of the machine's.
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => unsafe { run_avx512(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => unsafe { run_avx2(work) },
            _ => work.run(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
fn run_avx512<L: VectorLoop>(work: L) -> L::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<L: VectorLoop>(work: L) -> L::Output {
    work.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Σ √(x² + 1), lane by lane.
    struct Sum<'a>(&'a [[f64; 8]]);

    impl VectorLoop for Sum<'_> {
        type Output = [f64; 8];
        #[inline(always)]
        fn run(self) -> [f64; 8] {
            let mut sums = [0.0; 8];
            for row in self.0 {
                for lane in 0..8 {
                    sums[lane] += (row[lane] * row[lane] + 1.0).sqrt();
                }
            }
            sums
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let rows: Vec<[f64; 8]> = (0..100)
            .map(|i| std::array::from_fn(|lane| (f64::from(i) * 0.7 + lane as f64).sin()))
            .collect();
        let expected = Sum(&rows).run();
        for level in SimdLevel::available() {
            assert_eq!(
                Vectoriser { level }.run(Sum(&rows)).map(f64::to_bits),
                expected.map(f64::to_bits)
            );
        }
    }
}
