//! Closed solids to build shapes from. Nearly all of them are lofts: rings of corners, joined ring
//! to ring and closed at both ends.

use std::f64::consts::TAU;

use crate::data::mesh::Mesh;

pub(super) type Point = [f64; 3];

/// Corners of a round cross-section.
pub(super) const SIDES: usize = 20;

/// Joins rings of equally many corners; fans close the first and the last.
pub(super) fn loft(rings: &[Vec<Point>]) -> Mesh {
    let mut mesh = joined(rings, false);
    for (ring, is_last) in [(0, false), (rings.len().saturating_sub(1), true)] {
        let Some(corners) = rings.get(ring) else { return mesh };
        let count = corners.len();
        let centre = number(mesh.vertices.len());
        mesh.vertices.push(mean(corners));
        for side in 0..count {
            let [a, b] = [side, (side + 1) % count].map(|corner| number(ring * count + corner));
            mesh.faces.push(if is_last { [centre, a, b] } else { [centre, b, a] });
        }
    }
    mesh
}

/// Joins rings, and the last one to the first where the solid closes on itself.
fn joined(rings: &[Vec<Point>], is_closed: bool) -> Mesh {
    let count = rings.first().map_or(0, Vec::len);
    let mut mesh = Mesh { vertices: rings.concat(), faces: Vec::new() };
    let num_bands = if is_closed { rings.len() } else { rings.len().saturating_sub(1) };
    for band in 0..num_bands {
        let next = (band + 1) % rings.len();
        for side in 0..count {
            let other = (side + 1) % count;
            let [a, b] = [side, other].map(|corner| number(band * count + corner));
            let [c, d] = [side, other].map(|corner| number(next * count + corner));
            mesh.faces.extend([[a, b, c], [b, d, c]]);
        }
    }
    mesh
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn mean(points: &[Point]) -> Point {
    let mut sum = [0.0; 3];
    for point in points {
        sum = add(sum, *point);
    }
    scale(sum, 1.0 / points.len().max(1) as f64)
}

pub(super) fn add(a: Point, b: Point) -> Point {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(super) fn scale(a: Point, factor: f64) -> Point {
    a.map(|coordinate| coordinate * factor)
}

fn cross(a: Point, b: Point) -> Point {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn unit(a: Point) -> Point {
    let length = (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]).sqrt();
    if length > 0.0 { scale(a, 1.0 / length) } else { [0.0, 0.0, 1.0] }
}

/// A superellipse |u/a|ᵖ + |v/b|ᵖ = 1 in the plane: p = 2 is an ellipse, larger is squarer.
pub(super) fn outline(sides: usize, half: [f64; 2], power: f64) -> Vec<[f64; 2]> {
    let curve = |cosine: f64| cosine.signum() * cosine.abs().powf(2.0 / power);
    (0..sides)
        .map(|side| {
            let angle = TAU * (side as f64 + 0.5) / sides as f64;
            [half[0] * curve(angle.cos()), half[1] * curve(angle.sin())]
        })
        .collect()
}

/// A rectangle with corners cut round by `radius`.
pub(super) fn rounded_rectangle(half: [f64; 2], radius: f64) -> Vec<[f64; 2]> {
    const STEPS: usize = 4;
    let radius = radius.clamp(1e-4, half[0].min(half[1]));
    let centre = [half[0] - radius, half[1] - radius];
    let quarters = [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]];
    let mut corners = Vec::new();
    for (quarter, sign) in quarters.iter().enumerate() {
        for step in 0..=STEPS {
            let turn = 0.25 * (quarter as f64 + step as f64 / STEPS as f64);
            let (sine, cosine) = (TAU * turn).sin_cos();
            corners
                .push([sign[0] * centre[0] + radius * cosine, sign[1] * centre[1] + radius * sine]);
        }
    }
    corners
}

/// A plate: an outline at height `bottom` raised to `top`, its edges rounded by `bevel`.
pub(super) fn plate(outline: &[[f64; 2]], bottom: f64, top: f64, bevel: f64) -> Mesh {
    let bevel = bevel.min(0.45 * (top - bottom));
    // A quarter circle at each edge, from inside to the full outline.
    let edge: Vec<(f64, f64)> = (0..=3)
        .map(|step| {
            let (sine, cosine) = (0.25 * TAU * f64::from(step) / 3.0).sin_cos();
            (bevel * (1.0 - sine), bevel * (1.0 - cosine))
        })
        .collect();
    let ring = |inset: f64, z: f64| -> Vec<Point> {
        let shrink = |x: f64| x - x.signum() * inset.min(x.abs());
        outline.iter().map(|[x, y]| [shrink(*x), shrink(*y), z]).collect()
    };
    let lower = edge.iter().map(|&(inset, rise)| ring(inset, bottom + rise));
    let upper = edge.iter().rev().map(|&(inset, rise)| ring(inset, top - rise));
    loft(&lower.chain(upper).collect::<Vec<_>>())
}

/// A box around `centre`, its edges slightly broken.
pub(super) fn cuboid(centre: Point, size: Point) -> Mesh {
    let [hx, hy, hz] = size.map(|side| 0.5 * side);
    let corners = [[hx, hy], [-hx, hy], [-hx, -hy], [hx, -hy]];
    let ring = |z: f64| corners.iter().map(|[x, y]| add(centre, [*x, *y, z])).collect();
    loft(&[ring(-hz), ring(hz)])
}

/// A bar of rectangular cross-section from `a` to `b`, its size at both ends.
pub(super) fn bar(a: Point, b: Point, from: [f64; 2], to: [f64; 2]) -> Mesh {
    let ring = |centre: Point, size: [f64; 2]| -> Vec<Point> {
        let half = [0.5 * size[0], 0.5 * size[1]];
        [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]
            .iter()
            .map(|sign| add(centre, [sign[0] * half[0], sign[1] * half[1], 0.0]))
            .collect()
    };
    if (a[2] - b[2]).abs() > 1e-9 {
        return loft(&[ring(a, from), ring(b, to)]);
    }
    // Flat bars are boxes along their own direction: width across, height up.
    let along = unit(add(b, scale(a, -1.0)));
    let across = unit(cross([0.0, 0.0, 1.0], along));
    let ring = |centre: Point, [width, height]: [f64; 2]| -> Vec<Point> {
        [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]
            .iter()
            .map(|sign| {
                let side = scale(across, 0.5 * width * sign[0]);
                add(add(centre, side), [0.0, 0.0, 0.5 * height * sign[1]])
            })
            .collect()
    };
    loft(&[ring(a, from), ring(b, to)])
}

/// A round tube along a path, with a radius at every point of it.
pub(super) fn tube(path: &[Point], radii: &[f64], sides: usize) -> Mesh {
    let mut rings = Vec::with_capacity(path.len());
    let mut side = [0.0; 3];
    for (index, centre) in path.iter().enumerate() {
        let before = path[index.saturating_sub(1)];
        let after = path[(index + 1).min(path.len() - 1)];
        let along = unit(add(after, scale(before, -1.0)));
        if index == 0 {
            let up = if along[2].abs() > 0.9 { [1.0, 0.0, 0.0] } else { [0.0, 0.0, 1.0] };
            side = unit(cross(up, along));
        } else {
            // The frame is carried along, so that the tube does not twist.
            let share = side[0] * along[0] + side[1] * along[1] + side[2] * along[2];
            side = unit(add(side, scale(along, -share)));
        }
        let other = cross(along, side);
        let radius = radii[index.min(radii.len() - 1)];
        let corner = |corner: usize| {
            let (sine, cosine) = (TAU * corner as f64 / sides as f64).sin_cos();
            add(*centre, add(scale(side, radius * cosine), scale(other, radius * sine)))
        };
        rings.push((0..sides).map(corner).collect());
    }
    loft(&rings)
}

/// A round rod between two points.
pub(super) fn rod(a: Point, b: Point, from: f64, to: f64) -> Mesh {
    tube(&[a, b], &[from, to], 12)
}

/// A solid of revolution around the z axis, from its profile of radius and height.
pub(super) fn lathe(profile: &[[f64; 2]]) -> Mesh {
    loft(&profile.iter().map(|&[radius, z]| circle(radius, z)).collect::<Vec<_>>())
}

/// A shell of revolution: the profile's wall with a thickness, open at both ends.
pub(super) fn shell(profile: &[[f64; 2]], thickness: f64) -> Mesh {
    let outer = profile.iter().map(|&[radius, z]| circle(radius, z));
    let inner = profile.iter().rev().map(|&[radius, z]| circle((radius - thickness).max(1e-3), z));
    joined(&outer.chain(inner).collect::<Vec<_>>(), true)
}

fn circle(radius: f64, z: f64) -> Vec<Point> {
    const AROUND: usize = 28;
    (0..AROUND)
        .map(|side| {
            let (sine, cosine) = (TAU * side as f64 / AROUND as f64).sin_cos();
            [radius * cosine, radius * sine, z]
        })
        .collect()
}

/// An ellipsoid.
pub(super) fn ellipsoid(centre: Point, radii: Point) -> Mesh {
    const RINGS: usize = 12;
    let rings: Vec<Vec<Point>> = (0..=RINGS)
        .map(|ring| {
            let (sine, cosine) = (0.5 * TAU * ring as f64 / RINGS as f64).sin_cos();
            circle(sine.max(1e-4), -cosine)
                .iter()
                .map(|p| add(centre, [p[0] * radii[0], p[1] * radii[1], p[2] * radii[2]]))
                .collect()
        })
        .collect();
    loft(&rings)
}

/// A ring around the y axis, as a tyre or a steering wheel: `half` is the half width along y.
pub(super) fn tyre(centre: Point, radius: f64, inner: f64, half: f64) -> Mesh {
    let bulge = 0.18 * (radius - inner);
    let profile = [
        [inner, -half],
        [radius - bulge, -half],
        [radius, -0.7 * half],
        [radius, 0.7 * half],
        [radius - bulge, half],
        [inner, half],
    ];
    let rings: Vec<Vec<Point>> = profile
        .iter()
        .map(|&[r, y]| circle(r, y).iter().map(|p| add(centre, [p[0], p[2], p[1]])).collect())
        .collect();
    joined(&rings, true)
}

/// A disc around the y axis.
pub(super) fn disc(centre: Point, radius: f64, half: f64) -> Mesh {
    let rings: Vec<Vec<Point>> = [-half, half]
        .iter()
        .map(|&y| circle(radius, y).iter().map(|p| add(centre, [p[0], p[2], p[1]])).collect())
        .collect();
    loft(&rings)
}

/// Every corner moved by `change`.
#[must_use]
pub(super) fn changed(mut mesh: Mesh, change: impl Fn(Point) -> Point) -> Mesh {
    for vertex in &mut mesh.vertices {
        *vertex = change(*vertex);
    }
    mesh
}

/// The mirror image in the plane y = 0.
pub(super) fn mirrored(mesh: &Mesh) -> Mesh {
    let mut mirrored = changed(mesh.clone(), |[x, y, z]| [x, -y, z]);
    for face in &mut mirrored.faces {
        face.swap(1, 2);
    }
    mirrored
}

/// Turned around the z axis through the origin.
pub(super) fn turned(mesh: Mesh, angle: f64) -> Mesh {
    let (sine, cosine) = angle.sin_cos();
    changed(mesh, |[x, y, z]| [cosine * x - sine * y, sine * x + cosine * y, z])
}

/// Turned around the y axis through `pivot`: positive angles lift what lies at +x.
pub(super) fn tilted(mesh: Mesh, pivot: Point, angle: f64) -> Mesh {
    let (sine, cosine) = angle.sin_cos();
    changed(mesh, |[x, y, z]| {
        let (dx, dz) = (x - pivot[0], z - pivot[2]);
        [pivot[0] + cosine * dx - sine * dz, y, pivot[2] + sine * dx + cosine * dz]
    })
}
