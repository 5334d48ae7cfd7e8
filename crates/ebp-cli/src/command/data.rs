//! `ebp data`: data in, looked at, and prepared.

mod arguments;
mod shapes;

pub(crate) use arguments::DataArguments;

use self::arguments::Action;
use crate::failure::Failure;

/// Runs what was typed.
pub(crate) fn run(arguments: DataArguments) -> Result<(), Failure> {
    match arguments.action {
        Action::Shapes(shapes) => shapes::run(&shapes),
    }
}
