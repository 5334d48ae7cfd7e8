//! How kernels are started: tables of typed kernels, their arguments and their grids.

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, LaunchArgs, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::{self, CompileOptions};

use super::buffer::Buffer;
use super::device::{Device, driver};
use crate::{Error, Result};

/// Stands before every source.
pub(super) const COMMON: &str = include_str!("common.cu");

/// Blocks of a launch and threads of a block.
pub(crate) type Grid = LaunchConfig;

/// What a kernel takes: an array, an array that may be missing, or plain numbers.
pub(crate) trait Argument {
    /// Adds it to the arguments of a launch.
    fn push<'a>(&'a self, launch: &mut LaunchArgs<'a>);
}

impl<T> Argument for &Buffer<T> {
    fn push<'a>(&'a self, launch: &mut LaunchArgs<'a>) {
        launch.arg(self.address());
    }
}

impl<T> Argument for Option<&Buffer<T>> {
    fn push<'a>(&'a self, launch: &mut LaunchArgs<'a>) {
        static NULL: u64 = 0;
        launch.arg(self.map_or(&NULL, |buffer| buffer.address()));
    }
}

/// Plain numbers are passed as they are.
macro_rules! plain_arguments {
    ($($kind:ty),* $(,)?) => {
        $(impl $crate::point::cuda::launch::Argument for $kind {
            fn push<'a>(&'a self, launch: &mut ::cudarc::driver::LaunchArgs<'a>) {
                ::cudarc::driver::PushKernelArg::arg(launch, self);
            }
        })*
    };
}
pub(super) use plain_arguments;

plain_arguments!(u32, u64, i32, f32);

/// A table of kernels, which `common.cu` and the `from` sources hold:
///
/// ```text
/// kernels! {
///     /// What they are for.
///     pub(super) struct Kernels from [include_str!("kernels.cu")];
///     fn to_bf16(input: &Buffer, out: &Buffer<u16>, count: u64);
/// }
/// ```
///
/// `Kernels::load(&context, &definitions)` compiles them, and `kernels.to_bf16(device, grid, …)` sends
/// one to the stream. Each kernel's parameters are written down here, once, in the order of the
/// source: a call with others does not compile, and a test that comes with every table compares it
/// with its source. A null pointer is `None`. One table a module.
macro_rules! kernels {
    (
        $(#[$about:meta])*
        $visibility:vis struct $table:ident from [$($source:expr),+ $(,)?];
        $(fn $name:ident($($argument:ident: $kind:ty),* $(,)?);)+
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        $visibility struct $table { $($name: ::cudarc::driver::CudaFunction,)+ }

        impl $table {
            /// Compiles them for the context's GPU, with `definitions` such as `"WIDTH=3"`.
            $visibility fn load(
                context: &::std::sync::Arc<::cudarc::driver::CudaContext>,
                definitions: &[String],
            ) -> $crate::Result<Self> {
                let module =
                    $crate::point::cuda::launch::compile(context, &[$($source),+], definitions)?;
                Ok(Self {
                    $($name: $crate::point::cuda::launch::find(&module, stringify!($name))?,)+
                })
            }

            $(
                #[allow(clippy::too_many_arguments, reason = "as many as the kernel has")]
                $visibility fn $name(
                    &self,
                    device: &$crate::point::cuda::Device,
                    grid: $crate::point::cuda::launch::Grid,
                    $($argument: $kind),*
                ) -> $crate::Result<()> {
                    device.launch(&self.$name, grid, &[$(&$argument),*])
                }
            )+
        }

        #[cfg(test)]
        #[test]
        fn the_table_follows_its_source() {
            $crate::point::cuda::table::compare(
                &[$($source),+],
                &[$((stringify!($name), &[$(stringify!($kind)),*])),+],
            );
        }
    };
}
pub(crate) use kernels;

/// Compiles CUDA sources, `common.cu` before them, for the context's GPU.
pub(crate) fn compile(
    context: &Arc<CudaContext>,
    sources: &[&str],
    definitions: &[String],
) -> Result<Arc<CudaModule>> {
    let (major, minor) =
        context.compute_capability().map_err(|error| driver("ask for the GPU's version", error))?;
    let mut options = vec![format!("--gpu-architecture=compute_{major}{minor}")];
    options.extend(definitions.iter().map(|definition| format!("-D{definition}")));
    let options = CompileOptions { options, ..CompileOptions::default() };
    let source = [COMMON, &sources.concat()].concat();
    let ptx = nvrtc::compile_ptx_with_opts(source, options).map_err(|error| Error::Device {
        action: "compile the kernels",
        reason: format!("{error:?}"),
        remedy: "`--device cpu` does without the GPU; please report this",
    })?;
    context.load_module(ptx).map_err(|error| driver("load the kernels", error))
}

/// A kernel of a compiled source.
pub(crate) fn find(module: &Arc<CudaModule>, name: &str) -> Result<CudaFunction> {
    module.load_function(name).map_err(|error| driver("load a kernel", error))
}

impl Device {
    /// Sends a kernel to the stream; `kernels!` writes the calls of this.
    pub(crate) fn launch(
        &self,
        kernel: &CudaFunction,
        grid: Grid,
        arguments: &[&dyn Argument],
    ) -> Result<()> {
        let mut launch = self.stream.launch_builder(kernel);
        for argument in arguments {
            argument.push(&mut launch);
        }
        self.timed(|| {
            // SAFETY: the arguments are those of the table, which follows the source. Arrays are on
            // the GPU, live until the stream has passed this point, and callers give them the sizes
            // that the source names.
            unsafe { launch.launch(grid) }
                .map(|_| ())
                .map_err(|error| driver("run a kernel", error))
        })
    }
}

/// Threads for `count` independent entries.
pub(crate) fn flat(count: usize) -> Grid {
    blocks(count.div_ceil(256).clamp(1, 132 * 32), 256)
}

/// A warp for each of `rows` rows.
pub(crate) fn warps(rows: usize) -> Grid {
    blocks(rows.div_ceil(8).max(1), 256)
}

/// `count` blocks of `threads` threads.
pub(crate) fn blocks(count: usize, threads: u32) -> Grid {
    Grid { grid_dim: (count as u32, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

/// A block for each set and 32 columns.
pub(crate) fn per_set(sets: usize, columns: usize) -> Grid {
    Grid {
        grid_dim: (sets as u32, columns.div_ceil(32) as u32, 1),
        block_dim: (32, 8, 1),
        shared_mem_bytes: 0,
    }
}

/// A block for each set and up to 32 columns, its threads shared out among columns and rows.
pub(crate) fn sums_per_set(sets: usize, columns: usize) -> Grid {
    let wide = columns.next_power_of_two().min(32);
    Grid {
        grid_dim: (sets as u32, columns.div_ceil(wide) as u32, 1),
        block_dim: (wide as u32, (1024 / wide) as u32, 1),
        shared_mem_bytes: 0,
    }
}
