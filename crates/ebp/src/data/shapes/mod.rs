//! Built-in shapes: airplanes, chairs, cars, tables and lamps, drawn by a few dozen parameters each.
//!
//! A shape is a list of closed parts (fuselage, wing, leg, …). The kind of shape is drawn first
//! (airliner or fighter, office chair or armchair), then its measures, then what it has besides:
//! engines, stretchers, spoilers. Shape `number` of a class under a seed is always the same,
//! whatever others are drawn. Points are uniform on the outside: what lies within another part is
//! left out, so a wing has no points inside the fuselage.
//!
//! They are unlimited and nobody's property, which makes them the default for point clouds. They are
//! simpler than scanned or modelled objects: what a model reaches here says nothing about ShapeNet.

mod airplane;
mod car;
mod chair;
mod draw;
mod lamp;
mod shards;
mod solid;
mod table;

use rayon::prelude::*;

use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

use super::cloud::{Cloud, Clouds};
use super::mesh::{Inside, Mesh, SurfaceSampler};

pub use shards::ShapeCollection;

use draw::Draw;

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShapeClass {
    /// Airliners, private jets, fighters, propeller planes, biplanes, gliders.
    Airplane,
    /// With legs, on a star, as armchairs, cantilevers, rockers.
    Chair,
    /// Saloons, hatchbacks, estates, coupés, off-roaders, vans, pickups, open cars.
    Car,
    /// Dining and coffee tables, desks, round and oval tables.
    Table,
    /// Table, floor and desk lamps, pendants, chandeliers.
    Lamp,
}

impl ShapeClass {
    /// All classes.
    pub const ALL: [Self; 5] = [Self::Airplane, Self::Chair, Self::Car, Self::Table, Self::Lamp];

    /// Its name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Airplane => "airplane",
            Self::Chair => "chair",
            Self::Car => "car",
            Self::Table => "table",
            Self::Lamp => "lamp",
        }
    }

    /// By its name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no such class.
    pub fn named(name: &str) -> Result<Self> {
        let expected = "one of airplane, chair, car, table, lamp";
        let found = Self::ALL.into_iter().find(|class| class.name() == name);
        found.ok_or_else(|| Error::invalid("class", expected, name))
    }
}

/// Closed parts of a shape.
#[derive(Clone, Debug, Default)]
struct Parts {
    solids: Vec<Mesh>,
    /// Hollows, such as the wells of wheels, and how many of the solids they are cut out of.
    hollows: Vec<Mesh>,
    num_hollowed: usize,
}

impl Parts {
    fn push(&mut self, part: Mesh) {
        self.solids.push(part);
    }

    /// The part and its mirror image in the plane y = 0.
    fn push_pair(&mut self, part: Mesh) {
        self.solids.push(solid::mirrored(&part));
        self.solids.push(part);
    }

    fn append(&mut self, other: Self) {
        self.solids.extend(other.solids);
    }

    /// Cuts a hollow out of everything that is there so far.
    fn hollow_out(&mut self, hollow: Mesh) {
        self.num_hollowed = self.solids.len();
        self.hollows.push(hollow);
    }

    fn moved(mut self, by: [f64; 3]) -> Self {
        let move_one = |part: Mesh| solid::changed(part, |p| solid::add(p, by));
        self.solids = self.solids.into_iter().map(move_one).collect();
        self
    }
}

/// Shape `number` of a class, as one mesh of all its parts. Its length is between one and two, z is
/// up, and airplanes, cars and chairs look along +x.
pub fn shape_mesh(class: ShapeClass, seed: u64, number: u64) -> Mesh {
    let mut whole = Mesh::default();
    for part in shape_parts(class, seed, number).solids {
        whole.append(&part);
    }
    whole
}

fn shape_parts(class: ShapeClass, seed: u64, number: u64) -> Parts {
    let mut draw = Draw::new(Stream::new(seed, class.name()).child(number));
    match class {
        ShapeClass::Airplane => airplane::airplane(&mut draw),
        ShapeClass::Chair => chair::chair(&mut draw),
        ShapeClass::Car => car::car(&mut draw),
        ShapeClass::Table => table::table(&mut draw),
        ShapeClass::Lamp => lamp::lamp(&mut draw),
    }
}

/// Shape `number` as points, uniform on its outside.
///
/// ```
/// use ebp::data::shapes::{ShapeClass, shape_cloud};
///
/// let chair = shape_cloud(ShapeClass::Chair, 0, 7, 2048)?;
/// assert_eq!((chair.dim, chair.len()), (3, 2048));
/// assert_eq!(chair, shape_cloud(ShapeClass::Chair, 0, 7, 2048)?);
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidValue`] if no points are asked for.
pub fn shape_cloud(class: ShapeClass, seed: u64, number: u64, num_points: usize) -> Result<Cloud> {
    /// Draws for one point at most; a quarter of the surface lies inside at worst.
    const MOST_DRAWS: usize = 50;
    let shape = shape_parts(class, seed, number);
    let parts = &shape.solids;
    let mut whole = Mesh::default();
    let mut owners = Vec::new();
    for (part, mesh) in parts.iter().enumerate() {
        owners.extend(std::iter::repeat_n(part, mesh.faces.len()));
        whole.append(mesh);
    }
    let sampler = SurfaceSampler::new(&whole)?;
    let solids: Vec<Inside> = parts.iter().map(Inside::new).collect();
    let hollows: Vec<Inside> = shape.hollows.iter().map(Inside::new).collect();
    let stream = Stream::new(seed, "surface").child(number);
    let mut points = Vec::with_capacity(3 * num_points);
    for draw in 0..(num_points * MOST_DRAWS) as u64 {
        if points.len() == 3 * num_points {
            break;
        }
        let (point, face) = sampler.point(stream, draw);
        let is_hollow = hollows.iter().any(|hollow| hollow.holds(point));
        let is_cut = |part: usize| is_hollow && part < shape.num_hollowed;
        let is_inside = |(part, solid): (usize, &Inside)| {
            part != owners[face] && !is_cut(part) && solid.holds(point)
        };
        if !is_cut(owners[face]) && !solids.iter().enumerate().any(is_inside) {
            #[expect(clippy::cast_possible_truncation, reason = "clouds are f32")]
            points.extend(point.map(|coordinate| coordinate as f32));
        }
    }
    if points.len() < 3 * num_points || num_points == 0 {
        let expected = "at least 1, on a shape with an outside";
        return Err(Error::invalid("num_points", expected, num_points));
    }
    Ok(Cloud { dim: 3, points })
}

/// The shapes `first`, `first + 1`, … of a class as clouds, drawn in parallel.
///
/// # Errors
///
/// [`Error::InvalidValue`] if no shapes or no points are asked for.
pub fn shape_clouds(
    class: ShapeClass,
    seed: u64,
    first: u64,
    count: usize,
    num_points: usize,
) -> Result<Clouds> {
    let clouds: Vec<Result<Cloud>> = (0..count as u64)
        .into_par_iter()
        .map(|offset| shape_cloud(class, seed, first + offset, num_points))
        .collect();
    let mut points = Vec::with_capacity(3 * count * num_points);
    for cloud in clouds {
        points.extend(cloud?.points);
    }
    let names = (0..count as u64).map(|offset| format!("{}/{}", class.name(), first + offset));
    Clouds::new(3, points, SetOffsets::uniform(count, num_points)?, names.collect())
}
