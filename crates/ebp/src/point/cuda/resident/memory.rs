//! What a learner keeps on the GPU from step to step.

use super::super::{Buffer, Device};
use crate::Result;
use crate::error::check_length;
use crate::point::{ResidentModel, ResidentState};

/// Flat arrays, all of one length.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) parameters: Buffer,
    pub(super) first: Buffer,
    pub(super) second: Buffer,
    pub(super) average: Buffer,
    pub(super) gradient: Buffer,
    pub(super) num_steps: u32,
}

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
        Ok(Self {
            parameters: put("state.parameters", &state.parameters)?,
            first: put("state.first", &state.first)?,
            second: put("state.second", &state.second)?,
            average: put("state.average", &state.average)?,
            gradient: device.zeros(model.length)?,
            num_steps: state.num_steps,
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
