"""Linear regression: thirteen numbers predict one, as in the housing data that the book begins with.

The records are made here, the same ones every time: a line through thirteen dimensions, and some noise.
"""

import os

import numpy as np

import common
import trainyard as ty

WIDTH = 13
NOISE = 0.1  # its standard deviation: no prediction is better than a mean square error of its square


def make_records(count, seed):
    """Records of the line: what is known, and what is to be predicted."""
    line = np.random.default_rng(0).normal(size=WIDTH)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, WIDTH))
    y = x @ line + 2.0 + rng.normal(scale=NOISE, size=count)
    return x, y[:, None]


def build(path, batch, rate):
    net = ty.Net("fit_a_line", seed=1)
    x, y = net.read(sources=[path], format="csv", batch_size=batch, shuffle_seed=1,
                    fields=[ty.Field("x", [WIDTH]), ty.Field("y", [1])])
    error = net.mean(net.square_error_cost(net.fc(x, 1), y))
    net.output(error, every=10)
    net.minimize(error, ty.Sgd(rate=rate))
    return common.Model(net.finish(), loss=error, figure=error)


def main():
    arguments = common.parser("linear regression", name="fit-a-line", passes=10, batch=32, rate=0.02)
    arguments.add_argument("--data", default="", help="a folder for the records that pods see too; a temporary one")
    arguments.add_argument("--records", type=int, default=4096, help="to train with")
    args = arguments.parse_args()
    with common.folder_for_data(args.data) as folder:
        path = os.path.join(folder, "line.csv")
        np.savetxt(path, np.hstack(make_records(args.records, seed=1)), fmt="%.6f", delimiter=",")
        model = build(path, args.batch, args.rate)
        executor = common.train(args, model)
    x, y = make_records(1000, seed=2)
    common.judge("mean square error", common.measure(executor, model, {"x": x, "y": y}), below=2 * NOISE**2)


if __name__ == "__main__":
    common.run(main)
