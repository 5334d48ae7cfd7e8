//! `ebp`, the command line of energy-based processes.
//!
//! All of it is in the library beside this file; here stands only the allocator.

use std::process::ExitCode;

// glibc gives large blocks back to the system at once, and the next step pays for their page
// faults again; mimalloc keeps them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ebp_cli::main()
}
