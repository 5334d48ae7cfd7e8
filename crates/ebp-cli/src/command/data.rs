//! `ebp data`: data in, looked at, and prepared.

mod arguments;
mod import;
mod info;
mod inspect;
mod sample_mesh;
mod shapes;
mod strokes;

pub(crate) use arguments::DataArguments;

use self::arguments::Action;
use crate::failure::Failure;

/// Runs what was typed.
pub(crate) fn run(arguments: DataArguments) -> Result<(), Failure> {
    match arguments.action {
        Action::Import(import) => import::run(&import),
        Action::Inspect(inspect) => inspect::run(&inspect),
        Action::Split(split) => import::split(&split),
        Action::SampleMesh(sample) => sample_mesh::run(&sample),
        Action::Shapes(shapes) => shapes::run(&shapes),
        Action::Strokes(strokes) => strokes::run(&strokes),
        Action::Info(info) => info::run(&info),
    }
}
