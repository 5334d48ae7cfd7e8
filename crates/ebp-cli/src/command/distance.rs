//! `ebp distance`: how far two sets of points are apart.

use std::path::Path;

use ebp::metric::collection::Collection;
use ebp::metric::distance::{
    ArrangedCloud, ChamferConvention, Emd, EmdMethod, GpuDistances, Matching, NearestNeighbours,
    emd,
};
use miette::miette;
use serde::Serialize;

use crate::args::DistanceArguments;
use crate::device;
use crate::failure::Failure;
use crate::threads::start_threads;
use crate::{output, progress};

/// The result of `ebp distance`.
#[derive(Debug, Serialize)]
struct Report {
    x: String,
    y: String,
    n: usize,
    m: usize,
    dim: usize,
    normalisation: &'static str,
    /// How many points were drawn of each set, `null` for all.
    points: Option<usize>,
    /// Printed with the head of the object.
    #[serde(skip)]
    seed: u64,
    chamfer: Chamfer,
    hausdorff: Hausdorff,
    emd: Option<EmdReport>,
}

#[derive(Debug, Serialize)]
struct Chamfer {
    value: f64,
    convention: &'static str,
}

#[derive(Debug, Serialize)]
struct Hausdorff {
    value: f64,
    convention: &'static str,
}

#[derive(Debug, Serialize)]
struct EmdReport {
    value: f64,
    method: &'static str,
    convention: &'static str,
    /// How much smaller the exact distance can be, as a share; `null` where that is not known.
    gap: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    regularisation: Option<f64>,
}

/// Measures and prints.
pub(crate) fn run(arguments: &DistanceArguments) -> Result<(), Failure> {
    let report = start_threads(arguments.threads)?.install(|| {
        let (x, y) = (read(&arguments.x, arguments)?, read(&arguments.y, arguments)?);
        progress::during(false, "measuring", || measure(&x, &y, arguments))
    })?;
    if arguments.json {
        output::print_json(Some(report.seed), &report)
    } else {
        output::print(&report.table())
    }
}

fn read(path: &Path, arguments: &DistanceArguments) -> Result<ArrangedCloud, Failure> {
    let mut clouds = Collection::read(path, &arguments.clouds.preparation(None))?.clouds;
    match (clouds.pop(), clouds.len()) {
        (Some(cloud), 0) => Ok(cloud),
        (_, others) => Err(Failure::Usage(miette!(
            help = "`ebp metrics` compares collections of sets",
            "`{}` must hold one set of points, found {}",
            path.display(),
            others + 1
        ))),
    }
}

fn measure(
    x: &ArrangedCloud,
    y: &ArrangedCloud,
    arguments: &DistanceArguments,
) -> Result<Report, Failure> {
    // The tree leaves most comparisons out: a GPU pays for a single pair only if it is asked for.
    let gpu = device::gpu_for_distances(x.len() as f64)?;
    let gpu = gpu.as_ref().map(GpuDistances::new).filter(|gpu| gpu.takes(x.dim()));
    let nearest = nearest(gpu, x, y)?;
    let convention = ChamferConvention::from(arguments.chamfer);
    let emd = match arguments.emd.method(arguments.clouds.regularisation) {
        None => None,
        Some(method) => {
            let found = earth_mover(gpu, x, y, method)?;
            Some(EmdReport {
                value: found.value,
                method: method.name(),
                convention: method.convention(),
                gap: found.gap,
                regularisation: match method {
                    EmdMethod::Sinkhorn { regularisation } => Some(regularisation),
                    _ => None,
                },
            })
        }
    };
    Ok(Report {
        x: arguments.x.display().to_string(),
        y: arguments.y.display().to_string(),
        n: x.len(),
        m: y.len(),
        dim: x.dim(),
        normalisation: arguments.clouds.normalise.name(),
        points: arguments.clouds.points,
        seed: arguments.clouds.seed,
        chamfer: Chamfer { value: nearest.chamfer(convention), convention: convention.name() },
        hausdorff: Hausdorff { value: nearest.hausdorff(), convention: "largest of distances" },
        emd,
    })
}

fn nearest(
    gpu: Option<GpuDistances<'_>>,
    x: &ArrangedCloud,
    y: &ArrangedCloud,
) -> Result<NearestNeighbours, Failure> {
    let found = match gpu {
        Some(gpu) => gpu.nearest(&[x, y], &[(0, 1)])?.pop(),
        None => None,
    };
    Ok(found.map_or_else(|| NearestNeighbours::between(x, y), Ok)?)
}

fn earth_mover(
    gpu: Option<GpuDistances<'_>>,
    x: &ArrangedCloud,
    y: &ArrangedCloud,
    method: EmdMethod,
) -> Result<Emd, Failure> {
    let found = match (gpu, Matching::of(method)) {
        (Some(gpu), Some(matching)) => gpu.matchings(&[x, y], &[(0, 1)], matching)?.pop(),
        _ => None,
    };
    Ok(match found {
        Some(value) => Emd { value, method, gap: None },
        None => emd(x, y, method)?,
    })
}

impl Report {
    fn table(&self) -> String {
        let drawn = match self.points {
            None => "all points".to_owned(),
            Some(_) => format!("points drawn with seed {}", self.seed),
        };
        let mut lines = vec![
            format!(
                "{} ({} points), {} ({} points), {} coordinates",
                self.x, self.n, self.y, self.m, self.dim
            ),
            format!("normalisation {}, {drawn}", self.normalisation),
            String::new(),
            format!("chamfer    {:<14.8e}  {}", self.chamfer.value, self.chamfer.convention),
            format!("hausdorff  {:<14.8e}  {}", self.hausdorff.value, self.hausdorff.convention),
        ];
        if let Some(emd) = &self.emd {
            let gap = match emd.gap {
                Some(gap) => format!("gap {gap:.1e}"),
                None => "no bound on its error".to_owned(),
            };
            lines.push(format!(
                "emd        {:<14.8e}  {}, {}, {gap}",
                emd.value, emd.method, emd.convention
            ));
        }
        lines.join("\n") + "\n"
    }
}
