//! Whether a point lies within a closed mesh: a ray from it crosses the surface an odd number of
//! times.

use super::Mesh;

/// Triangles of a closed mesh, projected along the ray's direction, in a grid.
///
/// The ray runs along z. Only triangles whose shadow in the x-y plane may hold the point are
/// tested; they are found by the cell of a small grid.
#[derive(Clone, Debug)]
pub struct Inside {
    low: [f64; 3],
    high: [f64; 3],
    cells: Vec<Vec<[[f64; 3]; 3]>>,
}

/// Cells of the grid along x and y.
const GRID: usize = 12;

impl Inside {
    /// Of a mesh whose triangles enclose a volume.
    pub fn new(mesh: &Mesh) -> Self {
        let mut low = [f64::INFINITY; 3];
        let mut high = [f64::NEG_INFINITY; 3];
        for vertex in &mesh.vertices {
            for axis in 0..3 {
                low[axis] = low[axis].min(vertex[axis]);
                high[axis] = high[axis].max(vertex[axis]);
            }
        }
        let mut grid = Self { low, high, cells: vec![Vec::new(); GRID * GRID] };
        for face in 0..mesh.faces.len() {
            let corners = mesh.corners(face);
            let range = |axis: usize| {
                let values = corners.map(|corner| corner[axis]);
                let from = values.iter().copied().fold(f64::INFINITY, f64::min);
                let to = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                grid.cell(axis, from)..=grid.cell(axis, to)
            };
            let (columns, rows) = (range(0), range(1));
            for row in rows {
                for column in columns.clone() {
                    grid.cells[row * GRID + column].push(corners);
                }
            }
        }
        grid
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn cell(&self, axis: usize, value: f64) -> usize {
        let size = (self.high[axis] - self.low[axis]).max(f64::MIN_POSITIVE);
        let place = (value - self.low[axis]) / size * GRID as f64;
        (place.clamp(0.0, (GRID - 1) as f64)) as usize
    }

    /// Whether the point is inside. On the surface itself the answer may be either.
    pub fn holds(&self, point: [f64; 3]) -> bool {
        if (0..3).any(|axis| point[axis] <= self.low[axis] || point[axis] >= self.high[axis]) {
            return false;
        }
        let cell = self.cell(1, point[1]) * GRID + self.cell(0, point[0]);
        let crossings = self.cells[cell].iter().filter(|corners| is_above(corners, point)).count();
        crossings % 2 == 1
    }
}

/// Whether the vertical ray upwards from `point` meets the triangle.
fn is_above(corners: &[[f64; 3]; 3], point: [f64; 3]) -> bool {
    let [x, y, z] = point;
    let [a, b, c] = *corners;
    // Whether the shadow holds the point: a line along +x crosses its edges once or not at all. An
    // edge is half open in y and always computed from its lower end, so that of two triangles that
    // share it exactly one holds a point on it.
    let mut is_within = false;
    for (p, q) in [(a, b), (b, c), (c, a)] {
        if (p[1] > y) != (q[1] > y) {
            let (low, high) = if p[1] < q[1] { (p, q) } else { (q, p) };
            let crossing = low[0] + (y - low[1]) / (high[1] - low[1]) * (high[0] - low[0]);
            is_within ^= crossing > x;
        }
    }
    // Twice the signed areas of the shadows of the point with two corners each.
    let side = |p: [f64; 3], q: [f64; 3]| (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0]);
    let (ab, bc, ca) = (side(a, b), side(b, c), side(c, a));
    let total = ab + bc + ca;
    if !is_within || total == 0.0 {
        return false;
    }
    // z of the triangle at the point, by its weights bc, ca, ab.
    (bc * a[2] + ca * b[2] + ab * c[2]) / total > z
}
