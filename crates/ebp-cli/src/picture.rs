//! Pictures: heat maps of densities and plots of curves, drawn pixel by pixel.
//!
//! [`heat_map`] and [`line_plot`] place panels on a [`canvas`], which knows lines, points and
//! text; [`axis`] chooses the ticks, [`colour`] the colours and [`font`] the letters. All sizes
//! are in points of a page at scale 1; a figure of scale 2 has twice as many pixels each way.

mod axis;
mod canvas;
mod colour;
pub(crate) mod contact_sheet;
mod font;
mod frame;
pub(crate) mod heat_map;
pub(crate) mod line_plot;

use std::path::Path;

use image::{ImageFormat, RgbImage};
use miette::miette;

use crate::failure::Failure;

/// Writes a figure as a PNG file.
pub(crate) fn save(figure: &RgbImage, path: &Path) -> Result<(), Failure> {
    figure.save_with_format(path, ImageFormat::Png).map_err(|error| {
        Failure::Failed(miette!(
            help = "does the folder exist, and is there room on the disk?",
            "cannot write `{}`: {error}",
            path.display()
        ))
    })
}
