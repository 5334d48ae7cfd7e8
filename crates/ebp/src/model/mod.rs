//! What a user holds.

mod presets;

pub use self::presets::PRESETS;
