//! That what documents say can be typed: every command of every page is parsed by the program's own
//! arguments, its preset exists and has the settings that it changes, and every link leads somewhere.

mod markdown;
mod shell;

use std::fs;
use std::path::{Component, Path, PathBuf};

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory};
use ebp::model::Settings;

use self::markdown::Page;
use crate::args::Arguments;

/// Pages and folders of pages, below the repository.
const PAGES: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "NOTATION.md",
    "docs",
    "models",
    "bench/README.md",
    "bindings/python/README.md",
    "tools/reference/README.md",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<Page> {
    fn collect(path: &Path, found: &mut Vec<PathBuf>) {
        let full = repository().join(path);
        if full.is_dir() {
            for entry in fs::read_dir(full).unwrap() {
                collect(&path.join(entry.unwrap().file_name()), found);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path.to_owned());
        }
    }
    let mut found = Vec::new();
    for page in PAGES {
        collect(Path::new(page), &mut found);
    }
    found.sort();
    found.into_iter().map(|path| Page::read(&repository(), path)).collect()
}

/// Whether a word stands for others: `NAME`, `$preset`, `…`.
fn is_placeholder(word: &str) -> bool {
    let is_capital = word.chars().all(|c| c.is_ascii_uppercase());
    is_capital || word.contains(['$', '…'])
}

/// What is wrong with a command, if anything is.
fn fault(arguments: &[String], is_whole: bool) -> Result<(), String> {
    let has_gap = arguments.iter().any(|word| word.starts_with('…'));
    let words = arguments.iter().filter(|word| !word.starts_with('…')).cloned();
    let all = std::iter::once("ebp".to_owned()).chain(words);
    match Arguments::command().try_get_matches_from(all) {
        Ok(matches) => settings_fault(&matches),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(()),
            // `--seed N`, `ebp COMMAND --help`: what is left to the reader.
            ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::InvalidSubcommand
                if arguments.iter().any(|word| {
                    is_placeholder(word) && error.to_string().contains(&format!("'{word}'"))
                }) =>
            {
                Ok(())
            }
            // In a sentence a command may be named without all that it needs.
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::InvalidValue
                if (has_gap || !is_whole) && !error.to_string().contains("invalid value") =>
            {
                Ok(())
            }
            _ => Err(error.to_string()),
        },
    }
}

/// What is wrong with presets and settings of commands that take them.
fn settings_fault(matches: &ArgMatches) -> Result<(), String> {
    let Some((name, inner)) = matches.subcommand() else { return Ok(()) };
    let (name, inner) = inner.subcommand().unwrap_or((name, inner));
    let text = |id: &str| inner.try_get_one::<String>(id).ok().flatten().cloned();
    let changes = inner.try_get_many::<String>("set").ok().flatten();
    let changes: Vec<String> = changes.map(|found| found.cloned().collect()).unwrap_or_default();
    let preset = match name {
        "train" => match (text("config"), inner.get_one::<PathBuf>("data")) {
            (Some(config), _) => config,
            (None, Some(_)) => "table".to_owned(),
            (None, None) => "sines".to_owned(),
        },
        "completion" => text("preset").unwrap_or_else(|| "digits".to_owned()),
        "mnist" | "celeba" => text("preset").unwrap_or_else(|| name.to_owned()),
        "documents" => "topics".to_owned(),
        _ => match text("preset") {
            Some(preset) => preset,
            None => return Ok(()),
        },
    };
    let is_file = Path::new(&preset).extension().is_some();
    if is_placeholder(&preset) || is_file || preset.contains('|') {
        return Ok(());
    }
    let changes: Vec<_> = changes.iter().filter(|change| !is_open(change)).collect();
    let found = Settings::preset(&preset, &changes);
    found
        .map(|_| ())
        .map_err(|error| format!("{error}; {}", error.help().unwrap_or("no more is known")))
}

/// `seed=N`, `data.report_part=…`: a setting whose value is left to the reader.
fn is_open(change: &str) -> bool {
    change.split_once('=').is_some_and(|(_, value)| !value.is_empty() && is_placeholder(value))
}

/// `ebp train lda|plsi` as two commands.
fn alternatives(words: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for word in words {
        let choices: Vec<&str> = word.split('|').collect();
        all = choices
            .iter()
            .flat_map(|choice| {
                all.iter().map(|before: &Vec<String>| {
                    before.iter().cloned().chain([(*choice).to_owned()]).collect()
                })
            })
            .collect();
    }
    all
}

#[test]
fn every_command_of_every_page_can_be_typed() {
    let mut faults = Vec::new();
    let mut count = 0;
    for page in pages() {
        let path = page.path.display();
        let mut judge = |line: usize, arguments: &[String], is_whole: bool| {
            count += 1;
            if let Err(fault) = fault(arguments, is_whole) {
                let fault = fault.lines().take(3).collect::<Vec<_>>().join(" ");
                faults.push(format!("{path}:{line}: ebp {}\n    {fault}", arguments.join(" ")));
            }
        };
        for block in page.blocks().iter().filter(|block| block.language == "sh") {
            let commands = shell::commands(&block.code);
            let commands =
                commands.unwrap_or_else(|fault| panic!("{path}:{}: {fault}", block.line));
            for words in &commands {
                if let Some(arguments) = shell::arguments(words) {
                    judge(block.line, arguments, true);
                }
            }
        }
        for (line, span) in page.spans() {
            // `ebp::model` is a path and `ebp` alone a name; `a|b` are two commands, not a pipe.
            let Ok(commands) = shell::commands(&span.replace('|', "¦")) else { continue };
            for words in &commands {
                let Some(arguments) = shell::arguments(words) else { continue };
                let arguments: Vec<_> =
                    arguments.iter().map(|word| word.replace('¦', "|")).collect();
                for arguments in alternatives(&arguments) {
                    judge(line, &arguments, false);
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
    assert!(count > 250, "only {count} commands were found");
}

#[test]
fn a_wrong_command_is_found() {
    let wrong = |typed: &str, is_whole: bool| {
        let words: Vec<_> = typed.split(' ').map(str::to_owned).collect();
        fault(&words, is_whole).is_err()
    };
    assert!(wrong("trian shapes", false));
    assert!(wrong("train shape", false));
    assert!(wrong("train shapes --sed 1", false));
    assert!(wrong("train shapes --seed one", false));
    assert!(wrong("train shapes --set train.num_step=3", false));
    assert!(wrong("train --data x.csv --set model.estimater=ade", false));
    assert!(wrong("reproduce mnist --set tasks.num_picture=3", false));
    assert!(wrong("reproduce generation --preset clouds", false));
    assert!(wrong("sample -o x", true));
    assert!(!wrong("sample -o x", false));
    assert!(!wrong("sample runs/shapes -n 3 … -o x", true));
    assert!(!wrong("train NAME --seed N --set data.report_part=K", true));
}

/// The examples that `--help` ends with: lines of two spaces and a command, then two spaces and why.
#[test]
fn every_example_of_the_help_can_be_typed() {
    fn judge(command: &clap::Command, faults: &mut Vec<String>) -> usize {
        let help = [command.get_after_help(), command.get_after_long_help()];
        let help: Vec<String> = help.into_iter().flatten().map(ToString::to_string).collect();
        let mut count = 0;
        for line in help.iter().flat_map(|text| text.lines()) {
            let Some(example) = line.strip_prefix("  ebp ") else { continue };
            let example = example.split("   ").next().unwrap_or_default();
            for words in shell::commands(&format!("ebp {example}")).unwrap_or_default() {
                let Some(arguments) = shell::arguments(&words) else { continue };
                count += 1;
                if let Err(fault) = fault(arguments, true) {
                    faults.push(format!("{}: {line}\n    {fault}", command.get_name()));
                }
            }
        }
        count + command.get_subcommands().map(|inner| judge(inner, faults)).sum::<usize>()
    }
    let mut faults = Vec::new();
    let count = judge(&Arguments::command(), &mut faults);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 50, "only {count} examples were found");
}

/// `a/../b` as `b`.
fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = out.pop(),
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut faults = Vec::new();
    for page in &pages {
        for (line, link) in page.links() {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = page.path.parent().unwrap_or(Path::new(""));
            let target = if file.is_empty() { page.path.clone() } else { tidy(&folder.join(file)) };
            let place = format!("{}:{line}: {link}", page.path.display());
            if !repository().join(&target).exists() {
                faults.push(format!("{place}: there is no {}", target.display()));
            } else if !anchor.is_empty() {
                let known = pages.iter().find(|page| page.path == target).map(Page::anchors);
                if !known.is_some_and(|known| known.iter().any(|known| known == anchor)) {
                    faults.push(format!("{place}: no heading there is called so"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_of_docs_has_its_place_in_the_book() {
    let pages = pages();
    let summary = pages.iter().find(|page| page.path.ends_with("SUMMARY.md")).unwrap();
    let places: Vec<_> =
        summary.links().into_iter().map(|(_, link)| tidy(&Path::new("docs").join(link))).collect();
    for page in pages.iter().filter(|page| page.path.starts_with("docs")) {
        let count = places.iter().filter(|place| **place == page.path).count();
        let expected = usize::from(!page.path.ends_with("SUMMARY.md"));
        assert_eq!(count, expected, "places of {} in docs/SUMMARY.md", page.path.display());
    }
}

/// What stands behind a fence is one of the words that `docs/run` knows.
#[test]
fn every_mark_is_known_to_the_script_that_runs_the_pages() {
    let script = fs::read_to_string(repository().join("docs/run")).unwrap();
    for page in pages() {
        for block in page.blocks().iter().filter(|block| block.language == "sh") {
            let Some(mark) = block.mark else { continue };
            let is_known = script.contains(&format!("    \"{mark}\": "));
            assert!(is_known, "{}:{}: `sh {mark}`", page.path.display(), block.line);
        }
    }
}

/// Scripts, tests and examples that commands name are there.
#[test]
fn every_script_that_is_named_is_there() {
    let root = repository();
    let mut faults = Vec::new();
    for page in pages() {
        let scripts = page.blocks().into_iter().filter(|block| block.language == "sh");
        let scripts = scripts.map(|block| (block.line, block.code)).chain(page.spans());
        for (line, script) in scripts {
            for words in shell::commands(&script).unwrap_or_default() {
                if let Some(missing) = missing_script(&root, &words) {
                    faults.push(format!("{}:{line}: there is no {missing}", page.path.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn missing_script(root: &Path, words: &[String]) -> Option<String> {
    let after = |option: &str| -> Vec<&String> {
        let pairs = words.windows(2).filter(|pair| pair[0] == option);
        pairs.map(|pair| &pair[1]).collect()
    };
    let crates = ["crates/ebp", "crates/ebp-cli"];
    let is_missing = |folder: &str, name: &str| {
        let there = |part: &&str| {
            let base = root.join(part).join(folder);
            base.join(format!("{name}.rs")).exists() || base.join(name).is_dir()
        };
        !crates.iter().any(there)
    };
    match words.first()?.as_str() {
        "python3" | "python" | "Rscript" | "sh" => {
            let script = words.get(1)?;
            let is_ours = script.starts_with("bench/") || script.starts_with("tools/");
            (is_ours && !root.join(script).exists()).then(|| script.clone())
        }
        "cargo" => {
            let tests = after("--test").into_iter().map(|name| ("tests", name));
            let examples = after("--example").into_iter().map(|name| ("examples", name));
            tests
                .chain(examples)
                .find(|(folder, name)| is_missing(folder, name))
                .map(|(_, name)| name.clone())
        }
        first
            if first.starts_with("./")
                || first.starts_with("tools/")
                || first.starts_with("docs/") =>
        {
            let is_there = root.join(first).exists() || !first.contains('/');
            let is_path = first.chars().all(|c| c.is_ascii_alphanumeric() || "./-_".contains(c));
            (is_path && !is_there && !first.ends_with('/')).then(|| first.to_owned())
        }
        _ => None,
    }
}
