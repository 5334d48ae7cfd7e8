//! What a terminal understands, from the variables it leaves in the environment.
//!
//! A terminal could be asked, but one that does not answer would hold the program up, and one that answers
//! late would type into the next command. Terminals that name themselves are believed.

use super::ShowName;
use super::blocks::Colours;

/// A way of showing a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Kitty,
    Iterm,
    Sixel,
    Blocks(Colours),
}

/// The way to take, if any: `is_seen` says that stdout is a terminal and nobody asked for quiet.
pub(super) fn way(
    choice: ShowName,
    is_seen: bool,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<Way> {
    let colours = colours(variable);
    match choice {
        ShowName::Never => None,
        ShowName::Kitty => Some(Way::Kitty),
        ShowName::Iterm => Some(Way::Iterm),
        ShowName::Sixel => Some(Way::Sixel),
        ShowName::Blocks => Some(Way::Blocks(colours.unwrap_or(Colours::Palette))),
        ShowName::Auto if !is_seen || is_machine(variable) => None,
        ShowName::Auto => graphics(variable).or_else(|| {
            // Blocks are coloured text, which NO_COLOR asks to leave out; pictures are not.
            let colours = colours.filter(|_| variable("NO_COLOR").is_none())?;
            Some(Way::Blocks(colours))
        }),
    }
}

/// Whether the terminal is no screen that somebody looks at.
fn is_machine(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| value != "false" && value != "0");
    is_set("CI") || variable("TERM").is_none_or(|term| term == "dumb")
}

/// The protocol of a terminal that draws pixels.
fn graphics(variable: &dyn Fn(&str) -> Option<String>) -> Option<Way> {
    let term = variable("TERM").unwrap_or_default();
    let is_inside = variable("TMUX").is_some() || variable("STY").is_some();
    // They hand on text, and keep the names of the terminal around them.
    if is_inside || term.starts_with("tmux") || term.starts_with("screen") {
        return None;
    }
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    // The kind of the terminal first: it is its own, where other variables may be those of a terminal
    // that this one was started from.
    match (term.as_str(), program.as_str()) {
        ("xterm-kitty" | "xterm-ghostty", _) | (_, "ghostty") => Some(Way::Kitty),
        (_, "iTerm.app" | "WezTerm" | "mintty") => Some(Way::Iterm),
        (term, _) if ["foot", "mlterm", "yaft"].iter().any(|name| term.starts_with(name)) => {
            Some(Way::Sixel)
        }
        (term, _) if term.contains("sixel") => Some(Way::Sixel),
        _ if variable("KITTY_WINDOW_ID").is_some() => Some(Way::Kitty),
        // What ssh hands on.
        _ if variable("LC_TERMINAL").is_some_and(|name| name == "iTerm2") => Some(Way::Iterm),
        _ => None,
    }
}

/// The colours of text; none where a terminal may have eight only.
fn colours(variable: &dyn Fn(&str) -> Option<String>) -> Option<Colours> {
    let term = variable("TERM").unwrap_or_default();
    let says_all = variable("COLORTERM").is_some_and(|word| word == "truecolor" || word == "24bit");
    let has_palette = ["xterm", "tmux", "screen", "rxvt", "konsole", "alacritty", "foot", "st-"];
    if says_all || term.ends_with("-direct") {
        Some(Colours::All)
    } else if term.contains("256color") || has_palette.iter().any(|name| term.starts_with(name)) {
        Some(Colours::Palette)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(variables: &[(&str, &str)]) -> Option<Way> {
        found(ShowName::Auto, true, variables)
    }

    fn found(choice: ShowName, is_seen: bool, variables: &[(&str, &str)]) -> Option<Way> {
        way(choice, is_seen, &|name| {
            let known = variables.iter().find(|(known, _)| *known == name);
            known.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn terminals_that_name_themselves_are_believed() {
        assert_eq!(auto(&[("TERM", "xterm-kitty"), ("COLORTERM", "truecolor")]), Some(Way::Kitty));
        assert_eq!(auto(&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")]), Some(Way::Kitty));
        assert_eq!(
            auto(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "ghostty")]),
            Some(Way::Kitty)
        );
        assert_eq!(
            auto(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")]),
            Some(Way::Iterm)
        );
        assert_eq!(
            auto(&[("TERM", "xterm-256color"), ("LC_TERMINAL", "iTerm2")]),
            Some(Way::Iterm)
        );
        assert_eq!(auto(&[("TERM", "foot-extra")]), Some(Way::Sixel));
        // Started from kitty, but not kitty.
        assert_eq!(auto(&[("TERM", "foot"), ("KITTY_WINDOW_ID", "3")]), Some(Way::Sixel));
    }

    #[test]
    fn others_get_blocks_in_the_colours_they_have() {
        let all = Some(Way::Blocks(Colours::All));
        let palette = Some(Way::Blocks(Colours::Palette));
        assert_eq!(auto(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), all);
        assert_eq!(auto(&[("TERM", "xterm-256color")]), palette);
        assert_eq!(auto(&[("TERM", "linux")]), None);
        // Inside tmux and screen the pixels would not arrive.
        for inside in [("TMUX", "default,1,0"), ("STY", "1.pts-0")] {
            assert_eq!(
                auto(&[("TERM", "screen-256color"), ("KITTY_WINDOW_ID", "1"), inside]),
                palette
            );
        }
        assert_eq!(auto(&[("TERM", "tmux-256color"), ("LC_TERMINAL", "iTerm2")]), palette);
        let without = [("TERM", "xterm-256color"), ("NO_COLOR", "1")];
        assert_eq!(auto(&without), None);
        assert_eq!(auto(&[("TERM", "xterm-kitty"), ("NO_COLOR", "1")]), Some(Way::Kitty));
    }

    #[test]
    fn nothing_is_shown_to_machines_unless_it_was_asked_for() {
        let kitty = ("TERM", "xterm-kitty");
        assert_eq!(auto(&[kitty, ("CI", "true")]), None);
        assert_eq!(auto(&[kitty, ("CI", "false")]), Some(Way::Kitty));
        assert_eq!(auto(&[("TERM", "dumb"), ("COLORTERM", "truecolor")]), None);
        assert_eq!(auto(&[]), None);
        assert_eq!(found(ShowName::Auto, false, &[kitty]), None);
        assert_eq!(found(ShowName::Never, true, &[kitty]), None);
        assert_eq!(found(ShowName::Sixel, false, &[("CI", "1")]), Some(Way::Sixel));
        assert_eq!(found(ShowName::Blocks, false, &[]), Some(Way::Blocks(Colours::Palette)));
    }
}
