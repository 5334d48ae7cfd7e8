//! Colours: even maps for densities and heights, and a palette for curves that colour-blind readers
//! can tell apart.

use image::Rgb;

pub(super) const WHITE: Rgb<u8> = Rgb([255, 255, 255]);
/// Around dots on maps of colours, in every theme.
pub(super) const DARK: Rgb<u8> = Rgb([34, 34, 34]);

/// Viridis (van der Walt and Smith, 2015) at ten equal steps; between them it is almost linear.
const VIRIDIS: [[u8; 3]; 10] = [
    [0x44, 0x01, 0x54],
    [0x48, 0x28, 0x78],
    [0x3e, 0x49, 0x89],
    [0x31, 0x68, 0x8e],
    [0x26, 0x82, 0x8e],
    [0x1f, 0x9e, 0x89],
    [0x35, 0xb7, 0x79],
    [0x6e, 0xce, 0x58],
    [0xb5, 0xde, 0x2b],
    [0xfd, 0xe7, 0x25],
];

/// Magma (Smith and van der Walt, 2015) at ten equal steps.
const MAGMA: [[u8; 3]; 10] = [
    [0x00, 0x00, 0x04],
    [0x18, 0x0f, 0x3d],
    [0x44, 0x0f, 0x76],
    [0x72, 0x1f, 0x81],
    [0x9e, 0x2f, 0x7f],
    [0xcd, 0x40, 0x71],
    [0xf1, 0x60, 0x5d],
    [0xfd, 0x96, 0x68],
    [0xfe, 0xca, 0x8d],
    [0xfc, 0xfd, 0xbf],
];

/// Cividis (Nuñez, Anderton and Renslow, 2018) at ten equal steps: the same to the colour-blind.
const CIVIDIS: [[u8; 3]; 10] = [
    [0x00, 0x22, 0x4e],
    [0x12, 0x35, 0x70],
    [0x3b, 0x49, 0x6c],
    [0x57, 0x5d, 0x6d],
    [0x70, 0x71, 0x73],
    [0x8a, 0x86, 0x78],
    [0xa5, 0x9c, 0x74],
    [0xc3, 0xb3, 0x69],
    [0xe1, 0xcc, 0x55],
    [0xfe, 0xe8, 0x38],
];

/// A map from numbers to colours whose lightness rises evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColourMap {
    /// From violet over green to yellow.
    #[default]
    Viridis,
    /// From black over red to pale yellow.
    Magma,
    /// From blue over grey to yellow.
    Cividis,
}

impl ColourMap {
    /// The colour of a share of the scale, from 0 to 1; what lies outside takes the nearer end.
    pub(super) fn colour(self, share: f64) -> Rgb<u8> {
        let steps = match self {
            Self::Viridis => &VIRIDIS,
            Self::Magma => &MAGMA,
            Self::Cividis => &CIVIDIS,
        };
        between(steps, share)
    }
}

/// Okabe and Ito's palette (2008), its yellow and black left out.
const PALETTE: [[u8; 3]; 6] =
    [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233]];

/// The colour of a share of the scale, from 0 to 1; what lies outside takes the nearer end.
pub(super) fn viridis(share: f64) -> Rgb<u8> {
    ColourMap::Viridis.colour(share)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both are in range")]
fn between(steps: &[[u8; 3]], share: f64) -> Rgb<u8> {
    let position = share.clamp(0.0, 1.0) * (steps.len() - 1) as f64;
    let index = (position as usize).min(steps.len() - 2);
    let [low, high] = [index, index + 1].map(|i| steps[i]);
    let part = position - index as f64;
    let channel =
        |c: usize| (f64::from(low[c]) * (1.0 - part) + f64::from(high[c]) * part).round() as u8;
    Rgb([channel(0), channel(1), channel(2)])
}

/// Ink and gaps of lines in points, with round ends: colours are not the only sign.
const DASHES: [&[f64]; 6] = [
    &[],
    &[4.5, 2.75],
    &[0.01, 2.5],
    &[6.0, 2.75, 0.01, 2.75],
    &[9.0, 3.25],
    &[4.5, 2.5, 0.01, 2.5, 0.01, 2.5],
];

/// The dashes of series `number`.
pub(super) fn dashes(number: usize) -> &'static [f64] {
    DASHES[number % DASHES.len()]
}

/// The colour of series `number`.
pub(super) fn series(number: usize) -> Rgb<u8> {
    Rgb(PALETTE[number % PALETTE.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CIE L* from sRGB.
    fn lightness(Rgb(channels): Rgb<u8>) -> f64 {
        let [r, g, b] = channels.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        let y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
        if y <= 216.0 / 24389.0 { y * 24389.0 / 27.0 } else { 116.0 * y.cbrt() - 16.0 }
    }

    /// What makes a map readable: lightness rises evenly.
    #[test]
    fn lightness_rises_evenly() {
        // Their makers evened the lightness of CIECAM02, whose dark end differs from L*.
        for (map, share) in
            [(ColourMap::Viridis, 0.25), (ColourMap::Cividis, 0.25), (ColourMap::Magma, 0.45)]
        {
            let steps: Vec<f64> =
                (0..=18).map(|k| lightness(map.colour(f64::from(k) / 18.0))).collect();
            let rise = (steps[18] - steps[0]) / 18.0;
            for pair in steps.windows(2) {
                assert!((pair[1] - pair[0] - rise).abs() < share * rise, "{map:?} {steps:?}");
            }
        }
        assert_eq!(viridis(-1.0), viridis(0.0));
        assert_eq!(viridis(2.0), Rgb([0xfd, 0xe7, 0x25]));
    }
}
