//! `ebp doctor`: what this machine has, what will be used, and why.

use clap::Args;
use ebp::exchange::{Found, found};
use ebp::point::cpu::SimdLevel;
use ebp::point::{CpuBackend, CudaBackend, Precision};
use serde::Serialize;

use crate::failure::Failure;
use crate::{output, progress};

/// Arguments of `ebp doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Findings {
    threads: usize,
    instruction_sets: Vec<&'static str>,
    cpu_peak_gflops: f64,
    memory_gib: Option<f64>,
    gpu: Option<Gpu>,
    /// Why no GPU is used.
    no_gpu: Option<String>,
    /// What `--device auto` takes; printed with the head of the object.
    #[serde(skip)]
    device: String,
    mpi: Option<Mpi>,
    /// Why processes cannot train together.
    no_mpi: Option<String>,
}

#[derive(Debug, Serialize)]
struct Mpi {
    version: String,
    file: std::path::PathBuf,
}

#[derive(Debug, Serialize)]
struct Gpu {
    name: String,
    compute_capability: String,
    memory_gib: f64,
    free_gib: f64,
    peak_gflops: Vec<(&'static str, f64)>,
}

/// Looks and prints.
pub(crate) fn run(arguments: &DoctorArguments) -> Result<(), Failure> {
    let look = || (gpu(), CpuBackend::measure_peak_gflops());
    let (gpu, cpu_peak_gflops) = progress::during(false, "measuring", look);
    let (gpu, no_gpu) = match gpu {
        Ok(gpu) => (Some(gpu), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let (mpi, no_mpi) = match found() {
        Ok(Found { version, file }) => (Some(Mpi { version, file }), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let findings = Findings {
        threads: rayon::current_num_threads(),
        instruction_sets: SimdLevel::available().into_iter().map(SimdLevel::name).collect(),
        cpu_peak_gflops,
        memory_gib: total_memory(),
        device: match &gpu {
            Some(gpu) => format!("cuda:0, {}", gpu.name),
            None => format!("cpu, {}", CpuBackend::new().simd().name()),
        },
        gpu,
        no_gpu,
        mpi,
        no_mpi,
    };
    if arguments.json {
        return output::print_json_of(Some(&findings.device), None, &findings);
    }
    output::print(&findings.text())?;
    Ok(())
}

impl Findings {
    fn text(&self) -> String {
        let mut lines = vec![
            format!("ebp          {}", env!("CARGO_PKG_VERSION")),
            format!("threads      {}", self.threads),
            format!("CPU          {}", self.instruction_sets.join(", ")),
            format!("             {:.0} GFLOP/s measured, f32, all threads", self.cpu_peak_gflops),
        ];
        if let Some(memory) = self.memory_gib {
            lines.push(format!("memory       {memory:.1} GiB"));
        }
        if let Some(gpu) = &self.gpu {
            lines.push(format!(
                "GPU          {}, compute capability {}, {:.1} GiB, {:.1} free",
                gpu.name, gpu.compute_capability, gpu.memory_gib, gpu.free_gib
            ));
            for (precision, gflops) in &gpu.peak_gflops {
                lines.push(format!("             {gflops:.0} GFLOP/s measured, {precision}"));
            }
            lines.push("             driver, NVRTC and cuBLAS work".into());
        }
        if let Some(reason) = &self.no_gpu {
            lines.push(format!("GPU          none is used: {reason}"));
        }
        if let Some(mpi) = &self.mpi {
            lines.push(format!("MPI          {}, {}", mpi.version, mpi.file.display()));
        }
        if let Some(reason) = &self.no_mpi {
            lines.push(format!("MPI          none is used: {reason}"));
        }
        lines.push(format!("--device auto takes {}", self.device));
        lines.join("\n") + "\n"
    }
}

fn gpu() -> ebp::Result<Gpu> {
    const GIB: f64 = (1_u64 << 30) as f64;
    let found = CudaBackend::new(0, Precision::F32)?.describe()?;
    let mut peak_gflops = Vec::new();
    for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
        let backend = CudaBackend::new(0, precision)?;
        peak_gflops.push((precision.name(), backend.measure_peak_gflops()?));
    }
    Ok(Gpu {
        name: found.name,
        compute_capability: format!("{}.{}", found.capability.0, found.capability.1),
        memory_gib: found.total_memory as f64 / GIB,
        free_gib: found.free_memory as f64 / GIB,
        peak_gflops,
    })
}

/// The machine's memory, where the system tells.
fn total_memory() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / f64::from(1 << 20))
}
