"""Nets: what they make, and how they refuse."""

import unittest

import numpy as np

import trainyard as ty


class Variables(unittest.TestCase):
    def setUp(self):
        self.net = ty.Net("net")
        self.x = self.net.data("x", [4])
        self.y = self.net.data("y", [4])

    def value_of(self, variable, **feed):
        exe = ty.Executor()
        value, = exe.run(self.net.finish(), feed=feed, fetch=[variable])
        return value

    def test_know_their_name_type_and_shape(self):
        self.assertEqual((self.x.name, self.x.dtype, self.x.shape), ("x", "f32", [-1, 4]))
        self.assertEqual(self.net.data("flags", [2, 3], dtype="bool").dtype, "bool")
        self.assertEqual(self.net.fc(self.x, 3).shape, [-1, 3])
        self.assertEqual(repr(self.x), "<Variable x f32[-1, 4]>")

    def test_operators_compute_what_they_say(self):
        a = np.array([[1, 2, 3, 4]], np.float32)
        b = np.array([[5, 7, 11, 13]], np.float32)
        x, y = self.x, self.y
        for made, expected in ((x + y, a + b), (x - y, a - b), (x * y, a * b), (x + 1, a + 1), (1 + x, a + 1),
                               (x - 1, a - 1), (1 - x, 1 - a), (x * 3, a * 3), (3 * x, a * 3), (-x, -a),
                               (np.float32(2) * x, a * 2), (x * np.int64(2), a * 2)):
            np.testing.assert_array_equal(self.value_of(made, x=a, y=b), expected)

    def test_functions_compute_what_they_say(self):
        a = np.array([[0.5, 1, 2, 4]], np.float32)
        b = np.array([[-2, -1, 0, 3]], np.float32)
        net = self.net
        exp = np.exp(b)
        for made, expected in ((net.relu(self.y), np.maximum(b, 0)), (net.sigmoid(self.y), 1 / (1 + np.exp(-b))),
                               (net.tanh(self.y), np.tanh(b)), (net.softmax(self.y), exp / exp.sum()),
                               (net.square(self.y), b * b), (net.exp(self.y), exp), (net.log(self.x), np.log(a)),
                               (net.sqrt(self.x), np.sqrt(a)), (net.abs(self.y), np.abs(b)),
                               (net.mean(self.x), [a.mean()]), (net.scale(self.x, 2, 1), 2 * a + 1),
                               (net.concat([self.x, self.y], 1), np.concatenate([a, b], 1)),
                               (net.reshape(self.x, [-1, 2]), a.reshape(-1, 2)),
                               (net.square_error_cost(self.x, self.y), (a - b) ** 2)):
            np.testing.assert_allclose(self.value_of(made, x=a, y=b), expected, rtol=1e-5)
        leaky = self.value_of(net.leaky_relu(self.y), x=a, y=b)
        self.assertEqual(leaky[0, 3], 3)
        self.assertTrue(-2 < leaky[0, 0] < 0)

    def test_of_another_net_are_refused(self):
        other = ty.Net("other").data("x", [4])
        for call in (lambda: self.net.fc(other, 3), lambda: self.x + other,
                     lambda: self.net.concat([self.x, other], 0)):
            with self.assertRaisesRegex(ty.Error, "^variable x is of another net$"):
                call()

    def test_and_texts_do_not_add(self):
        with self.assertRaises(TypeError):
            self.x + "1"


class Parameters(unittest.TestCase):
    def begin(self, init, shape=(200, 100)):
        net = ty.Net("net")
        net.parameter(list(shape), ty.Param(name="w", init=init))
        exe = ty.Executor()
        exe.start(net.finish())
        return exe.get("w")

    def test_begin_as_their_initializer_says(self):
        self.assertTrue((self.begin(ty.Constant(1.5)) == 1.5).all())
        uniform = self.begin(ty.Uniform(-2, 3))
        self.assertTrue(uniform.min() >= -2 and uniform.max() <= 3 and uniform.max() > 2.9)
        normal = self.begin(ty.Normal(5, 2))
        self.assertAlmostEqual(normal.mean(), 5, delta=0.1)
        self.assertAlmostEqual(normal.std(), 2, delta=0.1)
        self.assertAlmostEqual(np.abs(self.begin(ty.Xavier())).max(), np.sqrt(6 / 300), delta=1e-3)
        self.assertAlmostEqual(np.abs(self.begin(ty.Msra())).max(), np.sqrt(6 / 200), delta=1e-3)
        self.assertAlmostEqual(self.begin(ty.Xavier(uniform=False)).std(), np.sqrt(2 / 300), delta=2e-3)
        given = np.arange(6).reshape(2, 3)
        np.testing.assert_array_equal(self.begin(ty.Values(given), (2, 3)), given)

    def test_that_are_equal_in_shape_do_not_begin_equal(self):
        net = ty.Net("net")
        first, second = net.parameter([10, 10]), net.parameter([10, 10])
        exe = ty.Executor()
        exe.start(net.finish())
        self.assertFalse((exe.get(first) == exe.get(second)).any())

    def test_of_one_name_are_one(self):
        net = ty.Net("net")
        x = net.data("x", [4])
        for _ in range(2):
            net.fc(x, 3, weight=ty.Param(name="shared"), bias=False)
        self.assertEqual(net.finish().main.parameters, ["shared"])

    def test_have_wishes_of_their_own(self):
        net = ty.Net("net")
        x = net.data("x", [1])
        still = net.parameter([1, 1], ty.Param(name="still", init=ty.Constant(1), trainable=False))
        slow = net.parameter([1, 1], ty.Param(name="slow", init=ty.Constant(1), rate=0.5))
        fast = net.parameter([1, 1], ty.Param(name="fast", init=ty.Constant(1)))
        clipped = net.parameter([1, 1], ty.Param(name="clipped", init=ty.Constant(1), clip=ty.ClipByValue(-0.25, 0.25)))
        decayed = net.parameter([1, 1], ty.Param(name="decayed", init=ty.Constant(1), decay=ty.L2Decay(1.0)))
        pairs = net.minimize(net.mean((still + slow + fast + clipped + decayed) * x), ty.Sgd(rate=1.0))
        self.assertEqual(sorted(parameter.name for parameter, _ in pairs), ["clipped", "decayed", "fast", "slow"])
        program = net.finish()
        exe = ty.Executor()
        exe.start(program)
        exe.run(program, feed={"x": np.ones((1, 1))})
        ends = {name: exe.get(name).item() for name in ("still", "slow", "fast", "clipped", "decayed")}
        self.assertEqual(ends, {"still": 1, "slow": 0.5, "fast": 0, "clipped": 0.75, "decayed": -1})


class Refusals(unittest.TestCase):
    def setUp(self):
        self.net = ty.Net("net")
        self.x = self.net.data("x", [4])

    def test_say_what_the_builder_says(self):
        for call, message in (
                (lambda: ty.Net("a b"), 'a program cannot be called "a b": use letters, digits and -_.'),
                (lambda: self.net.data("x", [4]), 'data: the name "x" is taken or no name'),
                (lambda: self.net.fc(self.x, 3, act="rolu"),
                 'there is no activation "rolu": use relu, sigmoid, tanh, softmax, leaky_relu, square, exp, log, sqrt '
                 'or abs'),
                (lambda: self.net.fc(self.x, 3, num_flatten_dims=2), "fc: num_flatten_dims is 2 and x is f32[-1, 4]"),
                (lambda: self.net.conv2d(self.x, 3, 3),
                 "conv2d: the input must be [batch, channels, height, width] with channels for 1 groups, and is "
                 "f32[-1, 4]"),
                (lambda: self.net.fc([], 3), "fc: it has no input"),
                (lambda: self.net.output([self.x], every=0), "output: every must be at least 1 and is 0"),
                (lambda: self.net.data("y", [4], dtype="f16"), 'there is no type "f16": use f32, i64 or bool'),
                (lambda: self.net.data("\ud800", [4]), r"data: name is '\ud800', which is no text"),
                (lambda: self.net.read(sources=["a"], fields=[]), "read: it has no fields"),
                (lambda: self.net.read(sources=["a"], fields=[ty.Field("f", [1], source=1)]),
                 "read: field f comes from source 1, and there are 1")):
            with self.subTest(message=message):
                with self.assertRaises(ty.Error) as raised:
                    call()
                self.assertEqual(str(raised.exception), message)

    def test_are_value_errors(self):
        self.assertTrue(issubclass(ty.Error, ValueError))
        self.assertTrue(issubclass(ty.EndOfPass, ty.Error))
        self.assertEqual(f"{ty.Error.__module__}.{ty.Error.__qualname__}", "trainyard.Error")

    def test_leave_the_net_as_it_was(self):
        h = self.net.fc(self.x, 3)
        before = self.net.finish()
        for call in (lambda: self.net.fc(h, 3, act="rolu"), lambda: self.net.mean(self.net.fc(h, 0)),
                     lambda: self.net.minimize(h, ty.Sgd()), lambda: self.net.data("x", [4])):
            with self.assertRaises(ty.Error):
                call()
            self.assertEqual(self.net.finish(), before)
        loss = self.net.mean(self.net.fc(h, 3))
        self.net.minimize(loss, ty.Sgd())
        fresh = ty.Net("net")
        fresh.minimize(fresh.mean(fresh.fc(fresh.fc(fresh.data("x", [4]), 3), 3)), ty.Sgd())
        self.assertEqual(self.net.finish(), fresh.finish())

    def test_name_the_argument_of_a_wrong_type(self):
        for call, message in (
                (lambda: self.net.fc(self.x, "3"), "fc: size must be an int, and is a str ('3')"),
                (lambda: self.net.fc(self.x, 3.0), "fc: size must be an int, and is a float (3.0)"),
                (lambda: self.net.fc(self.x, True), "fc: size must be an int, and is a bool (True)"),
                (lambda: self.net.fc("x", 3), "fc: x must be a Variable or a list, and is a str ('x')"),
                (lambda: self.net.fc([self.x, 1], 3), "fc: x[1] must be a Variable, and is an int (1)"),
                (lambda: self.net.fc(self.x, 3, weight="w"), "fc: weight must be a Param or None, and is a str ('w')"),
                (lambda: self.net.fc(self.x, 3, act=1), "fc: act must be a str or None, and is an int (1)"),
                (lambda: self.net.data("y", 4), "data: shape must be a list, and is an int (4)"),
                (lambda: self.net.data("y", [4.5]), "data: shape[0] must be an int, and is a float (4.5)"),
                (lambda: self.net.dropout(self.x, "half"),
                 "dropout: probability must be a number, and is a str ('half')"),
                (lambda: self.net.minimize(self.x, 0.1),
                 "minimize: optimizer must be an Optimizer, and is a float (0.1)"),
                (lambda: ty.Net(7), "name must be a str, and is an int (7)"),
                (lambda: ty.Adam(rate="fast").rate, None),
                (lambda: ty.Adam(beta1=None), "Adam: beta1 must be a number, and is None"),
                (lambda: ty.Param(init=0.0), None),
                (lambda: ty.Param(trainable=1), "Param: trainable must be a bool, and is an int (1)"),
                (lambda: ty.Values(["a"]), "Values: values must be an array or a list of numbers")):
            with self.subTest(message=message):
                with self.assertRaises(TypeError) as raised:
                    call()
                if message is not None:
                    self.assertEqual(str(raised.exception), message)
        with self.assertRaisesRegex(TypeError, r"fc\(\) missing 1 required positional argument: 'size'"):
            self.net.fc(self.x)

    def test_of_numbers_beyond_their_bounds_are_errors(self):
        for call in (lambda: self.net.fc(self.x, 2**63), lambda: ty.Net("n", seed=-1), lambda: ty.Xavier(seed=2**63),
                     lambda: self.net.fc(self.x, 3, num_flatten_dims=2**31)):
            with self.assertRaisesRegex(ty.Error, "must be between"):
                call()

    def test_take_what_numpy_has_for_a_number(self):
        self.assertEqual(self.net.fc(self.x, np.int32(3)).shape, [-1, 3])
        self.assertEqual(self.net.data("z", np.array([2, 3])).shape, [-1, 2, 3])
        self.assertEqual(ty.Adam(rate=np.float32(0.5)).rate, 0.5)


if __name__ == "__main__":
    unittest.main()
