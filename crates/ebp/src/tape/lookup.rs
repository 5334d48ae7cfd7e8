//! What operations look up beside numbers: rows to gather, symbols, which row belongs to which set.
//!
//! A GPU has a copy of it for as long as the host has the original. The copy is sent when an operation
//! first meets the original; whoever makes a batch ahead brings it then, so that the step does not wait.

use std::sync::Arc;

use super::{AttentionSets, Choice, Device, cuda};
use crate::{Result, SetOffsets};

/// Something of the host that kernels read.
pub(crate) trait Lookup {
    /// Sends it, unless it was sent before.
    fn send(lookup: &Arc<Self>, gpu: &cuda::Gpu) -> Result<()>;
}

impl Lookup for Choice {
    fn send(lookup: &Arc<Self>, gpu: &cuda::Gpu) -> Result<()> {
        cuda::send_choice(gpu, lookup)
    }
}

impl Lookup for AttentionSets {
    fn send(lookup: &Arc<Self>, gpu: &cuda::Gpu) -> Result<()> {
        cuda::send_attention_sets(gpu, lookup)
    }
}

/// Symbols, one per row.
impl Lookup for Vec<u32> {
    fn send(lookup: &Arc<Self>, gpu: &cuda::Gpu) -> Result<()> {
        cuda::send_symbols(gpu, lookup)
    }
}

impl Lookup for SetOffsets {
    fn send(lookup: &Arc<Self>, gpu: &cuda::Gpu) -> Result<()> {
        cuda::send_offsets(gpu, lookup)
    }
}

impl Device {
    /// Brings what operations will look up, and shares it.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload).
    pub(crate) fn bring<L: Lookup>(&self, lookup: L) -> Result<Arc<L>> {
        let lookup = Arc::new(lookup);
        if let Self::Cuda(gpu) = self {
            L::send(&lookup, gpu)?;
        }
        Ok(lookup)
    }
}
