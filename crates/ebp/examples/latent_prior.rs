//! A law of θ learned from codes: 800 sets of five kinds, θ of 128 numbers that live near a curved
//! surface of 6 dimensions, as codes of shapes do.
//!
//! ```sh
//! cargo run --release -p ebp --example latent_prior
//! ```
#![allow(clippy::print_stdout, reason = "an example says what it found")]

use std::time::Instant;

use ebp::latent::{
    Codes, FlowConfig, FlowPrior, GaussianPrior, KernelConfig, KernelPrior, Prior, StandardPrior,
};
use ebp::rng::Stream;

const K: usize = 128;
const FACTORS: usize = 6;

/// θ = W tanh(s + centre of the kind) and a little noise.
fn codes(count: usize, stream: Stream) -> Vec<f32> {
    let law = Stream::new(0, "law");
    let (mut w, mut centres) = (vec![0.0; K * FACTORS], vec![0.0; 5 * FACTORS]);
    law.child(0).fill_normal(0, 0, &mut w);
    law.child(1).fill_normal(0, 0, &mut centres);
    let (mut s, mut noise) = (vec![0.0; count * FACTORS], vec![0.0; count * K]);
    stream.child(0).fill_normal(0, 0, &mut s);
    stream.child(1).fill_normal(0, 0, &mut noise);
    let mut means = Vec::with_capacity(count * K);
    for (item, (s, noise)) in s.chunks_exact(FACTORS).zip(noise.chunks_exact(K)).enumerate() {
        let centre = &centres[item % 5 * FACTORS..][..FACTORS];
        let bent: Vec<f32> =
            s.iter().zip(centre).map(|(s, c)| (0.5 * s + 2.0 * c).tanh()).collect();
        for (row, xi) in w.chunks_exact(FACTORS).zip(noise) {
            means.push(row.iter().zip(&bent).map(|(w, b)| w * b).sum::<f32>() + 0.1 * xi);
        }
    }
    means
}

fn main() -> ebp::Result<()> {
    let means = codes(800, Stream::new(1, "training"));
    let std_devs = vec![0.3; means.len()]; // of the posteriors
    let known = Codes::new(K, &means, Some(&std_devs))?;
    let gaussian = GaussianPrior::fit(&known)?;
    let started = Instant::now();
    let (flow, fit) = FlowPrior::fit(&known, &FlowConfig::default(), Stream::new(2, "prior"))?;
    let seconds = started.elapsed().as_secs_f64();
    println!("{seconds:.1} s, {fit:?}");
    let started = Instant::now();
    let (kernels, fit) =
        KernelPrior::fit(&known, &KernelConfig::default(), Stream::new(2, "prior"))?;
    println!("{:.1} s, {fit:?}", started.elapsed().as_secs_f64());

    let fresh = codes(1000, Stream::new(3, "fresh"));
    let noise = vec![0.3; fresh.len()];
    let rows: Vec<usize> = (0..1000).collect();
    let thetas = Codes::new(K, &fresh, Some(&noise))?.draw(&rows, Stream::new(4, "noise"));
    let priors: [&dyn Prior; 4] = [&StandardPrior { dim: K }, &gaussian, &flow, &kernels];
    for prior in priors {
        let all = prior.log_density(&thetas)?;
        let nll = -all.iter().sum::<f64>() / all.len() as f64;
        println!("{:<16} {nll:8.2} nats per fresh code", prior.name());
    }
    Ok(())
}
