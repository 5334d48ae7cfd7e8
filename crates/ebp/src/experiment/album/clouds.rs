//! The album of a model of clouds: samples and their neighbours, sets drawn again, ways from noise, blends.
//!
//! The neighbour of a sample is the training set whose code μ is nearest to the sample's θ. Densities of
//! points are log p(x | θ) = u(x; θ) − log Z(θ) at the θ that the points were drawn with, or at the code of
//! the set, by importance sampling with few proposals: for colours.

use super::{AlbumOptions, CloudAlbum, CloudGroup, CloudPath, CloudRows};
use crate::Result;
use crate::model::{CloudData, CloudModel};
use crate::process::DrawSettings;
use crate::rng::Stream;

/// Samples that get a neighbour, and held-out sets that are drawn again.
const NUM_ROWS: usize = 8;
/// Ways from noise, and frames of each.
const NUM_PATHS: usize = 4;
const NUM_FRAMES: usize = 25;
/// Blends, and clouds of each with its ends.
const NUM_BLENDS: usize = 4;
const NUM_BETWEEN: usize = 9;
/// For log Z: an error of a few hundredths of a nat.
const NUM_PROPOSALS: usize = 2048;

/// What all parts of an album share.
struct Maker<'a> {
    model: &'a CloudModel,
    album: CloudAlbum,
    num_points: usize,
    stream: Stream,
}

pub(super) fn make(
    model: &CloudModel,
    data: Option<&CloudData>,
    options: &AlbumOptions,
    watch: &mut dyn FnMut(&str),
) -> Result<CloudAlbum> {
    let album = CloudAlbum { dim: model.dim(), ..CloudAlbum::default() };
    let (num_points, stream) = (options.num_points, options.stream);
    let mut maker = Maker { model, album, num_points, stream };
    watch("samples");
    let prior = model.prior(options.prior)?;
    let theta = prior.sample(options.num_samples, stream.child(0))?;
    let name = |number: usize| format!("sample {}", number + 1);
    let samples = maker.draw(&theta, name, 1)?;
    let note = format!(
        "New sets, θ from the law `{}`. A click shows one of them, another all.",
        prior.name()
    );
    let count = samples.len();
    maker.album.groups.push(CloudGroup { name: "Samples".into(), first: 0, count, note });
    watch("neighbours");
    maker.neighbours(&theta, &samples, data)?;
    if let Some(data) = data {
        watch("held-out sets");
        maker.held_out(data)?;
    }
    watch("ways from noise");
    maker.paths(&theta)?;
    watch("blends");
    maker.blends(&theta, &samples)?;
    Ok(maker.album)
}

impl Maker<'_> {
    /// Draws a cloud of every θ, and gives their numbers.
    fn draw(
        &mut self,
        theta: &[f32],
        name: impl Fn(usize) -> String,
        part: u64,
    ) -> Result<Vec<usize>> {
        let settings = DrawSettings::default();
        let stream = self.stream.child(part);
        let (clouds, _) =
            self.model.draw(theta, self.num_points, &settings, stream, &mut |_| {})?;
        self.add(theta, clouds, name)
    }

    /// Adds a cloud of every θ with the densities of its points.
    fn add(
        &mut self,
        theta: &[f32],
        clouds: Vec<Vec<f32>>,
        name: impl Fn(usize) -> String,
    ) -> Result<Vec<usize>> {
        let k = self.model.latent_dim();
        let stream = self.stream.child(100);
        let log_z = self.model.log_partition(theta, NUM_PROPOSALS, stream)?;
        let mut numbers = Vec::with_capacity(clouds.len());
        for (number, points) in clouds.into_iter().enumerate() {
            let theta = &theta[number * k..][..k];
            let densities = self.densities(&points, theta, log_z[number].value)?;
            numbers.push(self.album.add(name(number), points, densities));
        }
        Ok(numbers)
    }

    /// log p(x | θ) of points in the units of the data.
    #[expect(clippy::cast_possible_truncation, reason = "for colours")]
    fn densities(&self, points: &[f32], theta: &[f32], log_z: f64) -> Result<Vec<f32>> {
        let affine = self.model.affine();
        let mut standardised = points.to_vec();
        affine.apply(&mut standardised);
        let shift = log_z + self.model.dim() as f64 * f64::from(affine.scale).ln();
        let mut found = self.model.log_potentials(&standardised, theta)?;
        for u in &mut found {
            *u -= shift as f32;
        }
        Ok(found)
    }

    /// As many points of a set as are shown, evenly from its order.
    fn shown(&self, set: &[f32]) -> Vec<f32> {
        let points = self.model.in_data_units(set);
        let dim = self.model.dim();
        let count = points.len() / dim;
        let kept = count.min(self.num_points);
        (0..kept).flat_map(|i| points[i * count / kept * dim..][..dim].iter().copied()).collect()
    }

    /// Samples beside the training sets with the nearest codes, and those drawn again.
    fn neighbours(
        &mut self,
        theta: &[f32],
        samples: &[usize],
        data: Option<&CloudData>,
    ) -> Result<()> {
        let k = self.model.latent_dim();
        // A model that was exported without them, and whose data are gone, has none.
        let Ok(codes) = self.model.codes() else { return Ok(()) };
        let nearest: Vec<usize> = theta
            .chunks_exact(k)
            .take(NUM_ROWS)
            .map(|theta| {
                let distance = |code: &[f32]| -> f32 {
                    code.iter().zip(theta).map(|(a, b)| (a - b).powi(2)).sum()
                };
                let all = codes.mean.chunks_exact(k).map(distance).enumerate();
                all.min_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(0, |(set, _)| set)
            })
            .collect();
        let means: Vec<f32> =
            nearest.iter().flat_map(|&set| codes.mean[set * k..][..k].iter().copied()).collect();
        let again = self.draw(&means, |row| format!("set {} again", nearest[row] + 1), 2)?;
        let mut heads = vec!["sample".to_owned()];
        let mut rows: Vec<Vec<usize>> = samples.iter().map(|&sample| vec![sample]).collect();
        rows.truncate(nearest.len());
        if let Some(data) = data {
            heads.push("nearest training set".into());
            let sets: Vec<Vec<f32>> =
                nearest.iter().map(|&set| self.shown(&data.train.set(set))).collect();
            let name = |row: usize| format!("training set {}", nearest[row] + 1);
            let found = self.add(&means, sets, name)?;
            rows.iter_mut().zip(found).for_each(|(row, set)| row.push(set));
        }
        heads.push("drawn from its code".into());
        rows.iter_mut().zip(again).for_each(|(row, set)| row.push(set));
        self.album.rows.push(CloudRows {
            name: "Samples and training sets".into(),
            heads,
            rows,
            note: "Nearest is the training set whose code is nearest to the sample's.".into(),
        });
        Ok(())
    }

    /// Sets that were not learned from, and what is drawn from their codes.
    fn held_out(&mut self, data: &CloudData) -> Result<()> {
        let sets = data.choice_sets(NUM_ROWS);
        let codes = self.model.encode_sets(&sets)?.mean;
        let shown = sets.iter().map(|set| self.shown(set)).collect();
        let originals = self.add(&codes, shown, |row| format!("held-out set {}", row + 1))?;
        let again = self.draw(&codes, |row| format!("set {} again", row + 1), 3)?;
        self.album.rows.push(CloudRows {
            name: "Held-out sets drawn again".into(),
            heads: vec!["held out".into(), "drawn from its code".into()],
            rows: originals.into_iter().zip(again).map(|(a, b)| vec![a, b]).collect(),
            note: "Sets that were not learned from, encoded, and drawn anew from their codes."
                .into(),
        });
        Ok(())
    }

    /// Points on their way from noise, for the first samples.
    fn paths(&mut self, theta: &[f32]) -> Result<()> {
        let k = self.model.latent_dim();
        let theta = &theta[..theta.len().min(NUM_PATHS * k)];
        let stream = self.stream.child(4);
        let frames = self.model.points_from_noise(theta, self.num_points, NUM_FRAMES, stream)?;
        let log_z = self.model.log_partition(theta, NUM_PROPOSALS, self.stream.child(100))?;
        let size = self.num_points * self.model.dim();
        for (number, theta) in theta.chunks_exact(k).enumerate() {
            let mut numbers = Vec::with_capacity(frames.len());
            for (frame, all) in frames.iter().enumerate() {
                let points = self.model.in_data_units(&all[number * size..][..size]);
                let densities = self.densities(&points, theta, log_z[number].value)?;
                numbers.push(self.album.add(format!("frame {frame}"), points, densities));
            }
            let label = |frame: usize| {
                let share = 100 * frame / (NUM_FRAMES - 1);
                if frame == 0 { "noise".to_owned() } else { format!("{share} % of the steps") }
            };
            self.album.paths.push(CloudPath {
                name: format!("with the code of sample {}", number + 1),
                frames: numbers,
                labels: (0..NUM_FRAMES).map(label).collect(),
                is_blend: false,
                note: "Langevin steps from uniform noise, their size and noise falling: how the energy \
                       pulls points to a shape. Samples are drawn otherwise."
                    .into(),
            });
        }
        Ok(())
    }

    /// Clouds of codes on the line between two samples' codes.
    fn blends(&mut self, theta: &[f32], samples: &[usize]) -> Result<()> {
        let k = self.model.latent_dim();
        let pairs = theta.chunks_exact(2 * k).zip(samples.chunks_exact(2)).take(NUM_BLENDS);
        for (pair, (codes, ends)) in pairs.enumerate() {
            let (one, other) = codes.split_at(k);
            let share = |step: usize| step as f32 / (NUM_BETWEEN - 1) as f32;
            let between: Vec<f32> = (1..NUM_BETWEEN - 1)
                .flat_map(|step| one.iter().zip(other).map(move |(a, b)| a + share(step) * (b - a)))
                .collect();
            let name = |step: usize| format!("{:.0} %", 100.0 * share(step + 1));
            let mut frames = vec![ends[0]];
            frames.extend(self.draw(&between, name, 10 + pair as u64)?);
            frames.push(ends[1]);
            self.album.blends.push(CloudPath {
                name: format!("sample {} to sample {}", 2 * pair + 1, 2 * pair + 2),
                frames,
                labels: (0..NUM_BETWEEN)
                    .map(|step| format!("{:.0} %", 100.0 * share(step)))
                    .collect(),
                is_blend: true,
                note: "Codes on the straight line between those of two samples.".into(),
            });
        }
        Ok(())
    }
}
