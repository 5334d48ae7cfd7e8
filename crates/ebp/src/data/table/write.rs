//! Writing tables of numbers.

use std::io::{self, Write};

use crate::error::check_length;
use crate::{Error, Result};

use super::NamedSet;

/// Writes a header and `rows`, row-major `[n, header.len()]`, each number with as many digits as
/// reading it back exactly takes.
///
/// ```
/// use ebp::data::table::write_table;
///
/// let mut out = Vec::new();
/// write_table(&mut out, &["step", "loss"], &[1.0, 0.5, 2.0, 0.25])?;
/// assert_eq!(out, b"step,loss\n1.0,0.5\n2.0,0.25\n");
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::WrongLength`] unless the rows are whole, [`Error::InvalidValue`] if a number is not
/// finite or the header is empty, [`Error::Io`] if writing fails.
pub fn write_table(mut out: impl Write, header: &[&str], rows: &[f64]) -> Result<()> {
    let width = header.len();
    if width == 0 {
        return Err(Error::invalid("header", "at least one column", "none"));
    }
    let whole = rows.len() / width * width;
    check_length("rows", rows.len(), whole, || format!("rows of {width}"))?;
    if let Some(index) = rows.iter().position(|number| !number.is_finite()) {
        return Err(Error::invalid(format!("rows[{index}]"), "finite", rows[index]));
    }
    let mut write = || -> io::Result<()> {
        let names: Vec<String> = header.iter().map(|name| quoted(name)).collect();
        writeln!(out, "{}", names.join(","))?;
        for row in rows.chunks_exact(width) {
            writeln!(out, "{}", join(row))?;
        }
        out.flush()
    };
    write().map_err(failed)
}

/// Writes sets so that [`parse_table`](super::parse_table) reads them back: columns `set`, then
/// `t` or `t1`, `t2`, …, then `x` or `x1`, `x2`, ….
///
/// # Errors
///
/// [`Error::InvalidValue`] if there is no set or their dimensions differ, [`Error::Io`] if
/// writing fails.
pub fn write_sets(mut out: impl Write, sets: &[NamedSet]) -> Result<()> {
    let Some(first) = sets.first() else {
        return Err(Error::invalid("sets", "at least one", "none"));
    };
    let dims = (first.set.location_dim(), first.set.value_dim());
    for NamedSet { name, set } in sets {
        if (set.location_dim(), set.value_dim()) != dims {
            return Err(Error::invalid(
                format!("dimensions of `{name}`"),
                format!("{dims:?}"),
                format!("{:?}", (set.location_dim(), set.value_dim())),
            ));
        }
    }
    let mut write = || -> io::Result<()> {
        writeln!(out, "set,{},{}", names("t", dims.0), names("x", dims.1))?;
        for NamedSet { name, set } in sets {
            let name = quoted(name);
            for i in 0..set.len() {
                writeln!(out, "{name},{},{}", join(set.location(i)), join(set.value(i)))?;
            }
        }
        out.flush()
    };
    write().map_err(failed)
}

/// `t`, or `t1,t2,…`.
fn names(letter: &str, dim: usize) -> String {
    if dim == 1 {
        return letter.to_owned();
    }
    (1..=dim).map(|j| format!("{letter}{j}")).collect::<Vec<_>>().join(",")
}

fn join(numbers: &[f64]) -> String {
    numbers.iter().map(|number| format!("{number:?}")).collect::<Vec<_>>().join(",")
}

/// A cell's text: in quotes where RFC 4180 asks for them, and where reading would trim.
///
/// ```
/// use ebp::data::table::quoted;
///
/// assert_eq!((quoted("pine"), quoted("a \"b\", c")), ("pine".into(), "\"a \"\"b\"\", c\"".into()));
/// ```
pub fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.trim() == text
        && !text.contains(['"', ',', ';', '\t', '\n', '\r']);
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

fn failed(source: io::Error) -> Error {
    Error::Io { action: "write", path: "table".into(), source }
}
