"""Writes the outlines of the letters that figures are labelled with: crates/ebp/src/figure/letters/outlines.bin.

    pip install fonttools==4.68.0
    python3 tools/letters/outlines.py Arimo-Regular.ttf crates/ebp/src/figure/letters/outlines.bin

The font is Arimo Regular 1.33 (Steve Matteson; copyright 2010 Google Inc.; SIL Open Font License 1.1, whose text lies
beside the outlines; no reserved names), as Debian's fonts-croscore 20201225-1 ships it. Its letters are as wide as those
of Arial and Liberation Sans, so that the same text takes the same room in SVG files.

Format, all numbers of 16 bits, little endian: units of an em, height of capitals, number of letters; for each letter, by
code, its code, its advance, and where its outline begins (in numbers after this table); then of each outline its number
of contours, and of each contour its number of points and the points, x and y, upwards. x is doubled, plus one where the
point lies on the curve: the others steer quadratic curves, as in TrueType. Offsets take two numbers, low one first.
"""

import hashlib
import struct
import sys

from fontTools.ttLib import TTFont

SHA256 = "5c315974260455a02fad62495a0ae9a783bb53f0eccf807deb75c7967e7a81d6"
RANGES = [
    (0x20, 0x7E),  # ASCII
    (0xA0, 0x17F),  # the letters of Western and Central Europe
    (0x391, 0x3C9),  # Greek
    (0x400, 0x45F),  # Cyrillic
    (0x2010, 0x2026),  # dashes, quotation marks
    (0x2070, 0x209C),  # powers and indices
    (0x2190, 0x2195),  # arrows
]
SINGLE = "‰ℓ∂∆∏∑−√∞∫≈≠≤≥"


def main(font_path: str, out_path: str) -> None:
    found = hashlib.sha256(open(font_path, "rb").read()).hexdigest()
    if found != SHA256:
        sys.exit(f"expected the font with SHA-256 {SHA256}, found {found}")
    font = TTFont(font_path)
    names, shapes, advances = font.getBestCmap(), font["glyf"], font["hmtx"]
    codes = sorted({c for low, high in RANGES for c in range(low, high + 1)} | {ord(c) for c in SINGLE})
    codes = [code for code in codes if code in names]
    table, outlines = [], []
    for code in codes:
        coordinates, ends, flags = shapes[names[code]].getCoordinates(shapes)
        offset = len(outlines)
        table += [code, advances[names[code]][0], offset & 0xFFFF, offset >> 16]
        outlines.append(len(ends))
        start = 0
        for end in ends:
            outlines.append(end + 1 - start)
            for (x, y), flag in list(zip(coordinates, flags))[start : end + 1]:
                outlines += [(2 * int(x) + (flag & 1)) & 0xFFFF, int(y) & 0xFFFF]
            start = end + 1
    numbers = [font["head"].unitsPerEm, font["OS/2"].sCapHeight, len(codes)] + table + outlines
    with open(out_path, "wb") as out:
        out.write(struct.pack(f"<{len(numbers)}H", *numbers))


if __name__ == "__main__":
    main(*sys.argv[1:])
