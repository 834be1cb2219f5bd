#!/usr/bin/python3
"""Draws crosses, rings and bars in 8x8 points, and keeps them twice: as rows of a SQLite file, and as small pictures.

    FOLDER/shapes.db                      tables train (3000 rows) and test (600): id, points (64 bytes), shape (0, 1 or 2)
    FOLDER/train/cross/00000.pgm ...      the same ones, a folder for each shape; and FOLDER/test

usage: generate.py FOLDER
"""

import os
import sqlite3
import sys

import numpy as np

SHAPES = ("bar", "cross", "ring")
SIDE = 8


def draw(shape, random):
    row, column = random.integers(2, SIDE - 2, 2)
    points = np.zeros((SIDE, SIDE))
    if shape == "ring":
        points[row - 2:row + 3, column - 2:column + 3] = 1
        points[row - 1:row + 2, column - 1:column + 2] = 0
    else:
        points[row] = 1
    if shape == "cross":
        points[:, column] = 1
    return (np.clip(points * 0.8 + random.normal(0.1, 0.1, points.shape), 0, 1) * 255).astype(np.uint8).tobytes()


def write(folder, name, count, seed):
    random = np.random.default_rng(seed)
    database = sqlite3.connect(os.path.join(folder, "shapes.db"))
    database.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, points BLOB, shape INTEGER)")
    for number in range(count):
        shape = int(random.integers(0, len(SHAPES)))
        points = draw(SHAPES[shape], random)
        database.execute(f"INSERT INTO {name} (points, shape) VALUES (?, ?)", (points, shape))
        os.makedirs(os.path.join(folder, name, SHAPES[shape]), exist_ok=True)
        with open(os.path.join(folder, name, SHAPES[shape], "%05d.pgm" % number), "wb") as file:
            file.write(b"P5 %d %d 255\n" % (SIDE, SIDE) + points)
    database.commit()
    database.close()


def main(folder):
    os.makedirs(folder)
    write(folder, "train", 3000, 1)
    write(folder, "test", 600, 2)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
