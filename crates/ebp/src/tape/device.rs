//! Where a tape computes.

use std::sync::Arc;

use super::{Array, Tape};
use crate::Result;
use crate::numbers::Numbers;
use crate::point::cuda::Landing;
use crate::point::{CpuBackend, CudaBackend, PointBackend};

/// The CPU or a GPU.
#[derive(Clone, Debug)]
pub enum Device {
    /// The CPU: threads come from the current rayon pool.
    Cpu(CpuBackend),
    /// An NVIDIA GPU.
    Cuda(CudaBackend),
}

impl Default for Device {
    /// The CPU with its fastest instruction set.
    fn default() -> Self {
        Self::Cpu(CpuBackend::new())
    }
}

impl Device {
    /// An empty tape.
    pub fn tape(&self) -> Tape {
        Tape::new(self)
    }

    /// The primitive on numbers of the host.
    pub fn backend(&self) -> Arc<dyn PointBackend> {
        match self {
            Self::Cpu(backend) => Arc::new(*backend),
            Self::Cuda(backend) => Arc::new(backend.clone()),
        }
    }

    /// Whether it is a GPU.
    pub fn is_gpu(&self) -> bool {
        matches!(self, Self::Cuda(_))
    }

    /// Brings numbers of the host to the device.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the device fails.
    pub fn upload(&self, values: Vec<f32>) -> Result<Array> {
        match self {
            Self::Cpu(_) => Ok(values.into()),
            Self::Cuda(gpu) => super::cuda::upload(gpu, &values),
        }
    }

    /// Zeros.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload).
    pub fn zeros(&self, length: usize) -> Result<Array> {
        match self {
            Self::Cpu(_) => Ok(vec![0.0; length].into()),
            Self::Cuda(gpu) => super::cuda::zeros(gpu, length),
        }
    }

    /// Ones, which no host has to send.
    pub(super) fn ones(&self, length: usize) -> Result<Array> {
        match self {
            Self::Cpu(_) => Ok(vec![1.0; length].into()),
            Self::Cuda(gpu) => super::cuda::ones(gpu, length),
        }
    }

    /// Brings numbers back. Waits for the device.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload).
    pub fn download(&self, array: &Array) -> Result<Vec<f32>> {
        match self {
            Self::Cpu(_) => Ok(array.host()?.to_vec()),
            Self::Cuda(gpu) => super::cuda::download(gpu, array.cuda()?),
        }
    }

    /// Begins to bring numbers back, and does not wait.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload).
    pub(super) fn begin_download(&self, array: &Array) -> Result<Coming> {
        match self {
            Self::Cpu(_) => Ok(Coming::Here(array.host()?.clone())),
            Self::Cuda(gpu) => super::cuda::land(gpu, array.cuda()?).map(Coming::Landing),
        }
    }

    /// sum + term.
    pub(super) fn add(&self, mut sum: Array, term: &Array) -> Result<Array> {
        match self {
            Self::Cpu(_) => {
                let term = term.host()?.clone();
                super::loops::update(sum.host_mut()?, &term, |sum, term| sum + term);
                Ok(sum)
            }
            Self::Cuda(gpu) => super::cuda::add(gpu, sum.cuda()?, term.cuda()?),
        }
    }

    /// Overwrites the numbers of `array` from `start` on.
    pub(super) fn write(&self, array: &mut Array, start: usize, values: &Array) -> Result<()> {
        match self {
            Self::Cpu(_) => {
                let values = values.host()?.clone();
                array.host_mut()?[start..start + values.len()].copy_from_slice(&values);
                Ok(())
            }
            Self::Cuda(gpu) => super::cuda::write(gpu, array.cuda()?, start, values.cuda()?),
        }
    }
}

/// Numbers on their way to the host, to be read on any thread.
#[derive(Debug)]
pub(super) enum Coming {
    /// They are there.
    Here(Numbers),
    /// They come from a GPU.
    Landing(Landing<f32>),
}

impl Coming {
    /// Appends the numbers. Waits for them, and for nothing else.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the device fails.
    pub(super) fn read(&self, out: &mut Vec<f32>) -> Result<()> {
        match self {
            Self::Here(numbers) => out.extend_from_slice(numbers),
            Self::Landing(landing) => out.extend(landing.read()?),
        }
        Ok(())
    }
}
