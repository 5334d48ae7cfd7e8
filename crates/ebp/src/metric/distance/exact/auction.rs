//! One round of the auction: every row buys its amount from the columns, at prices that rise.
//!
//! A row i with goods to place looks for the column j that is cheapest at the current prices, and
//! for the runner-up k:
//!
//! ```text
//! value  v = min_j c_ij + p_j,    second  w = min_{k ≠ j} c_ik + p_k
//! bid    b = w − c_ij + ε         (the price at which j costs ε more than k)
//! ```
//!
//! It takes from j whatever is held at prices below b, the cheapest first, and who held it has to
//! place it elsewhere. The price of a column is the least at which any of it is held. At the end
//! every row holds its goods within ε of the cheapest place, so that the total is within ε times
//! the mass of the optimum (Bertsekas and Castañón, 1989). With one unit per point this is the
//! auction of the assignment problem.

use super::super::search::{Cheapest, Prices, TwoCheapest};
use super::Problem;

/// An amount of a column's room, who has it, and what was paid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    pub(super) price: f64,
    pub(super) row: u32,
    pub(super) amount: u64,
}

/// Room that nobody has bought in this round.
const NOBODY: u32 = u32::MAX;

/// The state of an auction.
#[derive(Debug)]
pub(super) struct Auction<'a> {
    problem: &'a Problem<'a>,
    prices: Prices,
    holdings: Vec<Vec<Holding>>,
    /// What each row still has to place.
    remaining: Vec<u64>,
    /// Where each row looks first: the blocks of its last cheapest and second.
    hints: Vec<[usize; 2]>,
    /// Rows with goods to place.
    waiting: Vec<u32>,
    /// How many bids were made so far.
    num_bids: u64,
}

impl<'a> Auction<'a> {
    pub(super) fn new(problem: &'a Problem<'a>, prices: &[f64]) -> Self {
        let (num_rows, num_columns) = (problem.rows.len(), problem.columns.len());
        Self {
            problem,
            prices: Prices::new(problem.columns, prices),
            holdings: vec![Vec::with_capacity(1); num_columns],
            remaining: vec![0; num_rows],
            hints: vec![[0; 2]; num_rows],
            waiting: Vec::with_capacity(num_rows),
            num_bids: 0,
        }
    }

    /// Empties all columns, keeps the prices, and sells everything again with increments of
    /// `epsilon`, which grows fourfold every `patience` bids: a war of many small steps says that
    /// prices have far to go. What was sold before keeps its promise, as ε only grew. At the same
    /// moments `is_enough` may end the round, with goods unsold. Returns the last ε.
    pub(super) fn round(
        &mut self,
        mut epsilon: f64,
        patience: u64,
        mut is_enough: impl FnMut(&Prices) -> bool,
    ) -> f64 {
        let mut next = self.num_bids.saturating_add(patience);
        for (slot, holdings) in self.holdings.iter_mut().enumerate() {
            let price = self.prices.get(slot);
            holdings.clear();
            holdings.push(Holding { price, row: NOBODY, amount: self.problem.demand });
        }
        self.remaining.fill(self.problem.supply);
        self.waiting.clear();
        self.waiting.extend((0..NOBODY).take(self.problem.rows.len()));
        while let Some(row) = self.waiting.pop() {
            while self.remaining[row as usize] > 0 {
                self.bid(row, epsilon);
                if self.num_bids > next {
                    if is_enough(&self.prices) {
                        return epsilon;
                    }
                    epsilon *= 4.0;
                    next = self.num_bids.saturating_add(patience);
                }
            }
        }
        epsilon
    }

    fn bid(&mut self, row: u32, epsilon: f64) {
        let index = row as usize;
        let cheapest = self.cheapest(index);
        self.num_bids += 1;
        self.hints[index] = cheapest.blocks();
        let column = cheapest.slot;
        // b = w − c + ε = p + (w − v) + ε
        let price = self.prices.get(column) + (cheapest.second - cheapest.value) + epsilon;
        let mut taken = 0;
        while self.remaining[index] > 0 {
            let holdings = &mut self.holdings[column];
            let Some(place) = least(holdings).filter(|&place| holdings[place].price < price) else {
                break;
            };
            let amount = holdings[place].amount.min(self.remaining[index]);
            let loser = holdings[place].row;
            holdings[place].amount -= amount;
            if holdings[place].amount == 0 {
                holdings.swap_remove(place);
            }
            self.remaining[index] -= amount;
            taken += amount;
            if loser != NOBODY {
                if self.remaining[loser as usize] == 0 && loser != row {
                    self.waiting.push(loser);
                }
                // Its own goods only move up to the new price: nothing is placed by that.
                self.remaining[loser as usize] += amount;
            }
        }
        let holdings = &mut self.holdings[column];
        holdings.push(Holding { price, row, amount: taken });
        let lowest = least(holdings).map_or(price, |place| holdings[place].price);
        self.prices.set(column, lowest);
    }

    fn cheapest(&self, row: usize) -> Cheapest {
        let Problem { rows, columns, searcher, .. } = self.problem;
        searcher.run(TwoCheapest {
            x: rows.point(row),
            cloud: columns,
            prices: &self.prices,
            hints: self.hints[row],
        })
    }

    pub(super) fn prices(&self) -> &Prices {
        &self.prices
    }

    /// (column, row, amount) of everything that is held.
    pub(super) fn plan(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        self.holdings.iter().enumerate().flat_map(|(column, holdings)| {
            holdings.iter().map(move |held| (column, held.row as usize, held.amount))
        })
    }
}

/// Where the lowest price is.
fn least(holdings: &[Holding]) -> Option<usize> {
    (0..holdings.len()).reduce(|a, b| if holdings[b].price < holdings[a].price { b } else { a })
}
