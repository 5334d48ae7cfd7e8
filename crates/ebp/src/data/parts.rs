//! Three kinds of sets: to learn from, to choose by, to report on.
//!
//! ```text
//! without splits of its own   order drawn by `seed`:   choose │ report 1 │ report 2 │ … │ rest
//! with a test split           choose = validation, or drawn from training;  report = test
//! ```
//!
//! Whatever is chosen (widths, step sizes, when to stop) is chosen by the second kind; a number that
//! is reported is measured on the third. [`ReportSets`] is a type of its own that nothing which
//! learns or chooses takes, and that cannot become a [`CloudSource`]:
//!
//! ```compile_fail
//! use ebp::data::{CloudSource, ReportSets};
//!
//! fn learn(_from: &CloudSource) {}
//! fn mistake(report: &ReportSets) {
//!     learn(report); // expected `&CloudSource`, found `&ReportSets`
//! }
//! ```

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::cache::Split;
use super::normalise::Affine;
use super::source::CloudSource;
use crate::rng::Stream;
use crate::{Error, Result};

/// How a source falls apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartsRule {
    /// Sets to choose by, where the source does not name them.
    pub choose: usize,
    /// Sets to report on, where the source does not name them; 0 for none.
    pub report: usize,
    /// Which of the disjoint groups of `report` sets, from 1.
    pub report_part: usize,
    /// Which split of the source is reported on.
    pub report_on: ReportSplit,
    /// Of the drawn orders.
    pub seed: u64,
}

/// The split of a source that has some of its own on which reports are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportSplit {
    /// The test split; what is chosen is chosen by the validation split.
    #[default]
    Test,
    /// The validation split, as the published tables of PointFlow and the paper have it; what is
    /// chosen is chosen by sets drawn from the training split, and the test split is left alone.
    Validation,
}

impl ReportSplit {
    fn split(self) -> Split {
        match self {
            Self::Test => Split::Test,
            Self::Validation => Split::Validation,
        }
    }
}

/// A source, fallen apart.
#[derive(Clone, Debug)]
pub struct Parts {
    /// What is learned from.
    pub train: CloudSource,
    /// What settings are chosen by.
    pub choose: CloudSource,
    /// What numbers are reported on, if anything was set aside for it.
    pub report: Option<ReportSets>,
}

/// Sets that no choice has seen.
#[derive(Clone, Debug)]
pub struct ReportSets {
    sets: CloudSource,
    name: String,
}

impl ReportSets {
    /// How many.
    pub fn num_sets(&self) -> usize {
        self.sets.num_sets()
    }

    /// Which sets these are, in words.
    pub fn description(&self) -> &str {
        &self.name
    }

    /// What set `index` is called.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn name(&self, index: usize) -> String {
        self.sets.name(index)
    }

    /// The points of set `index`, to be measured.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn set(&self, index: usize) -> Cow<'_, [f32]> {
        self.sets.set(index)
    }

    /// As [`CloudSource::standardised`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `affine` does not fit or a number is not finite.
    pub(crate) fn standardised(self, affine: Affine) -> Result<Self> {
        self.sets.check_finite()?;
        Ok(Self { sets: self.sets.standardised(affine)?, name: self.name })
    }
}

impl CloudSource {
    /// What is learned from, chosen by and reported on.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if fewer than one set would be left to learn from or to choose by, or
    /// if there is no such part to report on.
    pub fn parts(&self, rule: &PartsRule) -> Result<Parts> {
        let [train, validation, test] =
            [Split::Train, Split::Validation, Split::Test].map(|split| self.members(split));
        let stream = Stream::new(rule.seed, "split");
        if validation.is_empty() && test.is_empty() {
            return self.drawn_parts(rule, stream);
        }
        let wanted = rule.report_on.split();
        let reported = if wanted == Split::Test { test } else { validation.clone() };
        let (train, choose) = if wanted == Split::Test && !validation.is_empty() {
            (train, validation)
        } else {
            let order = stream.permutation(train.len());
            let (choose, rest) = order.split_at(share_of(rule.choose, train.len())?);
            let of = |places: &[usize]| places.iter().map(|&place| train[place]).collect();
            (of(rest), of(choose))
        };
        let report = if reported.is_empty() {
            None
        } else {
            let name =
                format!("the {} split", if wanted == Split::Test { "test" } else { "validation" });
            Some(ReportSets { sets: self.select(&reported)?, name })
        };
        Ok(Parts { train: self.select(&train)?, choose: self.select(&choose)?, report })
    }

    fn drawn_parts(&self, rule: &PartsRule, stream: Stream) -> Result<Parts> {
        let order = stream.permutation(self.num_sets());
        let (choose, rest) = order.split_at(share_of(rule.choose, order.len())?);
        let choose = self.select(choose)?;
        if rule.report == 0 {
            return Ok(Parts { train: self.select(rest)?, choose, report: None });
        }
        let number = rule.report_part;
        let end = number.saturating_mul(rule.report);
        if number == 0 || end >= rest.len() {
            let expected = format!(
                "from 1 to {}: of {} sets {} are to choose by, and each part takes {} of the others, \
                 some of which must be left to learn from",
                rest.len().saturating_sub(1) / rule.report,
                order.len(),
                rule.choose,
                rule.report
            );
            return Err(Error::invalid("report_part", expected, number));
        }
        // An order of their own: whoever held sets out by `seed` before has not seen these together.
        let again = Stream::new(rule.seed, "report split").permutation(rest.len());
        let start = end - rule.report;
        let of = |places: &[usize]| places.iter().map(|&place| rest[place]).collect::<Vec<_>>();
        let report = ReportSets {
            sets: self.select(&of(&again[start..end]))?,
            name: format!("part {number} of {}", (rest.len() - 1) / rule.report),
        };
        let train = self.select(&of(&[&again[..start], &again[end..]].concat()))?;
        Ok(Parts { train, choose, report: Some(report) })
    }
}

/// `held_out` if some of `available` sets are taken and some are left.
pub(super) fn share_of(held_out: usize, available: usize) -> Result<usize> {
    if held_out == 0 || held_out >= available {
        let expected = format!("at least 1 and below {available}, the number of clouds");
        return Err(Error::invalid("held_out", expected, held_out));
    }
    Ok(held_out)
}
