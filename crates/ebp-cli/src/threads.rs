//! Threads, as many as asked for.

use miette::miette;

use crate::failure::Failure;

/// A pool of `count` threads, or of as many as there are cores.
pub(crate) fn start_threads(count: Option<usize>) -> Result<rayon::ThreadPool, Failure> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(count.unwrap_or(0)) // 0 is rayon's word for all cores
        .build()
        .map_err(|error| {
            Failure::Usage(miette!(
                help = "ask for fewer threads, or leave `--threads` out",
                "cannot start the threads: {error}"
            ))
        })
}
