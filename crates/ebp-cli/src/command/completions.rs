//! `ebp completions`: what makes a shell complete commands, options and their values.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::output;

const HELP: &str = "\
Examples:
  ebp completions bash > ~/.local/share/bash-completion/completions/ebp
  ebp completions zsh > ~/.zfunc/_ebp
  ebp completions fish > ~/.config/fish/completions/ebp.fish";

/// Arguments of `ebp completions`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "ebp", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
