//! What a learner keeps on the GPU from step to step.

use super::super::device::{Buffer, Device, driver};
use crate::Result;
use crate::error::check_length;
use crate::point::{ResidentModel, ResidentState};
use cudarc::driver::PinnedHostSlice;

/// Flat arrays, all of one length.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) parameters: Buffer,
    pub(super) first: Buffer,
    pub(super) second: Buffer,
    pub(super) average: Buffer,
    pub(super) gradient: Buffer,
    pub(super) num_steps: u32,
    /// Where a few numbers land that a step asks for on its way.
    pub(super) landing: PinnedHostSlice<u32>,
}

/// The most sets a batch may have, for `landing`.
pub(super) const MOST_SETS: usize = 1 << 16;

impl Memory {
    pub(super) fn new(
        device: &Device,
        model: &ResidentModel,
        state: &ResidentState,
    ) -> Result<Self> {
        let put = |name: &'static str, values: &[f32]| {
            check_length(name, values.len(), model.length, || "the model's numbers".into())?;
            device.upload(values)
        };
        // SAFETY: numbers are written before they are read.
        let landing = unsafe { device.context.alloc_pinned_with_flags(MOST_SETS + 1, 0) }
            .map_err(|error| driver("take page-locked memory", error))?;
        Ok(Self {
            parameters: put("state.parameters", &state.parameters)?,
            first: put("state.first", &state.first)?,
            second: put("state.second", &state.second)?,
            average: put("state.average", &state.average)?,
            gradient: device.zeros(model.length)?,
            num_steps: state.num_steps,
            landing,
        })
    }

    pub(super) fn save(&self, device: &Device) -> Result<ResidentState> {
        Ok(ResidentState {
            parameters: device.download(&self.parameters)?,
            first: device.download(&self.first)?,
            second: device.download(&self.second)?,
            average: device.download(&self.average)?,
            num_steps: self.num_steps,
        })
    }
}
