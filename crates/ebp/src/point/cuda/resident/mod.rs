//! Whole training steps on the GPU: see [`ResidentLearner`].
//!
//! ```text
//! memory    parameters, Adam's moments, moving average
//! head      ρ, and the law of θ
//! step      encode, draw θ, log-likelihood, back again, Adam
//! ```

mod head;
mod memory;
mod step;

use std::sync::{Arc, Mutex, PoisonError};

use self::memory::Memory;
use super::{CudaBackend, Uploaded, Uploader, bytes};
use crate::point::{
    ResidentBatch, ResidentLearner, ResidentModel, ResidentReport, ResidentState, ResidentStep,
    SentBatch,
};
use crate::{Error, Result, SetOffsets};

/// A model on one GPU, in training.
#[derive(Debug)]
pub(super) struct CudaLearner(Arc<Shared>);

struct Shared {
    backend: CudaBackend,
    model: ResidentModel,
    memory: Mutex<Option<Memory>>,
    uploader: Arc<Uploader>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Shared {{ length: {} }}", self.model.length)
    }
}

/// A batch on the GPU or on its way there.
#[derive(Debug)]
struct Sent {
    learner: Arc<Shared>,
    parts: Uploaded,
    encoder_offsets: SetOffsets,
    offsets: SetOffsets,
    num_candidates: usize,
}

impl CudaLearner {
    pub(super) fn new(backend: &CudaBackend, model: &ResidentModel) -> Result<Self> {
        let uploader = Uploader::new(&*backend.lock()?)?;
        Ok(Self(Arc::new(Shared {
            backend: backend.clone(),
            model: model.clone(),
            memory: Mutex::default(),
            uploader: Arc::new(uploader),
        })))
    }
}

impl ResidentLearner for CudaLearner {
    fn load(&self, state: &ResidentState) -> Result<()> {
        let device = self.0.backend.lock()?;
        let mut memory = self.0.memory.lock().unwrap_or_else(PoisonError::into_inner);
        *memory = Some(Memory::new(&device, &self.0.model, state)?);
        Ok(())
    }

    fn save(&self) -> Result<ResidentState> {
        let device = self.0.backend.lock()?;
        let memory = self.0.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.as_ref().ok_or_else(nothing_loaded)?.save(&device)
    }

    fn send(&self, batch: &ResidentBatch<'_>) -> Result<Box<dyn SentBatch>> {
        let is_near: Vec<u8> = batch.is_near.iter().map(|&is_near| u8::from(is_near)).collect();
        let parts = self.0.uploader.send(&[
            bytes(batch.encoder_points),
            bytes(batch.points),
            bytes(batch.candidates),
            bytes(batch.log_weights),
            &is_near,
        ])?;
        Ok(Box::new(Sent {
            learner: Arc::clone(&self.0),
            parts,
            encoder_offsets: batch.encoder_offsets.clone(),
            offsets: batch.offsets.clone(),
            num_candidates: batch.log_weights.len() / batch.offsets.num_sets(),
        }))
    }
}

impl SentBatch for Sent {
    fn learn(self: Box<Self>, step: &ResidentStep) -> Result<ResidentReport> {
        let device = self.learner.backend.lock()?;
        let mut memory = self.learner.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = memory.as_mut().ok_or_else(nothing_loaded)?;
        self.parts.wait(&device)?;
        step::run(&device, &self.learner.model, memory, &self, step)
    }
}

fn nothing_loaded() -> Error {
    Error::invalid("resident state", "loaded before it is used", "none")
}
