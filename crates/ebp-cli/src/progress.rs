//! What a run looks like from outside: a bar on a terminal, a line every few seconds elsewhere.

mod count;

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use ebp::Result;
use ebp::experiment::Watch;
use ebp::train::{Event, Observer, StepNumbers};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(crate) use self::count::{Count, count, during, pieces};
use crate::interrupt::{self, StopFlag};

/// Without a terminal, a line at most this often.
pub(crate) const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// The bar of a training run.
const TEMPLATE: &str = "{prefix}{wide_bar} {pos}/{len}  {msg}  {per_sec}  {eta} left";
/// How many numbers are shown if none are chosen.
const NUM_SHOWN: usize = 4;

/// Shows the progress of trainings on stderr. While one runs, Ctrl-C asks it to save and end.
#[derive(Debug)]
pub(crate) struct Progress {
    display: Display,
    /// Names of the numbers to show; the first few of the record if empty.
    shown: &'static [&'static str],
    /// The piece of an experiment that is worked on.
    piece: String,
    /// Held while a training runs.
    stop_flag: Option<StopFlag>,
    /// The newest evaluation, which would otherwise be overwritten at once.
    evaluation: Vec<(String, f64)>,
    started: Instant,
    first_step: u64,
    last_line: Option<Instant>,
}

#[derive(Debug)]
enum Display {
    Quiet,
    Lines,
    Bar(ProgressBar),
}

impl Progress {
    /// `is_quiet` leaves nothing but warnings.
    pub(crate) fn new(is_quiet: bool, shown: &'static [&'static str]) -> Self {
        let display = match (is_quiet, stderr().is_terminal()) {
            (true, _) => Display::Quiet,
            (false, false) => Display::Lines,
            // Nothing has begun that it could show.
            (false, true) => Display::Bar(ProgressBar::hidden()),
        };
        Self {
            display,
            shown,
            piece: String::new(),
            stop_flag: None,
            evaluation: Vec::new(),
            started: Instant::now(),
            first_step: 0,
            last_line: None,
        }
    }

    /// A line that stays, above the bar if there is one.
    fn say(&self, line: &str) {
        // If nobody can read it, the run goes on all the same.
        let write = || drop(writeln!(stderr(), "{line}"));
        match &self.display {
            Display::Bar(bar) => bar.suspend(write),
            Display::Quiet | Display::Lines => write(),
        }
    }

    fn note(&self, line: &str) {
        if !matches!(self.display, Display::Quiet) {
            self.say(line);
        }
    }

    fn show(&mut self, numbers: &StepNumbers<'_>) {
        if !numbers.evaluation.is_empty() {
            self.evaluation = numbers.evaluation.to_vec();
        }
        let num_taken = numbers.step + 1;
        match &self.display {
            Display::Quiet => {}
            Display::Bar(bar) => {
                bar.set_position(num_taken);
                bar.set_message(self.summary(numbers));
            }
            Display::Lines => {
                let is_due = self.last_line.is_none_or(|line| line.elapsed() >= LINE_INTERVAL);
                if is_due || num_taken == numbers.num_steps {
                    self.last_line = Some(Instant::now());
                    self.say(&self.line(numbers));
                }
            }
        }
    }

    fn line(&self, numbers: &StepNumbers<'_>) -> String {
        let num_taken = numbers.step + 1;
        let seconds = self.started.elapsed().as_secs_f64().max(1e-9);
        let rate = (num_taken - self.first_step.min(num_taken)) as f64 / seconds;
        let left = (numbers.num_steps - num_taken.min(numbers.num_steps)) as f64 / rate.max(1e-9);
        format!(
            "step {num_taken} of {}  {}  {rate:.1} steps/s  {} left",
            numbers.num_steps,
            self.summary(numbers),
            duration(left)
        )
    }

    fn summary(&self, numbers: &StepNumbers<'_>) -> String {
        let record = numbers.record.iter().map(|(name, value)| (*name, *value));
        let all: Vec<_> = record
            .chain(self.evaluation.iter().map(|(name, value)| (name.as_str(), *value)))
            .collect();
        let chosen = all.iter().filter(|(name, _)| self.shown.contains(name));
        let words = |(name, value): &(&str, f64)| format!("{name} {value:.4}");
        let words: Vec<_> = if self.shown.is_empty() {
            all.iter().take(NUM_SHOWN).map(words).collect()
        } else {
            chosen.map(words).collect()
        };
        words.join("  ")
    }
}

impl Observer for Progress {
    fn observe(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Damaged(error) => {
                self.say(&format!("WARNING: {error}; it was set aside, an older one is used"));
            }
            Event::Started { step, num_steps, .. } => {
                (self.started, self.first_step) = (Instant::now(), *step);
                self.stop_flag = Some(interrupt::stop_flag()?);
                self.evaluation.clear();
                if matches!(self.display, Display::Bar(_)) {
                    let bar = bar(*num_steps, false, TEMPLATE).with_prefix(self.piece.clone());
                    // Two bars at once would draw over each other.
                    self.replace_bar(bar.clone());
                    bar.set_position(*step);
                    bar.reset_eta();
                }
                if *step > 0 {
                    self.note(&format!("going on after step {step}"));
                }
            }
            Event::Step(numbers) => self.show(numbers),
            Event::RolledBack { rollback, num_rollbacks } => {
                self.say(&format!(
                    "WARNING: step {} diverged (`{}` is {}); rollback {num_rollbacks} to step {}, \
                     learning rates are now {} of what was asked for",
                    rollback.from_step,
                    rollback.quantity,
                    rollback.found,
                    rollback.to_step,
                    rollback.learning_rate_factor
                ));
            }
            Event::Interrupted { step } => {
                self.finish();
                self.note(&format!("interrupted and saved after step {step}"));
            }
            Event::Finished { .. } => self.finish(),
            _ => {}
        }
        Ok(())
    }
}

impl Progress {
    fn finish(&mut self) {
        self.stop_flag = None;
        if let Display::Bar(bar) = &self.display {
            bar.abandon();
        }
    }

    fn replace_bar(&mut self, new: ProgressBar) {
        if let Display::Bar(old) = std::mem::replace(&mut self.display, Display::Bar(new)) {
            old.finish_and_clear();
        }
    }
}

impl Watch for Progress {
    /// A line where there is no bar; otherwise a clock, until a training takes its place.
    fn begin(&mut self, piece: &str) {
        self.piece = format!("{piece}  ");
        match self.display {
            Display::Quiet => {}
            Display::Lines => self.say(piece),
            Display::Bar(_) => {
                self.replace_bar(ProgressBar::hidden());
                let clock = clock(0, false);
                clock.set_message(piece.to_owned());
                self.display = Display::Bar(clock);
            }
        }
    }

    fn note(&mut self, line: &str) {
        Progress::note(self, line);
    }

    fn observer(&mut self) -> &mut dyn Observer {
        self
    }
}

/// A bar on stderr where a person watches, otherwise one that is never drawn.
pub(crate) fn bar(length: u64, is_quiet: bool, template: &str) -> ProgressBar {
    let is_shown = !is_quiet && stderr().is_terminal();
    let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A bar for a few long pieces of work: between them the clock shows that something is done.
pub(crate) fn clock(length: u64, is_quiet: bool) -> ProgressBar {
    let template = if length > 0 { "{pos}/{len}  {msg}  {elapsed}" } else { "{msg}  {elapsed}" };
    let bar = bar(length, is_quiet, template);
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

/// A line on stderr that everybody should see.
pub(crate) fn notice(line: &str) {
    drop(writeln!(stderr(), "{line}"));
}

/// Seconds in the two largest units.
pub(crate) fn duration(seconds: f64) -> String {
    // Counting days is beyond what an estimate is good for.
    let minutes = (seconds / 60.0).floor();
    if minutes < 1.0 {
        format!("{seconds:.0} s")
    } else if minutes < 60.0 {
        format!("{minutes:.0} min {:.0} s", seconds - 60.0 * minutes)
    } else {
        let hours = (minutes / 60.0).floor();
        format!("{hours:.0} h {:.0} min", minutes - 60.0 * hours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        assert_eq!(duration(12.3), "12 s");
        assert_eq!(duration(192.0), "3 min 12 s");
        assert_eq!(duration(2.0 * 3600.0 + 300.0), "2 h 5 min");
    }

    #[test]
    fn a_line_shows_what_was_chosen_and_keeps_the_evaluation() {
        let mut progress = Progress::new(true, &["loss", "error"]);
        let record = vec![("loss", 0.5), ("kl", 2.0)];
        let evaluation = [("error".to_owned(), 0.25)];
        let numbers =
            StepNumbers { step: 9, num_steps: 20, record: &record, evaluation: &evaluation };
        progress.show(&numbers);
        let later = StepNumbers { step: 10, evaluation: &[], ..numbers };
        let line = progress.line(&later);
        assert!(line.starts_with("step 11 of 20  loss 0.5000  error 0.2500  "), "{line}");
        assert!(line.contains("steps/s"), "{line}");
    }
}
