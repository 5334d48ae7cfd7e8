//! `ebp data shapes`: built-in shapes as clouds, with a contact sheet.

use std::fs;
use std::path::Path;
use std::time::Instant;

use ebp::data::mesh::write_mesh;
use ebp::data::normalise::Affine;
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::data::shapes::{ShapeClass, ShapeCollection, shape_clouds, shape_mesh};
use ebp::figure::contact_sheet::{self, Tile};
use ebp::figure::save;
use serde::Serialize;

use super::arguments::ShapesArguments;
use super::import::ShardsReport;
use crate::failure::Failure;
use crate::threads::start_threads;
use crate::{output, progress, show};

/// Shapes on a contact sheet at most, and in one of its rows.
const MOST_TILES: usize = 40;
const COLUMNS: u32 = 5;

/// Shapes between two looks at the bar.
const AT_ONCE: usize = 64;

/// What was written.
#[derive(Debug, Serialize)]
struct Report {
    classes: Vec<ClassReport>,
}

#[derive(Debug, Serialize)]
struct ClassReport {
    class: &'static str,
    shapes: usize,
    /// Of each.
    points: usize,
    out: String,
    picture: String,
    /// The folder of the meshes, if they were asked for.
    meshes: Option<String>,
}

pub(super) fn run(arguments: &ShapesArguments) -> Result<(), Failure> {
    if let Some(num_shards) = arguments.shards {
        return write_shards(arguments, num_shards);
    }
    let report = draw(arguments)?;
    if arguments.json {
        return output::print_json(Some(arguments.seed), &report);
    }
    for ClassReport { class, shapes, points, out, picture, .. } in &report.classes {
        output::print(&format!(
            "{class}: {shapes} shapes of {points} points in {out}, the first of them in {picture}\n"
        ))?;
        show::picture(Path::new(picture), arguments.quiet)?;
    }
    Ok(())
}

fn draw(arguments: &ShapesArguments) -> Result<Report, Failure> {
    let make = |folder: &Path| {
        fs::create_dir_all(folder)
            .map_err(|error| Failure::cannot("make the folder", folder, &error))
    };
    make(&arguments.out)?;
    let mut classes = Vec::new();
    let total = arguments.class.len() * arguments.count;
    let done = progress::count(total as u64, arguments.quiet, "shapes");
    for &class in &arguments.class {
        let class = ShapeClass::from(class);
        let (seed, first, count) = (arguments.seed, arguments.first, arguments.count);
        let mut points = Vec::with_capacity(3 * count * arguments.points);
        // A shape is a function of the seed and its number.
        for start in (0..count).step_by(AT_ONCE) {
            let (from, some) = (first + start as u64, AT_ONCE.min(count - start));
            let clouds = shape_clouds(class, seed, from, some, arguments.points)?;
            points.extend_from_slice(clouds.points());
            done.inc(some as u64);
        }
        let tiles: Vec<Tile<'_>> = points
            .chunks_exact(3 * arguments.points)
            .take(MOST_TILES)
            .map(|points| Tile::Cloud { points, dim: 3 })
            .collect();
        let sheet = arguments.out.join(format!("{}.png", class.name()));
        save(&contact_sheet::draw(&tiles, COLUMNS), &sheet)?;

        for cloud in points.chunks_exact_mut(3 * arguments.points) {
            Affine::of_cloud(arguments.normalise.into(), cloud, 3).apply(cloud);
        }
        let path = arguments.out.join(format!("{}.npy", class.name()));
        let array = Array::new(vec![count, arguments.points, 3], points)?;
        write_npy(&path, &array, Precision::Single)?;
        let meshes = arguments.meshes.then(|| arguments.out.join(class.name()));
        if let Some(folder) = &meshes {
            make(folder)?;
            for number in first..first + count as u64 {
                let mesh = shape_mesh(class, seed, number);
                write_mesh(&folder.join(format!("{number}.obj")), &mesh)?;
            }
        }
        classes.push(ClassReport {
            class: class.name(),
            shapes: count,
            points: arguments.points,
            out: path.display().to_string(),
            picture: sheet.display().to_string(),
            meshes: meshes.map(|folder| folder.display().to_string()),
        });
    }
    done.finish();
    Ok(Report { classes })
}

fn write_shards(arguments: &ShapesArguments, num_shards: usize) -> Result<(), Failure> {
    let begin = Instant::now();
    let collection = ShapeCollection {
        classes: arguments.class.iter().map(|&class| class.into()).collect(),
        seed: arguments.seed,
        first: arguments.first,
        count: arguments.count,
        num_points: arguments.points,
        normalise_by: arguments.normalise.into(),
    };
    let done = progress::count(num_shards as u64, arguments.quiet, "shards");
    let report = start_threads(arguments.threads)?.install(|| {
        collection.write_shards(&arguments.out, num_shards, &|num_done| {
            done.set(num_done as u64);
        })
    })?;
    done.finish();
    ShardsReport::of(&report, &arguments.out, begin).print(arguments.seed, arguments.json)
}
