//! `ebp data sample-mesh`: points on surfaces.

use std::path::Path;

use ebp::data::cloud::{Cloud, write_cloud};
use ebp::data::mesh::{
    MESH_ENDINGS, SurfaceSampler, farthest_points, mesh_files, poisson_disc, read_mesh,
};
use ebp::data::normalise::Affine;
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::rng::Stream;
use miette::miette;
use rayon::prelude::*;
use serde::Serialize;

use super::arguments::{SampleMeshArguments, SpreadName};
use crate::failure::Failure;
use crate::{output, progress};

/// Points drawn for each that is kept, where they are to be spread evenly.
const SURPLUS: usize = 8;

/// What was written.
#[derive(Debug, Serialize)]
struct Report {
    out: String,
    clouds: usize,
    /// Of each.
    points: usize,
}

pub(super) fn run(arguments: &SampleMeshArguments) -> Result<(), Failure> {
    let stream = Stream::new(arguments.seed, "surface");
    if !arguments.source.is_dir() {
        let cloud = sample(&arguments.source, arguments, stream)?;
        write_cloud(&arguments.out, &cloud)?;
        return tell(arguments, 1, cloud.len());
    }
    let files = mesh_files(&arguments.source)?;
    if files.is_empty() {
        return Err(Failure::Usage(miette!(
            "`{}` must hold meshes ending in {}, found none",
            arguments.source.display(),
            MESH_ENDINGS.join(", ")
        )));
    }
    let count = progress::count(files.len() as u64, arguments.quiet, "meshes");
    let clouds: Vec<ebp::Result<Cloud>> = files
        .par_iter()
        .enumerate()
        .map(|(number, file)| {
            sample(file, arguments, stream.child(number as u64)).inspect(|_| count.inc(1))
        })
        .collect();
    count.finish();
    let mut points = Vec::new();
    for cloud in clouds {
        points.extend(cloud?.points);
    }
    let array = Array::new(vec![files.len(), arguments.points, 3], points)?;
    write_npy(&arguments.out, &array, Precision::Single)?;
    tell(arguments, files.len(), arguments.points)
}

fn tell(arguments: &SampleMeshArguments, clouds: usize, points: usize) -> Result<(), Failure> {
    let report = Report { out: arguments.out.display().to_string(), clouds, points };
    if arguments.json {
        return output::print_json(Some(arguments.seed), &report);
    }
    let out = &report.out;
    output::print(&match clouds {
        1 if !arguments.source.is_dir() => format!("{points} points in {out}\n"),
        _ => format!("{clouds} clouds of {points} points in {out}\n"),
    })
}

fn sample(path: &Path, arguments: &SampleMeshArguments, stream: Stream) -> ebp::Result<Cloud> {
    let mesh = read_mesh(path)?;
    let sampler = SurfaceSampler::new(&mesh)?;
    let count = arguments.points;
    let pick = |points: &[f32], order: &[usize]| -> Vec<f32> {
        order.iter().flat_map(|&index| points[3 * index..3 * index + 3].to_vec()).collect()
    };
    let mut points = match arguments.spread {
        SpreadName::Uniform => sampler.points(stream, count),
        SpreadName::Farthest => {
            let many = sampler.points(stream, SURPLUS * count);
            pick(&many, &farthest_points(&many, 3, count, stream.child(0))?)
        }
        SpreadName::Poisson => {
            let many = sampler.points(stream, SURPLUS * count);
            // A disc of radius r/2 around each point: with density δ of its area covered,
            // count · π r²/4 = δ · area. Darts reach δ ≈ 0.5; a smaller radius is tried if they
            // stop short of the count, and farthest points thin what is left over.
            let mut radius =
                (4.0 * 0.55 * sampler.area() / (std::f64::consts::PI * count as f64)).sqrt();
            loop {
                #[expect(clippy::cast_possible_truncation, reason = "clouds are f32")]
                let kept = poisson_disc(&many, 3, radius as f32, stream.child(0))?;
                if kept.len() >= count {
                    let kept = pick(&many, &kept);
                    break pick(&kept, &farthest_points(&kept, 3, count, stream.child(1))?);
                }
                radius *= 0.96;
            }
        }
    };
    Affine::of_cloud(arguments.normalise.into(), &points, 3).apply(&mut points);
    Ok(Cloud { dim: 3, points })
}
