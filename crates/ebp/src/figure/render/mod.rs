//! Clouds as shaded spheres, as papers show them: soft shadows, ambient occlusion, white ground.
//!
//! ```text
//! points ── Scene ──► camera ── spheres (z-buffer, which sphere a sample sees) ──┐
//!          (unit ball)                                                           picture ──► sheet, animation
//!                 └─► light (depth maps along directions), ground (its shade) ───┘
//! ```
//!
//! [`render`] draws one scene, [`Sheet`] rows of them with labels and a scale of colours,
//! [`render_svg`] circles with gradients, [`turntable`] the frames of a turn. Nothing is drawn at random.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "coordinates are clipped to the picture before they become pixel numbers"
)]

mod animation;
mod camera;
mod ground;
mod light;
pub mod paint;
mod picture;
mod scene;
mod sheet;
mod space;
mod spheres;
mod vector;

use image::RgbaImage;

use self::space::Vector;
use crate::{Error, Result};

pub use self::animation::{MOST_FRAMES, turntable, write_animation};
pub use self::camera::{Frame, View};
pub use self::light::Lamp;
pub use self::scene::{Placement, Scene, Up};
pub use self::sheet::{Key, Panel, Sheet, frames};
pub use self::vector::{MOST_CIRCLES, render_svg};
pub use super::colour::ColourMap;

/// The longest side of a picture, in pixels.
pub const LONGEST_SIDE: u32 = 16_384;

/// What lies behind the spheres.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// White, as paper.
    #[default]
    White,
    /// Nearly black, for slides.
    Dark,
    /// Nothing; shadows are black of the right opacity.
    Transparent,
    /// A colour of sRGB.
    Colour([u8; 3]),
}

impl Background {
    /// Its colour, if it has one.
    pub fn colour(self) -> Option<[u8; 3]> {
        match self {
            Self::White => Some([255; 3]),
            Self::Dark => Some([24, 26, 31]),
            Self::Transparent => None,
            Self::Colour(colour) => Some(colour),
        }
    }

    /// What can be read on it.
    pub(super) fn ink(self) -> [u8; 3] {
        let [r, g, b] = self.colour().unwrap_or([255; 3]).map(u32::from);
        if 2 * r + 5 * g + b > 8 * 110 { [34; 3] } else { [225; 3] }
    }
}

/// How much work a picture is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quality {
    /// One sample a pixel, few directions of light: contact sheets.
    Draft,
    /// Four samples a pixel.
    #[default]
    Normal,
    /// Nine samples a pixel, twice the directions.
    High,
}

/// How scenes are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenderOptions {
    /// Width and height in pixels.
    pub size: [u32; 2],
    /// Where the eye is.
    pub view: View,
    /// Where the light comes from.
    pub lamp: Lamp,
    /// What lies behind.
    pub background: Background,
    /// Whether there is a ground that catches shadows.
    pub has_ground: bool,
    /// How much work it is worth.
    pub quality: Quality,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            size: [1024, 1024],
            view: View::default(),
            lamp: Lamp::default(),
            background: Background::White,
            has_ground: true,
            quality: Quality::Normal,
        }
    }
}

impl RenderOptions {
    /// Flat clouds are seen from the front.
    fn view_of(&self, scene: &Scene) -> View {
        if scene.is_flat { View { azimuth: -90.0, elevation: 0.0, ..self.view } } else { self.view }
    }

    /// The direction of the light whose shadow should be in the picture.
    fn shadow_of(&self, scene: &Scene, view: &View) -> Option<Vector> {
        (self.has_ground && !scene.is_flat).then(|| self.lamp.direction(view.azimuth))
    }

    /// Checks what the user may have chosen.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] with the setting.
    pub fn check(&self) -> Result<()> {
        for (name, size) in [("width", self.size[0]), ("height", self.size[1])] {
            if !(1..=LONGEST_SIDE).contains(&size) {
                return Err(Error::invalid(name, format!("from 1 to {LONGEST_SIDE} pixels"), size));
            }
        }
        let (view, lamp) = (&self.view, &self.lamp);
        for (name, number, range) in [
            ("camera azimuth", view.azimuth, -3600.0..=3600.0),
            ("camera elevation", view.elevation, -90.0..=90.0),
            ("field of view", view.opening, 0.5..=120.0),
            ("camera distance", view.distance.unwrap_or(2.0), 1.2..=1000.0),
            ("light azimuth", lamp.azimuth, -3600.0..=3600.0),
            ("light elevation", lamp.elevation, 5.0..=90.0),
            ("light softness", lamp.softness, 0.0..=45.0),
        ] {
            if !range.contains(&number) {
                let expected = format!("from {} to {}", range.start(), range.end());
                return Err(Error::invalid(name, expected, number));
            }
        }
        Ok(())
    }
}

/// One scene as a picture.
///
/// # Errors
///
/// [`Error::InvalidValue`] for options that cannot be drawn.
pub fn render(scene: &Scene, options: &RenderOptions) -> Result<RgbaImage> {
    options.check()?;
    Ok(picture::draw(scene, options, None))
}

#[cfg(test)]
mod tests;
