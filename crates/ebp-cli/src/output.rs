//! Results on stdout: text and JSON.

use std::io::{Write, stdout};

use miette::miette;
use serde::Serialize;

use crate::failure::Failure;

/// Prints text as it is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints one JSON object, indented.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Failed(miette!("cannot write the result as JSON: {error}")))?;
    text.push('\n');
    print(&text)
}
