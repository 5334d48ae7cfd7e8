//! Matrix products, by cuBLAS.
//!
//! In bf16 both factors are rounded and copied first, so that the library has no choice: asked to round
//! factors itself, it takes TF32.

use cudarc::cublas::{result as blas, sys as blas_sys};

use super::Precision;
use super::buffer::Buffer;
use super::device::Device;
use super::launch::flat;
use crate::{Error, Result};

/// A matrix, and whether it is read transposed. Rows lie one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand<'a> {
    numbers: &'a Buffer,
    is_transposed: bool,
    /// Numbers of a stored row.
    stride: usize,
}

/// A matrix read as it is stored, in rows of `stride` numbers.
pub(crate) fn plain(numbers: &Buffer, stride: usize) -> Operand<'_> {
    Operand { numbers, is_transposed: false, stride }
}

/// A matrix read transposed; it is stored in rows of `stride` numbers.
pub(crate) fn transposed(numbers: &Buffer, stride: usize) -> Operand<'_> {
    Operand { numbers, is_transposed: true, stride }
}

/// An operand as the library reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    address: u64,
    is_transposed: bool,
    stride: usize,
}

impl Factor {
    /// Numbers of the precision's own kind, in rows of `stride`.
    pub(super) fn new<T>(numbers: &Buffer<T>, stride: usize) -> Self {
        Self { address: *numbers.address(), is_transposed: false, stride }
    }
}

/// Both factors, with the copies that must outlive the call.
struct Factors {
    left: Factor,
    right: Factor,
    _copies: Option<[Buffer<u16>; 2]>,
}

impl Device {
    /// out [m, n] = left [m, k] · right [k, n] (+ out, if `adds`), all row-major as read.
    ///
    /// # Panics
    ///
    /// If an array has fewer numbers than its matrix.
    pub(crate) fn product(
        &self,
        (m, n, k): (usize, usize, usize),
        left: Operand<'_>,
        right: Operand<'_>,
        (out, adds): (&Buffer, bool),
        precision: Precision,
    ) -> Result<()> {
        assert!(out.len() >= m * n, "room for {m} rows of {n}: {}", out.len());
        let factors = self.factors((left, m * k), (right, k * n), precision)?;
        self.multiply((m, n, k), (factors.left, factors.right), (out, adds), precision)
    }

    /// Factors of so many numbers each, copied as bf16 numbers if `precision` says so.
    fn factors(
        &self,
        (left, of_left): (Operand<'_>, usize),
        (right, of_right): (Operand<'_>, usize),
        precision: Precision,
    ) -> Result<Factors> {
        let whole = |operand: Operand<'_>, count: usize| {
            assert!(operand.numbers.len() >= count, "{count} factors: {}", operand.numbers.len());
            let Operand { numbers, is_transposed, stride } = operand;
            Factor { address: *numbers.address(), is_transposed, stride }
        };
        let (of_library, right_of_library) = (whole(left, of_left), whole(right, of_right));
        if precision != Precision::Bf16 {
            return Ok(Factors { left: of_library, right: right_of_library, _copies: None });
        }
        let copies = [self.rounded(left.numbers, of_left)?, self.rounded(right.numbers, of_right)?];
        Ok(Factors {
            left: Factor { address: *copies[0].address(), ..of_library },
            right: Factor { address: *copies[1].address(), ..right_of_library },
            _copies: Some(copies),
        })
    }

    /// The first `count` numbers, rounded to bf16.
    pub(super) fn rounded(&self, numbers: &Buffer, count: usize) -> Result<Buffer<u16>> {
        let copy = self.buffer::<u16>(count)?;
        self.kernels.to_bf16(self, flat(count.div_ceil(4)), numbers, &copy, count as u64)?;
        Ok(copy)
    }

    /// [`product`](Self::product) of factors that are bf16 numbers already if `precision` says so.
    pub(super) fn multiply(
        &self,
        (m, n, k): (usize, usize, usize),
        (left, right): (Factor, Factor),
        (out, adds): (&Buffer, bool),
        precision: Precision,
    ) -> Result<()> {
        // Column-major, the library's order, sees every matrix transposed: outᵀ = rightᵀ · leftᵀ.
        let (one, beta) = (1.0_f32, if adds { 1.0_f32 } else { 0.0 });
        let (single, factor) = (blas_sys::cudaDataType_t::CUDA_R_32F, factor_type(precision));
        self.timed(|| {
            // SAFETY: addresses are those of live buffers of at least these sizes: `product` checks.
            unsafe {
                blas::gemm_ex(
                    *self.blas.handle(),
                    order(right),
                    order(left),
                    int(n)?,
                    int(m)?,
                    int(k)?,
                    (&raw const one).cast(),
                    right.address as *const _,
                    factor,
                    int(right.stride)?,
                    left.address as *const _,
                    factor,
                    int(left.stride)?,
                    (&raw const beta).cast(),
                    *out.address() as *mut _,
                    single,
                    int(n)?,
                    compute_type(precision),
                    blas_sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                )
            }
            .map_err(blas_error)
        })
    }

    /// out [n, k] += gᵀ a, with g [rows, n] and a [rows, k]. Sums over many rows are taken in
    /// blocks, which are added up in f64: one long sum in f32 would lose digits, and blocks also
    /// keep the whole GPU busy.
    pub(crate) fn sum_of_products(
        &self,
        (n, k, rows): (usize, usize, usize),
        (g, a): (&Buffer, &Buffer),
        out: &Buffer,
        precision: Precision,
    ) -> Result<()> {
        let block = rows.div_ceil(128).next_multiple_of(512);
        let blocks = rows / block;
        if blocks < 2 {
            let (left, right) = (transposed(g, n), plain(a, k));
            return self.product((n, k, rows), left, right, (out, true), precision);
        }
        let parts = self.buffer::<f32>(blocks * n * k)?;
        let factors = (transposed(g, n), plain(a, k));
        self.batched((n, k, block), factors, &parts, (blocks, precision))?;
        let entries = (n * k) as u32;
        self.kernels.column_sums(self, flat(n * k), &parts, out, blocks as u32, entries)?;
        let done = blocks * block;
        if done < rows {
            let left = g.view(done * n, (rows - done) * n);
            let right = a.view(done * k, (rows - done) * k);
            let (left, right) = (transposed(&left, n), plain(&right, k));
            self.product((n, k, rows - done), left, right, (out, true), precision)?;
        }
        Ok(())
    }

    /// Products of matrices one behind the other: `out[i]` `[m, n]` = `left[i]` `[m, k]` ·
    /// `right[i]` `[k, n]`.
    fn batched(
        &self,
        (m, n, k): (usize, usize, usize),
        (left, right): (Operand<'_>, Operand<'_>),
        out: &Buffer,
        (count, precision): (usize, Precision),
    ) -> Result<()> {
        let (one, zero) = (1.0_f32, 0.0_f32);
        let (single, factor) = (blas_sys::cudaDataType_t::CUDA_R_32F, factor_type(precision));
        let Factors { left, right, _copies } =
            self.factors((left, count * m * k), (right, count * k * n), precision)?;
        self.timed(|| {
            // SAFETY: as in `product`, for each of the matrices.
            unsafe {
                blas::gemm_strided_batched_ex(
                    *self.blas.handle(),
                    order(right),
                    order(left),
                    int(n)?,
                    int(m)?,
                    int(k)?,
                    (&raw const one).cast(),
                    right.address as *const _,
                    factor,
                    int(right.stride)?,
                    (k * n) as i64,
                    left.address as *const _,
                    factor,
                    int(left.stride)?,
                    (m * k) as i64,
                    (&raw const zero).cast(),
                    *out.address() as *mut _,
                    single,
                    int(n)?,
                    (m * n) as i64,
                    int(count)?,
                    compute_type(precision),
                    blas_sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                )
            }
            .map_err(blas_error)
        })
    }
}

/// How the library reads an operand.
fn order(operand: Factor) -> blas_sys::cublasOperation_t {
    if operand.is_transposed {
        blas_sys::cublasOperation_t::CUBLAS_OP_T
    } else {
        blas_sys::cublasOperation_t::CUBLAS_OP_N
    }
}

/// What factors are stored as; products are f32.
fn factor_type(precision: Precision) -> blas_sys::cudaDataType_t {
    match precision {
        Precision::F32 | Precision::Tf32 => blas_sys::cudaDataType_t::CUDA_R_32F,
        Precision::Bf16 => blas_sys::cudaDataType_t::CUDA_R_16BF,
    }
}

fn compute_type(precision: Precision) -> blas_sys::cublasComputeType_t {
    match precision {
        Precision::F32 | Precision::Bf16 => blas_sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
        Precision::Tf32 => blas_sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
    }
}

fn int(size: usize) -> Result<i32> {
    i32::try_from(size)
        .map_err(|_too_large| Error::invalid("batch", "below 2^31 numbers a side", size))
}

pub(super) fn blas_error(error: cudarc::cublas::result::CublasError) -> Error {
    Error::Device {
        action: "multiply matrices",
        reason: format!("{error:?}"),
        remedy: "`ebp doctor` shows what works; `--device cpu` does without the GPU",
    }
}
