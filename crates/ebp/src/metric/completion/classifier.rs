//! A small classifier of pictures, trained on the spot: who says what a completion shows.

use std::sync::Arc;

use rayon::prelude::*;

use crate::data::image::{Images, KnownPart};
use crate::nn::Step;
use crate::nn::{Network, Sets};
use crate::point::{Activation, MlpConfig};
use crate::rng::Stream;
use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet, Tape, Var, softmax_rows};
use crate::{Error, Result, SetOffsets};

/// How a [`Classifier`] is trained.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassifierConfig {
    /// Widths of the hidden layers.
    pub hidden_widths: Vec<usize>,
    /// Steps of Adam.
    pub num_steps: u64,
    /// Pictures per step.
    pub batch: usize,
    /// The learning rate at the start; it falls to 0 along half a cosine.
    pub learning_rate: f64,
    /// Which part of a picture it sees; `None` for all of it.
    pub part: Option<KnownPart>,
}

impl Default for ClassifierConfig {
    /// One hidden layer of 128, 2500 steps of 128 pictures: 97.5 % on MNIST.
    fn default() -> Self {
        Self {
            hidden_widths: vec![128],
            num_steps: 2500,
            batch: 128,
            learning_rate: 3e-3,
            part: None,
        }
    }
}

/// A network from all pixels to classes.
#[derive(Debug)]
pub struct Classifier {
    network: Network,
    parameters: ParameterSet,
}

impl Classifier {
    /// Learns which label each picture has.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if pictures and labels do not fit each other.
    pub fn train(
        images: &Images,
        labels: &[u32],
        config: &ClassifierConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        if images.is_empty() || images.len() != labels.len() {
            let expected = format!("one per picture, {} in all", images.len());
            return Err(Error::invalid("labels", expected, labels.len()));
        }
        let num_classes = labels.iter().max().map_or(1, |largest| *largest as usize + 1);
        let config_of_network = MlpConfig {
            value_dim: images.width * images.height * images.channels,
            location_dim: 0,
            context_dim: 0,
            hidden_widths: config.hidden_widths.clone(),
            output_dim: num_classes,
            activation: Activation::Relu,
            ..MlpConfig::default()
        };
        let mut builder = ParameterBuilder::new(seed);
        let network = Network::new(&mut builder.group("classifier"), "network", config_of_network)?;
        let parameters = ParameterSet::new(builder, device, AdamConfig::default(), None)?;
        let mut classifier = Self { network, parameters };
        for number in 0..config.num_steps {
            let stream = Stream::new(seed, "classifier").child(number);
            let step =
                Step { number, num_steps: config.num_steps, stream, learning_rate_factor: 1.0 };
            classifier.learn(images, labels, config, &step)?;
        }
        Ok(classifier)
    }

    fn learn(
        &mut self,
        images: &Images,
        labels: &[u32],
        config: &ClassifierConfig,
        step: &Step,
    ) -> Result<()> {
        let mut uniforms = vec![0.0; config.batch];
        step.stream.fill_uniform(0, 0, &mut uniforms);
        let count = images.len();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below count")]
        let chosen: Vec<usize> = uniforms
            .iter()
            .map(|&u| ((f64::from(u) * count as f64) as usize).min(count - 1))
            .collect();
        let pixels: Vec<f32> = chosen
            .par_iter()
            .enumerate()
            .flat_map_iter(|(number, &index)| {
                let stream = step.stream.child(1).child(number as u64);
                seen(images, index, config.part, stream)
            })
            .collect();
        let classes: Vec<u32> = chosen.iter().map(|&index| labels[index]).collect();
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let potentials = self.potentials(&mut tape, pixels)?;
        let log_mass = tape.log_mass(potentials, &Arc::new(classes))?;
        let mean = tape.mean(log_mass)?;
        let loss = tape.affine(mean, -1.0, 0.0)?;
        let rate = step.learning_rate(config.learning_rate);
        self.parameters.descend(tape, loss, rate)?;
        Ok(())
    }

    /// One number per class for every picture.
    fn potentials(&self, tape: &mut Tape, pixels: Vec<f32>) -> Result<Var> {
        let width = self.network.shape().element_dim();
        let count = pixels.len() / width;
        let elements = tape.upload(pixels, (count, width))?;
        let offsets = &Arc::new(SetOffsets::uniform(1, count)?);
        self.network.values(tape, Sets { elements, context: None, offsets })
    }

    /// The class of each picture of grey values on [0, 1], `[count, pixels]`, and how sure it is.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] if the pictures have another size.
    pub fn classify(&self, pixels: &[f32]) -> Result<Vec<(u32, f32)>> {
        if pixels.is_empty() {
            return Ok(Vec::new());
        }
        let num_classes = self.network.shape().config().output_dim;
        let mut tape = self.parameters.device().tape();
        tape.read(&self.parameters);
        let potentials = self.potentials(&mut tape, pixels.to_vec())?;
        let mut values = tape.download(potentials)?;
        softmax_rows(&mut values, num_classes);
        let largest = |shares: &[f32]| {
            let best = (0_u32..).zip(shares).max_by(|a, b| a.1.total_cmp(b.1));
            best.map_or((0, 0.0), |(class, share)| (class, *share))
        };
        Ok(values.chunks_exact(num_classes).map(largest).collect())
    }

    /// The share of pictures that it takes for what they are.
    ///
    /// # Errors
    ///
    /// As [`classify`](Self::classify).
    pub fn accuracy(&self, images: &Images, labels: &[u32]) -> Result<f64> {
        let pixels: Vec<f32> = images.pixels.iter().map(|&level| brightness(level)).collect();
        let found = self.classify(&pixels)?;
        let right = found.iter().zip(labels).filter(|((class, _), label)| class == *label).count();
        Ok(right as f64 / found.len().max(1) as f64)
    }
}

fn brightness(level: u8) -> f32 {
    (f32::from(level) + 0.5) / 256.0
}

/// A picture, with nothing where the part does not reach.
fn seen(images: &Images, index: usize, part: Option<KnownPart>, stream: Stream) -> Vec<f32> {
    let pixels = images.image(index).iter().map(|&level| brightness(level));
    match part {
        None => pixels.collect(),
        Some(part) => {
            let mask = part.mask(images.width, images.height, stream);
            let by_pixel = pixels.enumerate();
            by_pixel.map(|(at, x)| if mask[at / images.channels] { x } else { 0.0 }).collect()
        }
    }
}
