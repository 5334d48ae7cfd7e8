//! Sets of different sizes, some without elements, as tensors.

use candle_core::{DType, Device, Tensor};

use super::network::Network;
use crate::point::Pooling;
use crate::{IndexedSet, Result, SetOffsets};

/// The elements `[x, t]` of several sets, any of which may be empty.
#[derive(Clone, Debug)]
pub(super) struct Ragged {
    sizes: Vec<usize>,
    /// The elements `[total, d_x + d_t]` and offsets of the sets that have any; `None` if none has.
    filled: Option<(Tensor, SetOffsets)>,
}

impl Ragged {
    pub(super) fn new<'a>(sets: impl IntoIterator<Item = &'a IndexedSet>) -> Result<Self> {
        let sets: Vec<&IndexedSet> = sets.into_iter().collect();
        let sizes: Vec<_> = sets.iter().map(|set| set.len()).collect();
        let width = sets.first().map_or(1, |set| set.value_dim() + set.location_dim());
        let mut numbers = Vec::new();
        for set in sets {
            for index in 0..set.len() {
                numbers.extend(set.value(index).iter().chain(set.location(index)));
            }
        }
        let total: usize = sizes.iter().sum();
        let filled = if total == 0 {
            None
        } else {
            let offsets = SetOffsets::from_sizes(sizes.iter().copied().filter(|&n| n > 0))?;
            Some((host_tensor(&numbers, width)?, offsets))
        };
        Ok(Self { sizes, filled })
    }

    pub(super) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The locations alone, `[total, location_dim]`; `None` without elements.
    pub(super) fn locations(&self, location_dim: usize) -> Result<Option<(Tensor, &SetOffsets)>> {
        match &self.filled {
            Some((elements, offsets)) => {
                let value_dim = elements.dim(1)? - location_dim;
                Ok(Some((elements.narrow(1, value_dim, location_dim)?, offsets)))
            }
            None => Ok(None),
        }
    }

    /// What `network` makes of each element, `[total, outputs]`; `None` without elements.
    pub(super) fn values(&self, network: &Network) -> Result<Option<Tensor>> {
        match &self.filled {
            Some((elements, offsets)) => Ok(Some(network.values(elements, None, offsets)?)),
            None => Ok(None),
        }
    }

    /// The mean over each set of what `network` makes of its elements, `[sets, outputs]`; zeros
    /// for a set without elements.
    pub(super) fn mean(&self, network: &Network) -> Result<Tensor> {
        match &self.filled {
            Some((elements, offsets)) => {
                self.spread(&network.pool(elements, offsets, Pooling::Mean)?)
            }
            None => zeros(self.sizes.len(), network.output_dim()),
        }
    }

    /// The mean over each set of `rows` `[total, width]`, `[sets, width]`; zeros where empty.
    pub(super) fn mean_rows(&self, rows: &Tensor) -> Result<Tensor> {
        let owners: Vec<u32> = (0_u32..)
            .zip(&self.sizes)
            .flat_map(|(set, &size)| std::iter::repeat_n(set, size))
            .collect();
        let scales: Vec<f64> = self.sizes.iter().map(|&n| 1.0 / n.max(1) as f64).collect();
        let owners = Tensor::new(owners, &Device::Cpu)?;
        let sums = zeros(self.sizes.len(), rows.dim(1)?)?.index_add(&owners, rows, 0)?;
        Ok(sums.broadcast_mul(&host_tensor(&scales, 1)?)?)
    }

    /// Puts the rows of the sets with elements in their places among zeros.
    fn spread(&self, rows: &Tensor) -> Result<Tensor> {
        let num_filled = rows.dim(0)?;
        if num_filled == self.sizes.len() {
            return Ok(rows.clone());
        }
        let padded = Tensor::cat(&[rows, &zeros(1, rows.dim(1)?)?], 0)?;
        let mut next = 0..;
        let last = u32::try_from(num_filled).unwrap_or(u32::MAX);
        let places: Vec<u32> = self
            .sizes
            .iter()
            .map(|&size| if size > 0 { next.next().unwrap_or(last) } else { last })
            .collect();
        Ok(padded.index_select(&Tensor::new(places, &Device::Cpu)?, 0)?)
    }
}

/// Rows of `width` numbers, rounded to f32.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
pub(crate) fn host_tensor(numbers: &[f64], width: usize) -> Result<Tensor> {
    let rounded: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
    Ok(Tensor::from_vec(rounded, (numbers.len() / width, width), &Device::Cpu)?)
}

/// All numbers of a tensor, row-major.
pub(crate) fn host_numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    let numbers = tensor.flatten_all()?.to_vec1::<f32>()?;
    Ok(numbers.into_iter().map(f64::from).collect())
}

pub(super) fn zeros(rows: usize, width: usize) -> Result<Tensor> {
    Ok(Tensor::zeros((rows, width), DType::F32, &Device::Cpu)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::network::Builder;
    use super::*;
    use crate::point::{CpuBackend, MlpConfig};

    #[test]
    fn both_means_agree_and_are_zero_for_sets_without_elements() {
        let config =
            MlpConfig { value_dim: 1, location_dim: 1, context_dim: 0, ..MlpConfig::default() };
        let builder = Builder::new(1, Arc::new(CpuBackend::new()));
        let network = builder.network("a", config, 2).unwrap();
        let empty = IndexedSet::empty(1, 1).unwrap();
        let one = IndexedSet::new(1, 1, vec![0.5], vec![2.0]).unwrap();
        let two = IndexedSet::new(1, 1, vec![1.0, -1.0], vec![3.0, 4.0]).unwrap();
        let ragged = Ragged::new(&[empty.clone(), two, empty.clone(), one]).unwrap();
        let pooled = host_numbers(&ragged.mean(&network).unwrap()).unwrap();
        let rows = ragged.values(&network).unwrap().unwrap();
        let by_rows = host_numbers(&ragged.mean_rows(&rows).unwrap()).unwrap();
        assert_eq!((pooled[0], pooled[2]), (0.0, 0.0));
        assert!(pooled[1] != 0.0 && pooled[3] != 0.0);
        for (a, b) in pooled.iter().zip(&by_rows) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        let none = Ragged::new(&[empty]).unwrap().mean(&network).unwrap();
        assert_eq!(host_numbers(&none).unwrap(), [0.0]);
    }
}
