//! Where to compute: the choice on the command line, and what becomes of it.

use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use ebp::model::Device;
use ebp::point::{CudaBackend, Precision};

use crate::failure::Failure;

/// Arguments of every command, for those that compute with networks.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DeviceArguments {
    /// Where to compute: auto (the GPU if there is one), cpu, cuda, or cuda:1 for the second GPU
    #[arg(long, global = true, value_name = "DEVICE", default_value = "auto", value_parser = parse)]
    #[arg(help_heading = "Device")]
    pub(crate) device: DeviceChoice,

    /// How a GPU rounds matrix products: f32, tf32 or bf16; the CPU is always f32
    #[arg(long, global = true, value_enum, value_name = "PRECISION")]
    #[arg(default_value_t = PrecisionName::F32, help_heading = "Device", hide_possible_values = true)]
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
        Some(("cuda", number)) => number.parse().map(DeviceChoice::Cuda).map_err(|_unreadable| {
            format!("expected a GPU's number after `cuda:`, found `{number}`")
        }),
        _ => Err("expected auto, cpu, cuda or cuda:N".into()),
    }
}

static CHOSEN: OnceLock<DeviceArguments> = OnceLock::new();
static OPEN: OnceLock<Device> = OnceLock::new();

/// Keeps what was typed. A process computes on one device.
pub(crate) fn choose(arguments: DeviceArguments) {
    // A second choice in one process would be a mistake of this program; the first one stands.
    let _kept = CHOSEN.get_or_init(|| arguments);
}

/// What was typed; `auto` and f32 where nothing was.
pub(crate) fn choice() -> DeviceArguments {
    let default = DeviceArguments { device: DeviceChoice::Auto, precision: PrecisionName::F32 };
    CHOSEN.get().copied().unwrap_or(default)
}

/// The device of this process, opened on the first call. `auto` takes the CPU where no GPU can be
/// used; `ebp doctor` says why.
pub(crate) fn open() -> Result<Device, Failure> {
    if let Some(device) = OPEN.get() {
        return Ok(device.clone());
    }
    let DeviceArguments { device, precision } = choice();
    let precision = precision.into();
    let opened = match device {
        DeviceChoice::Cpu => Device::cpu(),
        DeviceChoice::Cuda(ordinal) => Device::cuda(ordinal, precision)?,
        DeviceChoice::Auto => Device::auto(precision),
    };
    Ok(OPEN.get_or_init(|| opened).clone())
}

/// What this process computes with, in words.
pub(crate) fn words() -> String {
    match OPEN.get() {
        Some(device) if device.gpu().is_some() => {
            format!("GPU, {}", format!("{:?}", choice().precision).to_lowercase())
        }
        _ => "CPU".to_owned(),
    }
}

/// Comparisons of two points from which on the GPU is worth the second that opening it takes, where
/// nobody asked for it: about five seconds of two cores.
const MANY_COMPARISONS: f64 = 5e10;

/// The GPU for a number of comparisons of points, if it was asked for or pays.
pub(crate) fn gpu_for_distances(comparisons: f64) -> Result<Option<CudaBackend>, Failure> {
    let is_worth_it = match choice().device {
        DeviceChoice::Cpu => false,
        DeviceChoice::Cuda(_) => true,
        DeviceChoice::Auto => OPEN.get().is_some() || comparisons >= MANY_COMPARISONS,
    };
    Ok(if is_worth_it { open()?.gpu().cloned() } else { None })
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
