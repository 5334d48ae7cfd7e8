//! Table 1 of *Energy-Based Processes for Exchangeable Data*: ShapeNet, 2048 points, the evaluation
//! of PointFlow with `approxmatch`.

use ebp::experiment::table1::PUBLISHED;

use crate::args::PaperClass;

/// A row: JSD ×10², MMD-CD ×10³, MMD-EMD ×10², COV-CD %, COV-EMD %.
pub(super) struct PaperRow {
    pub(super) model: &'static str,
    pub(super) values: [f64; 5],
}

/// The rows of a class.
pub(super) fn rows(class: PaperClass) -> impl Iterator<Item = PaperRow> {
    let name = match class {
        PaperClass::Airplane => "airplane",
        PaperClass::Chair => "chair",
        PaperClass::Car => "car",
    };
    let of_class = PUBLISHED.into_iter().filter(move |row| row.0 == name);
    of_class.map(|(_, model, values)| PaperRow { model, values })
}
