//! Points on a surface, uniform by area.
//!
//! A triangle is drawn with probability proportional to its area, a point in it by
//!
//! ```text
//! x = (1 − √u) A + √u (1 − v) B + √u v C,   u, v uniform on [0, 1)
//! ```

use crate::rng::Stream;
use crate::{Error, Result};

use super::Mesh;

/// Draws points of a mesh.
#[derive(Clone, Debug)]
pub struct SurfaceSampler<'a> {
    mesh: &'a Mesh,
    /// Areas of the triangles up to each, summed.
    cumulative: Vec<f64>,
}

impl<'a> SurfaceSampler<'a> {
    /// Of a mesh with a surface.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a corner is not finite, a face has no such corner, or the area is
    /// zero.
    pub fn new(mesh: &'a Mesh) -> Result<Self> {
        if let Some(vertex) = mesh.vertices.iter().flatten().find(|number| !number.is_finite()) {
            return Err(Error::invalid("vertices", "finite", vertex));
        }
        let num_vertices = mesh.vertices.len();
        let missing = mesh.faces.iter().flatten().find(|&&corner| corner as usize >= num_vertices);
        if let Some(corner) = missing {
            return Err(Error::invalid("faces", format!("corners below {num_vertices}"), corner));
        }
        let mut total = 0.0;
        let mut cumulative = Vec::with_capacity(mesh.faces.len());
        for face in 0..mesh.faces.len() {
            total += area(mesh.corners(face));
            cumulative.push(total);
        }
        if !(total > 0.0 && total.is_finite()) {
            let found = format!("an area of {total} in {} triangles", mesh.faces.len());
            return Err(Error::invalid("mesh", "a surface with an area", found));
        }
        Ok(Self { mesh, cumulative })
    }

    /// The area of all triangles.
    pub fn area(&self) -> f64 {
        self.cumulative[self.cumulative.len() - 1]
    }

    /// Point `index` of a stream, and the triangle it lies on.
    pub fn point(&self, stream: Stream, index: u64) -> ([f64; 3], usize) {
        let mut uniforms = [0.0; 4];
        stream.fill_uniform(0, 4 * index, &mut uniforms);
        let [coarse, fine, u, v] = uniforms.map(f64::from);
        // Two draws of 24 bits choose the triangle, so that small ones are not missed.
        let target = (coarse + fine * 2_f64.powi(-24)) * self.area();
        let face = self.cumulative.partition_point(|&sum| sum <= target);
        let face = face.min(self.cumulative.len() - 1);
        let [a, b, c] = self.mesh.corners(face);
        let root = u.sqrt();
        let weights = [1.0 - root, root * (1.0 - v), root * v];
        let blend =
            |axis: usize| weights[0] * a[axis] + weights[1] * b[axis] + weights[2] * c[axis];
        ([blend(0), blend(1), blend(2)], face)
    }

    /// The first `count` points of a stream, `[count, 3]`.
    pub fn points(&self, stream: Stream, count: usize) -> Vec<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "clouds are f32")]
        let rounded = |index: u64| self.point(stream, index).0.map(|x| x as f32);
        (0..count as u64).flat_map(rounded).collect()
    }
}

/// ½ |(B − A) × (C − A)|
fn area([a, b, c]: [[f64; 3]; 3]) -> f64 {
    let [u, v] = [b, c].map(|p| [p[0] - a[0], p[1] - a[1], p[2] - a[2]]);
    let n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    0.5 * (n[0] * n[0] + n[1] * n[1] + n[2] * n[2]).sqrt()
}
