//! Where a model computes.

use std::sync::Arc;

use crate::point::{CpuBackend, CudaBackend, PointBackend, Precision};
use crate::{Result, tape};

/// A device, ready to compute. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Device {
    device: tape::Device,
    name: String,
}

impl Default for Device {
    fn default() -> Self {
        Self::cpu()
    }
}

impl Device {
    /// The CPU, which is always there.
    pub fn cpu() -> Self {
        Self { device: tape::Device::default(), name: "cpu".into() }
    }

    /// The CPU by a backend that was chosen, such as one of a given instruction set.
    pub fn cpu_with(backend: CpuBackend) -> Self {
        Self { device: tape::Device::Cpu(backend), ..Self::cpu() }
    }

    /// The GPU of that number, from 0.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if it, its driver or one of its libraries is missing.
    pub fn cuda(ordinal: usize, precision: Precision) -> Result<Self> {
        let gpu = CudaBackend::new(ordinal, precision)?;
        let name = format!("cuda:{ordinal} {} {}", gpu.describe()?.name, precision.name());
        Ok(Self { device: tape::Device::Cuda(gpu), name })
    }

    /// The first GPU if it can be used, otherwise the CPU.
    pub fn auto(precision: Precision) -> Self {
        Self::cuda(0, precision).unwrap_or_else(|_| Self::cpu())
    }

    /// The networks' operations on this device.
    pub fn backend(&self) -> Arc<dyn PointBackend> {
        self.device.backend()
    }

    /// Where steps and their parameters lie.
    pub fn tape(&self) -> &tape::Device {
        &self.device
    }

    /// The GPU, if it is one.
    pub fn gpu(&self) -> Option<&CudaBackend> {
        match &self.device {
            tape::Device::Cuda(gpu) => Some(gpu),
            tape::Device::Cpu(_) => None,
        }
    }

    /// Its name, for the files of runs and for tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// 10⁹ operations per second that nothing here can pass.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if a GPU fails.
    pub fn measure_peak_gflops(&self) -> Result<f64> {
        match self.gpu() {
            Some(gpu) => gpu.measure_peak_gflops(),
            None => Ok(CpuBackend::measure_peak_gflops()),
        }
    }
}
