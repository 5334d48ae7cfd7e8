//! The cheapest points of a cloud, seen from a place x: ‖x − yⱼ‖ + pⱼ, with a price pⱼ on every
//! point.
//!
//! All searches here are exact; the boxes of the cloud only say which blocks need no look. Nearest
//! neighbours are the case without prices, and have searches of their own: [`tree`](super::tree)
//! and [`brute_force`](super::brute_force).
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]
#![allow(clippy::needless_range_loop, reason = "lanes run through several arrays at once")]

use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};

use super::arranged::{ArrangedCloud, BOXES, BoxEnds, LANES};

/// No slot.
const NOWHERE: usize = usize::MAX;

/// Prices on the points of a cloud, and the least of each block.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    /// One per slot; +∞ on the lanes after the last point.
    values: Vec<f64>,
    /// One per box; +∞ where there is no block.
    least: Vec<f64>,
}

impl Prices {
    pub(super) fn new(cloud: &ArrangedCloud, values: &[f64]) -> Self {
        let mut padded = vec![f64::INFINITY; cloud.num_blocks() * LANES];
        padded[..values.len()].copy_from_slice(values);
        let mut least = vec![f64::INFINITY; cloud.num_blocks().next_multiple_of(BOXES)];
        for (least, block) in least.iter_mut().zip(padded.as_chunks::<LANES>().0) {
            *least = minimum(block);
        }
        Self { values: padded, least }
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> f64 {
        self.values[slot]
    }

    #[inline]
    pub(super) fn set(&mut self, slot: usize, price: f64) {
        self.values[slot] = price;
        let block = slot / LANES;
        self.least[block] = minimum(&self.values.as_chunks::<LANES>().0[block]);
    }

    pub(super) fn as_slice(&self, num_points: usize) -> &[f64] {
        &self.values[..num_points]
    }
}

/// The least of N numbers, N a power of two, by halving.
#[inline(always)]
pub(super) fn minimum<const N: usize>(values: &[f64; N]) -> f64 {
    let mut least = *values;
    let mut width = N / 2;
    while width > 0 {
        for lane in 0..width {
            let (a, b) = (least[lane], least[lane + width]);
            least[lane] = if b < a { b } else { a };
        }
        width /= 2;
    }
    least[0]
}

/// The cheapest point and the runner-up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cheapest {
    /// ‖x − y‖ + p of the cheapest.
    pub(super) value: f64,
    /// Where it stands.
    pub(super) slot: usize,
    /// The least value among all others; +∞ if there are none.
    pub(super) second: f64,
    /// Where that stands.
    pub(super) second_slot: usize,
}

impl Cheapest {
    /// The blocks of both, where a later search may look first.
    pub(super) fn blocks(&self) -> [usize; 2] {
        let second = if self.second_slot == NOWHERE { self.slot } else { self.second_slot };
        [self.slot / LANES, second / LANES]
    }
}

/// Finds the two cheapest points seen from `x`.
pub(super) struct TwoCheapest<'a> {
    pub(super) x: &'a [f64],
    pub(super) cloud: &'a ArrangedCloud,
    pub(super) prices: &'a Prices,
    /// Blocks to look at first.
    pub(super) hints: [usize; 2],
}

impl VectorLoop for TwoCheapest<'_> {
    type Output = Cheapest;

    #[inline(always)]
    fn run(self) -> Cheapest {
        // The compiler unrolls the loops over axes where it knows their number.
        if self.cloud.dim() == 3 { self.find(3) } else { self.find(self.cloud.dim()) }
    }
}

impl TwoCheapest<'_> {
    #[inline(always)]
    fn find(&self, dim: usize) -> Cheapest {
        let mut found = Cheapest {
            value: f64::INFINITY,
            slot: NOWHERE,
            second: f64::INFINITY,
            second_slot: NOWHERE,
        };
        self.look(dim, self.hints[0], &mut found);
        if self.hints[1] != self.hints[0] {
            self.look(dim, self.hints[1], &mut found);
        }
        for (group, least) in self.prices.least.as_chunks::<BOXES>().0.iter().enumerate() {
            let squared = squared_box_distances(dim, self.x, self.cloud.boxes(group));
            let over = excess(&squared, least, found.second);
            if minimum(&over) >= 0.0 {
                continue;
            }
            for lane in 0..BOXES {
                let (block, room) = (group * BOXES + lane, found.second - least[lane]);
                let is_near = over[lane] < 0.0 && room > 0.0 && squared[lane] < room * room;
                if is_near && !self.hints.contains(&block) {
                    self.look(dim, block, &mut found);
                }
            }
        }
        found
    }

    #[inline(always)]
    fn look(&self, dim: usize, block: usize, found: &mut Cheapest) {
        let squared = squared_distances(dim, self.x, self.cloud.block(block));
        let prices = &self.prices.values.as_chunks::<LANES>().0[block];
        let over = excess(&squared, prices, found.second);
        if minimum(&over) >= 0.0 {
            return;
        }
        for lane in 0..LANES {
            if over[lane] >= 0.0 {
                continue;
            }
            let (value, slot) = (squared[lane].sqrt() + prices[lane], block * LANES + lane);
            if value < found.value {
                (found.second, found.second_slot) = (found.value, found.slot);
                (found.value, found.slot) = (value, slot);
            } else if value < found.second {
                (found.second, found.second_slot) = (value, slot);
            }
        }
    }
}

/// Collects every point whose value is below `limit`.
pub(super) struct CheaperThan<'a> {
    pub(super) x: &'a [f64],
    pub(super) cloud: &'a ArrangedCloud,
    pub(super) prices: &'a Prices,
    pub(super) limit: f64,
    /// Receives (slot, distance).
    pub(super) found: &'a mut Vec<(usize, f64)>,
}

impl VectorLoop for CheaperThan<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if self.cloud.dim() == 3 {
            self.find(3);
        } else {
            let dim = self.cloud.dim();
            self.find(dim);
        }
    }
}

impl CheaperThan<'_> {
    #[inline(always)]
    fn find(self, dim: usize) {
        for (group, least) in self.prices.least.as_chunks::<BOXES>().0.iter().enumerate() {
            let squared = squared_box_distances(dim, self.x, self.cloud.boxes(group));
            let over = excess(&squared, least, self.limit);
            if minimum(&over) >= 0.0 {
                continue;
            }
            for lane in 0..BOXES {
                if over[lane] >= 0.0 {
                    continue;
                }
                let block = group * BOXES + lane;
                let squared = squared_distances(dim, self.x, self.cloud.block(block));
                let prices = &self.prices.values.as_chunks::<LANES>().0[block];
                let over = excess(&squared, prices, self.limit);
                if minimum(&over) >= 0.0 {
                    continue;
                }
                for lane in (0..LANES).filter(|&lane| over[lane] < 0.0) {
                    self.found.push((block * LANES + lane, squared[lane].sqrt()));
                }
            }
        }
    }
}

/// Negative where √squared + price < limit, told without the root.
#[inline(always)]
fn excess<const N: usize>(squared: &[f64; N], prices: &[f64; N], limit: f64) -> [f64; N] {
    let mut excess = [0.0; N];
    for lane in 0..N {
        let room = limit - prices[lane];
        let room = if room > 0.0 { room } else { 0.0 };
        excess[lane] = squared[lane] - room * room;
    }
    excess
}

/// Σ_axis (x − y)² for the points of a block.
#[inline(always)]
pub(super) fn squared_distances(dim: usize, x: &[f64], block: &[[f64; LANES]]) -> [f64; LANES] {
    let mut sums = [0.0; LANES];
    for (x, lanes) in x[..dim].iter().zip(&block[..dim]) {
        for lane in 0..LANES {
            let difference = lanes[lane] - x;
            sums[lane] += difference * difference;
        }
    }
    sums
}

/// The squared distances to a group of boxes; infinite where there is no block.
#[inline(always)]
pub(super) fn squared_box_distances(
    dim: usize,
    x: &[f64],
    (low, high): BoxEnds<'_>,
) -> [f64; BOXES] {
    let mut sums = [0.0; BOXES];
    for ((x, low), high) in x[..dim].iter().zip(&low[..dim]).zip(&high[..dim]) {
        for lane in 0..BOXES {
            let (below, above) = (low[lane] - x, x - high[lane]);
            let outside = if below > above { below } else { above };
            let outside = if outside > 0.0 { outside } else { 0.0 };
            sums[lane] += outside * outside;
        }
    }
    sums
}

/// Runs searches on the machine's widest vectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Searcher(Vectoriser);

impl Searcher {
    pub(super) fn new() -> Self {
        Self(Vectoriser::new())
    }

    #[inline]
    pub(super) fn run<L: VectorLoop>(self, work: L) -> L::Output {
        self.0.run(work)
    }
}
