//! `ebp man`: manual pages, one a command, made of what `--help` says.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_mangen::Man;
use miette::miette;

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
}

/// Writes the pages.
pub(crate) fn run(arguments: &ManArguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    fs::create_dir_all(folder).map_err(|error| Failure::cannot("create", folder, &error))?;
    let mut command = Arguments::command();
    // Gives every command the options that all of them have.
    command.build();
    let mut count = 0;
    write(&command, "ebp", folder, &mut count)?;
    output::print(&format!("{count} pages in {}\n", folder.display()))
}

/// The page of a command and those of the commands below it.
fn write(
    command: &clap::Command,
    name: &str,
    folder: &Path,
    count: &mut usize,
) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    let mut page = Vec::new();
    let titled = command.clone().name(name.to_owned());
    Man::new(titled).render(&mut page).map_err(|error| {
        Failure::Failed(miette!("cannot write the page of `{name}`: {error}"))
    })?;
    fs::write(&path, page).map_err(|error| Failure::cannot("write", &path, &error))?;
    *count += 1;
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        write(below, &format!("{name}-{}", below.get_name()), folder, count)?;
    }
    Ok(())
}
