//! Rows to place: a table of one's own or the ring, standardised, some of them held out.

use std::collections::BTreeMap;
use std::path::Path;

use super::known::{arc, ring};
use super::settings::{LatentSettings, TableScale};
use crate::data::table::{Rows, read_rows};
use crate::rng::Stream;
use crate::{Error, Result};

/// Rows of the built-in ring.
const RING_ROWS: usize = 240;

/// Rows that are learned from and rows that are held out.
#[derive(Clone, Debug)]
pub struct RowData {
    /// Standardised `[n, d]`.
    pub(crate) train: Vec<f64>,
    /// Standardised `[m, d]`; may be empty.
    pub(crate) held_out: Vec<f64>,
    /// What rows are called; empty if nobody said.
    pub(crate) labels: Vec<String>,
    pub(crate) held_out_labels: Vec<String>,
    /// The angles of the ring's rows.
    pub(crate) angles: Option<Vec<f64>>,
    pub(crate) scale: ColumnScale,
}

/// How columns of the data become those of the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnScale {
    pub(crate) means: Vec<f64>,
    pub(crate) std_devs: Vec<f64>,
}

impl RowData {
    /// Reads or draws what the settings say.
    pub(super) fn load(settings: &LatentSettings) -> Result<Self> {
        let data = &settings.data;
        let (rows, angles) = if data.source == "ring" {
            let (values, angles) = ring(RING_ROWS, Stream::new(0, "ring"));
            let names = (0..values.len() / RING_ROWS).map(|d| format!("x{}", d + 1)).collect();
            let labels = angles.iter().map(|&angle| arc(angle)).collect();
            (Rows { names, values, labels }, Some(angles))
        } else {
            let path = Path::new(&data.source);
            if !path.is_file() {
                let message = format!("there is no table `{}`", data.source);
                let help = "`ring` is drawn by the program; or give a CSV file with `--data FILE`";
                return Err(Error::refused(message).with_help(help));
            }
            (read_rows(path, &data.label_column)?, None)
        };
        let dim = rows.names.len();
        let count = rows.values.len() / dim;
        let latent_dim = settings.gplvm.latent_dim;
        if data.held_out + latent_dim.max(1) >= count {
            return Err(Error::refused(format!(
                "`{}` must have more rows than are held out ({}) and latent dimensions \
                 ({latent_dim}) together, found {count}",
                data.source, data.held_out
            ))
            .with_help("lower `data.held_out` or `gplvm.latent_dim`"));
        }
        let order = Stream::new(data.split_seed, "rows").permutation(count);
        let (mut held, mut kept) =
            (order[..data.held_out].to_vec(), order[data.held_out..].to_vec());
        held.sort_unstable();
        kept.sort_unstable();
        let pick = |members: &[usize]| -> Vec<f64> {
            members.iter().flat_map(|&row| rows.values[row * dim..][..dim].to_vec()).collect()
        };
        let (mut train, mut held_out) = (pick(&kept), pick(&held));
        let scale = ColumnScale::of(&train, &rows.names, data.scale)?;
        scale.apply(&mut train);
        scale.apply(&mut held_out);
        let named = |members: &[usize]| -> Vec<String> {
            members.iter().filter_map(|&row| rows.labels.get(row).cloned()).collect()
        };
        let (labels, held_out_labels) = (named(&kept), named(&held));
        let angles = angles.map(|angles| kept.iter().map(|&row| angles[row]).collect());
        Ok(Self { train, held_out, labels, held_out_labels, angles, scale })
    }

    /// d.
    pub(crate) fn dim(&self) -> usize {
        self.scale.means.len()
    }
}

impl ColumnScale {
    fn of(values: &[f64], names: &[String], scale: TableScale) -> Result<Self> {
        let (dim, count) = (names.len(), (values.len() / names.len()) as f64);
        let column = |d: usize| values.iter().skip(d).step_by(dim);
        let means: Vec<f64> = (0..dim).map(|d| column(d).sum::<f64>() / count).collect();
        let variances: Vec<f64> = (0..dim)
            .map(|d| column(d).map(|x| (x - means[d]).powi(2)).sum::<f64>() / count)
            .collect();
        let std_devs: Vec<f64> = match scale {
            TableScale::Columns => {
                // A column of equal numbers is off its mean by rounding alone.
                let is_flat = |d: &usize| variances[*d].sqrt() <= 1e-12 * means[*d].abs();
                if let Some(d) = (0..dim).find(is_flat) {
                    let message = format!("column `{}` is constant", names[d]);
                    let help = "leave it out, or divide all columns by one number with \
                                `--set data.scale=whole`";
                    return Err(Error::refused(message).with_help(help));
                }
                variances.iter().map(|v| v.sqrt()).collect()
            }
            TableScale::Whole => {
                let whole = (variances.iter().sum::<f64>() / dim as f64).sqrt();
                if whole <= f64::MIN_POSITIVE {
                    let message = "all columns are constant";
                    return Err(Error::refused(message).with_help("there is nothing to place"));
                }
                vec![whole; dim]
            }
        };
        Ok(Self { means, std_devs })
    }

    pub(crate) fn apply(&self, values: &mut [f64]) {
        for row in values.chunks_exact_mut(self.means.len()) {
            let scales = self.means.iter().zip(&self.std_devs);
            row.iter_mut().zip(scales).for_each(|(x, (mean, std_dev))| *x = (*x - mean) / std_dev);
        }
    }

    /// Σ log s: what a row's log density loses in the units of the data.
    pub(crate) fn log_volume(&self) -> f64 {
        self.std_devs.iter().map(|std_dev| std_dev.ln()).sum()
    }

    pub(super) fn numbers(&self) -> BTreeMap<String, Vec<f64>> {
        BTreeMap::from([
            ("means".to_owned(), self.means.clone()),
            ("std_devs".to_owned(), self.std_devs.clone()),
        ])
    }

    pub(super) fn from_numbers(numbers: &BTreeMap<String, Vec<f64>>) -> Result<Self> {
        let read = |name: &str| {
            numbers.get(name).filter(|found| !found.is_empty()).cloned().ok_or_else(|| {
                Error::failed(format!("the checkpoint has no `{name}`: is it a model of rows?"))
            })
        };
        let scale = Self { means: read("means")?, std_devs: read("std_devs")? };
        if scale.means.len() == scale.std_devs.len() {
            return Ok(scale);
        }
        Err(Error::failed("the checkpoint's `means` and `std_devs` differ in length"))
    }
}
