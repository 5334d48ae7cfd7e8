//! Every command, from the same definitions that read what is typed.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use super::{MADE_BY, cell, code};
use crate::args::Arguments;

/// The page.
pub(super) fn page() -> String {
    let mut program = Arguments::command();
    program.build();
    let mut out = format!("{MADE_BY}# Commands\n\n");
    out.push_str(
        "What `ebp --help` and `ebp COMMAND --help` say, in one place. Results go to stdout, progress and \
         errors to stderr. The program ends with 0 when it is done, 1 when it failed, 2 when it was asked \
         wrongly and 130 when it was interrupted.\n\n| command | |\n|---|---|\n",
    );
    for command in visible(&program) {
        let name = command.get_name();
        _ = writeln!(out, "| [`ebp {name}`](#ebp-{name}) | {} |", about(command));
    }
    out.push_str("\n## Of every command\n\n");
    let globals: Vec<_> =
        program.get_arguments().filter(|argument| argument.is_global_set()).collect();
    out.push_str(&table(&globals));
    for command in visible(&program) {
        section(command, &format!("ebp {}", command.get_name()), 2, &mut out);
    }
    out
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
}

fn about(command: &Command) -> String {
    cell(&command.get_about().map(ToString::to_string).unwrap_or_default())
}

/// A command and those below it.
fn section(command: &Command, name: &str, depth: usize, out: &mut String) {
    _ = write!(out, "\n{} {name}\n\n{}.\n\n", "#".repeat(depth), about(command));
    let usage = command.clone().render_usage().to_string();
    _ = write!(out, "```text\n{}\n```\n\n", usage.trim_start_matches("Usage: ").trim());
    let own: Vec<_> = command
        .get_arguments()
        .filter(|argument| !argument.is_global_set() && !argument.is_hide_set())
        .filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
        .collect();
    if !own.is_empty() {
        out.push_str(&table(&own));
    }
    let help = command.get_after_long_help().or_else(|| command.get_after_help());
    if let Some(help) = help {
        _ = write!(out, "\n```text\n{}\n```\n", help.to_string().trim_end());
    }
    for inner in visible(command) {
        section(inner, &format!("{name} {}", inner.get_name()), depth + 1, out);
    }
}

fn table(arguments: &[&Arg]) -> String {
    let mut out = "| argument | default | |\n|---|---|---|\n".to_owned();
    for argument in arguments {
        let takes_values = argument.get_action().takes_values();
        let defaults: Vec<_> = argument
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        let default = match (takes_values, defaults.is_empty()) {
            (true, false) => code(&defaults.join(",")),
            _ => String::new(),
        };
        let mut help = cell(&argument.get_help().map(ToString::to_string).unwrap_or_default());
        let choices = argument.get_possible_values();
        let are_shown = takes_values && !argument.is_hide_possible_values_set();
        if are_shown && !choices.is_empty() {
            let choices = choices.iter().filter(|choice| !choice.is_hide_set()).map(|choice| {
                let meaning = choice.get_help().map(|help| cell(&help.to_string()));
                match meaning {
                    Some(meaning) => format!("{} ({meaning})", code(choice.get_name())),
                    None => code(choice.get_name()),
                }
            });
            help = format!("{help}: {}", choices.collect::<Vec<_>>().join(", "));
        }
        _ = writeln!(out, "| {} | {default} | {help} |", code(&words(argument)));
    }
    out
}

/// How it is typed: `-n, --count N`.
fn words(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let values: Vec<_> = names.iter().map(ToString::to_string).collect();
    let values =
        if argument.get_action().takes_values() { values.join(" ") } else { String::new() };
    let many =
        argument.get_num_args().is_some_and(|range| range.max_values() > range.min_values().max(1));
    let dots = if argument.is_positional() && many { "..." } else { "" };
    let flags = [
        argument.get_short().map(|short| format!("-{short}")),
        argument.get_long().map(|long| format!("--{long}")),
    ];
    let flags: Vec<_> = flags.into_iter().flatten().collect();
    format!("{} {values}{dots}", flags.join(", ")).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_has_its_row() {
        let page = page();
        for words in
            ["## ebp train\n", "### ebp data import\n", "| `--set KEY=VALUE` |", "`-q, --quiet`"]
        {
            assert!(page.contains(words), "{words}");
        }
        let mut program = Arguments::command();
        program.build();
        for command in visible(&program) {
            for option in command.get_arguments().filter_map(Arg::get_long) {
                assert!(page.contains(&format!("--{option}")), "{option}");
            }
        }
    }
}
