//! `ebp data info`: data sets by name, and whether a copy is complete.

use std::io::{Write, stdout};

use ebp::data::layout::{LAYOUTS, Layout};
use miette::miette;

use super::arguments::InfoArguments;
use crate::failure::Failure;

pub(super) fn run(arguments: &InfoArguments) -> Result<(), Failure> {
    let mut out = stdout();
    let Some(name) = &arguments.name else {
        for layout in LAYOUTS {
            writeln!(out, "{:18}{}", layout.name, layout.title)?;
        }
        return Ok(());
    };
    let layout = Layout::named(name)?;
    writeln!(out, "{}\n", layout.title)?;
    for (key, text) in
        [("licence", layout.licence), ("from", layout.origin), ("layout", layout.folder)]
    {
        writeln!(out, "{key:10}{text}")?;
    }
    let Some(folder) = &arguments.folder else {
        for expectation in layout.expectations {
            let count = expectation.expected.map_or("any number".into(), |n| n.to_string());
            writeln!(out, "{:10}{}: {count}", "expected", expectation.what)?;
        }
        return Ok(());
    };
    let mut num_wrong = 0;
    for counted in layout.check(folder)? {
        let found = counted.found.map_or("nothing there".into(), |count| count.to_string());
        let verdict = match (counted.is_right(), counted.expected) {
            (true, Some(_)) => "as expected".into(),
            (true, None) => "not checked, copies differ".into(),
            (false, Some(expected)) => format!("expected {expected}"),
            (false, None) => "expected some".into(),
        };
        num_wrong += usize::from(!counted.is_right());
        writeln!(out, "{:10}{}: {found} ({verdict})", "counted", counted.what)?;
    }
    if num_wrong > 0 {
        return Err(Failure::Failed(miette!(
            help = "is the copy complete, and FOLDER the one that the layout starts in?",
            "{num_wrong} counts differ from what `{name}` should hold"
        )));
    }
    Ok(())
}
