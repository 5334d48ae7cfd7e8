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
    // candle keeps a pool of its own whose threads spin between operations, and takes time from
    // ours: 10 of the 46 ms of a step on 16 cores. What is large does not go through it.
    if std::env::var_os("CANDLE_NUM_THREADS").is_none() {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("CANDLE_NUM_THREADS", "1") };
    }
    ebp_cli::main()
}
