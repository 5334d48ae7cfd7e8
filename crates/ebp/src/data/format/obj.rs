//! Wavefront OBJ: `v x y z` and `f a b c …`, corners counted from 1 or, if negative, from the end.

use std::io::Write;

use crate::Result;
use crate::data::file::{Line, Lines};
use crate::data::mesh::{Mesh, fan};

/// Reads vertices and faces; every other statement is left out.
pub(crate) fn parse(bytes: &[u8], file: &str) -> Result<Mesh> {
    let mut lines = Lines::new(file, bytes, Some("#"));
    let mut mesh = Mesh::default();
    let mut corners = Vec::new();
    // Faces may come before their corners, so they are checked at the end.
    let mut largest: Option<(u32, Line<'_>)> = None;
    while let Some(line) = lines.next_line()? {
        let (statement, rest) = line.text.split_once([' ', '\t']).unwrap_or((line.text, ""));
        let rest = line.part(rest);
        match statement {
            "v" => mesh.vertices.push(super::off::vertex(&rest)?),
            "f" => {
                corners.clear();
                for word in rest.words() {
                    let corner = corner(&rest, word, mesh.vertices.len())?;
                    if largest.is_none_or(|(before, _)| corner > before) {
                        largest = Some((corner, rest));
                    }
                    corners.push(corner);
                }
                fan(&corners, &mut mesh.faces);
            }
            _ => {}
        }
    }
    if mesh.vertices.is_empty() {
        return Err(lines.at_end("a vertex such as `v 0 0 0`"));
    }
    match largest {
        Some((corner, line)) if corner as usize >= mesh.vertices.len() => {
            let expected = format!("corners from 1 to {}", mesh.vertices.len());
            Err(line.error(expected, (u64::from(corner) + 1).to_string()))
        }
        _ => Ok(mesh),
    }
}

/// `7`, `7/1`, `7/1/3`, `7//3` or `-1`: the number of a vertex, from 0.
fn corner(line: &Line<'_>, word: &str, num_vertices: usize) -> Result<u32> {
    let first = word.split('/').next().unwrap_or_default();
    let index = match first.parse::<i64>() {
        Ok(number) if number > 0 => u32::try_from(number - 1).ok(),
        Ok(number) if number < 0 => {
            let back = usize::try_from(number.unsigned_abs()).ok();
            let place = back.and_then(|back| num_vertices.checked_sub(back));
            place.and_then(|place| u32::try_from(place).ok())
        }
        _ => None,
    };
    index.ok_or_else(|| line.error("the number of a vertex, not 0", format!("`{word}`")))
}

/// Writes a mesh.
pub(crate) fn write(mesh: &Mesh, out: &mut impl Write) -> std::io::Result<()> {
    for [x, y, z] in &mesh.vertices {
        writeln!(out, "v {x} {y} {z}")?;
    }
    for [a, b, c] in mesh.faces.iter().map(|face| face.map(|corner| u64::from(corner) + 1)) {
        writeln!(out, "f {a} {b} {c}")?;
    }
    Ok(())
}
