//! The last step from nearly optimal to optimal: no ε is left.
//!
//! A plan is optimal when prices exist at which every row holds its goods at the cheapest places:
//!
//! ```text
//! c_ij + p_j  ≤  c_ik + p_k    wherever row i holds something of column j, for all k
//! ```
//!
//! Starting from the prices of an auction, every violated inequality raises p_k until it holds,
//! which may violate others (Bellman and Ford's shortest paths). If that comes to an end, the
//! prices prove the plan optimal. If it does not, the raises chase each other around a cycle: a
//! chain of rows that would all gain if each took what the next one holds. They do, the plan gets
//! cheaper, and the search goes on. Every such exchange lowers the total, so that it ends.
#![allow(
    clippy::cast_possible_truncation,
    reason = "slots fit into u32: a cloud has fewer than 2^32 points"
)]

use std::collections::VecDeque;

use super::super::search::{CheaperThan, Prices};
use super::{Problem, distance};

const NONE: u32 = u32::MAX;
/// How often cycles are looked for while every row is visited once: a look costs as much as a few
/// dozen searches, and prices go around a cycle in vain until it is found.
const EXCHANGES_PER_SWEEP: u64 = 8;

/// A plan, and the prices that are to prove it optimal.
#[derive(Debug)]
pub(super) struct Polish<'a> {
    problem: &'a Problem<'a>,
    prices: Prices,
    /// (column, amount) that each row holds.
    held: Vec<Vec<(u32, u64)>>,
    /// The rows that hold something of each column.
    holders: Vec<Vec<u32>>,
    /// max over what row i holds of c_ij + p_j.
    dearest: Vec<f64>,
    /// The column whose raise made `dearest` what it is.
    raised_by_column: Vec<u32>,
    /// The row that raised a column last.
    raised_by_row: Vec<u32>,
    queue: VecDeque<u32>,
    is_queued: Vec<bool>,
    num_searches: u64,
}

impl<'a> Polish<'a> {
    pub(super) fn new(
        problem: &'a Problem<'a>,
        prices: &Prices,
        plan: impl Iterator<Item = (usize, usize, u64)>,
    ) -> Self {
        let (num_rows, num_columns) = (problem.rows.len(), problem.columns.len());
        let mut held: Vec<Vec<(u32, u64)>> = vec![Vec::with_capacity(1); num_rows];
        let mut holders: Vec<Vec<u32>> = vec![Vec::with_capacity(1); num_columns];
        for (column, row, amount) in plan {
            if let Some((_, sum)) = held[row].iter_mut().find(|(known, _)| *known == column as u32)
            {
                *sum += amount;
            } else {
                held[row].push((column as u32, amount));
                holders[column].push(row as u32);
            }
        }
        let mut polish = Self {
            problem,
            prices: prices.clone(),
            held,
            holders,
            dearest: vec![0.0; num_rows],
            raised_by_column: vec![NONE; num_rows],
            raised_by_row: vec![NONE; num_columns],
            queue: (0..num_rows as u32).collect(),
            is_queued: vec![true; num_rows],
            num_searches: 0,
        };
        for row in 0..num_rows {
            polish.dearest[row] = polish.dearest_held(row);
        }
        polish
    }

    /// Raises prices and exchanges goods until nothing is violated by more than `tolerance`.
    /// Gives up after `most_searches` and says so.
    pub(super) fn run(&mut self, tolerance: f64, most_searches: u64) -> bool {
        let between_exchanges = (self.problem.rows.len() as u64).div_ceil(EXCHANGES_PER_SWEEP);
        let mut found = Vec::new();
        while let Some(row) = self.queue.pop_front() {
            self.is_queued[row as usize] = false;
            if self.num_searches >= most_searches {
                return false;
            }
            self.num_searches += 1;
            self.relax(row, tolerance, &mut found);
            if self.num_searches.is_multiple_of(between_exchanges) {
                self.exchange_all();
            }
        }
        true
    }

    fn relax(&mut self, row: u32, tolerance: f64, found: &mut Vec<(usize, f64)>) {
        let Problem { rows, columns, searcher, .. } = self.problem;
        let limit = self.dearest[row as usize] - tolerance;
        found.clear();
        searcher.run(CheaperThan {
            x: rows.point(row as usize),
            cloud: columns,
            prices: &self.prices,
            limit,
            found,
        });
        for &(column, cost) in found.iter() {
            let price = self.dearest[row as usize] - cost;
            self.prices.set(column, price);
            self.raised_by_row[column] = row;
            for place in 0..self.holders[column].len() {
                let holder = self.holders[column][place];
                let value = self.cost(holder as usize, column) + price;
                if holder != row && value > self.dearest[holder as usize] {
                    self.dearest[holder as usize] = value;
                    self.raised_by_column[holder as usize] = column as u32;
                    if !self.is_queued[holder as usize] {
                        self.is_queued[holder as usize] = true;
                        self.queue.push_back(holder);
                    }
                }
            }
        }
    }

    /// Finds every cycle of raises and exchanges along it.
    fn exchange_all(&mut self) {
        // 0: not seen; otherwise the number of the walk that saw it.
        let mut seen = vec![0_u32; self.dearest.len()];
        for start in 0..self.dearest.len() {
            let walk = start as u32 + 1;
            let mut row = start;
            while seen[row] == 0 {
                seen[row] = walk;
                match self.raiser(row) {
                    Some(next) => row = next,
                    None => break,
                }
            }
            if seen[row] == walk && self.raiser(row).is_some() {
                self.exchange(row);
            }
        }
    }

    /// The row that raised the price of what `row` holds.
    fn raiser(&self, row: usize) -> Option<usize> {
        let column = self.raised_by_column[row];
        if column == NONE {
            return None;
        }
        let raiser = self.raised_by_row[column as usize];
        (raiser != NONE).then_some(raiser as usize)
    }

    /// Every row of the cycle hands what it holds to the row that wants it.
    fn exchange(&mut self, start: usize) {
        let mut cycle = Vec::new();
        let mut row = start;
        loop {
            cycle.push((row, self.raised_by_column[row]));
            match self.raiser(row) {
                Some(next) if next == start => break,
                Some(next) if cycle.len() <= self.dearest.len() => row = next,
                _ => return,
            }
        }
        let amount_of = |&(row, column): &(usize, u32)| {
            self.held[row].iter().find(|&&(own, _)| own == column).map_or(0, |&(_, amount)| amount)
        };
        let amount = cycle.iter().map(amount_of).min().unwrap_or(0);
        if amount == 0 {
            return;
        }
        for place in 0..cycle.len() {
            let (row, column) = cycle[place];
            let (taker, _) = cycle[(place + 1) % cycle.len()];
            self.give(row, column, amount);
            self.take(taker, column, amount);
        }
        for &(row, column) in &cycle {
            self.raised_by_column[row] = NONE;
            self.raised_by_row[column as usize] = NONE;
            self.dearest[row] = self.dearest_held(row);
            if !self.is_queued[row] {
                self.is_queued[row] = true;
                self.queue.push_back(row as u32);
            }
        }
    }

    fn give(&mut self, row: usize, column: u32, amount: u64) {
        let Some(place) = self.held[row].iter().position(|&(own, _)| own == column) else { return };
        self.held[row][place].1 -= amount;
        if self.held[row][place].1 == 0 {
            self.held[row].swap_remove(place);
            self.holders[column as usize].retain(|&holder| holder as usize != row);
        }
    }

    fn take(&mut self, row: usize, column: u32, amount: u64) {
        if let Some((_, sum)) = self.held[row].iter_mut().find(|(own, _)| *own == column) {
            *sum += amount;
        } else {
            self.held[row].push((column, amount));
            self.holders[column as usize].push(row as u32);
        }
    }

    fn dearest_held(&self, row: usize) -> f64 {
        self.held[row]
            .iter()
            .map(|&(column, _)| self.cost(row, column as usize) + self.prices.get(column as usize))
            .fold(f64::NEG_INFINITY, f64::max)
    }

    fn cost(&self, row: usize, column: usize) -> f64 {
        distance(self.problem.rows.point(row), self.problem.columns.point(column))
    }

    pub(super) fn prices(&self) -> &Prices {
        &self.prices
    }

    /// (column, row, amount) of the plan.
    pub(super) fn plan(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        self.held.iter().enumerate().flat_map(|(row, held)| {
            held.iter().map(move |&(column, amount)| (column as usize, row, amount))
        })
    }
}
