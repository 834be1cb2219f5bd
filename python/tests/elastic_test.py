"""Models of elastic jobs, as far as they can be tried without a master: how they learn, and what is said of wrong ones."""

import importlib.util
import os
import tempfile
import types
import unittest

import trainyard as ty
from trainyard.elastic.backend import check_optimizer, from_torch, make_optimizer, to_native
from trainyard.elastic.model import described, load_model

HAS_TORCH = importlib.util.find_spec("torch") is not None


@unittest.skipUnless(HAS_TORCH, "SKIPPED: there is no PyTorch (python3-torch)")
class OptimizersOfPyTorch(unittest.TestCase):
    def setUp(self):
        import torch
        self.torch = torch
        self.parameters = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(3))]

    def test_say_how_the_master_learns(self):
        optim = self.torch.optim
        for made, expected in (
                (optim.SGD(self.parameters, lr=0.5), (ty.Sgd(rate=0.5), None)),
                (optim.SGD(self.parameters, lr=0.5, weight_decay=0.25), (ty.Sgd(rate=0.5), ty.L2Decay(0.25))),
                (optim.SGD(self.parameters, lr=0.5, momentum=0.75, nesterov=True, weight_decay=0.25),
                 (ty.Momentum(rate=0.5, momentum=0.75, nesterov=True), ty.L2Decay(0.25))),
                (optim.Adam([{"params": self.parameters, "lr": 0.5}], weight_decay=0.25),
                 (ty.Adam(rate=0.5), ty.L2Decay(0.25)))):
            self.assertEqual(from_torch(made), expected)
            to_native(made)

    def test_are_refused_where_the_master_cannot_do_what_they_say(self):
        optim = self.torch.optim
        scheduled = optim.SGD(self.parameters, lr=0.5)
        optim.lr_scheduler.StepLR(scheduled, 10)
        for made, message in (
                (optim.SGD(self.parameters, lr=0.5, momentum=0.5, dampening=0.5), "SGD with dampening=0.5, which the master cannot do"),
                (optim.Adam(self.parameters, amsgrad=True), "Adam with amsgrad=True"),
                (optim.Adagrad(self.parameters, lr_decay=0.5), "Adagrad with lr_decay=0.5"),
                (optim.RMSprop(self.parameters, centered=True), "RMSprop with centered=True"),
                (optim.SGD([{"params": self.parameters[:1], "lr": 0.1}, {"params": self.parameters[1:]}], lr=0.5),
                 "groups of different settings: all parameters learn alike"),
                (scheduled, "a schedule of PyTorch"),
                (optim.AdamW(self.parameters), "gives a AdamW")):
            with self.subTest(message=message):
                with self.assertRaisesRegex(ty.Error, message):
                    from_torch(made)
                module = types.SimpleNamespace(optimizer=lambda parameters: made)
                with self.assertRaisesRegex(ty.Error, message):
                    check_optimizer(module, None)

    def test_are_given_the_parameters_where_they_want_them(self):
        wants = types.SimpleNamespace(optimizer=lambda parameters: self.torch.optim.SGD(parameters, lr=0.5))
        self.assertEqual(len(make_optimizer(wants, None, self.parameters).param_groups[0]["params"]), 2)
        self.assertEqual(make_optimizer(types.SimpleNamespace(optimizer=lambda: ty.Sgd()), None, self.parameters), ty.Sgd())


class WrongModels(unittest.TestCase):
    def said(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            try:
                load_model(path)
            except Exception as error:
                return described(error, path)
        return ""

    def test_are_told_with_file_and_line(self):
        self.assertEqual(self.said("x = 1\ny = nothing\n"), "NameError: name 'nothing' is not defined (model.py, line 2)")
        self.assertEqual(self.said("import trainyard as ty\n\nty.Net('n').fc(ty.Net('m').data('x', [1]), 1)\n").partition(" (")[2],
                         "model.py, line 3)")
        self.assertRegex(self.said("x = 1\ndef f(:\n"), r"^SyntaxError: .* \(model\.py, line 2\)$")
        self.assertEqual(self.said("raise ValueError('one\\ntwo')\n"), "ValueError: one two (model.py, line 1)")


if __name__ == "__main__":
    unittest.main()
