"""The layer check must fail on what it forbids, or it proves nothing.

usage: check_layers_test.py TRAINYARD [unittest arguments]
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-layers."))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "scripts").mkdir()
        shutil.copy(ROOT / "scripts" / "layers.txt", self.root / "scripts")

    def check(self, path, text):
        file = self.root / "src" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return subprocess.run(["/usr/bin/python3", ROOT / "scripts" / "check-layers", self.root], capture_output=True,
                              text=True, check=False)

    def test_allows_what_the_table_allows(self):
        done = self.check("kv/a.cc", '#include "base/clock.h"\n#include "kv/store.h"\n#include <vector>\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.check("cli/a.cc", '#include "kv/store.h"\n#include "operator/x.h"\n')
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_refuses_a_folder_that_is_not_allowed(self):
        done = self.check("base/a.h", '#include "kv/store.h"\n')
        self.assertEqual(done.returncode, 1)
        self.assertIn("src/base/a.h: src/base may not include kv/store.h", done.stderr)
        done = self.check("launch/a.h", '  #  include "operator/x.h"\n')
        self.assertIn("src/launch may not include operator/x.h", done.stderr)

    def test_refuses_time_and_threads_in_pure_folders(self):
        done = self.check("job/a.cc", "#include <thread>\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("src/job is pure and may not include thread", done.stderr)
        done = self.check("node/pod_plan.cc", "#include <thread>\n")
        self.assertIn("src/node/pod_plan is pure and may not include thread", done.stderr)
        done = self.check("node/pod_worker.cc", "#include <thread>\n")
        self.assertNotIn("pod_worker", done.stderr)

    def test_refuses_heavy_headers_outside_their_place(self):
        done = self.check("kv/a.cc", "#include <grpcpp/grpcpp.h>\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("may be included only in kv/etcd", done.stderr)
        shutil.rmtree(self.root / "src")
        done = self.check("kv/etcd/a.cc", "#include <grpcpp/grpcpp.h>\n")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_refuses_secrets_that_are_not_of_the_one_function(self):
        done = self.check("launch/a.cc", "std::string token = IdSource::Random().Suffix(8);\n")
        self.assertIn("secrets come from NewToken()", done.stderr)
        done = self.check("launch/b.cc", "#include <sys/random.h>\n")
        self.assertIn("sys/random.h may be included only in base/access.cc", done.stderr)
        for way in ("std::random_device chance;", "RAND_bytes(b, 8);", "RAND_priv_bytes(b, 8);", "arc4random_buf(b, 8);",
                    "getentropy(b, 8);", 'open("/dev/urandom");', 'open("/dev/random");'):
            done = self.check("base/access.cc", way + "\n")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"base/access.cc: chance and secrets come from .*, not from \S+")
        shutil.rmtree(self.root / "src")
        done = self.check("base/access.cc", "#include <sys/random.h>\n::getrandom(b, 8, 0);\n")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_refuses_a_folder_without_a_line(self):
        done = self.check("util/a.cc", "")
        self.assertEqual(done.returncode, 1)
        self.assertIn("folder src/util has no line in scripts/layers.txt", done.stderr)

    def test_refuses_an_empty_tree(self):
        (self.root / "src").mkdir()
        done = subprocess.run(["/usr/bin/python3", ROOT / "scripts" / "check-layers", self.root], check=False,
                              capture_output=True)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    sys.argv.pop(1)
    unittest.main(verbosity=2)
