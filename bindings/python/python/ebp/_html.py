"""What notebooks show: tables and pictures inline."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape


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
