//! `ebp`, the command line of energy-based processes.
//!
//! All of it is in the library beside this file; here stands only the allocator.

use std::process::ExitCode;

// glibc gives large blocks back to the system at once, and the next step pays for their page
// faults again; mimalloc keeps them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[allow(unsafe_code, reason = "sets a variable before any thread exists")]
fn main() -> ExitCode {
    // candle keeps a pool of its own whose threads spin between operations, and takes time from
    // ours: 10 of the 46 ms of a step on 16 cores. What is large does not go through it.
    if std::env::var_os("CANDLE_NUM_THREADS").is_none() {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("CANDLE_NUM_THREADS", "1") };
    }
    ebp_cli::main()
}
