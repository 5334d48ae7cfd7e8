//! PCD, the format of the Point Cloud Library: ascii and binary, the fields `x`, `y` and `z`.
//!
//! ```text
//! FIELDS x y z rgb
//! SIZE 4 4 4 4
//! TYPE F F F F
//! COUNT 1 1 1 1
//! POINTS 213
//! DATA binary
//! ```
//!
//! Points that a scanner did not see are NaN there and are kept as such. `binary_compressed` is
//! refused with a way out.

use std::io::Write;

use crate::Result;
use crate::data::cloud::Cloud;
use crate::data::file::{ByteOrder, Bytes, Line, Lines, NumberKind, Real};

/// One field of a point.
#[derive(Clone, Debug)]
struct Field<'a> {
    name: &'a str,
    size: usize,
    letter: &'a str,
    count: usize,
}

/// The header while it is read.
#[derive(Default)]
struct Header<'a> {
    fields: Vec<Field<'a>>,
    num_points: Option<usize>,
    width: usize,
    height: usize,
}

/// Reads a cloud.
pub(crate) fn parse(bytes: &[u8], file: &str) -> Result<Cloud> {
    let mut lines = Lines::new(file, bytes, Some("#"));
    let mut header = Header { height: 1, ..Header::default() };
    loop {
        let line = lines.expect("`DATA ascii` or `DATA binary`")?;
        let mut words = line.words();
        let key = words.next().unwrap_or_default();
        match key {
            "VERSION" | "VIEWPOINT" => {}
            "FIELDS" | "COLUMNS" => {
                let field = |name| Field { name, size: 4, letter: "F", count: 1 };
                header.fields = words.map(field).collect();
            }
            "SIZE" | "TYPE" | "COUNT" => header.set(&line, key)?,
            "WIDTH" => header.width = line.count(words.next(), "the width")?,
            "HEIGHT" => header.height = line.count(words.next(), "the height")?,
            "POINTS" => header.num_points = Some(line.count(words.next(), "the number of points")?),
            "DATA" => {
                let columns = header.columns(&line)?;
                let num_points = match header.num_points {
                    Some(count) => count,
                    None => header.width.saturating_mul(header.height),
                };
                return match words.next() {
                    Some("ascii") => read_text(&mut lines, &columns, num_points),
                    Some("binary") => {
                        let mut rest = Bytes::new(file, bytes);
                        rest.advance(bytes.len() - lines.rest().len());
                        read_binary(&mut rest, &columns, num_points)
                    }
                    Some("binary_compressed") => Err(line.error(
                        "ascii or binary (convert with `pcl_convert_pcd_ascii_binary IN OUT 1`)",
                        "binary_compressed",
                    )),
                    _ => Err(line.error("`DATA ascii` or `DATA binary`", line.text)),
                };
            }
            _ => return Err(line.error("a line of a PCD header", line.text)),
        }
    }
}

/// The coordinates' places in a row.
struct Columns {
    /// For each coordinate: its number among the row's numbers, its byte, its kind.
    coordinates: Vec<(usize, usize, NumberKind)>,
    num_numbers: usize,
    num_bytes: usize,
}

impl<'a> Header<'a> {
    /// SIZE, TYPE and COUNT have a word for each field.
    fn set(&mut self, line: &Line<'a>, key: &str) -> Result<()> {
        if line.words().count() != self.fields.len() + 1 {
            let expected = format!("a word for each of {} fields", self.fields.len());
            return Err(line.error(expected, format!("`{}`", line.text)));
        }
        for (field, word) in self.fields.iter_mut().zip(line.words().skip(1)) {
            match key {
                "SIZE" => field.size = line.count(Some(word), "the bytes of a field")?,
                "COUNT" => field.count = line.count(Some(word), "the numbers of a field")?,
                _ => field.letter = word,
            }
        }
        Ok(())
    }

    fn columns(&self, line: &Line<'a>) -> Result<Columns> {
        let mut columns = Columns { coordinates: Vec::new(), num_numbers: 0, num_bytes: 0 };
        for name in ["x", "y", "z"] {
            let (mut number, mut byte) = (0_usize, 0_usize);
            let mut found = None;
            for field in &self.fields {
                if field.name == name && found.is_none() {
                    found = Some((number, byte, kind(line, field)?));
                }
                number = number.saturating_add(field.count);
                byte = byte.saturating_add(field.count.saturating_mul(field.size));
            }
            (columns.num_numbers, columns.num_bytes) = (number, byte);
            let missing = || line.error("fields x, y and z", format!("no `{name}`"));
            columns.coordinates.push(found.ok_or_else(missing)?);
        }
        Ok(columns)
    }
}

fn kind(line: &Line<'_>, field: &Field<'_>) -> Result<NumberKind> {
    Ok(match (field.letter, field.size) {
        ("F", 4) => NumberKind::F32,
        ("F", 8) => NumberKind::F64,
        ("I", 1) => NumberKind::I8,
        ("I", 2) => NumberKind::I16,
        ("I", 4) => NumberKind::I32,
        ("I", 8) => NumberKind::I64,
        ("U", 1) => NumberKind::U8,
        ("U", 2) => NumberKind::U16,
        ("U", 4) => NumberKind::U32,
        ("U", 8) => NumberKind::U64,
        (letter, size) => {
            let expected = format!("a known type of field `{}`", field.name);
            return Err(line.error(expected, format!("{letter} of {size} bytes")));
        }
    })
}

fn read_text(lines: &mut Lines<'_>, columns: &Columns, num_points: usize) -> Result<Cloud> {
    let mut points = Vec::new();
    for number in 0..num_points {
        let line = lines.expect(&format!("point {number} of {num_points}"))?;
        let words: Vec<&str> = line.words().collect();
        if words.len() != columns.num_numbers {
            let expected = format!("{} numbers", columns.num_numbers);
            return Err(line.error(expected, words.len().to_string()));
        }
        for &(place, _, _) in &columns.coordinates {
            points.push(f32::nearest(line.number(words[place])?));
        }
    }
    Ok(Cloud { dim: columns.coordinates.len(), points })
}

fn read_binary(bytes: &mut Bytes<'_>, columns: &Columns, num_points: usize) -> Result<Cloud> {
    let row = columns.num_bytes;
    let Some(length) = row.checked_mul(num_points) else {
        return Err(bytes.error("points that fit into memory", num_points.to_string()));
    };
    let raw = bytes.take(length, &format!("{num_points} points"))?;
    let mut points = Vec::new();
    for row in raw.chunks_exact(row.max(1)) {
        for &(_, byte, kind) in &columns.coordinates {
            points.push(f32::nearest(
                kind.read(row.get(byte..).unwrap_or_default(), ByteOrder::Little),
            ));
        }
    }
    Ok(Cloud { dim: columns.coordinates.len(), points })
}

/// Writes a cloud of three dimensions.
pub(crate) fn write(cloud: &Cloud, is_binary: bool, out: &mut impl Write) -> std::io::Result<()> {
    let n = cloud.len();
    writeln!(out, "# .PCD v.7 - Point Cloud Data file format\nVERSION .7\nFIELDS x y z")?;
    writeln!(out, "SIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH {n}\nHEIGHT 1")?;
    writeln!(out, "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS {n}")?;
    if !is_binary {
        writeln!(out, "DATA ascii")?;
        return super::xyz::write(cloud, out);
    }
    writeln!(out, "DATA binary")?;
    cloud.points.iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))
}
