//! The header of a PLY file: which elements follow, and the properties of each.
//!
//! ```text
//! ply
//! format binary_little_endian 1.0
//! element vertex 4
//! property float x
//! …
//! element face 4
//! property list uchar int vertex_indices
//! end_header
//! ```

use crate::Result;
use crate::data::file::{ByteOrder, Line, Lines, NumberKind};

/// How the numbers after the header are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Ascii,
    Binary(ByteOrder),
}

/// One property of an element.
#[derive(Clone, Debug)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) kind: NumberKind,
    /// For a list: the kind of its length.
    pub(super) count: Option<NumberKind>,
}

/// A run of rows with the same properties.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) num_rows: usize,
    pub(super) properties: Vec<Property>,
}

/// Reads the header; the lines stand behind it afterwards.
pub(super) fn read(lines: &mut Lines<'_>) -> Result<(Encoding, Vec<Element>)> {
    let first = lines.expect("`ply`")?;
    if first.text != "ply" {
        return Err(first.error("`ply`", first.text));
    }
    let mut encoding = None;
    let mut elements: Vec<Element> = Vec::new();
    loop {
        let line = lines.expect("`end_header`")?;
        let mut words = line.words();
        match words.next().unwrap_or_default() {
            "end_header" => break,
            "comment" | "obj_info" => {}
            "format" => encoding = Some(read_encoding(&line, words.next())?),
            "element" => {
                let name = words.next().unwrap_or_default().to_owned();
                let num_rows = line.count(words.next(), "the number of rows")?;
                elements.push(Element { name, num_rows, properties: Vec::new() });
            }
            "property" => match elements.last_mut() {
                Some(element) => element.properties.push(read_property(&line)?),
                None => return Err(line.error("`element` before its properties", line.text)),
            },
            word => return Err(line.error("a line of the header", word)),
        }
        // Rows without properties would cost nothing in the file and time here.
    }
    for element in &elements {
        if element.properties.is_empty() && element.num_rows > 0 {
            let expected = format!("properties of element `{}`", element.name);
            return Err(first.error(expected, "none"));
        }
    }
    match encoding {
        Some(encoding) => Ok((encoding, elements)),
        None => Err(first.error("a line `format …`", "none in the header")),
    }
}

fn read_encoding(line: &Line<'_>, word: Option<&str>) -> Result<Encoding> {
    match word {
        Some("ascii") => Ok(Encoding::Ascii),
        Some("binary_little_endian") => Ok(Encoding::Binary(ByteOrder::Little)),
        Some("binary_big_endian") => Ok(Encoding::Binary(ByteOrder::Big)),
        _ => Err(line.error("format ascii, binary_little_endian or binary_big_endian", line.text)),
    }
}

fn read_property(line: &Line<'_>) -> Result<Property> {
    let words: Vec<&str> = line.words().skip(1).collect();
    let (count, kind, name) = match words[..] {
        ["list", count, kind, name] => (Some(number_kind(line, count)?), kind, name),
        [kind, name] => (None, kind, name),
        _ => return Err(line.error("`property TYPE NAME` or `property list …`", line.text)),
    };
    Ok(Property { name: name.to_owned(), kind: number_kind(line, kind)?, count })
}

fn number_kind(line: &Line<'_>, word: &str) -> Result<NumberKind> {
    Ok(match word {
        "char" | "int8" => NumberKind::I8,
        "uchar" | "uint8" => NumberKind::U8,
        "short" | "int16" => NumberKind::I16,
        "ushort" | "uint16" => NumberKind::U16,
        "int" | "int32" => NumberKind::I32,
        "uint" | "uint32" => NumberKind::U32,
        "float" | "float32" => NumberKind::F32,
        "double" | "float64" => NumberKind::F64,
        _ => return Err(line.error("a type of numbers such as `float`", word)),
    })
}
