//! How far the pairs are: a bar on a terminal, a line every few seconds elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::Instant;

use ebp::metric::collection::CollectionProgress;
use indicatif::ProgressBar;

use crate::progress::{LINE_INTERVAL, bar, duration};

/// The bar of the pairs.
const TEMPLATE: &str = "{msg} {wide_bar} {pos}/{len} pairs  {per_sec}  {eta} left";

/// Shows the progress of one evaluation on stderr.
#[derive(Debug)]
pub(super) struct PairProgress {
    display: Display,
    /// What is compared with the references.
    name: &'static str,
    /// The distance that is being computed, when it began, and with how many pairs.
    phase: Option<(&'static str, Instant, usize)>,
    last_line: Option<Instant>,
}

#[derive(Debug)]
enum Display {
    Quiet,
    Lines,
    Bar(ProgressBar),
}

impl PairProgress {
    pub(super) fn new(is_quiet: bool, name: &'static str) -> Self {
        let display = match (is_quiet, stderr().is_terminal()) {
            (true, _) => Display::Quiet,
            (false, false) => Display::Lines,
            (false, true) => Display::Bar(bar(0, false, TEMPLATE)),
        };
        Self { display, name, phase: None, last_line: None }
    }

    pub(super) fn show(&mut self, at: CollectionProgress) {
        let (began, first) = match self.phase {
            Some((distance, began, first)) if distance == at.distance => (began, first),
            _ => {
                let began = Instant::now();
                self.phase = Some((at.distance, began, at.num_done));
                self.last_line = Some(began);
                if let Display::Bar(bar) = &self.display {
                    bar.set_length(at.num_pairs as u64);
                    bar.set_message(format!("{} {}", self.name, at.distance));
                    bar.set_position(at.num_done as u64);
                    bar.reset_eta();
                }
                (began, at.num_done)
            }
        };
        match &self.display {
            Display::Quiet => {}
            Display::Bar(bar) => bar.set_position(at.num_done as u64),
            Display::Lines => {
                if self.last_line.is_some_and(|line| line.elapsed() < LINE_INTERVAL) {
                    return;
                }
                self.last_line = Some(Instant::now());
                let rate = at.num_done.saturating_sub(first) as f64
                    / began.elapsed().as_secs_f64().max(1e-9);
                let left = (at.num_pairs - at.num_done) as f64 / rate.max(1e-9);
                let (name, distance) = (self.name, at.distance);
                // If nobody can read it, the work goes on all the same.
                drop(writeln!(
                    stderr(),
                    "{name} {distance}: {} of {} pairs  {rate:.0} pairs/s  {} left",
                    at.num_done,
                    at.num_pairs,
                    duration(left)
                ));
            }
        }
    }

    pub(super) fn finish(&self) {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
    }
}
