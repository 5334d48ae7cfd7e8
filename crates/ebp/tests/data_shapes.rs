//! Built-in shapes and points on surfaces: that they are closed, varied, repeatable and uniform.

use std::collections::{HashMap, HashSet};

use ebp::data::Mesh;
use ebp::data::mesh::{Inside, SurfaceSampler};
use ebp::data::shapes::{ShapeClass, shape_cloud, shape_clouds, shape_mesh};
use ebp::rng::Stream;

/// A box from 0 to (a, b, c), its sides outward.
fn cuboid([a, b, c]: [f64; 3]) -> Mesh {
    let vertices = (0..8_u8)
        .map(|corner| {
            [a * f64::from(corner & 1), b * f64::from(corner >> 1 & 1), c * f64::from(corner >> 2)]
        })
        .collect();
    let quads =
        [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
    let faces = quads.iter().flat_map(|&[p, q, r, s]| [[p, q, r], [p, r, s]]).collect();
    Mesh { vertices, faces }
}

#[test]
fn points_are_uniform_by_area() {
    let mesh = cuboid([1.0, 2.0, 3.0]);
    let sampler = SurfaceSampler::new(&mesh).unwrap();
    // 2 (1·2 + 2·3 + 1·3) = 22
    assert!((sampler.area() - 22.0).abs() < 1e-12);
    let num_points = 20_000;
    let points = sampler.points(Stream::new(1, "a"), num_points);
    // Shares of the three pairs of sides: 6/22 on x = 0 or 1, 3/22 … each within four standard
    // errors √(p (1 − p)/n).
    for (axis, far, share) in [(0, 1.0, 12.0 / 22.0), (1, 2.0, 6.0 / 22.0), (2, 3.0, 4.0 / 22.0)] {
        let on_side = points
            .chunks_exact(3)
            .filter(|p| p[axis].abs() < 1e-6 || (p[axis] - far).abs() < 1e-6)
            .count();
        let error = (share * (1.0 - share) / num_points as f64).sqrt();
        let found = on_side as f64 / num_points as f64;
        assert!((found - share).abs() < 4.0 * error, "axis {axis}: {found} for {share}");
    }
    // Within the side x = 0 the mean of y is 1, its standard deviation 2/√12.
    let heights: Vec<f64> =
        points.chunks_exact(3).filter(|p| p[0].abs() < 1e-6).map(|p| f64::from(p[1])).collect();
    let mean = heights.iter().sum::<f64>() / heights.len() as f64;
    assert!((mean - 1.0).abs() < 4.0 * (4.0 / 12.0 / heights.len() as f64).sqrt(), "{mean}");
    assert!(SurfaceSampler::new(&Mesh::default()).is_err());
    let flat = Mesh { vertices: vec![[0.0; 3]; 3], faces: vec![[0, 1, 2]] };
    assert!(SurfaceSampler::new(&flat).unwrap_err().to_string().contains("an area of 0"));
}

#[test]
fn inside_is_told_from_outside() {
    let solid = Inside::new(&cuboid([1.0, 2.0, 3.0]));
    assert!(solid.holds([0.5, 1.0, 1.5]) && solid.holds([0.01, 1.99, 0.02]));
    assert!(!solid.holds([1.5, 1.0, 1.5]) && !solid.holds([0.5, 1.0, -0.1]));
    // Its volume by counting: an eighth of a box twice as long each way, within four standard errors.
    let mut draws = vec![0.0; 3 * 4000];
    Stream::new(2, "cube").fill_uniform(0, 0, &mut draws);
    let inside = draws
        .chunks_exact(3)
        .filter(|p| {
            solid.holds([2.0 * f64::from(p[0]), 4.0 * f64::from(p[1]), 6.0 * f64::from(p[2])])
        })
        .count();
    let share = inside as f64 / 4000.0;
    assert!((share - 0.125).abs() < 4.0 * (0.125 * 0.875 / 4000.0_f64).sqrt(), "{share}");
}

/// Every edge of a closed surface belongs to as many triangles one way as the other.
#[test]
fn every_part_of_every_shape_is_closed() {
    for class in ShapeClass::ALL {
        for number in 0..15 {
            let mesh = shape_mesh(class, 1, number);
            let mut edges: HashMap<(u32, u32), i32> = HashMap::new();
            for &[a, b, c] in &mesh.faces {
                for (from, to) in [(a, b), (b, c), (c, a)] {
                    *edges.entry((from.min(to), from.max(to))).or_default() +=
                        if from < to { 1 } else { -1 };
                }
            }
            let open = edges.values().filter(|&&count| count != 0).count();
            assert_eq!(open, 0, "{} {number}", class.name());
            assert!(mesh.vertices.iter().flatten().all(|x| x.is_finite() && x.abs() < 4.0));
        }
    }
}

#[test]
fn shapes_are_repeatable_and_varied() {
    for class in ShapeClass::ALL {
        let clouds = shape_clouds(class, 3, 10, 12, 256).unwrap();
        assert_eq!(clouds.names()[2], format!("{}/12", class.name()));
        // The same shape alone, or in another pool of threads.
        let alone = shape_cloud(class, 3, 12, 256).unwrap();
        assert_eq!(clouds.cloud(2), alone.points);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let again = pool.install(|| shape_clouds(class, 3, 10, 12, 256)).unwrap();
        assert_eq!(again.points(), clouds.points());
        let distinct: HashSet<Vec<u32>> =
            (0..12).map(|i| clouds.cloud(i).iter().map(|x| x.to_bits()).collect()).collect();
        assert_eq!(distinct.len(), 12);
        // Proportions differ: the ratio of height to length has a spread of at least a twentieth.
        let ratios: Vec<f32> = (0..12)
            .map(|i| {
                let extent = |axis: usize| {
                    let values = || clouds.cloud(i).iter().skip(axis).step_by(3);
                    values().copied().fold(f32::MIN, f32::max)
                        - values().copied().fold(f32::MAX, f32::min)
                };
                extent(2) / extent(0).max(extent(1))
            })
            .collect();
        let mean = ratios.iter().sum::<f32>() / 12.0;
        let spread = (ratios.iter().map(|r| (r - mean).powi(2)).sum::<f32>() / 12.0).sqrt();
        assert!(spread > 0.05 * mean, "{}: {ratios:?}", class.name());
    }
    assert!(shape_cloud(ShapeClass::Car, 0, 0, 0).is_err());
    assert!(ShapeClass::named("boat").is_err());
}

/// No point of an airplane's wing lies within its fuselage: the middle of the body is empty.
#[test]
fn nothing_lies_inside() {
    for number in 0..10 {
        let plane = shape_cloud(ShapeClass::Airplane, 0, number, 2000).unwrap();
        let near_axis = plane
            .points
            .chunks_exact(3)
            .filter(|p| p[0].abs() < 0.5 && p[1].hypot(p[2]) < 0.03)
            .count();
        assert_eq!(near_axis, 0, "airplane {number}");
    }
}
