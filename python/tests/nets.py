"""Small networks and data that the tests share."""

import numpy as np

import trainyard as ty


def line(rate=0.1, seed=7, name="line"):
    """y = w x + b. Gives the program, and the loss in it."""
    net = ty.Net(name, seed=seed)
    x, y = net.data("x", [1]), net.data("y", [1])
    prediction = net.fc(x, 1, weight=ty.Param(name="w"), bias=ty.Param(name="b"))
    loss = net.mean(net.square_error_cost(prediction, y))
    net.minimize(loss, ty.Sgd(rate=rate))
    return net.finish(), loss


def line_batch(count=32, seed=3):
    """Points of y = 2x - 1."""
    x = np.random.default_rng(seed).uniform(-1, 1, (count, 1)).astype(np.float32)
    return {"x": x, "y": 2 * x - 1}


def classifier(optimizer, width=16, hidden=32, classes=3, dropout=0.0, decay=None, clip=None):
    """A perceptron with one hidden layer. Gives the program, its loss and its accuracy."""
    net = ty.Net("mlp", seed=7)
    x, label = net.data("x", [width]), net.data("label", [1], dtype="i64")
    h = net.fc(x, hidden, act="relu")
    if dropout:
        h = net.dropout(h, dropout)
    logits = net.fc(h, classes)
    loss = net.mean(net.softmax_with_cross_entropy(logits, label))
    accuracy = net.accuracy(logits, label)
    net.minimize(loss, optimizer, decay=decay, clip=clip)
    return net.finish(), loss, accuracy


def clusters(count, width=16, classes=3, seed=1):
    """Points around one centre for each class, far enough apart."""
    centres = np.random.default_rng(99).normal(0, 2, (classes, width))
    random = np.random.default_rng(seed)
    label = random.integers(0, classes, (count, 1))
    x = centres[label[:, 0]] + random.normal(0, 0.7, (count, width))
    return {"x": x.astype(np.float32), "label": label}
