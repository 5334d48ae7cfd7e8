//! All steps of the dynamics of a narrow network in one kernel: see `fused.cu`.
//!
//! The kernel is compiled for the widths at hand, once per shape.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute};

use super::Precision;
use super::buffer::Buffer;
use super::device::{Device, driver};
use super::launch::{Grid, blocks, kernels};
use super::motion::MotionCode;
use super::network::{Network, activation_code};
use super::sets::Chunk;
use crate::Result;
use crate::point::{Activation, MlpShape};

/// What a kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    widths: (usize, usize),
    dims: (usize, usize),
    /// σ and the bits of its leak.
    activation: (i32, u32),
    precision: Precision,
    is_leapfrog: bool,
    /// Groups of sixteen rows a warp carries.
    groups: usize,
    warps: usize,
}

kernels! {
    /// Kernels of one shape of network.
    pub(super) struct Kernels from [include_str!("fused.cu")];
    fn pack(w2: &Buffer, packed: &Buffer);
    fn steps(
        x: &Buffer, v: Option<&Buffer>, tiles: &Buffer<u32>, num_tiles: u32, w1: &Buffer,
        packed: &Buffer, w3: &Buffer, shift1: &Buffer, shift2: &Buffer, shift3: &Buffer,
        is_per_set1: i32, is_per_set2: i32, fixed: Option<&Buffer<u8>>, motion: MotionCode,
        step_sizes: &Buffer, noise: Option<&Buffer>, num_steps: u32, first_row: u64, k0: u32, k1: u32,
        drifts: Option<&Buffer>, velocities: Option<&Buffer>, length: u64, values: &Buffer,
        score: &Buffer,
    );
}

/// Compiled kernels and the shared memory that `steps` takes.
#[derive(Debug)]
pub(super) struct Compiled {
    kernels: Kernels,
    shared_bytes: u32,
}

/// Kernels by what they are compiled for.
pub(super) type Cache = HashMap<Key, Arc<Compiled>>;

impl Key {
    /// The kernel for a network, or `None` where it is too wide, too deep or not even.
    fn new(shape: &MlpShape, precision: Precision, is_leapfrog: bool) -> Option<Self> {
        let config = shape.config();
        let [first, second] = config.hidden_widths[..] else { return None };
        let (d, dx) = (shape.element_dim(), config.value_dim);
        let is_even = first % 16 == 0 && second % 16 == 0;
        if !is_even || second > 128 || d > 8 || dx > 4 || config.output_dim != 1 {
            return None;
        }
        if config.activate_output {
            return None;
        }
        let is_split = precision == Precision::F32;
        let (kind, leak) = activation_code(config.activation);
        let (groups, warps) = layout(second, is_split, activation_code(Activation::Relu).0 == kind);
        Some(Self {
            widths: (first, second),
            dims: (d, dx),
            activation: (kind, leak.to_bits()),
            precision,
            is_leapfrog,
            groups,
            warps,
        })
    }

    fn shared_bytes(&self) -> usize {
        let (first, second) = self.widths;
        // Both orders of W₂: in two parts, whole, or in half as many bytes.
        let copies = match self.precision {
            Precision::F32 => 4,
            Precision::Tf32 => 2,
            Precision::Bf16 => 1,
        };
        let padded = self.dims.0.div_ceil(4) * 4;
        4 * (copies * first * second + first * padded + second + self.warps * (first + second))
    }

    fn definitions(&self) -> Vec<String> {
        let leak = f32::from_bits(self.activation.1);
        [
            ("H1", self.widths.0),
            ("H2", self.widths.1),
            ("D", self.dims.0),
            ("DX", self.dims.1),
            ("SPLIT", usize::from(self.precision == Precision::F32)),
            ("HALF", usize::from(self.precision == Precision::Bf16)),
            ("LEAPFROG", usize::from(self.is_leapfrog)),
            ("MT", self.groups),
            ("WARPS", self.warps),
        ]
        .map(|(name, value)| format!("{name}={value}"))
        .into_iter()
        .chain([format!("KIND={}", self.activation.0), format!("LEAK={leak:e}f")])
        .collect()
    }
}

/// Groups of rows a warp carries, and warps of a block: the fastest of those tried on an H200 for a
/// network of 128 and 64. The sums of 16 rows take second/2 registers a thread and group; what splits
/// factors or has a slope of its own needs more beside them.
fn layout(second: usize, is_split: bool, is_rectifier: bool) -> (usize, usize) {
    match (second <= 64, is_split, is_rectifier) {
        (true, false, true) => (2, 16),
        (true, false, false) => (2, 11),
        (true, true, _) => (1, 12),
        (false, false, _) => (1, 11),
        (false, true, _) => (1, 8),
    }
}

/// The compiled kernel for a network, if there is one for its shape and this GPU.
pub(super) fn find(
    device: &Device,
    shape: &MlpShape,
    is_leapfrog: bool,
) -> Result<Option<(Key, Arc<Compiled>)>> {
    let Some(key) = Key::new(shape, device.precision, is_leapfrog) else { return Ok(None) };
    let ask = |error| driver("ask for the GPU's shared memory", error);
    let most = device
        .context
        .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        .map_err(ask)?;
    // mma with TF32 begins with compute capability 8.
    let (major, _) = device.context.compute_capability().map_err(ask)?;
    let shared_bytes = key.shared_bytes();
    if shared_bytes > usize::try_from(most).unwrap_or(0) || major < 8 {
        return Ok(None);
    }
    let mut cache = device.fused.borrow_mut();
    if let Some(found) = cache.get(&key) {
        return Ok(Some((key, Arc::clone(found))));
    }
    let kernels = Kernels::load(&device.context, &key.definitions())?;
    kernels
        .steps
        .set_attribute(
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            shared_bytes as i32,
        )
        .map_err(|error| driver("set up a kernel", error))?;
    let compiled = Compiled { kernels, shared_bytes: shared_bytes as u32 };
    let compiled = Arc::new(compiled);
    cache.insert(key.clone(), Arc::clone(&compiled));
    Ok(Some((key, compiled)))
}

/// What the steps of one chunk read and write.
pub(super) struct Steps<'a> {
    pub(super) chunk: &'a Chunk,
    /// `[rows, d]`, moved in place.
    pub(super) elements: &'a Buffer,
    /// Leapfrog: `[rows, d_x]`, changed in place.
    pub(super) momentum: Option<&'a Buffer>,
    pub(super) fixed: &'a Buffer<u8>,
    pub(super) motion: MotionCode,
    /// `[steps]`.
    pub(super) step_sizes: &'a Buffer,
    /// Langevin: `[steps]`, and the key of the noise.
    pub(super) noise_scales: Option<&'a Buffer>,
    pub(super) key: [u32; 2],
    /// Langevin: g and v of every step, `[steps, rows, d_x]`.
    pub(super) drifts: Option<&'a Buffer>,
    pub(super) velocities: Option<&'a Buffer>,
    /// `[rows]` and `[rows, d_x]`: f and ∇u at the end.
    pub(super) values: &'a Buffer,
    pub(super) score: &'a Buffer,
}

/// Runs all steps.
pub(super) fn run(
    network: &Network<'_>,
    (key, compiled): &(Key, Arc<Compiled>),
    steps: &Steps<'_>,
) -> Result<()> {
    let (device, kernels) = (network.device, &compiled.kernels);
    let (first, second) = key.widths;
    let packed = device.buffer::<f32>(4 * first * second)?;
    let [w1, w2, w3] = [0, 1, 2].map(|index| &network.weights[index]);
    kernels.pack(device, blocks(64, 256), w2, &packed)?;
    let tiles = tiles(steps.chunk, 16 * key.groups as u32);
    let num_tiles = tiles.len() / 3;
    let tiles = device.upload(&tiles)?;
    let count = num_tiles.div_ceil(key.warps).min(device.num_processors);
    let shared_mem_bytes = compiled.shared_bytes;
    kernels.steps(
        device,
        Grid { shared_mem_bytes, ..blocks(count, 32 * key.warps as u32) },
        steps.elements,
        steps.momentum,
        &tiles,
        num_tiles as u32,
        w1,
        &packed,
        w3,
        &network.shifts[0],
        &network.shifts[1],
        &network.shifts[2],
        i32::from(network.has_context(0)),
        i32::from(network.has_context(1)),
        steps.fixed.some(),
        steps.motion,
        steps.step_sizes,
        steps.noise_scales,
        steps.step_sizes.len() as u32,
        steps.chunk.rows.start as u64,
        steps.key[0],
        steps.key[1],
        steps.drifts,
        steps.velocities,
        (steps.chunk.rows.len() * key.dims.1) as u64,
        steps.values,
        steps.score,
    )
}

/// (first row, rows, set) of tiles of at most `most` rows, each in one set.
fn tiles(chunk: &Chunk, most: u32) -> Vec<u32> {
    let mut tiles = Vec::new();
    for (local, bounds) in chunk.starts.windows(2).enumerate() {
        let set = (chunk.first_set + local) as u32;
        let mut row = bounds[0];
        while row < bounds[1] {
            tiles.extend([row, most.min(bounds[1] - row), set]);
            row += most;
        }
    }
    tiles
}
