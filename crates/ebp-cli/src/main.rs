//! `ebp`, the command line of energy-based processes.
//!
//! `main` parses what was typed ([`args`]) and hands it to a command ([`command`]). Results go to
//! stdout, progress and errors to stderr. Exit codes: 0 done, 1 failed, 2 usage.

mod args;
mod command;
mod failure;
#[allow(dead_code, reason = "drawn by the commands that evaluate models")]
mod picture;

use std::process::ExitCode;

// glibc gives large blocks back to the system at once, and the next step pays for their page
// faults again; mimalloc keeps them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ebp_cli::main()
}
