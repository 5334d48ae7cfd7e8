//! What all commands about models of clouds share: settings, data, trained models, scores.

mod data;
mod evaluate;
mod input;
mod output;
mod settings;
mod trained;

pub(crate) use self::data::CloudData;
pub(crate) use self::evaluate::{
    Generation, GenerationRow, chamfer, generation_table, nearest_distances,
};
pub(crate) use self::input::{read_inputs, sets};
pub(crate) use self::output::{draw_rows, standardised_sets, write_clouds};
pub(crate) use self::settings::{CloudSettings, PriorName};
pub(crate) use self::trained::TrainedCloud;
