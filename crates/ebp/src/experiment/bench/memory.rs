//! The largest resident memory of this process while something runs.
//!
//! Linux keeps a high-water mark, `VmHWM`, that can be set back to the present size; other
//! systems keep one for the whole life of the process at best, which would say nothing about a
//! single case, so there the answer is `None`.

/// A measurement under way.
#[derive(Debug)]
pub(super) struct PeakMemory {
    is_reset: bool,
}

impl PeakMemory {
    /// Sets the high-water mark back.
    pub(super) fn start() -> Self {
        // "5" resets VmHWM: proc_pid_clear_refs(5).
        let is_reset =
            cfg!(target_os = "linux") && std::fs::write("/proc/self/clear_refs", "5").is_ok();
        Self { is_reset }
    }

    /// The largest resident memory since the start, in MiB.
    pub(super) fn finish(self) -> Option<f64> {
        if !self.is_reset {
            return None;
        }
        high_water_mib(&std::fs::read_to_string("/proc/self/status").ok()?)
    }
}

/// Finds `VmHWM:   123456 kB` in a process status.
fn high_water_mib(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_read_in_mebibytes() {
        let status = "Name:\tebp\nVmPeak:\t  999 kB\nVmHWM:\t    3072 kB\nVmRSS:\t  12 kB\n";
        assert_eq!(high_water_mib(status), Some(3.0));
        assert_eq!(high_water_mib("Name:\tebp\n"), None);
    }
}
