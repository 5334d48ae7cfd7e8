//! What was typed after `ebp data`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ebp::data::shapes::ShapeClass;

use crate::args::at_least_one;

/// Arguments of `ebp data`.
#[derive(Debug, Args)]
pub(crate) struct DataArguments {
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// What to do with data.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Draw built-in shapes as point clouds
    Shapes(ShapesArguments),
}

/// Arguments of `ebp data shapes`.
#[derive(Debug, Args)]
pub(crate) struct ShapesArguments {
    /// Classes to draw, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "chair")]
    pub(crate) class: Vec<ClassName>,

    /// Shapes of each class
    #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 20, value_parser = at_least_one)]
    pub(crate) count: usize,

    /// Points of each shape
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = at_least_one)]
    pub(crate) points: usize,

    /// Seed: the same seed draws the same shapes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Number of the first shape; others continue the same series
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) first: u64,

    /// Folder for `CLASS.npy` [count, points, 3] and a contact sheet `CLASS.png`
    #[arg(value_name = "OUT")]
    pub(crate) out: PathBuf,
}

/// A class of shapes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassName {
    Airplane,
    Chair,
    Car,
    Table,
    Lamp,
}

impl From<ClassName> for ShapeClass {
    fn from(name: ClassName) -> Self {
        match name {
            ClassName::Airplane => Self::Airplane,
            ClassName::Chair => Self::Chair,
            ClassName::Car => Self::Car,
            ClassName::Table => Self::Table,
            ClassName::Lamp => Self::Lamp,
        }
    }
}
