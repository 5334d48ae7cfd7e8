//! The card of a shared model: `README.md` with the header that hubs of models read.

use std::fmt::Write;

use super::{Model, Settings};

/// What lies beside the weights.
pub(super) const FILE: &str = "README.md";

impl Model {
    /// The card, for a reader who has the folder and nothing else.
    pub(super) fn card(&self) -> String {
        let settings = &self.settings;
        let (kind, name) = (settings.kind(), self.name());
        let source = super::save::name_only(settings.source());
        let mut text = format!(
            "---\nlibrary_name: ebp\ntags:\n- energy-based-process\n- {kind}\n- {name}\n---\n\n\
             # A model of {kind}\n\n\
             `{name}`, trained for {} steps on `{source}` with seed {}; the weights alone, without what only \
             training needs.\n",
            self.step(),
            settings.seed()
        );
        let (ask, python) = match settings {
            Settings::Clouds(_) | Settings::SetEnergies(_) | Settings::Latents(_) => {
                ("ebp sample . -n 12 --points 2048 -o clouds/", "model.sample(12, points=2048)")
            }
            Settings::Curves(_) => (
                "ebp predict . --context known.csv --at where.csv",
                "model.forecast(where, context=known)",
            ),
            Settings::Pictures(_) => {
                ("ebp complete . --image torn.png", "model.complete(picture, missing)")
            }
            Settings::Patterns(_) => ("ebp sample . -n 12 -o patterns/", "model.sample(12)"),
            Settings::Topics(_) => ("ebp query . --document 12", "model.transform(counts)"),
        };
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n## Use\n\n```sh\n{ask}\n```\n\n\
             ```python\nimport ebp\n\nmodel = ebp.load(\".\")\n{python}\n```\n\n\
             ## Files\n\n\
             - `checkpoints/`: the weights as safetensors, and what belongs to them as JSON\n\
             - `config.toml`: all settings; the data by their name only\n\
             - `metrics.jsonl`: the record of training, where there is one\n\
             - `codes.npy`: codes of the training sets, for learned laws of the latent, where there are some\n\n\
             ## Not said here\n\n\
             What the data may be used for, what was measured on data that training has not seen, and what the \
             model must not be used for: whoever shares it adds that.\n"
        );
        text
    }
}
