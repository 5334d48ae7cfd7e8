//! OFF: `OFF`, counts of vertices, faces and edges, then a line for each.
//!
//! In a third of ModelNet's files the counts are glued to the first word: `OFF490 518 0`.

use std::io::Write;

use crate::Result;
use crate::data::file::{Line, Lines};
use crate::data::mesh::{Mesh, fan};

/// Reads a mesh.
pub(crate) fn parse(bytes: &[u8], file: &str) -> Result<Mesh> {
    let mut lines = Lines::new(file, bytes, Some("#"));
    let first = lines.expect("`OFF`")?;
    let Some(glued) = first.text.strip_prefix("OFF").or_else(|| first.text.strip_prefix("off"))
    else {
        return Err(first.error("`OFF`", first.text));
    };
    let counts = if glued.trim().is_empty() {
        lines.expect("the number of vertices and faces")?
    } else {
        first.part(glued.trim())
    };
    let mut words = counts.words();
    let num_vertices = counts.count(words.next(), "the number of vertices")?;
    let num_faces = counts.count(words.next(), "the number of faces")?;
    let mut mesh = Mesh::default();
    for number in 0..num_vertices {
        let line = lines.expect(&format!("vertex {number} of {num_vertices}"))?;
        mesh.vertices.push(vertex(&line)?);
    }
    let mut corners = Vec::new();
    for number in 0..num_faces {
        let line = lines.expect(&format!("face {number} of {num_faces}"))?;
        let mut words = line.words();
        let count = line.count(words.next(), "the number of a face's corners")?;
        corners.clear();
        for _ in 0..count {
            let corner = line.count(words.next(), "a corner of a face")?;
            match u32::try_from(corner) {
                Ok(corner) if (corner as usize) < num_vertices => corners.push(corner),
                _ => {
                    let expected = format!("a corner below {num_vertices}");
                    return Err(line.error(expected, corner.to_string()));
                }
            }
        }
        fan(&corners, &mut mesh.faces);
    }
    Ok(mesh)
}

/// The first three numbers of a line.
pub(super) fn vertex(line: &Line<'_>) -> Result<[f64; 3]> {
    let mut words = line.words();
    let mut point = [0.0; 3];
    for number in &mut point {
        let Some(word) = words.next() else {
            return Err(line.error("three coordinates", format!("`{}`", line.text)));
        };
        *number = line.number(word)?;
    }
    Ok(point)
}

/// Writes a mesh.
pub(crate) fn write(mesh: &Mesh, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "OFF\n{} {} 0", mesh.vertices.len(), mesh.faces.len())?;
    for [x, y, z] in &mesh.vertices {
        writeln!(out, "{x} {y} {z}")?;
    }
    for [a, b, c] in &mesh.faces {
        writeln!(out, "3 {a} {b} {c}")?;
    }
    Ok(())
}
