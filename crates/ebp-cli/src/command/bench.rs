//! `ebp bench`: how fast the primitive's operations run, next to what the machine could do.

mod report;

use ebp::experiment::bench::{BenchCase, BenchReport, BenchSizes, Benchmark, CaseReport};
use ebp::model::Device;
use ebp::point::CpuBackend;
use ebp::point::cpu::SimdLevel;
use miette::miette;
use serde::Serialize;

use crate::args::{BenchArguments, NamedSize};
use crate::device::{self, DeviceChoice};
use crate::failure::Failure;
use crate::threads::start_threads;
use crate::{output, progress};

/// What is printed as JSON, less what the head of the object says.
#[derive(Debug, Serialize)]
struct Object<'a> {
    size: &'static str,
    sizes: &'a BenchSizes,
    threads: usize,
    simd: Option<&'static str>,
    peak_gflops: f64,
    cases: &'a [CaseReport],
}

impl<'a> Object<'a> {
    fn of(report: &'a BenchReport) -> Self {
        Self {
            size: report.size,
            sizes: &report.sizes,
            threads: report.threads,
            simd: report.simd,
            peak_gflops: report.peak_gflops,
            cases: &report.cases,
        }
    }
}

/// Runs the benchmark and prints its report.
pub(crate) fn run(arguments: &BenchArguments) -> Result<(), Failure> {
    let (device, simd) = open(arguments)?;
    let benchmark = Benchmark {
        sizes: sizes(arguments),
        cases: arguments.cases.clone(),
        device,
        repeats: arguments.repeats,
        seed: arguments.seed,
    };
    // It draws only between cases: a bar that ticks by itself would take time from them.
    let count = benchmark.planned().len() as u64;
    let bar = progress::bar(
        count,
        arguments.quiet,
        "{bar:24} {pos}/{len} {msg}  {elapsed} so far  {eta} left",
    );
    let is_case = |name: &str| BenchCase::ALL.iter().any(|case| case.name() == name);
    let mut report = start_threads(arguments.threads)?.install(|| {
        let mut is_first = true;
        benchmark.run(&mut |next| {
            // The first piece and its successor begin at the same place.
            bar.inc(u64::from(!is_first));
            is_first = is_first && !is_case(next);
            bar.set_message(next.to_owned());
        })
    })?;
    bar.finish_and_clear();
    report.simd = simd.map(SimdLevel::name);
    if arguments.json {
        output::print_json_of(Some(&report.device), Some(report.seed), &Object::of(&report))
    } else {
        output::print(&report::table(&report, report::is_coloured()))
    }
}

/// The named sizes with the typed ones in their place.
fn sizes(arguments: &BenchArguments) -> BenchSizes {
    let named = match arguments.size {
        NamedSize::PaperCloud => BenchSizes::paper_cloud(),
        NamedSize::Small => BenchSizes::small(),
    };
    BenchSizes {
        sets: arguments.sets.unwrap_or(named.sets),
        points: arguments.points.unwrap_or(named.points),
        value_dim: arguments.value_dim.unwrap_or(named.value_dim),
        context_dim: arguments.context_dim.unwrap_or(named.context_dim),
        energy_widths: arguments.energy_widths.clone().unwrap_or(named.energy_widths),
        encoder_widths: arguments.encoder_widths.clone().unwrap_or(named.encoder_widths),
        activation: arguments.activation,
        context_at: arguments.context_at,
    }
}

/// The device asked for; a typed instruction set asks for the CPU.
fn open(arguments: &BenchArguments) -> Result<(Device, Option<SimdLevel>), Failure> {
    let Some(level) = arguments.simd.level() else {
        let device = device::open()?;
        let simd = device.gpu().is_none().then(|| CpuBackend::new().simd());
        return Ok((device, simd));
    };
    if matches!(device::choice(), DeviceChoice::Cuda(_)) {
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
    Ok((Device::cpu_with(backend), Some(level)))
}
