//! PLY, ascii and binary: vertices with `x`, `y`, `z`, and faces if there are any.
//!
//! Other properties and elements are walked over. Every row takes at least one byte or word of the
//! file, so a header that claims more rows than there are ends in an error, not in memory.

use std::io::Write;

use crate::data::file::{ByteOrder, Bytes, Line, Lines, NumberKind, malformed};
use crate::data::mesh::{Mesh, fan};
use crate::error::Place;
use crate::{Error, Result};

use super::ply_header::{self, Element, Encoding, Property};

/// What vertices are called, and where they are.
const VERTEX: &str = "vertex";
const PLACE: [&str; 3] = ["x", "y", "z"];
const COLOUR: [&str; 3] = ["red", "green", "blue"];

/// Reads a mesh; a cloud is a mesh without faces.
pub(crate) fn parse(bytes: &[u8], file: &str) -> Result<Mesh> {
    let (mut body, elements) = open(bytes, file)?;
    let mut mesh = Mesh::default();
    let mut has_vertices = false;
    for element in &elements {
        match element.name.as_str() {
            VERTEX => {
                has_vertices = true;
                read_vertices(&mut body, element, file, PLACE, |place| mesh.vertices.push(place))?;
            }
            "face" => read_faces(&mut body, element, &mut mesh)?,
            _ => skip(&mut body, element)?,
        }
    }
    if !has_vertices {
        return Err(body.error("an element `vertex`", "none"));
    }
    let largest = mesh.faces.iter().flatten().max();
    match largest {
        Some(&corner) if corner as usize >= mesh.vertices.len() => {
            let expected = format!("corners below {}", mesh.vertices.len());
            Err(body.error(expected, corner.to_string()))
        }
        _ => Ok(mesh),
    }
}

/// Reads the colours of the vertices: `red`, `green` and `blue`, floats up to 1 or whole numbers up to what
/// their type holds. `None` if the file has none.
pub(crate) fn colours(bytes: &[u8], file: &str) -> Result<Option<Vec<[u8; 3]>>> {
    let (mut body, elements) = open(bytes, file)?;
    for element in &elements {
        if element.name != VERTEX {
            skip(&mut body, element)?;
            continue;
        }
        let first = element.properties.iter().find(|property| property.name == COLOUR[0]);
        let Some(first) = first else { return Ok(None) };
        let most = match first.kind {
            NumberKind::F16 | NumberKind::F32 | NumberKind::F64 => 1.0,
            NumberKind::U16 => f64::from(u16::MAX),
            _ => f64::from(u8::MAX),
        };
        let mut colours = Vec::new();
        read_vertices(&mut body, element, file, COLOUR, |colour| {
            colours.push(colour.map(|share| level(share / most)));
        })?;
        return Ok(Some(colours));
    }
    Ok(None)
}

/// A share of the brightest as a byte; what is no number is black.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clipped to a byte")]
fn level(share: f64) -> u8 {
    (255.0 * share).round().clamp(0.0, 255.0) as u8
}

/// What follows the header, and what it says of it.
fn open<'a>(bytes: &'a [u8], file: &'a str) -> Result<(Body<'a>, Vec<Element>)> {
    let mut lines = Lines::new(file, bytes, None);
    let (encoding, elements) = ply_header::read(&mut lines)?;
    let body = match encoding {
        Encoding::Ascii => Body::Text(Words { lines, line: None, rest: "" }),
        Encoding::Binary(order) => {
            let mut rest = Bytes::new(file, bytes);
            rest.advance(bytes.len() - lines.rest().len());
            Body::Binary(rest, order)
        }
    };
    Ok((body, elements))
}

/// Hands three properties of every vertex to `take`.
fn read_vertices(
    body: &mut Body<'_>,
    element: &Element,
    file: &str,
    names: [&str; 3],
    mut take: impl FnMut([f64; 3]),
) -> Result<()> {
    let place = |name: &str| {
        let found = element.properties.iter().position(|property| property.name == name);
        let expected = format!("a property `{name}` of the vertices");
        found.ok_or_else(|| malformed(file, Place::Byte(0), expected, "none"))
    };
    let places = [place(names[0])?, place(names[1])?, place(names[2])?];
    for _ in 0..element.num_rows {
        let mut row = [0.0; 3];
        for (index, property) in element.properties.iter().enumerate() {
            if property.count.is_some() {
                body.list(property, |_| Ok(()))?;
                continue;
            }
            let number = body.number(property)?;
            for (found, &place) in row.iter_mut().zip(&places) {
                if place == index {
                    *found = number;
                }
            }
        }
        take(row);
    }
    Ok(())
}

fn read_faces(body: &mut Body<'_>, element: &Element, mesh: &mut Mesh) -> Result<()> {
    let mut corners = Vec::new();
    for _ in 0..element.num_rows {
        for property in &element.properties {
            if property.count.is_none() {
                body.number(property)?;
            } else if matches!(property.name.as_str(), "vertex_indices" | "vertex_index") {
                corners.clear();
                body.list(property, |number| {
                    let corner = whole(number).and_then(|number| u32::try_from(number).ok());
                    corner.map(|corner| corners.push(corner)).ok_or(())
                })?;
                fan(&corners, &mut mesh.faces);
            } else {
                body.list(property, |_| Ok(()))?;
            }
        }
    }
    Ok(())
}

fn skip(body: &mut Body<'_>, element: &Element) -> Result<()> {
    for _ in 0..element.num_rows {
        for property in &element.properties {
            match property.count {
                None => drop(body.number(property)?),
                Some(_) => body.list(property, |_| Ok(()))?,
            }
        }
    }
    Ok(())
}

/// What follows the header.
enum Body<'a> {
    Text(Words<'a>),
    Binary(Bytes<'a>, ByteOrder),
}

impl Body<'_> {
    fn number(&mut self, property: &Property) -> Result<f64> {
        match self {
            Self::Text(words) => words.number(&property.name),
            Self::Binary(bytes, order) => bytes.number(property.kind, *order, &property.name),
        }
    }

    /// Hands every number of a list to `take`, which may refuse it.
    fn list(
        &mut self,
        property: &Property,
        mut take: impl FnMut(f64) -> std::result::Result<(), ()>,
    ) -> Result<()> {
        let number = match self {
            Self::Text(words) => words.number(&property.name)?,
            Self::Binary(bytes, order) => {
                let kind = property.count.unwrap_or(property.kind);
                bytes.number(kind, *order, &property.name)?
            }
        };
        let Some(length) = whole(number) else {
            return Err(self.error("the length of a list", number.to_string()));
        };
        for _ in 0..length {
            let number = self.number(property)?;
            if take(number).is_err() {
                return Err(self.error("the number of a vertex", number.to_string()));
            }
        }
        Ok(())
    }

    fn error(&self, expected: impl Into<String>, found: impl AsRef<str>) -> Error {
        match self {
            Self::Text(words) => match &words.line {
                Some(line) => line.error(expected, found),
                None => words.lines.at_end(expected),
            },
            Self::Binary(bytes, _) => bytes.error(expected, found),
        }
    }
}

/// The words of an ascii file, wherever its lines end.
struct Words<'a> {
    lines: Lines<'a>,
    line: Option<Line<'a>>,
    rest: &'a str,
}

impl Words<'_> {
    fn number(&mut self, name: &str) -> Result<f64> {
        if self.rest.is_empty() {
            let line = self.lines.expect(&format!("a number for `{name}`"))?;
            (self.line, self.rest) = (Some(line), line.text);
        }
        let end = self.rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        match &self.line {
            Some(line) => line.number(word),
            None => Err(self.lines.at_end(name)),
        }
    }
}

/// A float as the whole number it should be.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn whole(number: f64) -> Option<usize> {
    let is_whole = number >= 0.0 && number <= 2_f64.powi(53) && number.fract() == 0.0;
    is_whole.then_some(number as usize)
}

/// Writes a mesh in ascii or in binary of either order, with f32 coordinates.
pub(crate) fn write(
    mesh: &Mesh,
    order: Option<ByteOrder>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let format = match order {
        None => "ascii",
        Some(ByteOrder::Little) => "binary_little_endian",
        Some(ByteOrder::Big) => "binary_big_endian",
    };
    writeln!(out, "ply\nformat {format} 1.0\nelement vertex {}", mesh.vertices.len())?;
    writeln!(out, "property float x\nproperty float y\nproperty float z")?;
    if !mesh.faces.is_empty() {
        let num_faces = mesh.faces.len();
        writeln!(out, "element face {num_faces}\nproperty list uchar int vertex_indices")?;
    }
    writeln!(out, "end_header")?;
    for point in &mesh.vertices {
        #[expect(clippy::cast_possible_truncation, reason = "the file holds f32")]
        let point = point.map(|number| number as f32);
        match order {
            None => writeln!(out, "{} {} {}", point[0], point[1], point[2])?,
            Some(order) => point.iter().try_for_each(|number| match order {
                ByteOrder::Little => out.write_all(&number.to_le_bytes()),
                ByteOrder::Big => out.write_all(&number.to_be_bytes()),
            })?,
        }
    }
    for face in &mesh.faces {
        match order {
            None => writeln!(out, "3 {} {} {}", face[0], face[1], face[2])?,
            Some(order) => {
                out.write_all(&[3])?;
                face.iter().try_for_each(|corner| match order {
                    ByteOrder::Little => out.write_all(&corner.to_le_bytes()),
                    ByteOrder::Big => out.write_all(&corner.to_be_bytes()),
                })?;
            }
        }
    }
    Ok(())
}
