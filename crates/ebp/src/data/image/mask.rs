//! Which pixels of a picture are known.

use crate::rng::Stream;
use crate::{Error, Result};

/// A part of a picture that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnownPart {
    /// So many pixels, chosen at random.
    Random(usize),
    /// The upper half.
    TopHalf,
    /// The lower half.
    BottomHalf,
    /// The left half.
    LeftHalf,
    /// The right half.
    RightHalf,
    /// All but a centred square of this side.
    AroundHole(usize),
}

impl KnownPart {
    /// The name under which results are reported: `100`, `top`, `hole-16`.
    pub fn name(self) -> String {
        match self {
            Self::Random(count) => count.to_string(),
            Self::TopHalf => "top".into(),
            Self::BottomHalf => "bottom".into(),
            Self::LeftHalf => "left".into(),
            Self::RightHalf => "right".into(),
            Self::AroundHole(side) => format!("hole-{side}"),
        }
    }

    /// The part with a name that [`name`](Self::name) gives.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming what there is.
    pub fn parse(name: &str) -> Result<Self> {
        let hole = name.strip_prefix("hole-").and_then(|side| side.parse().ok());
        match name {
            "top" => Ok(Self::TopHalf),
            "bottom" => Ok(Self::BottomHalf),
            "left" => Ok(Self::LeftHalf),
            "right" => Ok(Self::RightHalf),
            _ => name.parse().ok().map(Self::Random).or(hole.map(Self::AroundHole)).ok_or_else(
                || {
                    let expected = "a number of pixels, top, bottom, left, right or hole-SIDE";
                    Error::invalid("known part", expected, format!("`{name}`"))
                },
            ),
        }
    }

    /// Whether each pixel is known, row by row. At least one stays unknown.
    pub fn mask(self, width: usize, height: usize, stream: Stream) -> Vec<bool> {
        let by_place = |is_known: &dyn Fn(usize, usize) -> bool| -> Vec<bool> {
            (0..width * height).map(|place| is_known(place % width, place / width)).collect()
        };
        match self {
            Self::Random(count) => {
                let mut mask = vec![false; width * height];
                let order = stream.permutation(width * height);
                for &place in order.iter().take(count.min((width * height).saturating_sub(1))) {
                    mask[place] = true;
                }
                mask
            }
            Self::TopHalf => by_place(&|_, row| row < height / 2),
            Self::BottomHalf => by_place(&|_, row| row >= height.div_ceil(2)),
            Self::LeftHalf => by_place(&|column, _| column < width / 2),
            Self::RightHalf => by_place(&|column, _| column >= width.div_ceil(2)),
            Self::AroundHole(side) => {
                let inside = |place: usize, length: usize| {
                    let start = length.saturating_sub(side) / 2;
                    (start..start + side.max(1)).contains(&place)
                };
                by_place(&|column, row| !(inside(column, width) && inside(row, height)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_their_sizes_and_names() {
        let stream = Stream::new(1, "mask");
        let known = |part: KnownPart| {
            let mask = part.mask(28, 28, stream);
            assert_eq!(KnownPart::parse(&part.name()).unwrap(), part);
            mask.iter().filter(|known| **known).count()
        };
        assert_eq!(known(KnownPart::Random(10)), 10);
        assert_eq!(known(KnownPart::Random(5000)), 783);
        for half in
            [KnownPart::TopHalf, KnownPart::BottomHalf, KnownPart::LeftHalf, KnownPart::RightHalf]
        {
            assert_eq!(known(half), 392);
        }
        assert_eq!(known(KnownPart::AroundHole(16)), 784 - 256);
        assert!(KnownPart::TopHalf.mask(28, 28, stream)[..392].iter().all(|known| *known));
        let message = KnownPart::parse("half").unwrap_err().to_string();
        assert!(message.contains("found `half`"), "{message}");
    }
}
