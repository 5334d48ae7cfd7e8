"""Settings of models that train in a moment."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SMALL_CLOUDS = {
    "train.num_steps": 4,
    "data.held_out": 3,
    "evaluation.num_sets": 3,
    "model.encoder_widths": [8, 12],
    "model.energy_widths": [12],
    "model.latent_dim": 3,
    "model.num_proposals": 40,
    "batch_size": 3,
}
SMALL_CURVES = {
    "train.num_steps": 5,
    "evaluation.num_sets": 2,
    "model.encoder_widths": [8],
    "model.head_widths": [8],
    "model.energy_widths": [12],
    "model.latent_dim": 2,
    "tasks.num_sets": 4,
}


def as_arguments(settings: dict[str, object]) -> list[str]:
    """Settings as the command line takes them."""
    from ebp._settings import assignments

    return [word for change in assignments(settings) for word in ("--set", change)]
