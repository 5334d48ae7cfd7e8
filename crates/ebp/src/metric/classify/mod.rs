//! How much a representation says about classes it was never told: linear support vector machines
//! on features, by the protocol of the literature.
//!
//! [`LinearSvm`] is what scikit-learn calls `LinearSVC`: L2-regularised squared hinge loss, one class
//! against the rest, no scaling of features. [`cross_validate`] and [`fit_choosing`] choose C and
//! predict items that were not seen; [`Confusion`] counts what became of them. Every machine comes
//! with its duality gap.

mod confusion;
mod dual;
mod features;
mod labels;
mod newton;
mod svm;
mod validation;

pub use confusion::Confusion;
pub use features::{Features, Labelled};
pub use labels::{Classes, read_labels};
pub use svm::{LinearSvm, SvmConfig};
pub use validation::{
    COSTS, Chosen, Cost, CrossValidation, cross_validate, fit_choosing, stratified_folds,
};
