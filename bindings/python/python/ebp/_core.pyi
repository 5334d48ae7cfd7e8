"""The Rust half: private, typed for the front."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Single = npt.NDArray[np.float32]
Double = npt.NDArray[np.float64]
Points = Single | Double
Callback = Callable[[int, int, str, Mapping[str, float]], object] | None
Counts = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]
Numbers = list[tuple[str, float]]

__version__: str

class Settings:
    @property
    def text(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def source(self) -> str: ...
    @property
    def columns(self) -> tuple[str | None, list[str], list[str]]: ...
    @property
    def process(self) -> str | None: ...
    @property
    def num_steps(self) -> int: ...

class Model:
    @property
    def settings(self) -> Settings: ...
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def step(self) -> int: ...
    @property
    def is_finished(self) -> bool: ...
    @property
    def is_resumable(self) -> bool: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def directory(self) -> Any: ...
    @property
    def device(self) -> str: ...
    @property
    def sizes(self) -> list[tuple[str, int]]: ...
    @property
    def fitted(self) -> Numbers: ...
    def save(self, folder: str, threads: int | None) -> tuple[list[str], int, str | None]: ...
    def sample(
        self,
        count: int,
        points: int | None,
        codes: Single | None,
        *,
        prior: str,
        start: str,
        method: str,
        steps: int | None,
        step_size: float | None,
        proposals: int | None,
        seed: int,
        threads: int | None,
        callback: Callback,
    ) -> tuple[list[Single], dict[str, Any]]: ...
    def score(
        self,
        sets: Sequence[Single],
        *,
        prior: str,
        draws: int,
        most_draws: int,
        proposals: int,
        seed: int,
        threads: int | None,
        callback: Callback,
    ) -> list[dict[str, Any]]: ...
    def score_codes(
        self, sets: Sequence[Single], *, prior: str, threads: int | None
    ) -> list[tuple[float, float | None, float]]: ...
    def encode(
        self, sets: Sequence[Single], *, threads: int | None, callback: Callback
    ) -> tuple[Single, Single, Single]: ...
    def denoise(
        self,
        sets: Sequence[Single],
        *,
        noise: float | None,
        steps: int | None,
        step_size: float | None,
        threads: int | None,
        callback: Callback,
    ) -> list[Single]: ...
    def predict(
        self,
        contexts: Sequence[tuple[str, Double, Double]],
        at: Double,
        values: Double | None,
        *,
        grid: int,
        samples: int,
        rule: str,
        seed: int,
        threads: int | None,
        callback: Callback,
    ) -> list[dict[str, Any]]: ...
    def complete(
        self,
        picture: npt.NDArray[np.uint8],
        known: npt.NDArray[np.bool_],
        *,
        count: int,
        grain: bool,
        rounds: int,
        langevin: int | None,
        tile: int | None,
        seed: int,
        threads: int | None,
        callback: Callback,
    ) -> dict[str, Any]: ...
    def topics(self) -> Double: ...
    def shares(self, counts: Counts, seed: int, threads: int | None) -> Double: ...
    def document_bounds(self, counts: Counts, seed: int, threads: int | None) -> list[float]: ...
    def perplexity(self, counts: Counts, seed: int, threads: int | None) -> tuple[float, float]: ...
    def patterns(self, count: int, seed: int, threads: int | None) -> list[Double]: ...

def _after_fork() -> None: ...
def _wait_until_saved(folder: str | None = None) -> None: ...
def resolve(name: str, changes: Sequence[str]) -> Settings: ...
def presets() -> list[tuple[str, str]]: ...
def load(folder: str, device: str, precision: str, threads: int | None) -> Model: ...
def train(
    settings: Settings,
    data: tuple[str, Any] | None,
    *,
    directory: str | None,
    existing: str,
    start: str | None,
    device: str,
    precision: str,
    threads: int | None,
    judged: bool,
    arguments: Sequence[str],
    callback: Callback,
) -> tuple[Model, str | None, list[Numbers]]: ...
def chamfer(a: Points, b: Points, convention: str, threads: int | None) -> float: ...
def emd(
    a: Points, b: Points, method: str, regularisation: float, threads: int | None
) -> tuple[float, float | None]: ...
def pairs(
    a: Sequence[Points],
    b: Sequence[Points],
    distance: str,
    convention: str,
    regularisation: float,
    threads: int | None,
    callback: Callback,
) -> tuple[Double, float | None]: ...
def compare(
    samples: Sequence[Points],
    references: Sequence[Points],
    emd: str | None,
    regularisation: float,
    seed: int,
    threads: int | None,
    callback: Callback,
) -> dict[str, Any]: ...
def exact_fit(
    description: Mapping[str, Any],
    t: Double,
    x: Double,
    num_restarts: int,
    standardise: bool,
    max_evaluations: int,
    seed: int,
    threads: int | None,
) -> tuple[list[float], Numbers, float, str]: ...
def exact_predict(
    description: Mapping[str, Any],
    found: Sequence[float],
    t: Double,
    x: Double,
    at: Double,
    threads: int | None,
) -> tuple[Double, Double]: ...
def exact_sample(
    description: Mapping[str, Any],
    found: Sequence[float],
    t: Double,
    x: Double,
    at: Double,
    count: int,
    seed: int,
    threads: int | None,
) -> Double: ...
def exact_log_density(
    description: Mapping[str, Any],
    found: Sequence[float],
    t: Double,
    x: Double,
    at: Double,
    values: Double,
    threads: int | None,
) -> list[float]: ...
def contact_sheet(clouds: Sequence[Single], columns: int) -> bytes: ...
def picture_sheet(pictures: npt.NDArray[np.uint8], columns: int) -> bytes: ...
