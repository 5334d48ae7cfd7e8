//! How much light of the sky, of the ground and of a lamp reaches a place of a sphere:
//! E(p, n) = Σ_ω w (n·ω)⁺ V(p, ω) L(ω), V from depth maps that see the scene along every ω.
//!
//! A map holds for each cell of a square across ω how near its nearest and how far its farthest sphere
//! is; so one map answers for ω and for −ω. Below the horizon L is the light that the ground returns,
//! as dark as the ground is there.

use rayon::prelude::*;

use super::ground::Ground;
use super::scene::Scene;
use super::space::{Vector, ahead, beside, dot, spread, towards};

/// The lamp: a disc far away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lamp {
    /// Degrees around the vertical from the camera; positive is to its right.
    pub azimuth: f32,
    /// Degrees above the ground.
    pub elevation: f32,
    /// Half the angle that it is seen at, in degrees: the softness of shadows.
    pub softness: f32,
}

impl Default for Lamp {
    /// High from the left, a little in front, and wide: the shadow falls to the right and back and is soft.
    fn default() -> Self {
        Self { azimuth: -45.0, elevation: 66.0, softness: 18.0 }
    }
}

impl Lamp {
    /// The direction towards its middle, for a camera at this azimuth.
    pub(super) fn direction(&self, camera_azimuth: f32) -> Vector {
        towards(camera_azimuth + self.azimuth, self.elevation.clamp(5.0, 90.0))
    }

    /// Directions over the disc, each with the same light.
    pub(super) fn directions(&self, camera_azimuth: f32, count: usize) -> Vec<Vector> {
        let cap = 1.0 - self.softness.clamp(0.0, 45.0).to_radians().cos();
        spread(self.direction(camera_azimuth), count, |share| 1.0 - cap * share).collect()
    }
}

/// How the light of a white surface that looks up, in the open, is made up.
pub(super) const SKY: f32 = 0.48;
pub(super) const LAMP: f32 = 0.62;
/// What the ground returns of its light.
const RETURNED: f32 = 0.62;

/// Cells beyond a sphere's edge over which shade fades in, and how far behind itself a place is still
/// lit, in cells: a map is not finer than its cells.
const BLUR: f32 = 1.5;
const BIAS: f32 = 0.75;
/// Cells by which a place is moved out of its own sphere.
const LIFT: f32 = 1.0;

/// The light around a scene.
pub(super) struct Light {
    sky: Vec<DepthMap>,
    lamp: Vec<DepthMap>,
    ground: Option<Ground>,
    floor: f32,
    /// Of a cell of the maps.
    cell: f32,
}

/// How fine it is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fineness {
    /// Directions of the sky, each with its opposite, and of the lamp.
    pub(super) sky: usize,
    pub(super) lamp: usize,
    /// Cells of a side of the maps and of the ground.
    pub(super) map_side: usize,
    pub(super) ground_side: usize,
    /// Directions for the ground, of the sky and of the lamp.
    pub(super) ground: usize,
}

impl Light {
    pub(super) fn new(scene: &Scene, lamp: &Lamp, azimuth: f32, fineness: &Fineness) -> Self {
        let ground = (!scene.is_flat).then(|| {
            let lamp = lamp.directions(azimuth, fineness.ground);
            Ground::new(scene, fineness.ground_side, fineness.ground, &lamp)
        });
        // Uniform on the half sphere; opposites fill the other one.
        let sky: Vec<Vector> = spread([0.0, 0.0, 1.0], fineness.sky, |share| 1.0 - share).collect();
        let maps = |directions: Vec<Vector>| -> Vec<DepthMap> {
            directions
                .into_par_iter()
                .map(|direction| DepthMap::new(scene, direction, fineness.map_side))
                .collect()
        };
        Self {
            sky: maps(sky),
            lamp: maps(lamp.directions(azimuth, fineness.lamp)),
            ground,
            floor: scene.floor,
            cell: 2.0 * scene.reach / fineness.map_side as f32,
        }
    }

    /// The light of the sky and the ground, and of the lamp, at a place with a normal: 1 is that of
    /// the open sky from above, and of the lamp straight ahead.
    pub(super) fn at(&self, place: Vector, normal: Vector) -> [f32; 2] {
        let lifted = ahead(place, LIFT * self.cell, normal);
        let mut sky = 0.0;
        for map in &self.sky {
            let cosine = dot(normal, map.direction);
            sky += if cosine > 0.0 {
                cosine * map.open(lifted, true)
            } else {
                let open = map.open(lifted, false);
                if open > 0.0 { -cosine * open * self.returned(place, map.direction) } else { 0.0 }
            };
        }
        let mut lamp = 0.0;
        for map in &self.lamp {
            let cosine = dot(normal, map.direction);
            if cosine > 0.0 {
                lamp += cosine * map.open(lifted, true);
            }
        }
        // Σ cos over the half sphere is half the number of directions.
        [2.0 * sky / self.sky.len() as f32, lamp / self.lamp.len().max(1) as f32]
    }

    /// The light that comes from the ground against a direction, as a share of the sky's.
    fn returned(&self, place: Vector, direction: Vector) -> f32 {
        let Some(ground) = &self.ground else { return RETURNED };
        let fall = (place[2] - self.floor) / direction[2].max(0.05);
        let [x, y, _] = ahead(place, -fall, direction);
        let [sky, lamp] = ground.near(x, y);
        RETURNED * (SKY * sky + LAMP * lamp) / (SKY + LAMP)
    }

    /// How light the ground is where a ray meets it, 1 in the open; `None` if it does not.
    pub(super) fn ground(&self, eye: Vector, ray: Vector, lamp: f32) -> Option<f32> {
        let ground = self.ground.as_ref()?;
        if ray[2] >= -1e-6 || eye[2] <= self.floor {
            return None;
        }
        let [x, y, _] = ahead(eye, (self.floor - eye[2]) / ray[2], ray);
        let [sky, shade] = ground.at(x, y);
        let full = SKY + LAMP * lamp;
        Some((SKY * sky + LAMP * lamp * shade) / full)
    }
}

/// What a scene looks like along one direction.
struct DepthMap {
    direction: Vector,
    across: Vector,
    along: Vector,
    side: usize,
    reach: f32,
    /// Of each cell, the nearest and the farthest depth in steps of 2 reach / 65535, counted towards
    /// the direction; 0 and 65535 where there is nothing.
    cells: Vec<[u16; 2]>,
}

const STEPS: f32 = 65535.0;

impl DepthMap {
    fn new(scene: &Scene, direction: Vector, side: usize) -> Self {
        let [across, along] = beside(direction);
        let mut cells = vec![[0_u16, u16::MAX]; side * side];
        let (reach, radius) = (scene.reach, scene.radius);
        let cell = 2.0 * reach / side as f32;
        let step = STEPS / (2.0 * reach);
        let squared = radius * radius;
        for &centre in &scene.centres {
            let [x, y] = [dot(centre, across) + reach, dot(centre, along) + reach];
            let high = dot(centre, direction) + reach;
            let range = |place: f32| {
                let first = ((place - radius) / cell - 0.5).ceil().max(0.0) as usize;
                first..(((place + radius) / cell - 0.5).floor() as usize + 1).min(side)
            };
            let columns = range(x);
            for row in range(y) {
                let down = (row as f32 + 0.5) * cell - y;
                let line = &mut cells[row * side..(row + 1) * side];
                for column in columns.clone() {
                    let right = (column as f32 + 0.5) * cell - x;
                    let rest = squared - down * down - right * right;
                    if rest > 0.0 {
                        let half = rest.sqrt();
                        let [near, far] = &mut line[column];
                        *near = (*near).max(((high + half) * step) as u16);
                        *far = (*far).min(((high - half) * step) as u16);
                    }
                }
            }
        }
        Self { direction, across, along, side, reach, cells }
    }

    /// The share of the light along the direction (`is_towards`) or against it that reaches a place:
    /// the mean of the four cells around it.
    fn open(&self, place: Vector, is_towards: bool) -> f32 {
        let cells_per_unit = self.side as f32 / (2.0 * self.reach);
        let x = (dot(place, self.across) + self.reach) * cells_per_unit - 0.5;
        let y = (dot(place, self.along) + self.reach) * cells_per_unit - 0.5;
        let end = self.side as f32 - 1.0;
        if !(x >= 0.0 && y >= 0.0 && x < end && y < end) {
            return 1.0;
        }
        let step = STEPS / (2.0 * self.reach);
        let high = (dot(place, self.direction) + self.reach) * step;
        let cell = step / cells_per_unit;
        let per_blur = 1.0 / (BLUR * cell);
        let bias = BIAS * cell;
        let (column, row) = (x as usize, y as usize);
        let (right, down) = (x - column as f32, y - row as f32);
        let start = row * self.side + column;
        let pair = |start: usize| {
            let cells = &self.cells[start..start + 2];
            let shade = |cell: [u16; 2]| {
                let beyond =
                    if is_towards { f32::from(cell[0]) - high } else { high - f32::from(cell[1]) };
                ((beyond - bias) * per_blur).clamp(0.0, 1.0)
            };
            shade(cells[0]) * (1.0 - right) + shade(cells[1]) * right
        };
        1.0 - pair(start) * (1.0 - down) - pair(start + self.side) * down
    }
}
