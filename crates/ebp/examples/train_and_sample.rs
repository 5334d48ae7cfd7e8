//! Trains a small model of built-in chairs, saves it, loads it and draws new ones:
//! `cargo run --release -p ebp --example train_and_sample`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use ebp::model::{Model, SampleOptions, Settings, TrainOptions};

fn main() -> ebp::Result<()> {
    // A preset, made smaller; `--set` of the command line takes the same words.
    let small = ["train.num_steps=200", "data.num_shapes=60", "data.num_points=256"];
    let settings = Settings::preset("shapes", &small)?;
    let model = Model::train(settings, TrainOptions::default())?;

    let folder = std::env::temp_dir().join(format!("ebp-chairs-{}", std::process::id()));
    model.save(&folder)?;
    let model = Model::load(&folder)?;
    let options = SampleOptions { count: 4, num_points: Some(500), ..SampleOptions::default() };
    let chairs = model.sample(&options)?;
    println!("{} chairs of {} points", chairs.sets.len(), chairs.sets[0].len() / chairs.dim);
    std::fs::remove_dir_all(&folder).ok();
    Ok(())
}
