//! `ebp data shapes`: built-in shapes as clouds, with a contact sheet.

use std::fs;
use std::io::{Write, stdout};

use ebp::data::npy::{Array, Precision, write_npy};
use ebp::data::shapes::{ShapeClass, shape_clouds};

use super::arguments::ShapesArguments;
use crate::failure::Failure;
use crate::picture::contact_sheet::{self, Tile};
use crate::picture::save;

/// Shapes on a contact sheet at most, and in one of its rows.
const MOST_TILES: usize = 40;
const COLUMNS: u32 = 5;

pub(super) fn run(arguments: &ShapesArguments) -> Result<(), Failure> {
    fs::create_dir_all(&arguments.out)
        .map_err(|error| Failure::cannot("make the folder", &arguments.out, &error))?;
    for &class in &arguments.class {
        let class = ShapeClass::from(class);
        let clouds = shape_clouds(
            class,
            arguments.seed,
            arguments.first,
            arguments.count,
            arguments.points,
        )?;
        let array =
            Array::new(vec![arguments.count, arguments.points, 3], clouds.points().to_vec())?;
        let path = arguments.out.join(format!("{}.npy", class.name()));
        write_npy(&path, &array, Precision::Single)?;
        let tiles: Vec<Tile<'_>> = (0..clouds.num_clouds().min(MOST_TILES))
            .map(|index| Tile::Cloud { points: clouds.cloud(index), dim: 3 })
            .collect();
        let sheet = arguments.out.join(format!("{}.png", class.name()));
        save(&contact_sheet::draw(&tiles, COLUMNS), &sheet)?;
        writeln!(
            stdout(),
            "{}: {} shapes of {} points in {}, the first of them in {}",
            class.name(),
            arguments.count,
            arguments.points,
            path.display(),
            sheet.display()
        )?;
    }
    Ok(())
}
