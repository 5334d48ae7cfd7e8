//! The library of MPI, loaded at run time. The only unsafe code of `exchange`.
//!
//! Nothing is compiled against MPI. Functions have the same types in all libraries of 64-bit systems; handles
//! differ:
//!
//! ```text
//! libmpi_abi.so    the standard ABI of MPI 5 (MPICH 5)      small constants
//! libmpi.so.40     Open MPI                                 addresses of what the library exports
//! libmpi.so.12     MPICH 3 and 4, and what descends from it   constants of 32 bits
//! ```
//!
//! Calls are the non-blocking ones, and whoever waits for them asks again and again: a blocking call would keep a
//! core busy that the backward pass needs.
//!
//! Everything travels as bytes: processors of one byte order and one floating-point format are assumed.
#![allow(unsafe_code, reason = "calls of a library of C")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::ranks::Wire;
use crate::{Error, Result};

/// `MPI_MAX_LIBRARY_VERSION_STRING` of the library that has the largest; names and errors are shorter.
const LONGEST_TEXT: usize = 8192;

/// So long a thread that waits asks without a rest while others compute, and while nobody does: what comes
/// soon is not missed by the length of a sleep.
const EAGER: Duration = Duration::from_micros(300);
const EAGER_ALONE: Duration = Duration::from_millis(5);
/// Then it rests for a tenth of what it has waited, within these bounds: systems wake nobody more exactly than
/// the lower one, and the upper one is what may be lost.
const REST: [Duration; 2] = [Duration::from_micros(50), Duration::from_micros(500)];

/// A handle: a pointer, or an integer in the lower half of its register.
type Handle = usize;

/// What tells libraries apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abi {
    /// MPI 5.
    Standard,
    OpenMpi,
    Mpich,
}

impl Abi {
    /// File names, the likeliest first.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            Self::Standard => &["libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so"],
            Self::OpenMpi => &["libmpi.so.40"],
            Self::Mpich => &["libmpi.so.12"],
        }
    }

    /// `MPI_THREAD_SERIALIZED`: one thread at a time.
    fn serialized(self) -> c_int {
        match self {
            Self::Standard => 2048,
            Self::OpenMpi | Self::Mpich => 2,
        }
    }
}

/// `MPI_COMM_WORLD`, `MPI_BYTE` and `MPI_ERRORS_RETURN`.
#[derive(Clone, Copy)]
struct Handles {
    world: Handle,
    byte: Handle,
    errors_return: Handle,
}

type Init = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
type NoArguments = unsafe extern "C" fn() -> c_int;
type OfWorld = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type Text = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
type ErrorText = unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int;
type SetErrors = unsafe extern "C" fn(Handle, Handle) -> c_int;
type AllGather = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    c_int,
    Handle,
    Handle,
    *mut Handle,
) -> c_int;
type AllGatherVarying = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    *const c_int,
    *const c_int,
    Handle,
    Handle,
    *mut Handle,
) -> c_int;
type AllToAllVarying = unsafe extern "C" fn(
    *const c_void,
    *const c_int,
    *const c_int,
    Handle,
    *mut c_void,
    *const c_int,
    *const c_int,
    Handle,
    Handle,
    *mut Handle,
) -> c_int;
/// The last is a place for a status, which nobody reads.
type Test = unsafe extern "C" fn(*mut Handle, *mut c_int, *mut c_void) -> c_int;

/// A loaded library that has what is needed.
pub(super) struct Mpi {
    /// Its file, and the first line of what it says of itself.
    pub(super) file: PathBuf,
    pub(super) version: String,
    abi: Abi,
    handles: Handles,
    init: Init,
    finalize: NoArguments,
    rank: OfWorld,
    size: OfWorld,
    processor: Text,
    error_text: ErrorText,
    set_errors: SetErrors,
    all_gather: AllGather,
    all_gather_varying: AllGatherVarying,
    all_to_all_varying: AllToAllVarying,
    test: Test,
    /// Last, so that it is closed after nothing can be called any more; libraries of MPI are never unloaded
    /// in fact, which `load` sees to.
    _library: std::mem::ManuallyDrop<Library>,
}

impl fmt::Debug for Mpi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Mpi {{ file: {:?}, version: {:?} }}", self.file, self.version)
    }
}

impl Mpi {
    /// The library in a file, or of a name that the system's loader finds; the reason if there is none.
    pub(super) fn load(abi: Abi, file: &Path) -> std::result::Result<Self, String> {
        // SAFETY: loading runs the library's initialisers, as linking with it would. It is one of those
        // whose names people and systems give to MPI alone. Plug-ins of Open MPI look for its symbols
        // among the global ones.
        let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_GLOBAL) };
        // Unloading a library that has threads of its own or handlers at the exit ends in a crash.
        let library = std::mem::ManuallyDrop::new(library.map_err(|error| words(&error))?);
        /// A function by its name.
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the type is that of the function in the standard; handles and integers are
                // passed in registers of 64 bits, of which a callee that takes 32 reads the lower half.
                let found = unsafe { library.get(concat!($name, "\0").as_bytes()) };
                *found.map_err(|error| format!("{}: {}", file.display(), words(&error)))?
            }};
        }
        let exported = |name: &str| -> std::result::Result<Handle, String> {
            // SAFETY: nothing is read: the address of the symbol is the handle.
            let found = unsafe { library.get::<*const c_void>(name.as_bytes()) };
            let found = found.map_err(|error| format!("{}: {}", file.display(), words(&error)))?;
            Ok(found.as_raw_ptr() as usize)
        };
        let handles = match abi {
            Abi::Standard => Handles { world: 0x101, byte: 0x247, errors_return: 0x143 },
            Abi::Mpich => {
                Handles { world: 0x4400_0000, byte: 0x4c00_010d, errors_return: 0x5400_0001 }
            }
            Abi::OpenMpi => Handles {
                world: exported("ompi_mpi_comm_world\0")?,
                byte: exported("ompi_mpi_byte\0")?,
                errors_return: exported("ompi_mpi_errors_return\0")?,
            },
        };
        let version: Text = function!("MPI_Get_library_version");
        Ok(Self {
            file: file.to_owned(),
            version: {
                // SAFETY: may be called at any time; `place` has room for the longest answer.
                let said = text(|place, length| unsafe { version(place, length) });
                said.split(',').next().unwrap_or_default().to_owned()
            },
            abi,
            handles,
            init: function!("MPI_Init_thread"),
            finalize: function!("MPI_Finalize"),
            rank: function!("MPI_Comm_rank"),
            size: function!("MPI_Comm_size"),
            processor: function!("MPI_Get_processor_name"),
            error_text: function!("MPI_Error_string"),
            set_errors: function!("MPI_Comm_set_errhandler"),
            all_gather: function!("MPI_Iallgather"),
            all_gather_varying: function!("MPI_Iallgatherv"),
            all_to_all_varying: function!("MPI_Ialltoallv"),
            test: function!("MPI_Test"),
            _library: library,
        })
    }

    /// Joins the other processes. Once in the life of a process.
    pub(super) fn begin(self) -> Result<World> {
        let (asked, mut given) = (self.abi.serialized(), 0);
        // SAFETY: once, before any other call; without arguments, as the standard allows.
        let code = unsafe { (self.init)(ptr::null_mut(), ptr::null_mut(), asked, &raw mut given) };
        self.check("begin", code)?;
        if given < asked {
            let message = "the MPI library cannot be called by several threads in turns";
            let help = "use a build of it with support for threads (MPI_THREAD_SERIALIZED)";
            return Err(Error::failed(message).with_help(help));
        }
        let (mut rank, mut size) = (0, 0);
        let Handles { world, errors_return, .. } = self.handles;
        // SAFETY: between init and finalize, with places for one integer.
        let codes = unsafe {
            [
                (self.set_errors)(world, errors_return),
                (self.rank)(world, &raw mut rank),
                (self.size)(world, &raw mut size),
            ]
        };
        codes.into_iter().try_for_each(|code| self.check("begin", code))?;
        let place = (count(rank), count(size).max(1));
        Ok(World { mpi: self, place, is_open: true, at_work: Arc::default() })
    }

    fn check(&self, action: &str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: `place` has room for the longest answer.
        let reason = text(|place, length| unsafe { (self.error_text)(code, place, length) });
        Err(Error::failed(format!("MPI could not {action}: {reason}")))
    }
}

/// What the loader says.
fn words(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

/// The first line of what a function writes to a place.
fn text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
    let mut bytes = vec![0_u8; LONGEST_TEXT + 1];
    let mut length = 0;
    if write(bytes.as_mut_ptr().cast(), &raw mut length) != 0 {
        return "no words for it".into();
    }
    // The last byte is a zero that nobody writes to.
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default().to_string_lossy();
    let line = text.lines().next().unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn count(number: c_int) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// `MPI_COMM_WORLD` of a library at work.
#[derive(Debug)]
pub(super) struct World {
    mpi: Mpi,
    place: (usize, usize),
    is_open: bool,
    /// How many replicas of this process compute.
    at_work: Arc<AtomicUsize>,
}

/// Where bytes begin. An empty vector begins at address 1, which is what Open MPI calls `MPI_IN_PLACE`: no bytes begin
/// at a place of their own.
fn address(bytes: &[u8]) -> *const c_void {
    static NOWHERE: u64 = 0;
    if bytes.is_empty() { (&raw const NOWHERE).cast() } else { bytes.as_ptr().cast() }
}

/// Room for so many bytes, and a byte where there are none, as [`address`] says why.
fn room(lengths: &[usize]) -> Vec<u8> {
    vec![0; lengths.iter().sum::<usize>().max(1)]
}

/// Lengths as MPI takes them, and where each part begins.
fn parts(lengths: &[usize]) -> Result<(Vec<c_int>, Vec<c_int>)> {
    let (mut sizes, mut starts, mut end) = (Vec::new(), Vec::new(), 0_usize);
    for &length in lengths {
        let too_long = || {
            let message = "a step must exchange less than 2 GiB with each process";
            Error::failed(message).with_help("train a smaller model")
        };
        sizes.push(c_int::try_from(length).map_err(|_long| too_long())?);
        starts.push(c_int::try_from(end).map_err(|_long| too_long())?);
        end += length;
    }
    Ok((sizes, starts))
}

impl World {
    fn check_open(&self) -> Result<()> {
        if self.is_open {
            return Ok(());
        }
        Err(Error::failed("the processes have ended their work together"))
    }

    /// Begins a call that gives its request, and waits until it is done.
    fn complete(&self, action: &str, begin: impl FnOnce(*mut Handle) -> c_int) -> Result<()> {
        // MPICH's requests are integers of 32 bits, which it writes and reads at the same address.
        let mut request: Handle = 0;
        self.mpi.check(action, begin(&raw mut request))?;
        // The statuses of all libraries have at most 32 bytes.
        let mut status = [0_u64; 16];
        let began = Instant::now();
        loop {
            let mut is_done = 0;
            // SAFETY: the request is one that was begun and is not done; there is room for a number and a
            // status. No other thread calls.
            let code = unsafe {
                (self.mpi.test)(&raw mut request, &raw mut is_done, status.as_mut_ptr().cast())
            };
            // A request whose test fails is over, so that its memory may be used again.
            self.mpi.check(action, code)?;
            if is_done != 0 {
                return Ok(());
            }
            match rest(began.elapsed(), self.at_work.load(Ordering::Relaxed) > 0) {
                Some(rest) => thread::sleep(rest),
                None => thread::yield_now(),
            }
        }
    }
}

/// For how long a thread rests that has waited for so long, beside others that compute or not.
fn rest(waited: Duration, is_beside: bool) -> Option<Duration> {
    let eager = if is_beside { EAGER } else { EAGER_ALONE };
    (waited >= eager).then(|| (waited / 10).clamp(REST[0], REST[1]))
}

impl Wire for World {
    fn place(&self) -> (usize, usize) {
        self.place
    }

    fn heed(&mut self, at_work: Arc<AtomicUsize>) {
        self.at_work = at_work;
    }

    fn headers(&mut self, own: [u64; 3]) -> Result<Vec<[u64; 3]>> {
        const BYTES: c_int = 24;
        self.check_open()?;
        let mut all = vec![[0_u64; 3]; self.place.1];
        let Handles { world, byte, .. } = self.mpi.handles;
        let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: every rank sends as many bytes, three words of eight, and `all` has room for those of all; both
        // live until the call is done. No other thread calls: this has `&mut self`.
        self.complete("exchange headers", |request| unsafe {
            (self.mpi.all_gather)(from, BYTES, byte, to, BYTES, byte, world, request)
        })?;
        Ok(all)
    }

    fn gather(&mut self, own: &[u8], lengths: &[usize]) -> Result<Vec<u8>> {
        self.check_open()?;
        let (rank, size) = self.place;
        if lengths.len() != size || lengths[rank] != own.len() {
            return Err(Error::invalid("lengths", "those of all processes", lengths.len()));
        }
        let (sizes, starts) = parts(lengths)?;
        let own_size = sizes[rank];
        let mut all = room(lengths);
        let Handles { world, byte, .. } = self.mpi.handles;
        let (from, to) = (address(own), all.as_mut_ptr().cast());
        let (sizes, starts) = (sizes.as_ptr(), starts.as_ptr());
        // SAFETY: as many sizes and starts as ranks; the parts lie in `all` one after the other; this rank
        // sends as many bytes as the others expect of it. All of it lives until the call is done, and no other
        // thread calls.
        self.complete("gather", |request| unsafe {
            let gather = self.mpi.all_gather_varying;
            gather(from, own_size, byte, to, sizes, starts, byte, world, request)
        })?;
        all.truncate(lengths.iter().sum());
        Ok(all)
    }

    fn scatter(&mut self, own: &[u8], sent: &[usize], received: &[usize]) -> Result<Vec<u8>> {
        self.check_open()?;
        let size = self.place.1;
        let is_all = sent.iter().sum::<usize>() == own.len();
        if sent.len() != size || received.len() != size || !is_all {
            return Err(Error::invalid("lengths", "those of all processes", sent.len()));
        }
        let (to_sizes, to_starts) = parts(sent)?;
        let (from_sizes, from_starts) = parts(received)?;
        let mut all = room(received);
        let Handles { world, byte, .. } = self.mpi.handles;
        let to = all.as_mut_ptr().cast();
        // SAFETY: as many sizes and starts as ranks; parts lie one after the other, those that are sent in
        // `own`, those that are received in `all`. All of it lives until the call is done, and no other thread
        // calls.
        self.complete("scatter", |request| unsafe {
            (self.mpi.all_to_all_varying)(
                address(own),
                to_sizes.as_ptr(),
                to_starts.as_ptr(),
                byte,
                to,
                from_sizes.as_ptr(),
                from_starts.as_ptr(),
                byte,
                world,
                request,
            )
        })?;
        all.truncate(received.iter().sum());
        Ok(all)
    }

    fn host(&self) -> String {
        // SAFETY: between init and finalize; `place` has room for the longest name.
        text(|place, length| unsafe { (self.mpi.processor)(place, length) })
    }

    fn close(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        // SAFETY: once, the last call.
        let code = unsafe { (self.mpi.finalize)() };
        self.mpi.check("end", code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_one_after_the_other_and_stay_below_the_limit() {
        assert_eq!(parts(&[3, 0, 5]).unwrap(), (vec![3, 0, 5], vec![0, 3, 3]));
        assert!(parts(&[1 << 31]).is_err() && parts(&[1 << 30, 1 << 30, 1]).is_err());
    }

    #[test]
    fn a_file_that_is_no_library_is_refused_with_the_loaders_reason() {
        let error = Mpi::load(Abi::OpenMpi, Path::new("/no/such/libmpi.so.40")).unwrap_err();
        assert!(error.contains("libmpi.so.40"), "{error}");
    }

    #[test]
    fn no_bytes_have_an_address_that_means_nothing_else() {
        // The constants of the libraries lie within a page of 0, on both sides.
        let nothing = Vec::new();
        assert!((4096..usize::MAX - 4096).contains(&(address(&nothing) as usize)));
        let all = room(&[0, 0]);
        assert!(!all.is_empty() && address(&all) == all.as_ptr().cast());
    }

    #[test]
    fn rests_are_short_beside_what_was_waited() {
        let (microseconds, none) = (Duration::from_micros, None);
        assert_eq!((rest(microseconds(299), true), rest(microseconds(4999), false)), (none, none));
        assert_eq!(rest(microseconds(300), true), Some(microseconds(50)));
        assert_eq!(rest(microseconds(3000), true), Some(microseconds(300)));
        assert_eq!(rest(microseconds(5000), false), Some(microseconds(500)));
        assert_eq!(rest(Duration::from_secs(9), true), Some(microseconds(500)));
    }
}
