//! The header of a `.npy` file, a Python dictionary in one line:
//!
//! ```text
//! \x93NUMPY 1 0 v\0 {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   …\n
//! ```

use crate::Result;
use crate::data::file::{ByteOrder, Bytes, NumberKind};

const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy itself refuses longer headers.
pub(super) const LONGEST: usize = 10_000;
/// NumPy's limit, too.
const MOST_AXES: usize = 64;
/// The numbers start at a multiple of this.
const ALIGNMENT: usize = 64;

/// What follows the header.
pub(super) struct Header {
    pub(super) kind: NumberKind,
    pub(super) order: ByteOrder,
    pub(super) is_fortran: bool,
    pub(super) shape: Vec<usize>,
}

/// Reads the header; `bytes` stand at the first number afterwards.
pub(super) fn read(bytes: &mut Bytes<'_>) -> Result<Header> {
    let start = bytes.clone();
    if bytes.take(MAGIC.len(), "the mark of an npy file")? != MAGIC {
        return Err(start.error("the mark of an npy file, `\\x93NUMPY`", "other bytes"));
    }
    let version = bytes.clone();
    let major = bytes.take(2, "the version")?[0];
    let kind = match major {
        1 => NumberKind::U16,
        2 | 3 => NumberKind::U32,
        _ => return Err(version.error("version 1, 2 or 3", major.to_string())),
    };
    let place = bytes.clone();
    let length = bytes.count(kind, ByteOrder::Little, "the header's length")?;
    if length > LONGEST {
        let expected = format!("a header of at most {LONGEST} bytes");
        return Err(place.error(expected, length.to_string()));
    }
    let place = bytes.clone();
    let text = bytes.take(length, "the header")?;
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(place.error("a header in UTF-8", "other bytes"));
    };
    Dictionary { text, rest: text, start: &place }.read()
}

/// The header that NumPy writes, padded so that the numbers are aligned.
pub(super) fn write(shape: &[usize], kind: NumberKind) -> Vec<u8> {
    let letter = if kind == NumberKind::U8 { "|u" } else { "<f" };
    let mut axes = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if shape.len() == 1 {
        axes.push(','); // a tuple of one
    }
    let text = format!(
        "{{'descr': '{letter}{}', 'fortran_order': False, 'shape': ({axes}), }}",
        kind.size()
    );
    // Magic, version, length, text, line end.
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
    let length = u16::try_from(text.len() + padding + 1).unwrap_or(u16::MAX);
    let mut bytes = [MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat();
    bytes.resize(bytes.len() + padding, b' ');
    bytes.push(b'\n');
    bytes
}

/// The dictionary while it is read.
struct Dictionary<'a> {
    text: &'a str,
    rest: &'a str,
    /// Where the text starts, for errors.
    start: &'a Bytes<'a>,
}

impl<'a> Dictionary<'a> {
    fn read(mut self) -> Result<Header> {
        let (mut number, mut is_fortran, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.skip('}') {
            let key = self.quoted()?;
            self.expect(':')?;
            match key {
                "descr" => number = Some(self.number_kind()?),
                "fortran_order" => is_fortran = Some(self.boolean()?),
                "shape" => shape = Some(self.tuple()?),
                _ => return Err(self.error("descr, fortran_order or shape", key)),
            }
            if !self.skip(',') {
                self.expect('}')?;
                break;
            }
        }
        match (number, is_fortran, shape) {
            (Some((kind, order)), Some(is_fortran), Some(shape)) => {
                Ok(Header { kind, order, is_fortran, shape })
            }
            _ => Err(self.error("descr, fortran_order and shape", "a header without one of them")),
        }
    }

    fn number_kind(&mut self) -> Result<(NumberKind, ByteOrder)> {
        self.rest = self.rest.trim_start();
        if !self.rest.starts_with(['\'', '"']) {
            return Err(self.error("plain numbers", "records"));
        }
        let text = self.quoted()?;
        let kind = match text.get(1..).unwrap_or_default() {
            "f2" => NumberKind::F16,
            "f4" => NumberKind::F32,
            "f8" => NumberKind::F64,
            "i1" => NumberKind::I8,
            "i2" => NumberKind::I16,
            "i4" => NumberKind::I32,
            "i8" => NumberKind::I64,
            "u1" | "b1" => NumberKind::U8,
            "u2" => NumberKind::U16,
            "u4" => NumberKind::U32,
            "u8" => NumberKind::U64,
            _ => return Err(self.error("numbers such as `<f4`", text)),
        };
        let order = match text.as_bytes().first() {
            Some(b'<' | b'|' | b'=') => ByteOrder::Little,
            Some(b'>') => ByteOrder::Big,
            _ => return Err(self.error("a byte order, `<`, `>` or `|`", text)),
        };
        Ok((kind, order))
    }

    fn boolean(&mut self) -> Result<bool> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.error("True or False", self.rest))
    }

    fn tuple(&mut self) -> Result<Vec<usize>> {
        self.expect('(')?;
        let mut axes = Vec::new();
        while !self.skip(')') {
            self.rest = self.rest.trim_start();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let Ok(axis) = self.rest[..end].parse() else {
                return Err(self.error("the length of an axis", self.rest));
            };
            axes.push(axis);
            if axes.len() > MOST_AXES {
                return Err(self.error(format!("at most {MOST_AXES} axes"), "more"));
            }
            self.rest = &self.rest[end..];
            self.skip('L'); // written by Python 2
            if !self.skip(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(axes)
    }

    fn quoted(&mut self) -> Result<&'a str> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let Some(quote) = quote else { return Err(self.error("a quoted word", rest)) };
        let Some((word, rest)) = rest[1..].split_once(quote) else {
            return Err(self.error("a closing quote", rest));
        };
        self.rest = rest;
        Ok(word)
    }

    fn skip(&mut self, mark: char) -> bool {
        match self.rest.trim_start().strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, mark: char) -> Result<()> {
        if self.skip(mark) { Ok(()) } else { Err(self.error(format!("`{mark}`"), self.rest)) }
    }

    fn error(&self, expected: impl Into<String>, found: &str) -> crate::Error {
        let mut place = self.start.clone();
        place.advance(self.text.len() - self.rest.len());
        let found = if found.is_empty() { "the end of the header" } else { found };
        place.error(expected, found)
    }
}
