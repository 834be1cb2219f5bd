"""Jobs, as far as they can be tried without a cluster: what is wrong is told before anything is asked of one."""

import os
import tempfile
import unittest

import trainyard as ty


class WithoutACluster(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "TRAINYARD_HOME"):
            os.environ.pop(name, None)
        os.environ["HOME"] = folder.name

    def test_says_how_one_is_found(self):
        with self.assertRaisesRegex(ty.Error, "no cluster is configured: start one on this machine with `trainyard up`"):
            ty.Yard()
        with self.assertRaisesRegex(ty.Error, "nowhere"):
            ty.Yard(kubeconfig=os.path.join(os.environ["HOME"], "nowhere"))

    def test_refuses_a_store_that_pods_cannot_reach_and_storage_that_is_none(self):
        with self.assertRaisesRegex(ty.Error, "memory: is of this process alone"):
            ty.Yard(store="memory:")
        with self.assertRaisesRegex(ty.Error, "the storage 'here' is no absolute path"):
            ty.Yard(storage="here")
        with self.assertRaisesRegex(TypeError, "patience must be a number, and is a str"):
            ty.Yard(patience="long")


class Outputs(unittest.TestCase):
    def test_are_numbers_arrays_and_lines(self):
        one = ty.Output("trainer-0", 1, 12, 0.0, True, "acc", [1], [0.25])
        self.assertEqual((float(one), str(one)), (0.25, "trainer-0 pass 1 step 12 acc 0.25"))
        many = ty.Output("trainer-0", 1, 12, 0.0, True, "w", [2, 2], [1.0, 2.0, 3.0, 4.0])
        self.assertEqual(many.value.shape, (2, 2))
        cut = ty.Output("trainer-0", 1, 12, 0.0, True, "w", [2, 4], [1.0, 2.0, 3.0])
        self.assertEqual(cut.value.shape, (3,), "the first ones of more")


if __name__ == "__main__":
    unittest.main()
