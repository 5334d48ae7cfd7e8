//! `ebp reference`: pages of all commands, settings and presets, made of what the program itself knows.

mod commands;
mod presets;
mod settings;
#[cfg(test)]
mod source;

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

const HELP: &str = "\
commands.md   every command with its arguments, their defaults and what they may be
settings.md   every setting of every kind of model: its default, what it may be, what it means
presets.md    every preset: what it is for and what it changes

Examples:
  ebp reference docs/reference";

/// What every page begins with.
const MADE_BY: &str = "<!-- Made by `ebp reference docs/reference`; changes here are lost. -->\n";

/// Arguments of `ebp reference`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ReferenceArguments {
    /// Folder of the pages; older ones of the same name are replaced
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What was written.
#[derive(Debug, Serialize)]
struct Report {
    pages: usize,
    folder: String,
}

/// Writes the pages.
pub(crate) fn run(arguments: &ReferenceArguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    fs::create_dir_all(folder).map_err(|error| Failure::cannot("create", folder, &error))?;
    let pages = pages()?;
    for (name, text) in &pages {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| Failure::cannot("write", &path, &error))?;
    }
    let report = Report { pages: pages.len(), folder: folder.display().to_string() };
    if arguments.json {
        return output::print_json(None, &report);
    }
    output::print(&format!("{} pages in {}\n", report.pages, report.folder))
}

/// Names and texts.
fn pages() -> Result<[(&'static str, String); 3], Failure> {
    Ok([
        ("commands.md", commands::page()),
        ("settings.md", settings::page()?),
        ("presets.md", presets::page()?),
    ])
}

/// Text in a cell of a table: one line, whose bars are no ends of cells.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
}

/// Code in a cell of a table.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// With this variable the tests write what they would compare.
    const WRITE: &str = "EBP_WRITE_REFERENCE";

    fn compare(path: &Path, text: &str) {
        if std::env::var_os(WRITE).is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = fs::read_to_string(path).unwrap_or_default();
        let line = found.lines().zip(text.lines()).position(|(found, new)| found != new);
        let line = line.unwrap_or_else(|| found.lines().count().min(text.lines().count()));
        assert!(
            found == text,
            "{} is not what the program says, from line {} on:\n  there: {:?}\n  program: {:?}\n\
             `{WRITE}=1 cargo test -p ebp-cli --lib reference` writes it (twice if meanings changed)",
            path.display(),
            line + 1,
            found.lines().nth(line),
            text.lines().nth(line),
        );
    }

    #[test]
    fn meanings_are_those_of_the_source() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/command/reference/meanings.tsv");
        compare(&path, &source::meanings());
    }

    #[test]
    fn the_pages_in_the_repository_are_what_the_program_says() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        for (name, text) in pages().unwrap() {
            compare(&folder.join(name), &text);
        }
    }
}
