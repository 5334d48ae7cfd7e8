//! `ebp data shapes`: built-in shapes as clouds, with a contact sheet.

use std::fs;
use std::io::{Write, stdout};
use std::time::Instant;

use ebp::data::mesh::write_mesh;
use ebp::data::normalise::Affine;
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::data::shapes::{ShapeClass, ShapeCollection, shape_clouds, shape_mesh};
use ebp::figure::contact_sheet::{self, Tile};
use ebp::figure::save;

use super::arguments::ShapesArguments;
use super::import::{TEMPLATE, say_shards};
use crate::failure::Failure;
use crate::progress;
use crate::threads::start_threads;

/// Shapes on a contact sheet at most, and in one of its rows.
const MOST_TILES: usize = 40;
const COLUMNS: u32 = 5;

pub(super) fn run(arguments: &ShapesArguments) -> Result<(), Failure> {
    if let Some(num_shards) = arguments.shards {
        return write_shards(arguments, num_shards);
    }
    let make = |folder: &std::path::Path| {
        fs::create_dir_all(folder)
            .map_err(|error| Failure::cannot("make the folder", folder, &error))
    };
    make(&arguments.out)?;
    for &class in &arguments.class {
        let class = ShapeClass::from(class);
        let (seed, first, count) = (arguments.seed, arguments.first, arguments.count);
        let clouds = shape_clouds(class, seed, first, count, arguments.points)?;
        let tiles: Vec<Tile<'_>> = (0..clouds.num_clouds().min(MOST_TILES))
            .map(|index| Tile::Cloud { points: clouds.cloud(index), dim: 3 })
            .collect();
        let sheet = arguments.out.join(format!("{}.png", class.name()));
        save(&contact_sheet::draw(&tiles, COLUMNS), &sheet)?;

        let mut points = clouds.points().to_vec();
        for cloud in points.chunks_exact_mut(3 * arguments.points) {
            Affine::of_cloud(arguments.normalise.into(), cloud, 3).apply(cloud);
        }
        let path = arguments.out.join(format!("{}.npy", class.name()));
        let array = Array::new(vec![count, arguments.points, 3], points)?;
        write_npy(&path, &array, Precision::Single)?;
        if arguments.meshes {
            let folder = arguments.out.join(class.name());
            make(&folder)?;
            for number in first..first + count as u64 {
                let mesh = shape_mesh(class, seed, number);
                write_mesh(&folder.join(format!("{number}.obj")), &mesh)?;
            }
        }
        writeln!(
            stdout(),
            "{}: {count} shapes of {} points in {}, the first of them in {}",
            class.name(),
            arguments.points,
            path.display(),
            sheet.display()
        )?;
    }
    Ok(())
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
    let bar = progress::bar(num_shards as u64, false, TEMPLATE);
    let report = start_threads(arguments.threads)?.install(|| {
        collection.write_shards(&arguments.out, num_shards, &|num_done| {
            bar.set_position(num_done as u64);
        })
    })?;
    bar.finish_and_clear();
    say_shards(&report, &arguments.out, begin)
}
