//! What figures lie on: the choice on the command line.

use std::sync::OnceLock;

use clap::Args;
use ebp::figure::Theme;

use crate::args::{Choice, choice};

const THEMES: &[Choice<Theme>] = &[
    ("light", "Dark ink on white paper, for print", Theme::Light),
    ("dark", "Light ink on dark paper, for screens", Theme::Dark),
];

/// Arguments of every command, for those that draw plots.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ThemeArguments {
    /// Paper and ink of plots: light or dark
    #[arg(long, global = true, value_name = "THEME", default_value = "light")]
    #[arg(value_parser = choice(THEMES), help_heading = "Plots", hide_possible_values = true)]
    pub(crate) theme: Theme,
}

static CHOSEN: OnceLock<Theme> = OnceLock::new();

/// Keeps what was typed.
pub(crate) fn choose(arguments: ThemeArguments) {
    // A second choice in one process would be a mistake of this program; the first one stands.
    let _kept = CHOSEN.get_or_init(|| arguments.theme);
}

/// What was typed; light where nothing was.
pub(crate) fn chosen() -> Theme {
    CHOSEN.get().copied().unwrap_or_default()
}
