"""What notebooks show: tables and pictures inline."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

SHOWN = 20
"""Rows of a long table that a page gets."""


def picture(png: bytes, width: int | None = None) -> str:
    """A PNG file inside the page."""
    size = "" if width is None else f' style="max-width:{width}px"'
    return f'<img{size} src="data:image/png;base64,{b64encode(png).decode()}"/>'


def table(rows: Iterable[Sequence[object]], header: Sequence[object] | None = None) -> str:
    """A table of texts."""

    def line(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    head = "" if header is None else f"<thead>{line(header, 'th')}</thead>"
    return f"<table>{head}<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"


def number(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"


def rest(count: int, what: str) -> str:
    """What a table leaves out of so many."""
    return f"and {count - SHOWN} more {what}" if count > SHOWN else ""


class Records(list[dict[str, Any]]):
    """An ordinary list of records, which notebooks show as a table of their numbers."""

    def _repr_html_(self) -> str:
        numbers = (bool, int, float)
        # A column is what some record has a number of; arrays and what is missing everywhere are not shown.
        columns = [name for name in (self[0] if self else {}) if any(isinstance(one[name], numbers) for one in self)]
        rows = [[place, *(_cell(one[name]) for name in columns)] for place, one in enumerate(self[:SHOWN])]
        return table(rows, ["set", *columns]) + rest(len(self), "sets")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else str(value)
