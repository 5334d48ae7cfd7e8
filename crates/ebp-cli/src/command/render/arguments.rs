//! What can be typed after `ebp render`.

use std::path::PathBuf;

use clap::Args;
use ebp::figure::render::{Background, ColourMap, Lamp, Quality, View, paint};

use crate::args::{Choice, Common, at_least_one, choice};

const HELP: &str = "\
Clouds: npy, npz, h5, ply, off, obj, pcd, xyz, txt, pts, folders of them, caches of `ebp data import`.
Pictures: .png; .svg (a circle per visible sphere, at most 100,000); .apng, or .png with --turntable.

Colours of --colour:
  height         along the axis that is up (the default without --values)
  x, y, z        along another axis
  place          red, green and blue from the three coordinates, as in PointFlow's and PVD's figures
  values         the numbers of --values, with a scale beside the clouds
  label          whole numbers of --values, a colour each
  own            red, green and blue of PLY files, or of --values with three numbers a point
  #rrggbb        one colour; also white, black, grey, blue, orange, green, red, pink, sand

--values takes an array with a number for each point of SRC, such as
`ebp score MODEL SRC --points FILE` writes.

Each cloud is scaled to its cell; with --same-scale, --steps and animations sizes compare.
Memory is that of the picture (4 bytes a pixel) and of light: up to 160 MB, with --quality high 340 MB.

Examples:
  ebp sample models/chairs -n 8 -o chairs.npy
  ebp render chairs.npy -o chairs.png
  ebp render chairs.npy --count 4 --columns 4 --size 480x560 --colour place -o row.svg
  ebp render scan.ply --size 4096x4096 --background transparent -o scan.png
  ebp score models/chairs chairs.npy --points density.npy
  ebp render chairs.npy --values density.npy --name 'log p' -o density.png
  ebp render chairs.npy --count 1 --turntable 60 -o turn.apng
  ebp render steps.npy --steps --count 6 -o steps.png      # a film strip; .apng moves";

/// Arguments of `ebp render`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct RenderArguments {
    /// Files and folders of clouds
    #[arg(value_name = "SRC", required = true)]
    pub(super) sources: Vec<PathBuf>,

    /// Where the picture goes: a file ending in .png, .svg or .apng
    #[arg(short, long, value_name = "FILE")]
    pub(super) out: PathBuf,

    /// Most clouds that are drawn; of --steps, taken evenly
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_one)]
    pub(super) count: usize,

    /// Number of the first cloud that is drawn
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) first: usize,

    /// Clouds of a row [default: as many as make the figure a little wider than high]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Layout")]
    pub(super) columns: Option<usize>,

    /// Written under a cloud; once for each, in their order
    #[arg(long, value_name = "TEXT", help_heading = "Layout")]
    pub(super) label: Vec<String>,

    /// Write the name of each cloud under it
    #[arg(long, conflicts_with = "label", help_heading = "Layout")]
    pub(super) names: bool,

    /// Width and height of a cloud's cell in pixels [default: 1024x1024 for one, 400x400 for more]
    #[arg(long, value_name = "WxH", value_parser = size, help_heading = "Layout")]
    pub(super) size: Option<[u32; 2]>,

    /// Scale all clouds alike, around the box that holds them all
    #[arg(long, help_heading = "Layout")]
    pub(super) same_scale: bool,

    /// An animation of one turn in this many frames
    #[arg(long, value_name = "FRAMES", value_parser = at_least_one, help_heading = "Animation")]
    pub(super) turntable: Option<usize>,

    /// The clouds are steps of one cloud, `[steps, n, 3]`: an animation, or a film strip
    #[arg(long, conflicts_with = "turntable", help_heading = "Animation")]
    pub(super) steps: bool,

    /// How long a frame is shown, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 60, help_heading = "Animation")]
    pub(super) frame_time: u16,

    /// What colours mean [default: values with --values, otherwise height]
    #[arg(long, visible_alias = "color", value_name = "WHAT", help_heading = "Colours")]
    pub(super) colour: Option<String>,

    /// A .npy file with a number for each point of SRC, or three for --colour own
    #[arg(long, value_name = "FILE", help_heading = "Colours")]
    pub(super) values: Option<PathBuf>,

    /// What the values are, written over their scale
    #[arg(long, value_name = "TEXT", default_value = "", help_heading = "Colours")]
    pub(super) name: String,

    /// From numbers to colours
    #[arg(long, default_value = "viridis", value_parser = choice(MAPS), help_heading = "Colours")]
    pub(super) map: ColourMap,

    /// The numbers at the ends of the scale [default: the smallest and largest]
    #[arg(long, value_name = "LOW,HIGH", value_parser = range, allow_hyphen_values = true, help_heading = "Colours")]
    pub(super) range: Option<[f32; 2]>,

    /// white, dark, transparent, or a colour as in --colour
    #[arg(long, value_name = "WHAT", default_value = "white", value_parser = background, help_heading = "Colours")]
    pub(super) background: Background,

    /// Degrees around the vertical, from +x towards +y
    #[arg(long, value_name = "DEGREES", default_value_t = View::default().azimuth, allow_negative_numbers = true, help_heading = "Camera")]
    pub(super) azimuth: f32,

    /// Degrees above the ground
    #[arg(long, value_name = "DEGREES", default_value_t = View::default().elevation, allow_negative_numbers = true, help_heading = "Camera")]
    pub(super) elevation: f32,

    /// Degrees that the camera sees: more is a stronger perspective
    #[arg(long, value_name = "DEGREES", default_value_t = View::default().opening, help_heading = "Camera")]
    pub(super) field_of_view: f32,

    /// From the eye to the middle, in radii of the cloud [default: the cloud fills the cell]
    #[arg(long, value_name = "X", help_heading = "Camera")]
    pub(super) distance: Option<f32>,

    /// The axis that points up: z as in this project's data, y as in ShapeNet's files
    #[arg(long, default_value = "z", value_parser = choice(UPS), help_heading = "Camera")]
    pub(super) up: ebp::figure::render::Up,

    /// Where the light comes from: degrees right of the camera, degrees above the ground
    #[arg(long, value_name = "AZIMUTH,ELEVATION", default_value = "-45,66", value_parser = range_any, allow_hyphen_values = true, help_heading = "Light")]
    pub(super) light: [f32; 2],

    /// Half the angle at which the lamp is seen, in degrees: the softness of shadows
    #[arg(long, value_name = "DEGREES", default_value_t = Lamp::default().softness, help_heading = "Light")]
    pub(super) softness: f32,

    /// No ground, no shadow on it
    #[arg(long, help_heading = "Light")]
    pub(super) no_ground: bool,

    /// Radius of the spheres in units of the data [default: 1.3 times the mean distance of neighbours]
    #[arg(long, value_name = "X")]
    pub(super) radius: Option<f32>,

    /// How much work it is worth
    #[arg(long, default_value = "normal", value_parser = choice(QUALITIES))]
    pub(super) quality: Quality,

    #[command(flatten)]
    pub(super) common: Common,
}

const MAPS: &[Choice<ColourMap>] = &[
    ("viridis", "From violet over green to yellow", ColourMap::Viridis),
    ("magma", "From black over red to pale yellow", ColourMap::Magma),
    ("cividis", "From blue to yellow, the same to the colour-blind", ColourMap::Cividis),
];

const UPS: &[Choice<ebp::figure::render::Up>] = &[
    ("y", "The second", ebp::figure::render::Up::Y),
    ("z", "The third", ebp::figure::render::Up::Z),
];

pub(super) const QUALITIES: &[Choice<Quality>] = &[
    ("draft", "One sample a pixel", Quality::Draft),
    ("normal", "Four samples a pixel", Quality::Normal),
    ("high", "Nine samples a pixel, twice the directions of light", Quality::High),
];

fn size(text: &str) -> Result<[u32; 2], String> {
    let sides = text.split_once('x').map(|(width, height)| [width.parse(), height.parse()]);
    match sides {
        Some([Ok(width), Ok(height)]) => Ok([width, height]),
        _ => Err("must be WIDTHxHEIGHT, such as 800x600".into()),
    }
}

fn range_any(text: &str) -> Result<[f32; 2], String> {
    let ends = text.split_once(',').map(|(low, high)| [low.trim().parse(), high.trim().parse()]);
    match ends {
        Some([Ok(low), Ok(high)]) => Ok([low, high]),
        _ => Err("must be two numbers with a comma between".into()),
    }
}

fn range(text: &str) -> Result<[f32; 2], String> {
    let [low, high] = range_any(text)?;
    let is_range = low.is_finite() && high.is_finite() && low < high;
    if is_range { Ok([low, high]) } else { Err("must rise from LOW to HIGH".into()) }
}

fn background(text: &str) -> Result<Background, String> {
    match text {
        "white" => Ok(Background::White),
        "dark" => Ok(Background::Dark),
        "transparent" => Ok(Background::Transparent),
        other => match paint::colour_named(other) {
            Ok(colour) => Ok(Background::Colour(colour)),
            Err(_) => Err("must be white, dark, transparent, a colour or #rrggbb".into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_or_refused() {
        assert_eq!(size("800x600"), Ok([800, 600]));
        assert!(size("800").is_err() && size("800x").is_err() && size("-1x3").is_err());
        assert_eq!(range("-1, 2.5"), Ok([-1.0, 2.5]));
        assert!(range("2,1").is_err() && range("1").is_err() && range("nan,1").is_err());
        assert_eq!(range_any("-45,66"), Ok([Lamp::default().azimuth, Lamp::default().elevation]));
    }

    #[test]
    fn backgrounds_have_names() {
        assert_eq!(background("dark"), Ok(Background::Dark));
        assert_eq!(background("#102030"), Ok(Background::Colour([16, 32, 48])));
        assert!(background("noir").is_err());
    }
}
