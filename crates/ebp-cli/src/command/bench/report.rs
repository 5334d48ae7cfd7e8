//! What was measured, as a table for people.

use std::io::{IsTerminal, stdout};

use ebp::experiment::bench::{BenchReport, BenchSizes};

/// Eighths of a character cell, from empty to full.
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// Character cells of a bar at the whole peak.
const BAR_CELLS: usize = 20;

/// Whether a person looks at it who wants colours.
pub(super) fn is_coloured() -> bool {
    stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

pub(super) fn table(report: &BenchReport, is_coloured: bool) -> String {
    let (bold, dim, green, reset) =
        if is_coloured { ("\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[0m") } else { ("", "", "", "") };
    let BenchSizes { sets, points, value_dim, context_dim, .. } = &report.sizes;
    let plural = if report.threads == 1 { "" } else { "s" };
    let mut lines = vec![
        format!(
            "{bold}ebp {} bench {}{reset}  {sets} sets × {points} points × {value_dim}, \
                 context {context_dim}",
            report.version, report.size
        ),
        format!(
            "{}{}, {} thread{plural}, measured peak {:.1} GFLOP/s",
            report.device,
            report.simd.map_or_else(String::new, |simd| format!(" {simd}")),
            report.threads,
            report.peak_gflops
        ),
        String::new(),
        format!(
            "{dim}{:<17} {:>10} {:>9}  {:<25} {:>8}{reset}",
            "case", "ms", "GFLOP/s", "of peak", "RSS MiB"
        ),
    ];
    if report.cases.iter().any(|case| case.kernel_ms.is_some())
        && let Some(heading) = lines.last_mut()
    {
        *heading = format!(
            "{heading}{dim}  {:>10} {:>8} {:>8} {:>8}{reset}",
            "kernels ms", "of peak", "of time", "launches"
        );
    }
    lines.extend(report.cases.iter().map(|case| {
        let memory = or_dash(case.peak_rss_mib, |mib| format!("{mib:.1}"));
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let kernels = case.kernel_ms.map_or_else(String::new, |ms| {
            let of_peak = or_dash(case.kernel_peak_fraction, percent);
            let of_time = or_dash(case.kernel_share, percent);
            let launches = or_dash(case.launches, |count| count.to_string());
            format!("  {ms:>10.3} {of_peak:>8} {of_time:>8} {launches:>8}")
        });
        format!(
            "{:<17} {:>10.3} {:>9}  {green}{}{reset}{:>5} {memory:>8}{kernels}",
            case.name,
            case.ms,
            or_dash(case.gflops, |gflops| format!("{gflops:.1}")),
            bar(case.peak_fraction.unwrap_or(0.0)),
            or_dash(case.peak_fraction, percent),
        )
    }));
    lines.join("\n") + "\n"
}

/// What is not known is a dash.
fn or_dash<T>(known: Option<T>, show: impl FnOnce(T) -> String) -> String {
    known.map_or_else(|| "–".into(), show)
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
