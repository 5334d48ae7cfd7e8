//! Work that is counted, and pieces of unknown length: what commands show that train nothing.

use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::{LINE_INTERVAL, bar, clock, duration, notice};

/// Pieces of work that are counted: a bar on a terminal, elsewhere a line every few seconds; with their
/// rate and the time that is left.
#[derive(Debug)]
pub(crate) struct Count {
    bar: ProgressBar,
    /// Where lines are written.
    lines: Option<Lines>,
}

#[derive(Debug)]
struct Lines {
    unit: &'static str,
    length: u64,
    done: AtomicU64,
    began: Instant,
    last: Mutex<Instant>,
}

/// Counts `length` pieces, such as `clouds`.
pub(crate) fn count(length: u64, is_quiet: bool, unit: &'static str) -> Count {
    let template =
        ["{wide_bar} {pos}/{len} ", unit, "  {per_sec}  {elapsed} so far  {eta} left"].concat();
    let bar = bar(length, is_quiet, &template);
    bar.enable_steady_tick(Duration::from_secs(1));
    let now = Instant::now();
    let lines = Lines { unit, length, done: AtomicU64::new(0), began: now, last: Mutex::new(now) };
    Count { bar, lines: (!is_quiet && !stderr().is_terminal()).then_some(lines) }
}

impl Count {
    /// So many more are done; any thread may say so.
    pub(crate) fn inc(&self, more: u64) {
        self.bar.inc(more);
        if let Some(lines) = &self.lines {
            lines.done.fetch_add(more, Ordering::Relaxed);
            lines.write_if_due();
        }
    }

    /// So many are done in all.
    pub(crate) fn set(&self, done: u64) {
        self.bar.set_position(done);
        if let Some(lines) = &self.lines {
            lines.done.store(done, Ordering::Relaxed);
            lines.write_if_due();
        }
    }

    /// All is done; nothing stays.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Lines {
    fn write_if_due(&self) {
        // Whoever finds another thread at it has nothing to add.
        let Ok(mut last) = self.last.try_lock() else { return };
        if last.elapsed() >= LINE_INTERVAL {
            *last = Instant::now();
            notice(&self.line(self.began.elapsed().as_secs_f64()));
        }
    }

    fn line(&self, seconds: f64) -> String {
        let Self { unit, length, .. } = self;
        let done = self.done.load(Ordering::Relaxed);
        let rate = done as f64 / seconds.max(1e-9);
        let left = length.saturating_sub(done) as f64 / rate.max(1e-9);
        format!("{done} of {length} {unit}  {rate:.1} {unit}/s  {} left", duration(left))
    }
}

/// Pieces of work of unknown lengths, each with a name: a clock on a terminal, elsewhere a line every few
/// seconds.
#[derive(Debug)]
pub(crate) struct Pieces {
    clock: ProgressBar,
    /// When the last line was written, where lines are.
    last: Option<Instant>,
}

/// Nothing has begun yet.
pub(crate) fn pieces(is_quiet: bool) -> Pieces {
    let last = (!is_quiet && !stderr().is_terminal()).then(Instant::now);
    Pieces { clock: clock(0, is_quiet), last }
}

impl Pieces {
    /// A piece begins.
    pub(crate) fn begin(&mut self, piece: &str) {
        self.clock.set_message(piece.to_owned());
        if let Some(last) = &mut self.last
            && last.elapsed() >= LINE_INTERVAL
        {
            *last = Instant::now();
            notice(piece);
        }
    }

    /// All is done; nothing stays.
    pub(crate) fn finish(&self) {
        self.clock.finish_and_clear();
    }
}

/// Does one piece of work of unknown length, with a clock on a terminal.
pub(crate) fn during<R>(is_quiet: bool, piece: &'static str, work: impl FnOnce() -> R) -> R {
    let clock = clock(0, is_quiet);
    clock.set_message(piece);
    let found = work();
    clock.finish_and_clear();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_tell_their_rate_and_the_time_that_is_left() {
        let count = count(200, false, "sets");
        // Tests have no terminal, unless somebody looks at them.
        if let Some(lines) = &count.lines {
            count.inc(40);
            count.inc(10);
            assert_eq!(lines.line(25.0), "50 of 200 sets  2.0 sets/s  1 min 15 s left");
            count.set(200);
            assert_eq!(lines.line(25.0), "200 of 200 sets  8.0 sets/s  0 s left");
        }
        count.finish();
        assert!(super::count(1, true, "sets").lines.is_none());
    }
}
