"""Handwritten digits with PyTorch (Debian: python3-torch). Records as those of model.py."""

import numpy as np
import torch
from torch import nn

import trainyard as ty


def model():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def optimizer():
    return ty.Adam(rate=0.001)


def dataset_fn(records, mode):
    if isinstance(records[0], tuple):  # MNIST's own files: a byte for each point, a byte for the label
        images = np.frombuffer(b"".join(image for image, _ in records), np.uint8).reshape(-1, 784) / np.float32(255)
        labels = np.frombuffer(b"".join(label for _, label in records), np.uint8).astype(np.int64)
    else:
        rows = [(np.frombuffer(record, np.float32, 784), np.frombuffer(record, np.int64, 1, 784 * 4)) for record in records]
        images = np.stack([image for image, _ in rows])
        labels = np.concatenate([label for _, label in rows])
    return torch.from_numpy(images.astype(np.float32)), torch.from_numpy(labels)


def eval_metrics_fn(outputs, labels):
    return {"accuracy": (outputs.argmax(dim=1) == labels).float().mean().item(),
            "loss": nn.functional.cross_entropy(outputs, labels).item()}
