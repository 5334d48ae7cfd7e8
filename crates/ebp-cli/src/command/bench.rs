//! `ebp bench`: how fast the primitive's operations run, next to what the machine could do.
//!
//! The path: arguments → [`Plan`] (sizes checked, threads started, instruction set chosen) →
//! [`Workload`] (data and networks) → every [`Case`] timed → [`Report`].

mod case;
mod flops;
mod memory;
mod report;
mod size;
mod step;
mod workload;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ebp::point::CpuBackend;
use ebp::point::cpu::SimdLevel;
use indicatif::ProgressBar;
use miette::miette;

pub(crate) use self::case::Case;
use self::memory::PeakMemory;
use self::report::{CaseReport, Report};
pub(crate) use self::size::NamedSize;
use self::size::Sizes;
use self::workload::Workload;
use crate::args::BenchArguments;
use crate::device::{self, Device, DeviceChoice};
use crate::failure::Failure;
use crate::progress;
use crate::threads::start_threads;

/// Without `--repeats`, a case runs until this much time is spent …
const TIME_PER_CASE: Duration = Duration::from_secs(2);
/// … but never fewer times than this, so that a median has a meaning …
const FEWEST_RUNS: usize = 3;
/// … nor more often than this.
const MOST_RUNS: usize = 25;
/// On a GPU: runs in which its kernels are timed by themselves.
const KERNEL_RUNS: usize = 5;

/// What will run: everything typed, checked against the machine.
struct Plan {
    size_name: &'static str,
    sizes: Sizes,
    cases: Vec<Case>,
    device: Device,
    /// The CPU's instruction set; none on a GPU.
    simd: Option<SimdLevel>,
    threads: rayon::ThreadPool,
    repeats: Option<usize>,
    seed: u64,
}

/// Runs the benchmark and prints its report.
pub(crate) fn run(arguments: BenchArguments) -> Result<(), Failure> {
    let (json, quiet) = (arguments.json, arguments.quiet);
    let plan = Plan::new(arguments)?;
    let workload = Workload::new(&plan.sizes, plan.seed)?;
    let report = plan.threads.install(|| plan.measure(&workload, &progress_bar(&plan, quiet)))?;
    if json {
        report.print_json()?;
    } else {
        report.print_table()?;
    }
    Ok(())
}

impl Plan {
    fn new(arguments: BenchArguments) -> Result<Self, Failure> {
        let sizes = Sizes::new(&arguments)?;
        let (device, simd) = open(&arguments)?;
        let threads = start_threads(arguments.threads)?;
        let mut cases = arguments.cases;
        if cases.is_empty() {
            cases = Case::all_for(sizes.value_dim);
        }
        Ok(Self {
            size_name: sizes.name(arguments.size),
            sizes,
            cases,
            device,
            simd,
            threads,
            repeats: arguments.repeats,
            seed: arguments.seed,
        })
    }

    /// Times every case, and the peak before and after them. Runs inside the thread pool.
    fn measure(&self, workload: &Workload, progress: &ProgressBar) -> Result<Report, Failure> {
        progress.set_message("peak");
        let peak_before = self.device.measure_peak_gflops()?;
        let mut measured = Vec::with_capacity(self.cases.len());
        for &case in &self.cases {
            progress.set_message(case.name());
            measured.push(self.measure_case(case, workload)?);
            progress.inc(1);
        }
        progress.set_message("peak");
        // The machine's clock moves with its load and its neighbours: the larger of the two is
        // the better estimate of what it can do.
        let peak_gflops = peak_before.max(self.device.measure_peak_gflops()?);
        progress.finish_and_clear();
        Ok(Report {
            version: env!("CARGO_PKG_VERSION"),
            size: self.size_name,
            sizes: self.sizes.clone(),
            seed: self.seed,
            device: self.device.name.clone(),
            threads: rayon::current_num_threads(),
            simd: self.simd.map(SimdLevel::name),
            peak_gflops,
            cases: measured
                .into_iter()
                .map(|measurement| CaseReport::new(&measurement, peak_gflops))
                .collect(),
        })
    }

    fn measure_case(&self, case: Case, workload: &Workload) -> Result<Measurement, Failure> {
        let failed = |error: ebp::Error| {
            Failure::Failed(miette!(
                help = "other sizes or another `--seed` may avoid it; `--cases` leaves a case out",
                "case {} failed: {error}",
                case.name()
            ))
        };
        let flops = case.flops(workload, &*self.device.backend).map_err(failed)?;
        let memory = PeakMemory::start();
        let mut run = case.runner(workload, &self.device.backend).map_err(failed)?;
        run().map_err(failed)?;
        let mut durations = Vec::new();
        let begin = Instant::now();
        while match self.repeats {
            Some(repeats) => durations.len() < repeats,
            None => {
                durations.len() < FEWEST_RUNS
                    || (durations.len() < MOST_RUNS && begin.elapsed() < TIME_PER_CASE)
            }
        } {
            let start = Instant::now();
            run().map_err(failed)?;
            durations.push(start.elapsed());
        }
        let mut kernels = Vec::new();
        if let Some(gpu) = &self.device.gpu {
            for _ in 0..KERNEL_RUNS {
                kernels.push(gpu.measure_kernels(&mut *run).map_err(failed)?.1);
            }
        }
        Ok(Measurement { case, flops, durations, kernels, peak_rss_mib: memory.finish() })
    }
}

/// The device asked for; a typed instruction set asks for the CPU.
fn open(arguments: &BenchArguments) -> Result<(Device, Option<SimdLevel>), Failure> {
    let Some(level) = arguments.simd.level() else {
        let device = device::open()?;
        let simd = device.gpu.is_none().then(|| CpuBackend::new().simd());
        return Ok((device, simd));
    };
    if matches!(device::choice().device, DeviceChoice::Cuda(_)) {
        return Err(Failure::Usage(miette!(
            help = "leave one of the two out",
            "`--simd {}` is for the CPU, `--device` asks for a GPU",
            level.name()
        )));
    }
    let backend = CpuBackend::with_simd(level).map_err(|error| {
        let available: Vec<_> = SimdLevel::available().into_iter().map(SimdLevel::name).collect();
        Failure::Usage(miette!(
            help = format!("this machine runs: auto, {}", available.join(", ")),
            "cannot use `--simd {}`: {error}",
            level.name()
        ))
    })?;
    Ok((Device { backend: Arc::new(backend), ..Device::cpu() }, Some(level)))
}

/// One case, timed.
struct Measurement {
    case: Case,
    flops: u64,
    durations: Vec<Duration>,
    /// What the GPU's kernels took in further runs; none on the CPU.
    kernels: Vec<Duration>,
    peak_rss_mib: Option<f64>,
}

/// The upper median, if there is one.
fn median(durations: &[Duration]) -> Option<Duration> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// A bar on stderr if a person watches. It draws only between cases: a bar that ticks by itself
/// would take time from the cases.
fn progress_bar(plan: &Plan, quiet: bool) -> ProgressBar {
    progress::bar(plan.cases.len() as u64, quiet, "{bar:24} {pos}/{len} {msg}")
}
