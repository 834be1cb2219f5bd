"""Handwritten digits with NumPy alone: softmax over 784 numbers. Records as those of model.py."""

import numpy as np

import trainyard as ty


class Softmax:
    def __init__(self):
        self.parameters = {"w": np.zeros((784, 10), np.float32), "b": np.zeros(10, np.float32)}

    def outputs(self, features):
        scores = features @ self.parameters["w"] + self.parameters["b"]
        exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
        return exponents / exponents.sum(axis=1, keepdims=True)

    def gradients(self, features, labels):
        chances = self.outputs(features)
        rows = np.arange(len(labels))
        loss = -np.log(chances[rows, labels] + 1e-9).mean()
        error = chances.copy()
        error[rows, labels] -= 1
        error /= len(labels)
        return loss, {"w": features.T @ error, "b": error.sum(axis=0)}


def model():
    return Softmax()


def optimizer():
    return ty.Momentum(rate=0.05)


def dataset_fn(records, mode):
    if isinstance(records[0], tuple):
        images = np.frombuffer(b"".join(image for image, _ in records), np.uint8).reshape(-1, 784) / np.float32(255)
        labels = np.frombuffer(b"".join(label for _, label in records), np.uint8).astype(np.int64)
        return images.astype(np.float32), labels
    rows = [(np.frombuffer(record, np.float32, 784), np.frombuffer(record, np.int64, 1, 784 * 4)) for record in records]
    return np.stack([image for image, _ in rows]), np.concatenate([label for _, label in rows])


def eval_metrics_fn(outputs, labels):
    return {"accuracy": (outputs.argmax(axis=1) == labels).mean()}
