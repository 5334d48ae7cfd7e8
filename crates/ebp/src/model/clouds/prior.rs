//! Laws of θ, and the codes of the training sets that learned ones are fitted to.

use std::path::Path;
use std::sync::Arc;

use super::{CloudData, CloudModel, PriorKind};
use crate::data::npy::{Array, Precision, read_npy, write_npy};
use crate::latent::{
    Codes, FlowConfig, FlowPrior, GaussianPrior, KernelConfig, KernelPrior, Prior, StandardPrior,
};
use crate::process::LatentCodes;
use crate::rng::Stream;
use crate::{Error, Result};

/// Codes of the training sets: `[2, sets, k]`, μ and log σ.
const CODES_FILE: &str = "codes.npy";

impl CloudModel {
    /// A law of θ, fitted to the codes of the training sets if it is a learned one.
    ///
    /// # Errors
    ///
    /// What stands in the way of the codes: a model that did not come to the end of its training, and
    /// whose data are gone, has none.
    pub fn prior(&self, kind: PriorKind) -> Result<Arc<dyn Prior>> {
        let place = PriorKind::ALL.iter().position(|known| *known == kind).unwrap_or(0);
        if let Some(prior) = self.priors[place].get() {
            return Ok(Arc::clone(prior));
        }
        let prior = self.fit_prior(kind)?;
        Ok(Arc::clone(self.priors[place].get_or_init(|| prior)))
    }

    /// h of every direction of the kernels around the codes: 0 draws the codes themselves, 1 their
    /// Gaussian.
    pub(crate) fn kernel_bandwidths(&self) -> Result<Vec<f64>> {
        let kernels = KernelPrior::restore(&self.prior(PriorKind::Kernel)?.state()?)?;
        Ok(kernels.bandwidths().iter().map(|&h| f64::from(h)).collect())
    }

    fn fit_prior(&self, kind: PriorKind) -> Result<Arc<dyn Prior>> {
        let k = self.latent_dim();
        if kind == PriorKind::Standard {
            return Ok(Arc::new(StandardPrior { dim: k }));
        }
        let codes = self.codes()?;
        let std_devs = codes.std_devs();
        let codes = Codes::new(k, &codes.mean, Some(&std_devs))?;
        let stream = Stream::new(self.settings.seed, "prior");
        Ok(match kind {
            PriorKind::Kernel => {
                Arc::new(KernelPrior::fit(&codes, &KernelConfig::default(), stream)?.0)
            }
            PriorKind::Flow => Arc::new(FlowPrior::fit(&codes, &FlowConfig::default(), stream)?.0),
            PriorKind::Gaussian | PriorKind::Standard => Arc::new(GaussianPrior::fit(&codes)?),
        })
    }

    /// θ of a file, `[clouds, k]`, such as μ of [`encode`](Self::encode).
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it has another shape.
    pub fn read_latents(&self, path: &Path) -> Result<Vec<f32>> {
        let k = self.latent_dim();
        let array: Array<f32> = read_npy(path)?;
        match array.shape[..] {
            [sets, found] if sets > 0 && found == k => Ok(array.values),
            _ => Err(Error::refused(format!(
                "`{}` must be of shape [sets, {k}], but is {:?}",
                path.display(),
                array.shape
            ))
            .with_help("write codes with `ebp encode MODEL SETS --features mean`")),
        }
    }

    /// Encodes the training sets, and keeps the codes in the model's folder if it has one.
    pub(in crate::model) fn keep_codes(&self, data: &CloudData) -> Result<()> {
        let codes = self.encode_standardised(&data.train)?;
        if let Some(directory) = &self.codes.directory {
            write_codes(directory, &codes)?;
        }
        let _first = self.codes.known.set(codes);
        Ok(())
    }

    /// Writes the codes of the training sets into another folder.
    pub(in crate::model) fn write_codes_to(&self, directory: &Path) -> Result<()> {
        write_codes(directory, self.codes()?)
    }

    /// The codes of the training sets: known, from the folder, or, where a run did not come to its
    /// end, from the data.
    pub(crate) fn codes(&self) -> Result<&LatentCodes> {
        if let Some(codes) = self.codes.known.get() {
            return Ok(codes);
        }
        let found = if let Some(codes) = self.kept_codes()? {
            codes
        } else {
            self.encode_standardised(&CloudData::load(&self.settings)?.train)?
        };
        Ok(self.codes.known.get_or_init(|| found))
    }

    fn kept_codes(&self) -> Result<Option<LatentCodes>> {
        let k = self.latent_dim();
        let path = self.codes.directory.as_ref().map(|directory| directory.join(CODES_FILE));
        let Some(path) = path.filter(|path| self.codes.is_final && path.exists()) else {
            return Ok(None);
        };
        let array: Array<f32> = read_npy(&path)?;
        let [2, sets, found] = array.shape[..] else { return Ok(None) };
        if found != k {
            return Ok(None);
        }
        let (mean, log_std_dev) = array.values.split_at(sets * k);
        Ok(Some(LatentCodes {
            latent_dim: k,
            mean: mean.to_vec(),
            log_std_dev: log_std_dev.to_vec(),
            pooled: Vec::new(),
        }))
    }
}

fn write_codes(directory: &Path, codes: &LatentCodes) -> Result<()> {
    let shape = vec![2, codes.num_sets(), codes.latent_dim];
    let both = [codes.mean.as_slice(), &codes.log_std_dev].concat();
    write_npy(&directory.join(CODES_FILE), &Array::new(shape, both)?, Precision::Single)
}
