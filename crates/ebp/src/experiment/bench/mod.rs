//! How fast the primitive's operations and whole training steps run, next to what the machine could do.
//!
//! Data and networks are drawn once; every case is timed, and the peak of the machine before and
//! after them.

mod case;
mod flops;
mod memory;
mod preset;
mod size;
mod step;
mod workload;

use std::time::{Duration, Instant};

use serde::Serialize;

pub use self::case::BenchCase;
use self::memory::PeakMemory;
pub use self::size::BenchSizes;
use self::workload::Workload;
use crate::model::{Device, Settings};
use crate::point::cuda::KernelWork;
use crate::{Error, Result};

/// Without `repeats`, a case runs until this much time is spent …
const TIME_PER_CASE: Duration = Duration::from_secs(2);
/// … but never fewer times than this, so that a median has a meaning …
const FEWEST_RUNS: usize = 3;
/// … nor more often than this.
const MOST_RUNS: usize = 25;
/// On a GPU: runs in which its kernels are timed by themselves.
const KERNEL_RUNS: usize = 5;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// How large.
    pub sizes: BenchSizes,
    /// What to time; everything that the sizes allow if empty.
    pub cases: Vec<BenchCase>,
    /// Where.
    pub device: Device,
    /// Timed runs of each case; as many as fit into two seconds without.
    pub repeats: Option<usize>,
    /// Of data and networks.
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// Version of this library.
    pub version: &'static str,
    /// Name of the sizes, `custom` if they have none.
    pub size: &'static str,
    /// The sizes themselves.
    pub sizes: BenchSizes,
    /// Seed of data and networks.
    pub seed: u64,
    /// Where it ran.
    pub device: String,
    /// How many threads it had.
    pub threads: usize,
    /// Instruction set of the CPU's kernels, for whoever knows it.
    pub simd: Option<&'static str>,
    /// Measured rate of independent multiply-adds, all threads together.
    pub peak_gflops: f64,
    /// The cases, in the order they ran.
    pub cases: Vec<CaseReport>,
}

/// One case of a [`BenchReport`].
#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    /// Its name.
    pub name: &'static str,
    /// Median wall time of a run.
    pub ms: f64,
    /// Arithmetic by formula over the median time, where there is a formula.
    pub gflops: Option<f64>,
    /// `gflops` over the measured peak.
    pub peak_fraction: Option<f64>,
    /// On a GPU: median time of the kernels alone, without copies and checks …
    pub kernel_ms: Option<f64>,
    /// … what share of the measured peak that is …
    pub kernel_peak_fraction: Option<f64>,
    /// … what share of `ms`: in the rest the GPU waits …
    pub kernel_share: Option<f64>,
    /// … and how many kernels, matrix products, and fills and copies of its memory a run sends.
    pub launches: Option<usize>,
    /// Largest resident memory of the process during the case, where the system tells.
    pub peak_rss_mib: Option<f64>,
    /// How many runs were timed.
    pub runs: usize,
    /// Of a preset's step: what it trained, cut to the sizes of the benchmark.
    pub settings: Option<Settings>,
}

impl Benchmark {
    /// The cases that will run.
    pub fn planned(&self) -> Vec<BenchCase> {
        if self.cases.is_empty() {
            BenchCase::all_for(self.sizes.value_dim)
        } else {
            self.cases.clone()
        }
    }

    /// Times every case, and the peak before and after them, on the threads of the caller. `watch` is
    /// told what comes next.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the sizes allow no network or too large a batch, [`Error::Failed`] if a
    /// case fails.
    pub fn run(&self, watch: &mut dyn FnMut(&str)) -> Result<BenchReport> {
        self.sizes.check()?;
        let workload = Workload::new(&self.sizes, self.seed)?;
        watch("peak");
        let peak_before = self.device.measure_peak_gflops()?;
        let mut measured = Vec::new();
        for case in self.planned() {
            watch(case.name());
            measured.push(self.measure(case, &workload).map_err(|error| {
                let help =
                    "other sizes or another `--seed` may avoid it; `--cases` leaves a case out";
                Error::failed(format!("case {} failed: {error}", case.name())).with_help(help)
            })?);
        }
        watch("peak");
        // The machine's clock moves with its load and its neighbours: the larger of the two is
        // the better estimate of what it can do.
        let peak_gflops = peak_before.max(self.device.measure_peak_gflops()?);
        Ok(BenchReport {
            version: env!("CARGO_PKG_VERSION"),
            size: self.sizes.name(),
            sizes: self.sizes.clone(),
            seed: self.seed,
            device: self.device.name().to_owned(),
            threads: rayon::current_num_threads(),
            simd: None,
            peak_gflops,
            cases: measured.iter().map(|found| CaseReport::new(found, peak_gflops)).collect(),
        })
    }

    fn measure(&self, case: BenchCase, workload: &Workload) -> Result<Measurement> {
        let backend = self.device.backend();
        let flops = case.flops(workload, &*backend)?;
        let memory = PeakMemory::start();
        let mut runner = case.runner(workload, (&self.sizes, self.seed), &self.device)?;
        runner.prepare()?;
        runner.run()?;
        let mut durations = Vec::new();
        let begin = Instant::now();
        while match self.repeats {
            Some(repeats) => durations.len() < repeats,
            None => {
                durations.len() < FEWEST_RUNS
                    || (durations.len() < MOST_RUNS && begin.elapsed() < TIME_PER_CASE)
            }
        } {
            runner.prepare()?;
            let start = Instant::now();
            runner.run()?;
            durations.push(start.elapsed());
        }
        let mut kernels = Vec::new();
        if let Some(gpu) = self.device.gpu() {
            for _ in 0..KERNEL_RUNS {
                runner.prepare()?;
                kernels.push(gpu.measure_kernels(|| runner.run())?.1);
            }
        }
        let peak_rss_mib = memory.finish();
        let settings = runner.settings().cloned();
        Ok(Measurement { case, flops, durations, kernels, peak_rss_mib, settings })
    }
}

/// One case, timed.
struct Measurement {
    case: BenchCase,
    flops: Option<u64>,
    durations: Vec<Duration>,
    /// What the GPU's kernels took in further runs; none on the CPU.
    kernels: Vec<KernelWork>,
    peak_rss_mib: Option<f64>,
    settings: Option<Settings>,
}

/// The upper median, if there is one.
fn median<T: Copy + Ord>(numbers: impl Iterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = numbers.collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

impl CaseReport {
    /// Rates of a measurement.
    fn new(measurement: &Measurement, peak_gflops: f64) -> Self {
        // A clock that saw no time pass would make an infinite rate.
        let seconds = |time: Duration| time.as_secs_f64().max(1e-9);
        let rate = |seconds: f64| measurement.flops.map(|flops| flops as f64 / seconds / 1e9);
        let share = |gflops: f64| gflops / peak_gflops;
        let whole = median(measurement.durations.iter().copied());
        let whole = whole.map_or(f64::INFINITY, seconds);
        let kernels = median(measurement.kernels.iter().map(|work| work.time)).map(seconds);
        Self {
            name: measurement.case.name(),
            ms: whole * 1e3,
            gflops: rate(whole),
            peak_fraction: rate(whole).map(share),
            kernel_ms: kernels.map(|seconds| seconds * 1e3),
            kernel_peak_fraction: kernels.and_then(rate).map(share),
            kernel_share: kernels.map(|seconds| seconds / whole),
            launches: median(measurement.kernels.iter().map(|work| work.launches)),
            peak_rss_mib: measurement.peak_rss_mib,
            runs: measurement.durations.len(),
            settings: measurement.settings.clone(),
        }
    }
}
