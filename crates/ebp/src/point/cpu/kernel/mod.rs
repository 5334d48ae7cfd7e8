//! The kernels: the few loops that do all the arithmetic, compiled once per instruction set.
//!
//! [`Kernels`] is a table of functions. Its methods check sizes, so that everything above this
//! folder is safe code; the functions behind them trust those checks.

mod activate;
mod attention;
mod dots;
mod gradient;
mod pool;
mod product;
mod second;
mod window;

pub(super) use activate::Activate;
pub(super) use attention::{Attend, AttendBackward, Head};
pub(super) use dots::Dots;
pub(super) use gradient::{Outer, RowSum};
pub(super) use pool::MaxPool;
pub(super) use product::{Finish, Panels, Product, Start};
pub(super) use second::{Adjoint, Tangent};
pub(super) use window::{Convolve, ConvolveTransposed, ConvolveWeights, Layout};

use super::buffer::LINE;
use super::simd::Simd;
use crate::rng::Stream;

/// Rows are processed in blocks; buffers that kernels write must hold a multiple of this many.
pub(super) const ROW_BLOCK: usize = 24;

/// The kernels of one instruction set.
pub(super) struct Kernels {
    /// Columns per panel of packed weights.
    pub(super) panel_width: usize,
    /// Floating-point operations of one iteration of `spin`.
    pub(super) spin_flops: usize,
    product: unsafe fn(Product<'_>),
    outer: unsafe fn(Outer<'_>),
    row_sum: unsafe fn(RowSum<'_>),
    dots: unsafe fn(Dots<'_>),
    activate: unsafe fn(Activate<'_>),
    attend: unsafe fn(Attend<'_>),
    attend_backward: unsafe fn(AttendBackward<'_>),
    convolve: unsafe fn(Convolve<'_>),
    convolve_transposed: unsafe fn(ConvolveTransposed<'_>),
    convolve_weights: unsafe fn(ConvolveWeights<'_>),
    max_pool: unsafe fn(MaxPool<'_>),
    tangent: unsafe fn(Tangent<'_>),
    adjoint: unsafe fn(Adjoint<'_>),
    normals: unsafe fn(Stream, u32, u64, &mut [f32]),
    spin: unsafe fn(usize) -> f32,
}

macro_rules! kernels {
    ($name:ident, $simd:ty $(, $features:literal)?) => {
        #[allow(
            clippy::undocumented_unsafe_blocks,
            reason = "one reason for all, at the top of the block"
        )]
        pub(super) static $name: Kernels = {
            // SAFETY (all): callers reach these through `Kernels`, which is only handed out for
            // instruction sets that the machine has, and whose methods check sizes.
            $(#[target_feature(enable = $features)])?
            unsafe fn product(args: Product<'_>) {
                unsafe { product::run::<$simd>(args) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn outer(args: Outer<'_>) {
                unsafe { gradient::run::<$simd>(args) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn row_sum(args: RowSum<'_>) {
                unsafe { gradient::row_sum::<$simd>(args) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn dots(args: Dots<'_>) {
                unsafe { dots::run::<$simd>(args) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn activate(args: Activate<'_>) {
                unsafe { activate::run::<$simd>(args) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn attend(args: Attend<'_>) {
                unsafe { attention::run::<$simd>(args) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn attend_backward(args: AttendBackward<'_>) {
                unsafe { attention::backward::<$simd>(args) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn convolve(args: Convolve<'_>) {
                unsafe { window::convolve::<$simd>(args) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn convolve_transposed(args: ConvolveTransposed<'_>) {
                unsafe { window::convolve_transposed::<$simd>(args) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn convolve_weights(args: ConvolveWeights<'_>) {
                unsafe { window::convolve_weights::<$simd>(args) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn max_pool(args: MaxPool<'_>) {
                unsafe { pool::run::<$simd>(&mut { args }) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn tangent(args: Tangent<'_>) {
                second::tangent(args);
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn adjoint(args: Adjoint<'_>) {
                second::adjoint(args);
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn normals(stream: Stream, step: u32, start: u64, out: &mut [f32]) {
                stream.fill_normal_inline(step, start, out);
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn spin(iterations: usize) -> f32 {
                unsafe { spin_loop::<$simd>(iterations) }
            }
            Kernels {
                panel_width: <$simd as Simd>::PANEL * <$simd as Simd>::LANES,
                spin_flops: SPIN_CHAINS * <$simd as Simd>::LANES * 2,
                product,
                outer,
                row_sum,
                dots,
                activate,
                attend,
                attend_backward,
                convolve,
                convolve_transposed,
                convolve_weights,
                max_pool,
                tangent,
                adjoint,
                normals,
                spin,
            }
        };
    };
}

kernels!(PORTABLE, super::simd::portable::Portable);
#[cfg(target_arch = "x86_64")]
kernels!(AVX2, super::simd::avx2::Avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
kernels!(AVX512, super::simd::avx512::Avx512, "avx512f,avx512dq,avx512vl,avx2,fma");

/// Independent chains of multiply-adds: enough to fill two pipelines of latency four.
const SPIN_CHAINS: usize = 12;

/// x ← m x + c on independent chains: nothing but fused multiply-adds, to measure the peak.
///
/// # Safety
///
/// The CPU has `S`.
#[inline(always)]
unsafe fn spin_loop<S: Simd>(iterations: usize) -> f32 {
    // SAFETY: the caller's.
    unsafe {
        // Factors and starts that the compiler cannot see: equal chains would be merged into one.
        let seen: [f32; SPIN_CHAINS * LINE] =
            std::hint::black_box(std::array::from_fn(|i| 1.0 - 1e-6 * i as f32));
        let (m, c) = (S::load(seen.as_ptr().add(LINE)), S::load(seen.as_ptr()));
        let mut chains = [[S::splat(0.0); 4]; SPIN_CHAINS / 4];
        for (chain, start) in chains.as_flattened_mut().iter_mut().zip(seen.chunks_exact(LINE)) {
            *chain = S::load(start.as_ptr());
        }
        for _ in 0..iterations {
            for four in &mut chains {
                for chain in four {
                    *chain = S::fma(*chain, m, c);
                }
            }
        }
        let mut total = 0.0;
        for four in chains {
            total += S::sum4(four).iter().sum::<f32>();
        }
        total
    }
}

/// Whether `rows` rows of `width`, `stride` apart, lie inside `length` floats.
fn fits(rows: usize, width: usize, stride: usize, length: usize) -> bool {
    rows == 0 || (rows - 1) * stride + width <= length
}

impl Kernels {
    pub(super) fn product(&self, args: Product<'_>) {
        let rows = args.rows.next_multiple_of(ROW_BLOCK);
        let Panels { data, width, depth, skip } = args.panels;
        assert!(width.is_multiple_of(LINE) && depth * width <= data.len());
        assert!(skip + args.depth <= depth);
        assert!(fits(rows, args.depth, args.input_stride, args.inputs.len()));
        if let Start::Shift { table, stride, rows: index } = args.start {
            assert!(index.len() >= rows);
            let last = index[..rows].iter().copied().max().unwrap_or(0) as usize;
            assert!(fits(last + 1, width, stride, table.len()));
        }
        assert!(fits(rows, width, args.out_stride, args.finish.out_length()));
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.product)(args) }
    }

    pub(super) fn outer(&self, args: Outer<'_>) {
        assert!(args.right_width.is_multiple_of(LINE));
        assert!(fits(args.rows, args.left_width, args.left_stride, args.left.len()));
        assert!(fits(args.rows, args.right_width, args.right_stride, args.right.len()));
        let gradient = args.gradient.len();
        assert!(fits(args.left_width, args.right_width, args.gradient_stride, gradient));
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.outer)(args) }
    }

    pub(super) fn row_sum(&self, args: RowSum<'_>) {
        assert!(args.width.is_multiple_of(LINE) && args.into.len() >= args.width);
        assert!(fits(args.rows, args.width, args.stride, args.from.len()));
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.row_sum)(args) }
    }

    pub(super) fn dots(&self, args: Dots<'_>) {
        let rows = args.rows.next_multiple_of(ROW_BLOCK);
        assert!(args.depth.is_multiple_of(LINE));
        assert!(args.outputs * args.depth <= args.weights.len());
        assert!(fits(rows, args.depth, args.input_stride, args.inputs.len()));
        assert!(fits(rows, args.outputs, args.out_stride, args.out.len()));
        assert!(args.shift.len() >= args.outputs);
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.dots)(args) }
    }

    pub(super) fn activate(&self, args: Activate<'_>) {
        assert!(args.width.is_multiple_of(LINE));
        let others = [args.slopes.as_deref(), args.curvatures.as_deref()];
        for slice in others.into_iter().flatten().chain(std::iter::once(&*args.values)) {
            assert!(fits(args.rows, args.width, args.stride, slice.len()));
        }
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.activate)(args) }
    }

    pub(super) fn attend(&self, args: Attend<'_>) {
        args.head.check();
        assert!(args.weights.len() >= args.head.num_keys * LINE);
        assert!(args.out.len() >= args.head.depth * LINE);
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.attend)(args) }
    }

    pub(super) fn attend_backward(&self, args: AttendBackward<'_>) {
        args.head.check();
        let Head { num_keys, depth, .. } = args.head;
        assert!(args.weights.len().min(args.slopes.len()) >= num_keys * LINE);
        assert!(args.cotangents.len().min(args.of_queries.len()) >= depth * LINE);
        assert!(args.of_keys.len().min(args.of_values.len()) >= num_keys * depth * LINE);
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.attend_backward)(args) }
    }

    pub(super) fn convolve(&self, args: Convolve<'_>) {
        args.layout.check(args.plane, args.out, args.weights);
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.convolve)(args) }
    }

    pub(super) fn convolve_transposed(&self, args: ConvolveTransposed<'_>) {
        args.layout.check(args.plane, args.from, args.weights);
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.convolve_transposed)(args) }
    }

    pub(super) fn convolve_weights(&self, args: ConvolveWeights<'_>) {
        args.layout.check(args.plane, args.from, args.sums);
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.convolve_weights)(args) }
    }

    pub(super) fn max_pool(&self, args: MaxPool<'_>) {
        assert!(args.width.is_multiple_of(LINE));
        assert!(fits(args.rows, args.width, args.stride, args.from.len()));
        let shortest = args.best.len().min(args.argument.len()).min(args.poison.len());
        assert!(args.width <= shortest);
        // SAFETY: all pointers stay inside the slices by the assertions above.
        unsafe { (self.max_pool)(args) }
    }

    pub(super) fn tangent(&self, args: Tangent<'_>) {
        // SAFETY: safe code inside, compiled for an instruction set that the machine has.
        unsafe { (self.tangent)(args) }
    }

    pub(super) fn adjoint(&self, args: Adjoint<'_>) {
        // SAFETY: safe code inside, compiled for an instruction set that the machine has.
        unsafe { (self.adjoint)(args) }
    }

    /// Standard normals at indices `start..` of `step`; the same bits on every instruction set.
    pub(super) fn normals(&self, stream: Stream, step: u32, start: u64, out: &mut [f32]) {
        // SAFETY: safe code inside, compiled for an instruction set that the machine has.
        unsafe { (self.normals)(stream, step, start, out) }
    }

    /// `iterations · spin_flops` floating-point operations on registers alone.
    pub(super) fn spin(&self, iterations: usize) -> f32 {
        // SAFETY: touches no memory, on an instruction set that the machine has.
        unsafe { (self.spin)(iterations) }
    }
}
