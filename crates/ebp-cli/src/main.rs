//! `ebp`, the command line of energy-based processes.
//!
//! All of it is in the library beside this file; here stands only the allocator.

use std::ffi::{c_int, c_long};
use std::process::ExitCode;

// glibc gives large blocks back to the system at once, and the next step pays for their page
// faults again; mimalloc keeps them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc.h, in milliseconds.
const PURGE_DELAY: c_int = 15;

#[allow(unsafe_code, reason = "part of the allocator above")]
unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
}

#[allow(unsafe_code, reason = "sets up the process before any thread exists")]
fn main() -> ExitCode {
    // By itself it keeps them for 10 ms only, about a step: 3000 page faults in each.
    // SAFETY: an integer for an integer option; no other thread runs yet.
    unsafe { mi_option_set(PURGE_DELAY, 10_000) };
    ebp_cli::main()
}
