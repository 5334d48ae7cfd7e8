//! How long the GPU computes: every kernel between two marks on the stream.
//!
//! What a caller waits for also holds copies, checks and the way to the GPU; this is the rest. A mark
//! takes a microsecond or two of its own, so sums of many short kernels come out a little too long.

use std::cell::RefCell;
use std::time::Duration;

use cudarc::driver::{CudaEvent, sys};

use super::device::{Device, driver};
use crate::Result;

/// What the GPU was given to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelWork {
    /// From mark to mark, added up.
    pub time: Duration,
    /// How many kernels, matrix products, and fills and copies of its memory were sent.
    pub launches: usize,
}

/// The marks around every kernel since it was started; off unless asked for.
#[derive(Debug, Default)]
pub(super) struct Meter {
    marks: RefCell<Option<Vec<(CudaEvent, CudaEvent)>>>,
}

impl Device {
    /// Does `launch`, which sends work to the stream, between two marks if somebody measures.
    pub(super) fn timed<T>(&self, launch: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut marks = self.meter.marks.borrow_mut();
        let Some(marks) = marks.as_mut() else { return launch() };
        let begin = self.mark()?;
        let launched = launch()?;
        marks.push((begin, self.mark()?));
        Ok(launched)
    }

    pub(super) fn start_meter(&self) {
        self.meter.marks.replace(Some(Vec::new()));
    }

    /// Waits for the GPU and adds up; measures no longer.
    pub(super) fn stop_meter(&self) -> Result<KernelWork> {
        self.synchronize()?;
        let mut work = KernelWork::default();
        for (begin, end) in self.meter.marks.take().unwrap_or_default() {
            let ms = begin.elapsed_ms(&end).map_err(|error| driver("read its clock", error))?;
            work.time += Duration::from_secs_f64(f64::from(ms.max(0.0)) * 1e-3);
            work.launches += 1;
        }
        Ok(work)
    }

    fn mark(&self) -> Result<CudaEvent> {
        self.stream
            .record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))
            .map_err(|error| driver("mark the time", error))
    }
}
