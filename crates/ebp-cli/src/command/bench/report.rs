//! What was measured, as JSON for machines and as a table for people.

use std::io::{self, IsTerminal, Write, stdout};

use serde::Serialize;

use super::size::Sizes;
use super::{Measurement, median};

/// Eighths of a character cell, from empty to full.
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// Character cells of a bar at the whole peak.
const BAR_CELLS: usize = 20;

/// The result of `ebp bench`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Version of this program.
    pub(crate) version: &'static str,
    /// Name of the sizes, `custom` if they have none.
    pub(crate) size: &'static str,
    /// The sizes themselves.
    pub(crate) sizes: Sizes,
    /// Seed of data and networks.
    pub(crate) seed: u64,
    /// Where it ran.
    pub(crate) device: String,
    /// How many threads it had.
    pub(crate) threads: usize,
    /// Instruction set of the CPU's kernels.
    pub(crate) simd: Option<&'static str>,
    /// Measured rate of independent multiply-adds, all threads together.
    pub(crate) peak_gflops: f64,
    /// The cases, in the order they ran.
    pub(crate) cases: Vec<CaseReport>,
}

/// One case of a [`Report`].
#[derive(Debug, Serialize)]
pub(crate) struct CaseReport {
    /// Its name.
    name: &'static str,
    /// Median wall time of a run.
    ms: f64,
    /// Arithmetic by formula over the median time.
    gflops: f64,
    /// `gflops` over the measured peak.
    peak_fraction: f64,
    /// On a GPU: median time of the kernels alone, without copies and checks …
    kernel_ms: Option<f64>,
    /// … and what share of the measured peak that is.
    kernel_peak_fraction: Option<f64>,
    /// Largest resident memory of the process during the case, where the system tells.
    peak_rss_mib: Option<f64>,
    /// How many runs were timed.
    runs: usize,
}

impl CaseReport {
    /// Rates of a measurement.
    pub(crate) fn new(measurement: &Measurement, peak_gflops: f64) -> Self {
        // A clock that saw no time pass would make an infinite rate.
        let seconds = |durations: &[_]| median(durations).map(|time| time.as_secs_f64().max(1e-9));
        let rate = |seconds: f64| measurement.flops as f64 / seconds / 1e9;
        let whole = seconds(&measurement.durations).unwrap_or(f64::INFINITY);
        let kernels = seconds(&measurement.kernels);
        Self {
            name: measurement.case.name(),
            ms: whole * 1e3,
            gflops: rate(whole),
            peak_fraction: rate(whole) / peak_gflops,
            kernel_ms: kernels.map(|seconds| seconds * 1e3),
            kernel_peak_fraction: kernels.map(|seconds| rate(seconds) / peak_gflops),
            peak_rss_mib: measurement.peak_rss_mib,
            runs: measurement.durations.len(),
        }
    }
}

impl Report {
    /// One JSON object on stdout.
    pub(crate) fn print_json(&self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        writeln!(stdout().lock(), "{text}")
    }

    /// A table on stdout, in colour if a person looks at it.
    pub(crate) fn print_table(&self) -> io::Result<()> {
        let is_coloured = stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        stdout().lock().write_all(self.table(is_coloured).as_bytes())
    }

    fn table(&self, is_coloured: bool) -> String {
        let (bold, dim, green, reset) = if is_coloured {
            ("\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[0m")
        } else {
            ("", "", "", "")
        };
        let Sizes { sets, points, value_dim, context_dim, .. } = &self.sizes;
        let plural = if self.threads == 1 { "" } else { "s" };
        let mut lines = vec![
            format!(
                "{bold}ebp {} bench {}{reset}  {sets} sets × {points} points × {value_dim}, \
                 context {context_dim}",
                self.version, self.size
            ),
            format!(
                "{}{}, {} thread{plural}, measured peak {:.1} GFLOP/s",
                self.device,
                self.simd.map_or_else(String::new, |simd| format!(" {simd}")),
                self.threads,
                self.peak_gflops
            ),
            String::new(),
            format!(
                "{dim}{:<17} {:>10} {:>9}  {:<25} {:>8}{reset}",
                "case", "ms", "GFLOP/s", "of peak", "RSS MiB"
            ),
        ];
        if self.cases.iter().any(|case| case.kernel_ms.is_some())
            && let Some(heading) = lines.last_mut()
        {
            *heading = format!("{heading}{dim}  {:>10} {:>8}{reset}", "kernels ms", "of peak");
        }
        lines.extend(self.cases.iter().map(|case| {
            let memory = case.peak_rss_mib.map_or_else(|| "–".into(), |mib| format!("{mib:.1}"));
            let kernels = match (case.kernel_ms, case.kernel_peak_fraction) {
                (Some(ms), Some(fraction)) => format!("  {ms:>10.3} {:>7.0}%", fraction * 100.0),
                _ => String::new(),
            };
            format!(
                "{:<17} {:>10.3} {:>9.1}  {green}{}{reset}{:>4.0}% {memory:>8}{kernels}",
                case.name,
                case.ms,
                case.gflops,
                bar(case.peak_fraction),
                case.peak_fraction * 100.0,
            )
        }));
        lines.join("\n") + "\n"
    }
}

/// A bar of [`BAR_CELLS`] cells, filled to an eighth of a cell.
fn bar(fraction: f64) -> String {
    let total = BAR_CELLS * 8;
    // Counting up keeps the number whole: a cast of a float could be negative or too large.
    let filled =
        (0..total).take_while(|&eighth| fraction * total as f64 >= eighth as f64 + 0.5).count();
    (0..BAR_CELLS).map(|cell| EIGHTHS[filled.saturating_sub(cell * 8).min(8)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_one_width_and_grow_by_eighths() {
        assert_eq!(bar(0.0), " ".repeat(20));
        assert_eq!(bar(1.0), "█".repeat(20));
        assert_eq!(bar(7.0), "█".repeat(20));
        assert_eq!(bar(f64::NAN), " ".repeat(20));
        assert_eq!(bar(0.5 + 3.0 / 160.0), format!("{}▍{}", "█".repeat(10), " ".repeat(9)));
    }
}
