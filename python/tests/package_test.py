"""The package as a whole: everything public is documented and is what it was promised to be."""

import inspect
import subprocess
import sys
import unittest

import trainyard as ty


class Package(unittest.TestCase):
    def test_documents_everything_public(self):
        self.assertTrue(ty.__doc__)
        missing = []
        for name in ty.__all__:
            one = getattr(ty, name)
            if not inspect.getdoc(one):
                missing.append(name)
            if inspect.isclass(one):
                missing += [f"{name}.{member}" for member, value in vars(one).items()
                            if not member.startswith("_") and (callable(value) or isinstance(value, property))
                            and not inspect.getdoc(value)]
        self.assertEqual(missing, [])

    def test_gives_every_public_call_hints(self):
        missing = []
        for cls in (ty.Net, ty.Executor, ty.Program, ty.Part, ty.Graph, ty.Variable, ty.Yard, ty.Job, ty.Workers):
            for name, value in inspect.getmembers(cls, inspect.isfunction):
                if name.startswith("_"):
                    continue
                signature = inspect.signature(value)
                untyped = [parameter.name for parameter in signature.parameters.values()
                           if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")]
                if untyped or signature.return_annotation is signature.empty:
                    missing.append(f"{cls.__name__}.{name}")
        self.assertEqual(missing, [])

    def test_stands_beside_other_modules_of_the_process(self):
        # Whoever comes first: neither exports its own symbols to the other.
        script = "import trainyard, numpy; print(trainyard.Net('n').finish().main.id)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "n.main\n", ""))


if __name__ == "__main__":
    unittest.main()
