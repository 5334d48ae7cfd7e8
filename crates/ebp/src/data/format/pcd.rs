//! PCD, the format of the Point Cloud Library: ascii, binary and compressed, the fields `x`, `y` and
//! `z`.
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
//! `binary_compressed` is two 32-bit sizes, packed and unpacked, then LZF of the fields one after the
//! other, each with all its points. Points that a scanner did not see are NaN and are kept as such.

use std::io::Write;

use crate::Result;
use crate::data::cloud::Cloud;
use crate::data::file::{ByteOrder, Bytes, Line, Lines, NumberKind, Real};

use super::lzf;

/// What `DATA` may say.
const ENCODINGS: &str = "`DATA ascii`, `DATA binary` or `DATA binary_compressed`";

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
        let line = lines.expect(ENCODINGS)?;
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
                let mut rest = Bytes::new(file, bytes);
                rest.advance(bytes.len() - lines.rest().len());
                return match words.next() {
                    Some("ascii") => read_text(&mut lines, &columns, num_points),
                    Some("binary") => read_binary(&mut rest, &columns, num_points),
                    Some("binary_compressed") => read_compressed(&mut rest, &columns, num_points),
                    _ => Err(line.error(ENCODINGS, line.text)),
                };
            }
            _ => return Err(line.error("a line of a PCD header", line.text)),
        }
    }
}

/// Where a coordinate stands in a row.
struct Coordinate {
    /// Numbers before it.
    number: usize,
    /// Bytes before it.
    byte: usize,
    /// Bytes of its field, whose first number it is.
    width: usize,
    kind: NumberKind,
}

impl Coordinate {
    fn read(&self, bytes: &[u8], place: usize) -> f32 {
        f32::nearest(self.kind.read(bytes.get(place..).unwrap_or_default(), ByteOrder::Little))
    }
}

/// The coordinates' places in a row.
struct Columns {
    coordinates: Vec<Coordinate>,
    num_numbers: usize,
    num_bytes: usize,
}

impl Columns {
    /// The bytes of all points.
    fn length(&self, num_points: usize, bytes: &Bytes<'_>) -> Result<usize> {
        let too_many = || bytes.error("points that fit into memory", num_points.to_string());
        self.num_bytes.checked_mul(num_points).ok_or_else(too_many)
    }
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
                let width = field.count.saturating_mul(field.size);
                // A field without numbers holds no coordinate.
                if field.name == name && found.is_none() && field.count > 0 {
                    found = Some(Coordinate { number, byte, width, kind: kind(line, field)? });
                }
                number = number.saturating_add(field.count);
                byte = byte.saturating_add(width);
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
        for coordinate in &columns.coordinates {
            points.push(f32::nearest(line.number(words[coordinate.number])?));
        }
    }
    Ok(Cloud { dim: columns.coordinates.len(), points })
}

fn read_binary(bytes: &mut Bytes<'_>, columns: &Columns, num_points: usize) -> Result<Cloud> {
    let length = columns.length(num_points, bytes)?;
    let raw = bytes.take(length, &format!("{num_points} points"))?;
    let mut points = Vec::new();
    for row in raw.chunks_exact(columns.num_bytes.max(1)) {
        for coordinate in &columns.coordinates {
            points.push(coordinate.read(row, coordinate.byte));
        }
    }
    Ok(Cloud { dim: columns.coordinates.len(), points })
}

fn read_compressed(bytes: &mut Bytes<'_>, columns: &Columns, num_points: usize) -> Result<Cloud> {
    let length = columns.length(num_points, bytes)?;
    let mut size = |what| bytes.count(NumberKind::U32, ByteOrder::Little, what);
    let (packed, unpacked) = (size("the packed size")?, size("the unpacked size")?);
    if unpacked != length {
        let expected = format!("{length} bytes of {num_points} points, unpacked");
        return Err(bytes.error(expected, unpacked.to_string()));
    }
    let start = bytes.clone();
    let packed = bytes.take(packed, "packed points")?;
    let raw = lzf::unpack(packed, length)
        .map_err(|problem| start.error(format!("LZF of {length} bytes"), problem))?;
    let mut points = Vec::new();
    for point in 0..num_points {
        for coordinate in &columns.coordinates {
            // The fields before with all their points, then the points before.
            let place = coordinate.byte * num_points + point * coordinate.width;
            points.push(coordinate.read(&raw, place));
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
