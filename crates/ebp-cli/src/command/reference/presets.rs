//! Every preset, in its own words: the file that is compiled in.

use std::fmt::Write;

use ebp::model::{PRESETS, Settings};

use super::MADE_BY;
use super::settings::KINDS;
use crate::failure::Failure;

/// The page.
pub(super) fn page() -> Result<String, Failure> {
    let mut out = format!("{MADE_BY}# Presets\n\n");
    out.push_str(
        "`ebp train NAME` starts from one of these, `--set KEY=VALUE` changes it, `--print-config` prints all of \
         it. Here stands what a preset says of itself and what it changes; everything else has the default of its \
         kind in [settings](settings.md).\n",
    );
    for kind in KINDS {
        _ = write!(out, "\n## {}\n\n`kind = \"{}\"`: {}.\n", kind.title, kind.name, kind.about);
        for (name, text) in PRESETS {
            if Settings::preset(name, &[] as &[&str])?.kind() == kind.name {
                _ = write!(out, "\n### {name}\n\n```toml\n{}\n```\n", text.trim_end());
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_there_once() {
        let page = page().unwrap();
        for (name, text) in PRESETS {
            assert_eq!(page.matches(&format!("\n### {name}\n")).count(), 1, "{name}");
            assert!(page.contains(text.trim_end()), "{name}");
        }
    }
}
