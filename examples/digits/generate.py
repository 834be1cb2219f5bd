#!/usr/bin/python3
"""Draws digits, for when MNIST cannot be had: 10,000 to train with and 2,000 to test, the same ones each time.

Each is a few strokes of a pen in 28x28 points: bent, turned, slanted, moved, thick or thin, on paper with some noise.
They are written as MNIST's own four files are (IDX), under the same names.

usage: generate.py FOLDER
"""

import os
import struct
import sys

import numpy as np

SIDE = 28


def arc(x, y, width, height, begin, end, points=9):
    """Part of an ellipse around x, y; angles in degrees, clockwise from the right."""
    angle = np.radians(np.linspace(begin, end, points))
    return np.stack([x + width * np.cos(angle), y + height * np.sin(angle)], axis=1)


def line(*points):
    return np.array(points, float)


def join(*parts):
    return np.concatenate(parts)


# The ways of each digit; each way is strokes, each stroke is points of a sheet from 0, 0 (top left) to 1, 1.
DIGITS = [
    [[arc(0.5, 0.5, 0.28, 0.42, -90, 270, 17)], [arc(0.5, 0.5, 0.38, 0.38, -60, 285, 17)]],
    [[line((0.5, 0.08), (0.5, 0.92))], [line((0.3, 0.3), (0.52, 0.08), (0.52, 0.92))]],
    [[join(arc(0.5, 0.32, 0.27, 0.24, -170, 40), line((0.22, 0.9), (0.8, 0.9)))],
     [join(arc(0.5, 0.32, 0.25, 0.24, -150, 60), arc(0.36, 0.8, 0.12, 0.1, 0, -270, 7), line((0.8, 0.92)))]],
    [[join(arc(0.46, 0.3, 0.25, 0.21, -150, 80), arc(0.46, 0.7, 0.29, 0.22, -80, 150))],
     [join(line((0.24, 0.1), (0.72, 0.1), (0.45, 0.42)), arc(0.46, 0.66, 0.28, 0.25, -80, 150))]],
    [[line((0.6, 0.08), (0.18, 0.62), (0.84, 0.62)), line((0.64, 0.36), (0.64, 0.94))],
     [line((0.26, 0.1), (0.24, 0.5), (0.74, 0.5)), line((0.74, 0.1), (0.7, 0.94))]],
    [[line((0.76, 0.1), (0.32, 0.1), (0.28, 0.46)), join(line((0.28, 0.46)), arc(0.46, 0.66, 0.28, 0.25, -100, 150))]],
    [[join(line((0.68, 0.08), (0.4, 0.3)), arc(0.49, 0.68, 0.24, 0.24, -165, 195, 13))],
     [join(arc(0.66, 0.5, 0.4, 0.42, -100, -180, 6), arc(0.49, 0.7, 0.23, 0.21, 180, 500, 13))]],
    [[line((0.2, 0.12), (0.8, 0.12), (0.42, 0.92))], [line((0.2, 0.12), (0.8, 0.12), (0.42, 0.92)), line((0.36, 0.5), (0.74, 0.5))]],
    [[arc(0.5, 0.29, 0.21, 0.2, 90, 450, 12), arc(0.5, 0.7, 0.26, 0.22, -90, 270, 12)]],
    [[join(arc(0.48, 0.32, 0.24, 0.23, 0, 360, 13), line((0.68, 0.92)))],
     [join(arc(0.48, 0.32, 0.24, 0.23, 0, 360, 13), arc(0.4, 0.6, 0.32, 0.33, -20, 110, 6))]],
]


def bend(points, rng):
    """Each image's points, bent by two slow waves and then turned, slanted, scaled and moved as a hand would."""
    count = len(points)
    for _ in range(2):
        toward, phase = rng.normal(0, 3.0, (count, 2, 2)), rng.uniform(0, 2 * np.pi, (count, 1, 2))
        points = points + rng.normal(0, 0.035, (count, 1, 2)) * np.sin(points @ toward + phase)
    turn, slant = rng.normal(0, 0.14, count), rng.normal(0.1, 0.18, count)
    wide, high = rng.uniform(0.5, 0.85, count), rng.uniform(0.62, 0.8, count)
    matrix = np.empty((count, 2, 2))
    matrix[:, 0, 0], matrix[:, 0, 1] = wide * np.cos(turn), wide * np.sin(turn)
    matrix[:, 1, 0], matrix[:, 1, 1] = -high * (np.sin(turn) + slant), high * np.cos(turn)
    return (points - 0.5) @ matrix * SIDE + SIDE / 2 + rng.normal(0, 1.3, (count, 1, 2))


def draw(strokes, count, rng):
    """`count` images of these strokes: how far each point of the paper is from the pen's way decides how dark it is."""
    points = bend(np.repeat(join(*strokes)[None], count, axis=0), rng).astype(np.float32)
    ends = np.cumsum([len(stroke) for stroke in strokes])
    nearest = np.full((count, SIDE * SIDE), np.inf, np.float32)
    grid = np.arange(SIDE, dtype=np.float32) + np.float32(0.5)
    x, y = np.tile(grid, SIDE), np.repeat(grid, SIDE)
    for i in range(len(points[0]) - 1):
        if i + 1 in ends:
            continue  # the pen is lifted
        way = points[:, i + 1] - points[:, i]
        to_x, to_y = x - points[:, i, :1], y - points[:, i, 1:]
        along = (to_x * way[:, :1] + to_y * way[:, 1:]) / np.maximum((way * way).sum(axis=1, keepdims=True), np.float32(1e-6))
        np.clip(along, 0, 1, out=along)
        to_x -= along * way[:, :1]
        to_y -= along * way[:, 1:]
        np.minimum(nearest, to_x * to_x + to_y * to_y, out=nearest)
    thick = rng.uniform(0.7, 1.9, (count, 1)).astype(np.float32)
    ink = np.clip((thick - np.sqrt(nearest)) / 1.2 + 0.5, 0, 1) * rng.uniform(170, 255, (count, 1)).astype(np.float32)
    noise = rng.standard_normal(ink.shape, np.float32) * rng.uniform(0, 40, (count, 1)).astype(np.float32)
    return np.clip(ink + noise, 0, 255).astype(np.uint8)


def write(folder, name, count, seed):
    rng = np.random.default_rng(seed)
    ways = [(digit, strokes) for digit, each in enumerate(DIGITS) for strokes in each * (2 // len(each))]
    images, labels = [], []
    for digit, strokes in ways:
        for _ in range(count // len(ways) // 100):  # by hundreds, which fit into a processor's cache
            images.append(draw(strokes, 100, rng))
            labels.append(np.full(100, digit, np.uint8))
    order = rng.permutation(count)
    with open(os.path.join(folder, f"{name}-images-idx3-ubyte"), "wb") as file:
        file.write(struct.pack(">4I", 0x803, count, SIDE, SIDE) + np.concatenate(images)[order].tobytes())
    with open(os.path.join(folder, f"{name}-labels-idx1-ubyte"), "wb") as file:
        file.write(struct.pack(">2I", 0x801, count) + np.concatenate(labels)[order].tobytes())


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stdout if sys.argv[1:] in (["--help"], ["-h"]) else sys.stderr)
        sys.exit(0 if sys.argv[1:] in (["--help"], ["-h"]) else 2)
    os.makedirs(sys.argv[1], exist_ok=True)
    write(sys.argv[1], "train", 10000, 1)
    write(sys.argv[1], "t10k", 2000, 2)


if __name__ == "__main__":
    main()
