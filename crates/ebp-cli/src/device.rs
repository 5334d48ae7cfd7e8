//! Where to compute: the choice on the command line, and what becomes of it.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use ebp::point::{CpuBackend, CudaBackend, PointBackend, Precision};

use crate::failure::Failure;

/// Arguments of commands that compute with networks.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeviceArguments {
    /// Where to compute: auto (the GPU if there is one), cpu, cuda, or cuda:1 for the second GPU
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = parse)]
    pub(crate) device: DeviceChoice,

    /// How a GPU rounds matrix products; the CPU is always f32
    #[arg(long, value_enum, value_name = "PRECISION", default_value_t = PrecisionName::F32)]
    pub(crate) precision: PrecisionName,
}

/// The device asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceChoice {
    Auto,
    Cpu,
    /// GPU by number, from 0.
    Cuda(usize),
}

/// [`Precision`] as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionName {
    /// Strict single precision
    F32,
    /// Tensor cores, factors rounded to 10 bits
    Tf32,
    /// Tensor cores, factors rounded to 7 bits
    Bf16,
}

impl From<PrecisionName> for Precision {
    fn from(name: PrecisionName) -> Self {
        match name {
            PrecisionName::F32 => Self::F32,
            PrecisionName::Tf32 => Self::Tf32,
            PrecisionName::Bf16 => Self::Bf16,
        }
    }
}

fn parse(text: &str) -> Result<DeviceChoice, String> {
    match text.split_once(':') {
        None if text == "auto" => Ok(DeviceChoice::Auto),
        None if text == "cpu" => Ok(DeviceChoice::Cpu),
        None if text == "cuda" => Ok(DeviceChoice::Cuda(0)),
        Some(("cuda", number)) => number
            .parse()
            .map(DeviceChoice::Cuda)
            .map_err(|_unreadable| format!("expected a GPU's number after `cuda:`, found `{number}`")),
        _ => Err("expected auto, cpu, cuda or cuda:N".into()),
    }
}

/// A device, ready to compute.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) backend: Arc<dyn PointBackend>,
    /// The GPU, if it is one.
    pub(crate) gpu: Option<CudaBackend>,
    /// Its name, for `run.json` and tables.
    pub(crate) name: String,
}

impl Device {
    /// The CPU, which is always there.
    pub(crate) fn cpu() -> Self {
        Self { backend: Arc::new(CpuBackend::new()), gpu: None, name: "cpu".into() }
    }

    /// 10⁹ operations per second that nothing here can pass.
    pub(crate) fn measure_peak_gflops(&self) -> ebp::Result<f64> {
        match &self.gpu {
            Some(gpu) => gpu.measure_peak_gflops(),
            None => Ok(CpuBackend::measure_peak_gflops()),
        }
    }

    fn cuda(ordinal: usize, precision: Precision) -> ebp::Result<Self> {
        let gpu = CudaBackend::new(ordinal, precision)?;
        let name = format!("cuda:{ordinal} {} {}", gpu.describe()?.name, precision.name());
        Ok(Self { backend: Arc::new(gpu.clone()), gpu: Some(gpu), name })
    }
}

impl DeviceArguments {
    /// Opens the device asked for. `auto` takes the CPU where no GPU can be used; `ebp doctor`
    /// says why.
    pub(crate) fn open(&self) -> Result<Device, Failure> {
        let precision = self.precision.into();
        match self.device {
            DeviceChoice::Cpu => Ok(Device::cpu()),
            DeviceChoice::Cuda(ordinal) => Ok(Device::cuda(ordinal, precision)?),
            DeviceChoice::Auto => Ok(Device::cuda(0, precision).unwrap_or_else(|_| Device::cpu())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_typed() {
        assert_eq!(parse("auto"), Ok(DeviceChoice::Auto));
        assert_eq!(parse("cuda"), Ok(DeviceChoice::Cuda(0)));
        assert_eq!(parse("cuda:2"), Ok(DeviceChoice::Cuda(2)));
        assert!(parse("cuda:x").is_err() && parse("gpu").is_err());
    }
}
