//! Table 1 of *Energy-Based Processes for Exchangeable Data*: ShapeNet, 2048 points, the evaluation
//! of PointFlow with `approxmatch`.

use crate::args::PaperClass;

/// A row: JSD ×10², MMD-CD ×10³, MMD-EMD ×10², COV-CD %, COV-EMD %.
pub(super) struct PaperRow {
    pub(super) model: &'static str,
    pub(super) values: [f64; 5],
}

const fn row(model: &'static str, values: [f64; 5]) -> PaperRow {
    PaperRow { model, values }
}

/// The rows of a class.
pub(super) fn rows(class: PaperClass) -> [PaperRow; 4] {
    match class {
        PaperClass::Airplane => [
            row("EBP (paper)", [3.92, 0.240, 3.22, 49.38, 51.60]),
            row("PointFlow", [4.92, 0.217, 3.24, 46.91, 48.40]),
            row("l-GAN (best)", [3.61, 0.239, 3.29, 47.90, 50.62]),
            row("PC-GAN", [4.63, 0.287, 3.57, 36.46, 40.94]),
        ],
        PaperClass::Chair => [
            row("EBP (paper)", [1.53, 2.59, 7.92, 47.73, 49.84]),
            row("PointFlow", [1.74, 2.42, 7.87, 46.83, 46.98]),
            row("l-GAN (best)", [2.27, 2.46, 7.85, 41.39, 41.69]),
            row("PC-GAN", [3.90, 2.75, 8.20, 36.50, 38.98]),
        ],
        PaperClass::Car => [
            row("EBP (paper)", [0.78, 0.95, 5.24, 51.99, 51.70]),
            row("PointFlow", [0.87, 0.91, 5.22, 44.03, 46.59]),
            row("l-GAN (best)", [2.21, 1.48, 5.43, 39.20, 39.77]),
            row("PC-GAN", [5.85, 1.12, 5.83, 23.56, 30.29]),
        ],
    }
}
