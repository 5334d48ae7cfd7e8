//! Shards of a step that meet: what several replicas of a model, and several processes, agree on.
//!
//! ```text
//! shard 0 ─ batch ─ gradient ┐
//! shard 1 ─ batch ─ gradient ┼─ Circle ─ mean, in one order ─ the same optimiser step in every shard
//! shard 2 ─ batch ─ gradient ┘     │
//!                               courier ─ Ranks ─ other processes
//! ```
//!
//! A step is cut into S **shards**, each with sets and random numbers of its own. S belongs to the settings;
//! which thread, device or process computes a shard does not. Every optimiser step is a meeting: all
//! shards hand in their gradients and get the mean, whose sum is a tree over the shards (`tree`), so that
//! its bytes do not know who computed what. Gradients are handed in as soon as they are known, in parts that travel
//! while the backward pass goes on (`courier`). A shard that fails hands in its failure instead, and every
//! shard leaves the step with the failure of the first: nobody waits for one who has gone.
//!
//! Processes (**ranks**) have a range of the shards each and reach each other by MPI, which is loaded where a
//! launcher started the process: `launcher` knows launchers, `mpi` the library, `ranks` what processes agree on,
//! `watch` notices one that dies.
//!
//! Shards of one **replica** take turns: one computes while the others wait at a meeting.

mod circle;
mod courier;
mod failure;
mod launcher;
#[cfg(all(unix, target_pointer_width = "64"))]
mod mpi;
mod ranks;
mod shard;
mod tree;
mod watch;

pub use self::circle::{Circle, Seat};
pub(crate) use self::failure::Failure;
pub use self::launcher::{Found, Launch, found, join};
pub use self::ranks::Ranks;
pub use self::shard::Shard;
pub use self::watch::{Loss, Watch};
