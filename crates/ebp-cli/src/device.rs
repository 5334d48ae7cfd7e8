//! Where to compute: the choice on the command line, and what becomes of it.

use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use ebp::model::Device;
use ebp::point::{CudaBackend, Precision};
use miette::miette;

use crate::failure::Failure;

/// Arguments of every command, for those that compute with networks.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeviceArguments {
    /// Where to compute: auto (the GPU if there is one), cpu, cuda, or cuda:1 for the second GPU; `train` also
    /// takes several, such as cuda:0,1 or cpu,cpu, for the shards of `train.shards`
    #[arg(long, global = true, value_name = "DEVICE", default_value = "auto", value_parser = parse)]
    #[arg(help_heading = "Device")]
    pub(crate) device: Devices,

    /// How a GPU rounds matrix products: f32, tf32 or bf16; the CPU is always f32
    #[arg(long, global = true, value_enum, value_name = "PRECISION")]
    #[arg(default_value_t = PrecisionName::F32, help_heading = "Device", hide_possible_values = true)]
    pub(crate) precision: PrecisionName,
}

/// The devices asked for, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Devices(Vec<DeviceChoice>);

/// A device asked for.
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

/// Devices with commas between them; after a GPU its number alone will do for another.
fn parse(text: &str) -> Result<Devices, String> {
    let mut devices = Vec::new();
    for word in text.split(',') {
        let is_number = word.parse::<usize>().is_ok();
        let after_gpu = matches!(devices.last(), Some(DeviceChoice::Cuda(_)));
        let device = if is_number && after_gpu { format!("cuda:{word}") } else { word.to_owned() };
        devices.push(parse_one(&device)?);
    }
    if devices.len() > 1 && devices.contains(&DeviceChoice::Auto) {
        return Err("expected several devices by their names, found `auto` among them".into());
    }
    Ok(Devices(devices))
}

fn parse_one(text: &str) -> Result<DeviceChoice, String> {
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

/// Keeps what was typed. A process computes on one device, unless it trains.
pub(crate) fn choose(arguments: DeviceArguments) {
    // A second choice in one process would be a mistake of this program; the first one stands.
    let _kept = CHOSEN.get_or_init(|| arguments);
}

/// What was typed; `auto` and f32 where nothing was.
fn chosen() -> (&'static [DeviceChoice], Precision) {
    match CHOSEN.get() {
        Some(DeviceArguments { device, precision }) => (&device.0, (*precision).into()),
        None => (&[DeviceChoice::Auto], Precision::F32),
    }
}

/// The first device that was typed; `auto` where nothing was.
pub(crate) fn choice() -> DeviceChoice {
    chosen().0.first().copied().unwrap_or(DeviceChoice::Auto)
}

/// The device of this process, opened on the first call. `auto` takes the CPU where no GPU can be
/// used; `ebp doctor` says why.
pub(crate) fn open() -> Result<Device, Failure> {
    if let (several @ [_, _, ..], _) = chosen() {
        return Err(Failure::Usage(miette!(
            help = "name one device; several can share the steps of `ebp train` only",
            "this command computes on one device, found {} of them",
            several.len()
        )));
    }
    open_first()
}

fn open_first() -> Result<Device, Failure> {
    if let Some(device) = OPEN.get() {
        return Ok(device.clone());
    }
    let opened = open_one(choice(), chosen().1)?;
    Ok(OPEN.get_or_init(|| opened).clone())
}

/// All devices that were typed, in their order. A GPU that was typed twice is opened twice.
pub(crate) fn open_all() -> Result<Vec<Device>, Failure> {
    let (choices, precision) = chosen();
    let mut devices = vec![open_first()?];
    for &choice in choices.iter().skip(1) {
        devices.push(open_one(choice, precision)?);
    }
    Ok(devices)
}

fn open_one(choice: DeviceChoice, precision: Precision) -> Result<Device, Failure> {
    Ok(match choice {
        DeviceChoice::Cpu => Device::cpu(),
        DeviceChoice::Cuda(ordinal) => Device::cuda(ordinal, precision)?,
        DeviceChoice::Auto => Device::auto(precision),
    })
}

/// The name of the device, if it was opened.
pub(crate) fn opened() -> Option<String> {
    OPEN.get().map(|device| device.name().to_owned())
}

/// Comparisons of two points from which on the GPU is worth the second that opening it takes, where
/// nobody asked for it: about five seconds of two cores.
const MANY_COMPARISONS: f64 = 5e10;

/// The GPU for a number of comparisons of points, if it was asked for or pays.
pub(crate) fn gpu_for_distances(comparisons: f64) -> Result<Option<CudaBackend>, Failure> {
    let is_worth_it = match choice() {
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
        let devices = |text| parse(text).map(|devices| devices.0);
        assert_eq!(devices("auto"), Ok(vec![DeviceChoice::Auto]));
        assert_eq!(devices("cuda"), Ok(vec![DeviceChoice::Cuda(0)]));
        assert_eq!(devices("cuda:2"), Ok(vec![DeviceChoice::Cuda(2)]));
        let gpus = [0, 1, 1].map(DeviceChoice::Cuda).to_vec();
        assert_eq!(devices("cuda:0,1,cuda:1"), Ok(gpus));
        assert_eq!(devices("cpu,cpu"), Ok(vec![DeviceChoice::Cpu; 2]));
        for wrong in ["cuda:x", "gpu", "", "cpu,", "cpu,1", "auto,cpu", "1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
