"""Programs as text, as bytes, and as graphs of many machines."""

import copy
import pickle
import unittest

import trainyard as ty
from nets import classifier, clusters, line, line_batch


class Programs(unittest.TestCase):
    def test_are_what_str_shows(self):
        program, _ = line()
        text = str(program)
        self.assertIn("program line.main seed 7", text)
        self.assertIn("program line.startup seed 7", text)
        self.assertIn("mul(X=x, Y=w)", str(program.main))
        self.assertNotIn("mul(", str(program.startup))
        self.assertEqual(repr(program), "<Program line.main>")

    def test_know_their_variables(self):
        program, _ = line()
        self.assertEqual(program.main.id, "line.main")
        self.assertEqual(program.main.seed, 7)
        self.assertEqual(program.main.parameters, ["w", "b"])
        self.assertEqual(sorted(program.main.persistables), ["b", "learning_rate_0", "w"])
        self.assertEqual(program.main.variables["x"], "f32[-1, 1]")

    def test_come_back_from_bytes(self):
        program, loss = line()
        again = ty.Program.from_bytes(program.to_bytes())
        self.assertEqual(again, program)
        self.assertEqual(again.to_bytes(), program.to_bytes())
        self.assertEqual(ty.Part.from_bytes(program.main.to_bytes()), program.main)
        self.assertEqual(pickle.loads(pickle.dumps(program)), program)
        self.assertEqual(copy.deepcopy(program), program)
        exe = ty.Executor()
        exe.start(again)
        self.assertEqual(exe.run(again, feed=line_batch(), fetch=[loss])[0].shape, (1,))

    def test_are_equal_only_if_all_of_them_is(self):
        program, _ = line()
        self.assertEqual(line()[0], program)
        for other in (line(rate=0.2)[0], line(seed=8)[0], line(name="other")[0], program.clone_for_test(), "program"):
            self.assertNotEqual(other, program)

    def test_of_other_bytes_are_refused(self):
        program, _ = line()
        whole = program.to_bytes()
        for bad in (b"", b"x", whole[:-1], whole[:20], whole[:16], b"\0" * 100,
                    whole[:8] + b"\xff" * 8 + whole[16:]):
            with self.assertRaises(ty.Error):
                ty.Program.from_bytes(bad)
        with self.assertRaises(TypeError):
            ty.Program.from_bytes("text")

    def test_damaged_in_any_byte_are_refused_or_still_programs(self):
        whole = line()[0].to_bytes()
        for i in range(len(whole)):
            try:
                str(ty.Program.from_bytes(whole[:i] + bytes([whole[i] ^ 0x41]) + whole[i + 1:]))
            except ty.Error:
                pass

    def test_for_tests_learn_nothing_and_drop_nothing(self):
        program, loss, accuracy = classifier(ty.Sgd(), dropout=0.5)
        test = program.clone_for_test()
        self.assertEqual(test.startup, program.startup)
        self.assertNotIn("sgd(", str(test.main))
        exe = ty.Executor()
        exe.start(program)
        before = exe.get("fc_0.w_0").tobytes()
        first, = exe.run(test, feed=clusters(32), fetch=[loss])
        second, = exe.run(test, feed=clusters(32), fetch=[loss])
        self.assertEqual(first, second)
        self.assertEqual(exe.get("fc_0.w_0").tobytes(), before)
        # While it trains, each step drops others.
        masks = [exe.run(program, feed=clusters(32), fetch=["dropout.mask_0"])[0] for _ in range(2)]
        self.assertTrue((masks[0] != masks[1]).any())


class Transpiled(unittest.TestCase):
    def setUp(self):
        net = ty.Net("mlp", seed=7)
        x, label = net.read(sources=["data/*.csv"], format="csv", batch_size=8,
                            fields=[ty.Field("x", [64], scale=1 / 255), ty.Field("label", [1], dtype="i64")])
        loss = net.mean(net.softmax_with_cross_entropy(net.fc(net.fc(x, 1024, act="relu"), 10), label))
        net.output([loss], every=10)
        net.minimize(loss, ty.Adam(rate=0.001))
        self.program = net.finish()

    def test_becomes_trainers_and_pservers_that_name_each_other(self):
        trainers, pservers = ty.dist_transpiler(self.program, trainers_num=4, trainer_pass_num=2, pservers_num=2,
                                                mode="sync")
        self.assertEqual([graph.id for graph in trainers], [f"trainer-{i}" for i in range(4)])
        self.assertEqual([graph.id for graph in pservers], ["pserver-0", "pserver-1"])
        self.assertEqual({(graph.role, graph.mode) for graph in trainers}, {("trainer", "sync")})
        self.assertEqual([graph.index for graph in pservers], [0, 1])
        for trainer in trainers:
            self.assertTrue(trainer.send_var_graph_map)
            self.assertEqual(set(trainer.send_var_graph_map.values()), {"pserver-0", "pserver-1"})
            self.assertEqual(set(trainer.recv_var_graph_map.values()), {"pserver-0", "pserver-1"})
            self.assertIn("send(", str(trainer.main))
            self.assertIn("passes=2", str(trainer.main))
            self.assertNotIn("adam(", str(trainer.main))
        for pserver in pservers:
            self.assertEqual(set(pserver.send_var_graph_map.values()) - {graph.id for graph in trainers}, set())
            self.assertIn("adam(", str(pserver.main))

    def test_parameters_of_pservers_can_be_made_here(self):
        _, pservers = ty.dist_transpiler(self.program, pservers_num=2)
        exe = ty.Executor()
        for pserver in pservers:
            exe.start(pserver)
        blocks = [name for pserver in pservers for name in pserver.startup.parameters if name.startswith("fc_0.w_0")]
        self.assertEqual(sum(exe.get(name).size for name in blocks), 64 * 1024)
        self.assertEqual(len(blocks), 2)

    def test_shares_large_parameters_only_if_it_may(self):
        for slice_, pservers_of_weight in ((True, 2), (False, 1)):
            trainers, _ = ty.dist_transpiler(self.program, pservers_num=2, slice=slice_)
            sent = trainers[0].send_var_graph_map
            self.assertEqual(len({graph for name, graph in sent.items() if name.startswith("fc_0.w_0")}),
                             pservers_of_weight)

    def test_says_what_it_cannot_do(self):
        for options, message in (({"trainers_num": 0}, "trainer"), ({"pservers_num": 0}, "pserver"),
                                 ({"mode": "half"}, '^there is no mode "half": use async or sync$'),
                                 ({"dispatch": "luck"}, '^there is no dispatch "luck": use hash or round_robin$')):
            with self.subTest(options=options):
                with self.assertRaisesRegex(ty.Error, message):
                    ty.dist_transpiler(self.program, **options)
        net = ty.Net("net")
        net.fc(net.data("x", [1]), 1)
        with self.assertRaises(ty.Error):
            ty.dist_transpiler(net.finish())
        net = ty.Net("fed")
        loss = net.mean(net.fc(net.data("x", [1]), 1))
        net.minimize(loss, ty.Sgd())
        with self.assertRaisesRegex(ty.Error, "trainer-0 has no `read`: a trainer in a cluster is not fed, it reads its data"):
            ty.dist_transpiler(net.finish())
        with self.assertRaisesRegex(TypeError, "dist_transpiler: program must be a Program, and is a str"):
            ty.dist_transpiler("program")


if __name__ == "__main__":
    unittest.main()
