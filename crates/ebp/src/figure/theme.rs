//! Light and dark figures: paper, ink and grid change, the colours of data stay.

use image::Rgb;

/// What a figure lies on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Dark ink on white paper, for print.
    #[default]
    Light,
    /// Light ink on dark paper, for screens.
    Dark,
}

/// A colour that a theme may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    /// What everything lies on.
    Paper,
    /// Letters and axes.
    Ink,
    /// Lines that are only to be followed.
    Grid,
    /// The same in every theme.
    Fixed(Rgb<u8>),
}

impl Colour {
    pub(super) fn under(self, theme: Theme) -> Rgb<u8> {
        match (self, theme) {
            (Self::Fixed(colour), _) => colour,
            (Self::Paper, Theme::Light) => Rgb([255, 255, 255]),
            (Self::Ink, Theme::Light) => Rgb([28, 28, 30]),
            (Self::Grid, Theme::Light) => Rgb([228, 228, 230]),
            // The paper of dark renders.
            (Self::Paper, Theme::Dark) => Rgb([24, 26, 31]),
            (Self::Ink, Theme::Dark) => Rgb([228, 229, 233]),
            (Self::Grid, Theme::Dark) => Rgb([54, 57, 64]),
        }
    }
}
