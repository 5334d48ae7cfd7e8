//! Pictures larger than a model: completed tile by tile.
//!
//! ```text
//! starts     0, about s/2, about s, …, length − s             tiles of side s, half over each other
//! cores      from the middle of one overlap to the middle of the next: every pixel is in one of them
//! ```
//!
//! A tile is completed given all that is known in it, what other tiles filled in among it, and only its
//! core is kept: what is filled in has seen a quarter of a tile around it in every direction. The tile of
//! which most is known comes next, so that a hole is filled from its border inward. A tile at a time is
//! held in memory beside the pictures. Known pixels are never written.

use std::ops::Range;

use super::{GivenPicture, PictureSize};

/// A tile within a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) columns: Range<usize>,
    pub(super) rows: Range<usize>,
    /// What is kept of it, within the picture.
    core: (Range<usize>, Range<usize>),
}

/// Where tiles of `side` lie on `length` pixels, and what is kept of each.
fn along(length: usize, side: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let (rest, step) = (length - side, (side / 2).max(1));
    let count = rest.div_ceil(step) + 1;
    let start = |number: usize| (rest * number).checked_div(count - 1).unwrap_or(0);
    let border = |number: usize| match number {
        0 => 0,
        number if number == count => length,
        number => (start(number) + start(number - 1) + side) / 2,
    };
    (0..count)
        .map(|number| (start(number)..start(number) + side, border(number)..border(number + 1)))
        .collect()
}

/// All tiles in reading order; no side may be longer than the picture's.
pub(super) fn tiles(picture: PictureSize, tile: PictureSize) -> Vec<Tile> {
    let (across, down) = (along(picture.width, tile.width), along(picture.height, tile.height));
    let row = |(rows, core_rows): &(Range<usize>, Range<usize>)| {
        let tile = |(columns, core_columns): &(Range<usize>, Range<usize>)| Tile {
            columns: columns.clone(),
            rows: rows.clone(),
            core: (core_columns.clone(), core_rows.clone()),
        };
        across.iter().map(tile).collect::<Vec<_>>()
    };
    down.iter().flat_map(row).collect()
}

impl Tile {
    /// Its places within a picture of `width` columns, row by row.
    fn places(&self, width: usize) -> impl Iterator<Item = usize> {
        let columns = self.columns.clone();
        self.rows
            .clone()
            .flat_map(move |row| columns.clone().map(move |column| row * width + column))
    }

    fn keeps(&self, place: usize, width: usize) -> bool {
        self.core.0.contains(&(place % width)) && self.core.1.contains(&(place / width))
    }

    /// The picture's part.
    pub(super) fn cut(&self, picture: &GivenPicture) -> GivenPicture {
        let channels = picture.channels;
        let pixel = |place: usize| &picture.levels[place * channels..][..channels];
        GivenPicture {
            width: self.columns.len(),
            channels,
            levels: self.places(picture.width).flat_map(pixel).copied().collect(),
            mask: self.places(picture.width).map(|place| picture.mask[place]).collect(),
            notes: Vec::new(),
        }
    }

    /// The missing pixels that are kept: the number of each within the tile's missing ones, its place in
    /// the tile and its place in the picture.
    pub(super) fn kept(&self, width: usize, mask: &[bool]) -> Vec<(usize, usize, usize)> {
        let missing = self.places(width).enumerate().filter(|(_, place)| !mask[*place]);
        let numbered = missing.enumerate().map(|(number, (own, place))| (number, own, place));
        numbered.filter(|(.., place)| self.keeps(*place, width)).collect()
    }

    fn num_known(&self, width: usize, mask: &[bool]) -> usize {
        self.places(width).filter(|&place| mask[place]).count()
    }
}

/// The tile that comes next, taken out of those that are left: of which most is known, the first of
/// them; `None` when nothing is missing in any core.
///
/// Cores are half as wide as tiles, so a tile's core lies partly in its neighbours: while a pixel of the
/// picture is known, some tile that is left sees one.
pub(super) fn take_next(left: &mut Vec<Tile>, width: usize, mask: &[bool]) -> Option<Tile> {
    left.retain(|tile| !tile.kept(width, mask).is_empty());
    let known = left.iter().map(|tile| tile.num_known(width, mask));
    let best = known.enumerate().max_by_key(|&(number, count)| (count, std::cmp::Reverse(number)));
    best.map(|(number, _)| left.remove(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: usize, height: usize) -> PictureSize {
        PictureSize { width, height, channels: 1 }
    }

    #[test]
    fn cores_part_the_picture_and_tiles_surround_them() {
        for (picture, tile) in
            [((28, 28), (28, 28)), ((29, 61), (28, 28)), ((100, 9), (8, 8)), ((5, 3), (1, 1))]
        {
            let picture = size(picture.0, picture.1);
            let tile = size(tile.0, tile.1);
            let found = tiles(picture, tile);
            let mut times = vec![0; picture.width * picture.height];
            for part in &found {
                assert_eq!((part.columns.len(), part.rows.len()), (tile.width, tile.height));
                let kept = part.kept(picture.width, &vec![false; times.len()]);
                for (number, own, place) in kept {
                    assert_eq!(number, own);
                    times[place] += 1;
                    // A quarter of a tile around it, or the picture's border.
                    let (column, row) = (place % picture.width, place / picture.width);
                    let near = |at: usize, range: &Range<usize>, length: usize| {
                        let margin = range.len() / 4;
                        (range.start == 0 || at >= range.start + margin)
                            && (range.end == length || at + margin < range.end)
                    };
                    assert!(near(column, &part.columns, picture.width));
                    assert!(near(row, &part.rows, picture.height));
                }
            }
            assert!(times.iter().all(|&times| times == 1));
        }
        assert_eq!(tiles(size(28, 28), size(28, 28)).len(), 1);
    }

    /// One known pixel in a corner: every tile sees something when its turn comes.
    #[test]
    fn a_picture_is_filled_from_what_is_known() {
        let picture = size(50, 30);
        let mut mask = vec![false; 1500];
        mask[1499] = true;
        let mut left = tiles(picture, size(8, 8));
        let mut count = 0;
        while let Some(tile) = take_next(&mut left, 50, &mask) {
            assert!(tile.num_known(50, &mask) > 0, "after {count} tiles");
            tile.kept(50, &mask).iter().for_each(|&(.., place)| mask[place] = true);
            count += 1;
        }
        assert!(mask.iter().all(|&known| known) && left.is_empty());
    }
}
