//! A name for what a model is: two models of one name answer alike.

use super::Model;
use crate::checkpoint::crc32c;
use crate::tensor::TensorValues;

impl Model {
    /// CRC-32C of the settings, the step and every weight, in hexadecimal.
    pub fn fingerprint(&self) -> String {
        let step = self.step().to_le_bytes();
        let mut sum = crc32c(&[self.checkpoint.meta.config.as_bytes(), &step]);
        for (name, tensor) in &self.checkpoint.state {
            let bytes: Vec<u8> = match tensor.values() {
                TensorValues::F32(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
                TensorValues::F64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
                TensorValues::I64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            };
            sum = crc32c(&[&sum.to_le_bytes(), name.as_bytes(), &bytes]);
        }
        format!("{sum:08x}")
    }
}
