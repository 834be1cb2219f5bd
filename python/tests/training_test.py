"""Networks learn what they are shown."""

import unittest

import numpy as np

import trainyard as ty
from nets import classifier, clusters, line, line_batch


def trained(program, feeds):
    exe = ty.Executor()
    exe.start(program)
    for feed in feeds:
        exe.run(program, feed=feed)
    return exe


class FitALine(unittest.TestCase):
    def test_finds_slope_and_offset(self):
        program, loss = line(rate=0.3)
        exe = trained(program, [line_batch()] * 300)
        value, = exe.run(program, feed=line_batch(), fetch=[loss])
        self.assertEqual(value.shape, (1,))
        self.assertLess(value[0], 1e-6)
        self.assertAlmostEqual(exe.get("w").item(), 2, places=2)
        self.assertAlmostEqual(exe.get("b").item(), -1, places=2)

    def test_takes_the_very_step_that_the_formula_says(self):
        program, loss = line(rate=0.5)
        exe = ty.Executor()
        exe.start(program)
        exe.set("w", [[1.0]])
        exe.set("b", [0.0])
        batch = {"x": np.array([[1.0], [3.0]]), "y": np.array([[0.0], [1.0]])}
        value, = exe.run(program, feed=batch, fetch=[loss])
        self.assertAlmostEqual(value[0], 2.5)  # errors 1 and 2
        self.assertAlmostEqual(exe.get("w").item(), 1 - 0.5 * (2 * 1 * 1 + 2 * 2 * 3) / 2, places=6)
        self.assertAlmostEqual(exe.get("b").item(), -0.5 * (2 * 1 + 2 * 2) / 2, places=6)

    def test_the_same_seed_and_data_end_in_the_same_bits(self):
        ends = []
        for _ in range(2):
            program, _ = line()
            exe = trained(program, [line_batch(seed=i) for i in range(20)])
            ends.append(exe.get("w").tobytes() + exe.get("b").tobytes())
        self.assertEqual(ends[0], ends[1])


class Classify(unittest.TestCase):
    def reaches(self, optimizer, **options):
        program, loss, accuracy = classifier(optimizer, **options)
        exe = trained(program, [clusters(64, seed=i) for i in range(150)])
        test = program.clone_for_test()
        share, = exe.run(test, feed=clusters(500, seed=1000), fetch=[accuracy])
        self.assertGreaterEqual(share[0], 0.95)

    def test_every_optimizer_tells_clusters_apart(self):
        for optimizer in (ty.Sgd(rate=0.1), ty.Momentum(rate=0.05, momentum=0.9, nesterov=True), ty.Adagrad(rate=0.1),
                          ty.Adam(rate=0.01), ty.RmsProp(rate=0.01, momentum=0.1)):
            with self.subTest(optimizer=optimizer):
                self.reaches(optimizer)

    def test_every_schedule_tells_clusters_apart(self):
        for rate in (ty.ExponentialDecay(0.1, 50, 0.9, staircase=True), ty.NaturalExpDecay(0.1, 100, 0.5),
                     ty.InverseTimeDecay(0.1, 100, 0.5), ty.PolynomialDecay(0.1, 200, 0.01, 1.0, cycle=True),
                     ty.PiecewiseDecay([50, 100], [0.2, 0.1, 0.05])):
            with self.subTest(rate=rate):
                self.reaches(ty.Sgd(rate=rate))

    def test_decay_clip_and_dropout_do_not_stand_in_the_way(self):
        for decay in (ty.L1Decay(1e-4), ty.L2Decay(1e-3)):
            for clip in (ty.ClipByValue(-0.5, 0.5), ty.ClipByNorm(1.0), ty.ClipByGlobalNorm(2.0)):
                with self.subTest(decay=decay, clip=clip):
                    self.reaches(ty.Adam(rate=0.01), dropout=0.2, decay=decay, clip=clip)


class Images(unittest.TestCase):
    def test_a_convolutional_network_learns_where_the_light_is(self):
        net = ty.Net("conv", seed=3)
        image, label = net.data("image", [1, 8, 8]), net.data("label", [1], dtype="i64")
        h = net.conv2d(image, 8, 3, padding=1, bias=False)
        h = net.batch_norm(h, act="relu")
        h = net.pool2d(h, 2, stride=2)
        h = net.conv2d(h, 8, 3, padding=1, act="relu")
        h = net.pool2d(h, 4, kind="avg", stride=2, padding=1)
        logits = net.fc(h, 4)
        loss = net.mean(net.softmax_with_cross_entropy(logits, label))
        accuracy = net.accuracy(logits, label)
        net.minimize(loss, ty.Adam(rate=0.01))
        program = net.finish()

        def batch(seed, count=32):
            random = np.random.default_rng(seed)
            quarter = random.integers(0, 4, (count, 1))
            image = random.normal(0, 0.3, (count, 1, 8, 8))
            for i, q in enumerate(quarter[:, 0]):
                image[i, 0, 4 * (q // 2):4 * (q // 2) + 4, 4 * (q % 2):4 * (q % 2) + 4] += 1
            return {"image": image, "label": quarter}

        exe = trained(program, [batch(i) for i in range(60)])
        share, = exe.run(program.clone_for_test(), feed=batch(1000, 300), fetch=[accuracy])
        self.assertGreaterEqual(share[0], 0.95)


class Words(unittest.TestCase):
    def test_dense_and_sparse_embeddings_learn_the_same(self):
        ends = []
        for sparse in (False, True):
            net = ty.Net("words", seed=5)
            word, label = net.data("word", [1], dtype="i64"), net.data("label", [1], dtype="i64")
            h = net.embedding(word, 50, 8, sparse=sparse, weight=ty.Param(name="table"))
            loss = net.mean(net.softmax_with_cross_entropy(net.fc(h, 2), label))
            net.minimize(loss, ty.Sgd(rate=0.5))
            words = np.arange(50).reshape(50, 1)
            exe = trained(net.finish(), [{"word": words, "label": words % 2}] * 200)
            ends.append(exe.get("table"))
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
