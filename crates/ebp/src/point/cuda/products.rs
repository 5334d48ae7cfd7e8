//! Matrix products, by cuBLAS.
//!
//! In bf16 both factors are rounded and copied first, so that the library has no choice: asked to round
//! factors itself, it takes TF32.

use cudarc::cublas::{result as blas, sys as blas_sys};

use super::Precision;
use super::device::{Buffer, Device, flat, launch};
use crate::{Error, Result};

/// A matrix operand: an address and whether it is read transposed. Rows lie one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) address: u64,
    pub(super) is_transposed: bool,
    /// Numbers of a stored row.
    pub(super) stride: usize,
}

pub(super) fn plain(address: u64, stride: usize) -> Operand {
    Operand { address, is_transposed: false, stride }
}

pub(super) fn transposed(address: u64, stride: usize) -> Operand {
    Operand { address, is_transposed: true, stride }
}

/// Both factors as the library reads them, with the copies that must outlive its call.
struct Factors {
    left: Operand,
    right: Operand,
    _copies: Option<[Buffer<u16>; 2]>,
}

impl Device {
    /// out [m, n] = left [m, k] · right [k, n] (+ out, if `adds`), all row-major as read.
    pub(super) fn product(
        &self,
        (m, n, k): (usize, usize, usize),
        left: Operand,
        right: Operand,
        out: (u64, bool),
        precision: Precision,
    ) -> Result<()> {
        let factors = self.factors((left, m * k), (right, k * n), precision)?;
        self.multiply((m, n, k), factors.left, factors.right, out, precision)
    }

    /// Factors of so many numbers each, copied as bf16 numbers if `precision` says so.
    fn factors(
        &self,
        (left, of_left): (Operand, usize),
        (right, of_right): (Operand, usize),
        precision: Precision,
    ) -> Result<Factors> {
        if precision != Precision::Bf16 {
            return Ok(Factors { left, right, _copies: None });
        }
        let copies = [self.rounded(left.address, of_left)?, self.rounded(right.address, of_right)?];
        Ok(Factors {
            left: Operand { address: copies[0].at(0), ..left },
            right: Operand { address: copies[1].at(0), ..right },
            _copies: Some(copies),
        })
    }

    /// `count` numbers, rounded to bf16.
    pub(super) fn rounded(&self, address: u64, count: usize) -> Result<Buffer<u16>> {
        let copy = self.buffer::<u16>(count)?;
        launch!(self, to_bf16, flat(count.div_ceil(4)), address, copy.at(0), count as u64)?;
        Ok(copy)
    }

    /// [`product`](Self::product) of factors that are bf16 numbers already if `precision` says so.
    pub(super) fn multiply(
        &self,
        (m, n, k): (usize, usize, usize),
        left: Operand,
        right: Operand,
        (out, adds): (u64, bool),
        precision: Precision,
    ) -> Result<()> {
        // Column-major, the library's order, sees every matrix transposed: outᵀ = rightᵀ · leftᵀ.
        let (one, beta) = (1.0_f32, if adds { 1.0_f32 } else { 0.0 });
        let (single, factor) = (blas_sys::cudaDataType_t::CUDA_R_32F, factor_type(precision));
        self.timed(|| {
            // SAFETY: addresses are those of live buffers of at least these sizes; callers pass
            // shapes that come from the same MlpShape as the buffers.
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
                    out as *mut _,
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
    pub(super) fn sum_of_products(
        &self,
        (n, k, rows): (usize, usize, usize),
        (g, a): (u64, u64),
        out: u64,
        precision: Precision,
    ) -> Result<()> {
        let block = rows.div_ceil(128).next_multiple_of(512);
        let blocks = rows / block;
        if blocks < 2 {
            let (left, right) = (transposed(g, n), plain(a, k));
            return self.product((n, k, rows), left, right, (out, true), precision);
        }
        let parts = self.buffer::<f32>(blocks * n * k)?;
        self.batched(
            (n, k, block),
            (transposed(g, n), plain(a, k)),
            parts.at(0),
            (blocks, precision),
        )?;
        launch!(self, column_sums, flat(n * k), parts.at(0), out, blocks as u32, (n * k) as u32)?;
        let done = blocks * block;
        if done < rows {
            let left = transposed(g + (done * n * 4) as u64, n);
            let right = plain(a + (done * k * 4) as u64, k);
            self.product((n, k, rows - done), left, right, (out, true), precision)?;
        }
        Ok(())
    }

    /// Products of matrices one behind the other: `out[i]` `[m, n]` = `left[i]` `[m, k]` ·
    /// `right[i]` `[k, n]`.
    fn batched(
        &self,
        (m, n, k): (usize, usize, usize),
        (left, right): (Operand, Operand),
        out: u64,
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
                    out as *mut _,
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
fn order(operand: Operand) -> blas_sys::cublasOperation_t {
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
