"""Handwritten digits: a net of three layers, for workers written in C++.

The records have 784 numbers and a label each (`trainyard data convert` makes them of MNIST's own files), or come as two
files, the images and the labels: give --training-data twice then.

--param width=N    neurons of the first layer (128)
--param rate=X     the learning rate (0.001)
--param steps=N    it falls to a fiftieth in so many steps; without it, it stays
"""

import trainyard as ty


def net(job):
    width = int(job.params.get("width", 128))
    net = ty.Net("mnist", seed=job.seed)
    apart = len(job.training_data or job.validation_data or job.prediction_data) == 2  # images and labels
    image, label = net.read(sources=job.training_data or job.validation_data or job.prediction_data,
                            batch_size=job.minibatch,
                            fields=[ty.Field("image", [784], scale=1 / 255 if apart else 1.0),
                                    ty.Field("label", [1], dtype="i64", source=1 if apart else 0)])
    hidden = net.fc(net.fc(image, width, act="relu"), 64, act="relu")
    scores = net.fc(hidden, 10)
    loss = net.mean(net.softmax_with_cross_entropy(scores, label))
    net.output([loss, net.accuracy(scores, label)])
    rate = float(job.params.get("rate", 0.001))
    steps = int(job.params.get("steps", 0))
    net.minimize(loss, ty.Adam(rate=ty.PolynomialDecay(base=rate, decay_steps=steps, end=rate / 50) if steps else rate))
    return net
