//! Results on stdout: text and JSON.
//!
//! Every JSON object begins with the same fields ([`Head`]); `docs/json.md` lists them and those of every
//! command, and `tests/json.rs` compares the page with what is printed.

use std::io::{Write, stdout};
use std::sync::OnceLock;
use std::time::Instant;

use miette::miette;
use serde::Serialize;

use crate::device;
use crate::failure::Failure;

/// The command of this process, and when it began.
static BEGUN: OnceLock<(String, Instant)> = OnceLock::new();

/// Keeps the name of the command, such as `data import`, and the time.
pub(crate) fn begin(command: String) {
    // A process runs one command; the first call stands.
    let _kept = BEGUN.get_or_init(|| (command, Instant::now()));
}

/// The command whose result a merged one is, and where its parts were computed.
static STANDS_FOR: OnceLock<(String, Option<String>)> = OnceLock::new();

/// Objects of this process are those of another command, whose parts were computed elsewhere.
pub(crate) fn stand_for(command: &str, device: Option<String>) {
    // A process merges once; the first call stands.
    let _kept = STANDS_FOR.get_or_init(|| (command.to_owned(), device));
}

/// What every object says of the command, before what the command says itself.
#[derive(Debug, Serialize)]
struct Head<'a, R> {
    command: &'a str,
    version: &'static str,
    /// Of the random numbers, where one seed made them all.
    seed: Option<u64>,
    /// Where networks computed, if they did.
    device: Option<&'a str>,
    /// Since the program began.
    elapsed_s: f64,
    #[serde(flatten)]
    report: &'a R,
}

/// Prints text as it is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// Prints bytes as they are.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Prints one JSON object, indented; `seed` is that of all random numbers, if there is one.
pub(crate) fn print_json(seed: Option<u64>, report: &impl Serialize) -> Result<(), Failure> {
    match STANDS_FOR.get() {
        Some((_, device)) => print_json_of(device.as_deref(), seed, report),
        None => print_json_of(device::opened().as_deref(), seed, report),
    }
}

/// The same by a command that knows the device itself.
pub(crate) fn print_json_of(
    device: Option<&str>,
    seed: Option<u64>,
    report: &impl Serialize,
) -> Result<(), Failure> {
    let (command, elapsed) = match BEGUN.get() {
        Some((command, began)) => (command.as_str(), began.elapsed()),
        None => ("", std::time::Duration::ZERO),
    };
    let head = Head {
        command: STANDS_FOR.get().map_or(command, |(command, _)| command),
        version: env!("CARGO_PKG_VERSION"),
        seed,
        device,
        // Milliseconds; more digits would say nothing.
        elapsed_s: (elapsed.as_secs_f64() * 1e3).round() / 1e3,
        report,
    };
    let mut text = serde_json::to_string_pretty(&head)
        .map_err(|error| Failure::Failed(miette!("cannot write the result as JSON: {error}")))?;
    text.push('\n');
    print(&text)
}
