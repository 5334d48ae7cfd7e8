//! `ebp data info`: data sets by name, and whether a copy is complete.

use std::fmt::Write;

use ebp::data::layout::{LAYOUTS, Layout};
use miette::miette;
use serde::Serialize;

use super::arguments::InfoArguments;
use crate::failure::Failure;
use crate::{output, progress};

/// The names of all data sets, what one of them is, or what a copy holds.
#[derive(Debug, Default, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sets: Vec<Known>,
    #[serde(flatten)]
    set: Option<Described>,
}

#[derive(Debug, Serialize)]
struct Known {
    name: &'static str,
    title: &'static str,
}

#[derive(Debug, Serialize)]
struct Described {
    name: &'static str,
    title: &'static str,
    licence: &'static str,
    origin: &'static str,
    layout: &'static str,
    counts: Vec<CountRow>,
    /// Whether a copy holds what it should; none without a copy.
    is_complete: Option<bool>,
}

#[derive(Debug, Serialize)]
struct CountRow {
    what: &'static str,
    /// None where copies differ.
    expected: Option<usize>,
    /// None without a copy, and where nothing is there.
    found: Option<usize>,
    /// None without a copy.
    is_right: Option<bool>,
}

pub(super) fn run(arguments: &InfoArguments) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        let known = |layout: &Layout| Known { name: layout.name, title: layout.title };
        let report = Report { sets: LAYOUTS.iter().map(known).collect(), ..Report::default() };
        return tell(&report, arguments.json);
    };
    let layout = Layout::named(name)?;
    let mut set = Described {
        name: layout.name,
        title: layout.title,
        licence: layout.licence,
        origin: layout.origin,
        layout: layout.folder,
        counts: Vec::new(),
        is_complete: None,
    };
    let mut num_wrong = 0;
    if let Some(folder) = &arguments.folder {
        for counted in progress::during(false, "counting", || layout.check(folder))? {
            num_wrong += usize::from(!counted.is_right());
            set.counts.push(CountRow {
                what: counted.what,
                expected: counted.expected,
                found: counted.found,
                is_right: Some(counted.is_right()),
            });
        }
        set.is_complete = Some(num_wrong == 0);
    } else {
        set.counts.extend(layout.expectations.iter().map(|expectation| CountRow {
            what: expectation.what,
            expected: expectation.expected,
            found: None,
            is_right: None,
        }));
    }
    tell(&Report { set: Some(set), ..Report::default() }, arguments.json)?;
    if num_wrong > 0 {
        return Err(Failure::Failed(miette!(
            help = "is the copy complete, and FOLDER the one that the layout starts in?",
            "{num_wrong} counts differ from what `{name}` should hold"
        )));
    }
    Ok(())
}

fn tell(report: &Report, is_json: bool) -> Result<(), Failure> {
    if is_json { output::print_json(None, report) } else { output::print(&report.text()) }
}

impl Report {
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        for Known { name, title } in &self.sets {
            let _ = writeln!(text, "{name:18}{title}");
        }
        let Some(set) = &self.set else { return text };
        let _ = writeln!(text, "{}\n", set.title);
        let lines = [("licence", set.licence), ("from", set.origin), ("layout", set.layout)];
        for (key, words) in lines {
            let _ = writeln!(text, "{key:10}{words}");
        }
        for row in &set.counts {
            let CountRow { what, expected, found, is_right } = row;
            let Some(is_right) = is_right else {
                let count = expected.map_or("any number".into(), |n| n.to_string());
                let _ = writeln!(text, "{:10}{what}: {count}", "expected");
                continue;
            };
            let found = found.map_or("nothing there".into(), |count| count.to_string());
            let verdict = match (is_right, expected) {
                (true, Some(_)) => "as expected".into(),
                (true, None) => "not checked, copies differ".into(),
                (false, Some(expected)) => format!("expected {expected}"),
                (false, None) => "expected some".into(),
            };
            let _ = writeln!(text, "{:10}{what}: {found} ({verdict})", "counted");
        }
        text
    }
}
