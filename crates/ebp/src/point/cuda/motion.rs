//! Clip, base measure, walls and fixed elements as kernels know them.

use cudarc::driver::DeviceRepr;

use super::buffer::Buffer;
use super::device::Device;
use super::launch::plain_arguments;
use crate::Result;
use crate::point::{Bounds, Clip, Motion};

/// [`Motion`] as kernels know it, without the fixed elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct MotionCode {
    clip: i32,
    limit: f32,
    precision: f32,
    is_bounded: i32,
    low: f32,
    high: f32,
}

// SAFETY: plain numbers in C's layout, the same as `struct Motion` of common.cu.
unsafe impl DeviceRepr for MotionCode {}

plain_arguments!(MotionCode);

impl MotionCode {
    fn new(motion: &Motion<'_>) -> Self {
        let (clip, limit) = match motion.clip {
            Clip::Off => (0, 0.0),
            Clip::Elementwise(limit) => (1, limit),
            Clip::Norm(limit) => (2, limit),
        };
        let precision = motion.base_std_dev.map_or(0.0, |std_dev| (std_dev * std_dev).recip());
        let (is_bounded, Bounds { low, high }) = match motion.bounds {
            None => (0, Bounds { low: 0.0, high: 0.0 }),
            Some(bounds) => (1, bounds),
        };
        Self { clip, limit, precision, is_bounded, low, high }
    }

    /// Whether the way back through a kick of a piecewise linear network asks only how far an element
    /// moved: nothing is reflected, and a limited gradient shows where it was limited.
    pub(super) fn forgets_places(&self) -> bool {
        self.is_bounded == 0 && self.clip < 2
    }
}

/// [`Motion`] on the GPU.
#[derive(Clone, Debug)]
pub(crate) struct DeviceMotion {
    pub(super) code: MotionCode,
    /// `[total]`, 1 where an element must not move; empty if all move.
    pub(super) fixed: Buffer<u8>,
}

impl DeviceMotion {
    /// Sends the mask of fixed elements, if there is one.
    pub(crate) fn new(device: &Device, motion: &Motion<'_>) -> Result<Self> {
        let fixed = match motion.is_fixed {
            None => Buffer::none(),
            Some(mask) => {
                let bytes: Vec<u8> = mask.iter().map(|&is_fixed| u8::from(is_fixed)).collect();
                device.upload(&bytes)?
            }
        };
        Ok(Self { code: MotionCode::new(motion), fixed })
    }
}
