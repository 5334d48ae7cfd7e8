//! `ebp man`: manual pages, one a command, made of what `--help` says.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use serde::Serialize;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::output;

const HELP: &str = "\
Examples:
  ebp man ~/.local/share/man/man1
  man ebp-train";

/// Arguments of `ebp man`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ManArguments {
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
pub(crate) fn run(arguments: &ManArguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    fs::create_dir_all(folder).map_err(|error| Failure::cannot("create", folder, &error))?;
    let command = Arguments::command();
    let count = count(&command);
    clap_mangen::generate_to(command, folder)
        .map_err(|error| Failure::cannot("write the pages in", folder, &error))?;
    let report = Report { pages: count, folder: folder.display().to_string() };
    if arguments.json {
        return output::print_json(None, &report);
    }
    output::print(&format!("{} pages in {}\n", report.pages, report.folder))
}

/// How many commands there are, those below it with it.
fn count(command: &clap::Command) -> usize {
    1 + command.get_subcommands().map(count).sum::<usize>()
}
