//! Figures: heat maps of densities, plots of curves, clouds as shaded spheres.
//!
//! [`heat_map`], [`line_plot`] and their like lay out panels on a [`Drawing`], which records lines, polygons, pictures
//! and text; `raster` writes it as pixels, `svg` as SVG, and both know nothing of plots. `axis` chooses the ticks,
//! `legend` says what colours mean, `letters` has the outlines of text, [`Theme`] chooses paper and ink. Sizes are in
//! points of 1/72 inch: type of 7 to 9 points, 300 pixels to an inch. [`render`] draws clouds, which are pixels.

mod axis;
pub mod calibration;
mod colour;
mod colour_bar;
pub mod confusion;
pub mod contact_sheet;
mod coverage;
pub mod density;
pub mod density_grid;
mod drawing;
mod frame;
pub mod heat_map;
pub mod histogram;
mod legend;
mod letters;
mod line;
pub mod line_plot;
mod marker;
pub mod mosaic;
pub mod planar_sets;
mod raster;
pub mod render;
pub mod run_curves;
pub mod scatter;
mod svg;
mod theme;
mod write;

pub use self::axis::Scale;
pub use self::drawing::{Drawing, stack};
pub use self::theme::Theme;
pub use self::write::{Figure, png, save, save_rgba};

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::figure::theme::Colour;

    /// Nothing is cut off.
    pub(super) fn assert_blank_edge(drawing: &Drawing) {
        for theme in [Theme::Light, Theme::Dark] {
            let image = drawing.image(theme);
            let (width, height) = image.dimensions();
            let edge = (0..width)
                .flat_map(|x| [(x, 0), (x, height - 1)])
                .chain((0..height).flat_map(|y| [(0, y), (width - 1, y)]));
            for (x, y) in edge {
                assert_eq!(*image.get_pixel(x, y), Colour::Paper.under(theme), "at {x}, {y}");
            }
        }
    }

    /// Name a folder in EBP_PICTURES to look at what tests draw.
    pub(super) fn keep(drawing: &Drawing, name: &str) {
        if let Some(folder) = std::env::var_os("EBP_PICTURES") {
            let path = |name: String| Path::new(&folder).join(name);
            drawing.save(&path(format!("{name}.png")), Theme::Light).expect("written");
            drawing.save(&path(format!("{name}-dark.png")), Theme::Dark).expect("written");
        }
    }
}
