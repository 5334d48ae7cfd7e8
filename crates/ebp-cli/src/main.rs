//! `ebp`, the command line of energy-based processes.

use std::process::ExitCode;

// glibc gives large blocks back to the system at once, and the next step pays for their page
// faults again; mimalloc keeps them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ebp_cli::main()
}
