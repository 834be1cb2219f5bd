"""Shapes, read from where they lie: rows of a SQLite file, or a folder of pictures. NumPy alone.

--data-reader rows        a source is FILE#TABLE
--data-reader pictures    a source is a folder with a folder for each shape
"""

import glob
import os
import sqlite3

import numpy as np

import trainyard as ty

SHAPES = ("bar", "cross", "ring")
POINTS = 64


class Rows:
    """Records are tuples of points and a shape, as the table has them."""

    def __init__(self, file, table):
        self._database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)  # which must be there
        self._table = table

    def __len__(self):
        return self._database.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0]

    def read(self, begin, end):
        return self._database.execute(f"SELECT points, shape FROM {self._table} ORDER BY id LIMIT ? OFFSET ?",
                                      (end - begin, begin))


class Pictures:
    """One file after the other: what has a length and items is a reader too."""

    def __init__(self, folder):
        self._files = sorted(glob.glob(os.path.join(folder, "*", "*.pgm")))

    def __len__(self):
        return len(self._files)

    def __getitem__(self, number):
        path = self._files[number]
        with open(path, "rb") as file:
            return file.read()[-POINTS:], SHAPES.index(os.path.basename(os.path.dirname(path)))


def rows(source):
    file, _, table = source.partition("#")
    return Rows(file, table)


def pictures(source):
    return Pictures(source)


class Softmax:
    def __init__(self):
        self.parameters = {"w": np.zeros((POINTS, len(SHAPES)), np.float32), "b": np.zeros(len(SHAPES), np.float32)}

    def outputs(self, features):
        scores = features @ self.parameters["w"] + self.parameters["b"]
        exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
        return exponents / exponents.sum(axis=1, keepdims=True)

    def gradients(self, features, labels):
        error, numbers = self.outputs(features), np.arange(len(labels))
        loss = -np.log(error[numbers, labels] + 1e-9).mean()
        error[numbers, labels] -= 1
        error /= len(labels)
        return loss, {"w": features.T @ error, "b": error.sum(axis=0)}


def model():
    return Softmax()


def optimizer():
    return ty.Adam(rate=0.01)


def dataset_fn(records, mode):
    points = np.frombuffer(b"".join(points for points, _ in records), np.uint8).reshape(-1, POINTS)
    return points.astype(np.float32) / 255, np.array([shape for _, shape in records])


def eval_metrics_fn(outputs, labels):
    return {"accuracy": (outputs.argmax(axis=1) == labels).mean()}
