"""Writes a picture of 20 x 20 grey levels, a three drawn with a pen, and the mask of its lower part, which is torn
off: what docs/torn.md begins with. Usage: torn.py PICTURE.png MASK.png

    python3 tools/data/torn.py torn.png holes.png
"""

import struct
import sys
import zlib

SIDE = 20
# The pen's way, in shares of the picture: right and down.
WAY = [(0.33, 0.23), (0.42, 0.17), (0.55, 0.17), (0.64, 0.26), (0.62, 0.38), (0.46, 0.49),
       (0.62, 0.56), (0.67, 0.68), (0.58, 0.81), (0.45, 0.84), (0.32, 0.79)]
PEN = 0.055
TORN_FROM = 11


def write(path, rows):
    """PNG: grey, 8 bits, no filter."""
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    lines = b"".join(b"\0" + bytes(row) for row in rows)
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines))
                   + chunk(b"IEND", b""))


def distance(x, y):
    """From a place to the pen's way."""
    nearest = 9.0
    for (ax, ay), (bx, by) in zip(WAY, WAY[1:]):
        dx, dy = bx - ax, by - ay
        share = max(0.0, min(1.0, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy)))
        nearest = min(nearest, ((x - ax - share * dx) ** 2 + (y - ay - share * dy) ** 2) ** 0.5)
    return nearest


def level(column, row):
    """Black ground, white ink, an edge a pixel wide."""
    beyond = (distance((column + 0.5) / SIDE, (row + 0.5) / SIDE) - PEN) * SIDE
    return round(255 * max(0.0, min(1.0, 0.5 - beyond)))


write(sys.argv[1], [[level(column, row) if row < TORN_FROM else 0 for column in range(SIDE)] for row in range(SIDE)])
write(sys.argv[2], [[255 * (row >= TORN_FROM)] * SIDE for row in range(SIDE)])
