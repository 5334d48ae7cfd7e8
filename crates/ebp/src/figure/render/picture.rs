//! One scene as a picture: what is seen, lit, and averaged in linear light.
//!
//! A pixel is the mean of its samples: c = Σ_spheres share · ρ (S f(E_sky) + L E_lamp) + share of the
//! ground · g B, where ρ is the sphere's colour, f adds what neighbours of the same colour return, B is
//! the background and g how light the ground is there. In the open g = 1, so that ground and background
//! are one. Light is computed once per sphere and pixel, edges per sample. Bands of rows are
//! independent: memory is that of a few bands, and threads change nothing.

use image::RgbaImage;
use rayon::prelude::*;

use super::camera::{Camera, Frame, Lens, frame_of};
use super::light::{Fineness, LAMP, Light, SKY};
use super::scene::Scene;
use super::space::{add, ahead, times, unit};
use super::spheres::{Bands, NOTHING};
use super::{Background, Quality, RenderOptions};

/// Rows of pixels that are drawn together.
const ROWS_PER_BAND: u32 = 16;
/// Share of a picture's side over which shade fades at its edges, so that pictures join.
const VIGNETTE: f32 = 0.15;
/// Shade of the ground that is halved.
const FAINT: f32 = 0.03;
/// Finer maps of light would show nothing more.
const CELLS_PER_RADIUS: f32 = 8.0;

impl Quality {
    /// Samples along each side of a pixel.
    fn samples(self) -> u32 {
        match self {
            Self::Draft => 1,
            Self::Normal => 2,
            Self::High => 3,
        }
    }

    /// Maps as fine as pixels and spheres ask for, within what memory and time allow.
    pub(super) fn fineness(self, scene: &Scene, size: [u32; 2]) -> Fineness {
        let pixels = size[0].min(size[1]) as usize;
        let (sky, lamp, ground) = match self {
            Self::Draft => (20, 12, 96),
            Self::Normal => (40, 24, 256),
            Self::High => (80, 64, 512),
        };
        let most = if self == Self::Draft { 512 } else { 768 };
        let useful = (2.0 * CELLS_PER_RADIUS * scene.reach / scene.radius) as usize;
        Fineness {
            sky,
            lamp,
            map_side: pixels.min(useful).clamp(128, most),
            ground_side: (pixels / 2).clamp(112, 512),
            ground,
        }
    }
}

/// Draws a scene; the frame is fitted to it unless one is given.
pub(super) fn draw(scene: &Scene, options: &RenderOptions, frame: Option<Frame>) -> RgbaImage {
    paint(scene, options, frame, true)
}

/// Its ground without the spheres.
pub(super) fn draw_ground(scene: &Scene, options: &RenderOptions, frame: Frame) -> RgbaImage {
    paint(scene, options, Some(frame), false)
}

fn paint(
    scene: &Scene,
    options: &RenderOptions,
    frame: Option<Frame>,
    has_spheres: bool,
) -> RgbaImage {
    let samples = options.quality.samples();
    let view = &options.view_of(scene);
    let lamp = options.lamp.direction(view.azimuth);
    let frame = frame.unwrap_or_else(|| frame_of(scene, view, options.shadow_of(scene, view)));
    let camera = Camera::new(view, scene.reach);
    let [width, height] = options.size;
    let lens = Lens::new(frame, width * samples, height * samples);
    let bands = Bands::new(
        scene,
        &camera,
        lens,
        [width * samples, height * samples],
        ROWS_PER_BAND * samples,
    );
    let light = Light::new(
        scene,
        &options.lamp,
        view.azimuth,
        &options.quality.fineness(scene, options.size),
    );
    let painter = Painter {
        scene,
        camera,
        lens,
        samples,
        light,
        lamp_height: lamp[2].max(0.0),
        bands,
        size: options.size,
        background: options.background,
        has_ground: options.has_ground,
        has_spheres,
        levels: levels(),
    };
    let mut picture = RgbaImage::new(width, height);
    let band_bytes = (ROWS_PER_BAND * width * 4) as usize;
    picture
        .par_chunks_mut(band_bytes)
        .enumerate()
        .for_each(|(band, pixels)| painter.paint(band, pixels));
    picture
}

struct Painter<'a> {
    scene: &'a Scene,
    camera: Camera,
    lens: Lens,
    samples: u32,
    light: Light,
    lamp_height: f32,
    bands: Bands,
    size: [u32; 2],
    background: Background,
    has_ground: bool,
    has_spheres: bool,
    levels: Vec<u8>,
}

impl Painter<'_> {
    fn paint(&self, band: usize, pixels: &mut [u8]) {
        let rows = self.bands.rows(band);
        let hits = self.bands.draw(band);
        let samples = self.samples;
        let width = self.size[0];
        let share = 1.0 / (samples * samples) as f32;
        // The spheres of a pixel: number, sum of directions, number of samples.
        let mut seen: Vec<(u32, [f32; 3], f32)> = Vec::new();
        for (index, pixel) in pixels.chunks_exact_mut(4).enumerate() {
            let (row, column) = (index as u32 / width, index as u32 % width);
            seen.clear();
            let mut cover = 0.0;
            for y in row * samples..(row + 1) * samples {
                for x in column * samples..(column + 1) * samples {
                    let hit = hits[(y * width * samples + x) as usize];
                    if hit.sphere == NOTHING || !self.has_spheres {
                        continue;
                    }
                    cover += share;
                    let outwards = self.bands.outwards(hit, x, rows.start + y);
                    match seen.iter_mut().find(|(sphere, ..)| *sphere == hit.sphere) {
                        Some((_, sum, count)) => {
                            *sum = add(*sum, outwards);
                            *count += 1.0;
                        }
                        None => seen.push((hit.sphere, outwards, 1.0)),
                    }
                }
            }
            let mut colour = [0.0_f32; 3];
            for &(sphere, sum, count) in &seen {
                let normal = unit(self.camera.to_world(sum));
                let lit = self.lit(sphere as usize, normal);
                colour = add(colour, times(lit, count * share));
            }
            let row = rows.start / samples + row;
            let ground = if cover < 1.0 { self.ground(column, row) } else { 1.0 };
            self.mix(colour, cover, ground, [column, row], pixel);
        }
    }

    /// The light that a sphere sends to the eye where its surface faces `normal`.
    fn lit(&self, sphere: usize, normal: [f32; 3]) -> [f32; 3] {
        let place = ahead(self.scene.centres[sphere], self.scene.radius, normal);
        let [sky, lamp] = self.light.at(place, normal);
        self.scene.colour(sphere).map(linear).map(|own| reflected(own, sky, lamp))
    }

    /// How light the ground or the background is, 1 in the open.
    fn ground(&self, column: u32, row: u32) -> f32 {
        if !self.has_ground {
            return 1.0;
        }
        let samples = self.samples as f32;
        let at = |axis: usize, pixel: u32| {
            self.lens.corner[axis] + self.lens.step * samples * (pixel as f32 + 0.5)
        };
        let ray = self.camera.ray(at(0, column), at(1, row));
        let Some(light) = self.light.ground(self.camera.eye, ray, self.lamp_height) else {
            return 1.0;
        };
        let border = |pixel: u32, size: u32| {
            let inside = (pixel as f32 + 0.5).min(size as f32 - pixel as f32 - 0.5);
            let share = (inside / (VIGNETTE * size as f32)).clamp(0.0, 1.0);
            share * share * (3.0 - 2.0 * share)
        };
        let fade = border(column, self.size[0]) * border(row, self.size[1]);
        let shade = 1.0 - light.min(1.0);
        // The widest, faintest shade goes, so that paper stays white around the shape.
        1.0 - fade * shade * shade / (shade + FAINT)
    }

    /// `colour` is weighed by `cover`, the share of the pixel that spheres take.
    fn mix(&self, colour: [f32; 3], cover: f32, ground: f32, place: [u32; 2], pixel: &mut [u8]) {
        let found = match self.background.colour() {
            Some(behind) => self.on_colour(behind, colour, cover, ground, place),
            None => on_nothing(colour, cover, ground, place),
        };
        pixel.copy_from_slice(&found);
    }

    fn on_colour(
        &self,
        behind: [u8; 3],
        colour: [f32; 3],
        cover: f32,
        ground: f32,
        place: [u32; 2],
    ) -> [u8; 4] {
        let behind = behind.map(|level| linear(level) * ground * (1.0 - cover));
        let light = add(colour, behind);
        let [r, g, b] = if cover == 0.0 && ground < 1.0 {
            // Wide gradients of eight bits show steps unless they are dithered.
            let noise = dither(place);
            light.map(|light| (255.0 * encoded(light) + noise).clamp(0.0, 255.0) as u8)
        } else {
            light.map(|light| self.level(light))
        };
        [r, g, b, 255]
    }

    fn level(&self, light: f32) -> u8 {
        let last = self.levels.len() - 1;
        self.levels[((light.clamp(0.0, 1.0) * last as f32) + 0.5) as usize]
    }
}

/// With the shade of the ground as black of the opacity that makes white as dark as the ground.
fn on_nothing(colour: [f32; 3], cover: f32, ground: f32, place: [u32; 2]) -> [u8; 4] {
    let opacity = cover + (1.0 - cover) * (1.0 - encoded(ground));
    if opacity <= 0.0 {
        return [0; 4];
    }
    let own = |light: f32| encoded((light / cover.max(1e-6)).min(1.0)) * cover / opacity;
    let [r, g, b] = colour.map(|light| (255.0 * own(light)).round() as u8);
    let noise = if cover > 0.0 { 0.5 } else { dither(place) };
    [r, g, b, (255.0 * opacity + noise).min(255.0) as u8]
}

/// ρ (S f(E_sky) + L E_lamp). f is Jimenez's fit of what a concave surface of one colour returns to
/// itself ("Practical realtime strategies for accurate indirect occlusion", 2016).
pub(super) fn reflected(own: f32, sky: f32, lamp: f32) -> f32 {
    let [a, b, c] = [2.0404 * own - 0.3324, -4.7951 * own + 0.6417, 2.7552 * own + 0.6903];
    let open = sky.clamp(0.0, 1.0);
    let sky = open.max(((open * a + b) * open + c) * open);
    own * (SKY * sky + LAMP * lamp)
}

/// Light of a level of sRGB.
pub(super) fn linear(level: u8) -> f32 {
    let share = f32::from(level) / 255.0;
    if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
}

/// The share of the scale of sRGB that light has.
pub(super) fn encoded(light: f32) -> f32 {
    if light <= 0.003_130_8 { 12.92 * light } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 }
}

/// Levels of evenly spaced light; at the dark end, the steepest, an entry is 0.2 of a level.
fn levels() -> Vec<u8> {
    const LAST: u16 = 16_383;
    let level = |index: u16| (255.0 * encoded(f32::from(index) / f32::from(LAST))).round() as u8;
    (0..=LAST).map(level).collect()
}

/// Evenly spread numbers from 0 to 1, unlike those of neighbours (interleaved gradient noise, Jimenez
/// 2014): added before rounding down.
fn dither([column, row]: [u32; 2]) -> f32 {
    let place = 0.067_110_56 * (column % 4096) as f32 + 0.005_837_15 * (row % 4096) as f32;
    (52.982_918 * place.fract()).fract()
}
