"""`python3 -m trainyard.elastic`: a worker of an elastic job. `… compile FILE FOLDER`: what a job of it needs to know first."""

from __future__ import annotations

import json
import os
import sys
import traceback

from trainyard._native import Error
from trainyard.elastic.backend import check_optimizer
from trainyard.elastic.job import Job
from trainyard.elastic.model import MODULE, check_functions, described, load_model
from trainyard.elastic.readers import count_records
from trainyard.net import Net
from trainyard.program import Program


def compile_model(path: str, folder: str) -> None:
    """Writes the program of the model's net, if it has one; else checks its functions, and writes how many records its
    reader has."""
    job = Job.from_json(os.environ["TRAINYARD_JOB_SPEC"])
    module = load_model(path)
    if not hasattr(module, "net"):
        check_functions(module, job)
        if job.kind == "train":
            check_optimizer(module, job)
        if job.data_reader:
            counts = count_records(module, job)
            with open(os.path.join(folder, "records.json"), "w", encoding="utf-8") as file:
                json.dump(counts, file)
        return
    if job.data_reader:
        raise Error(f"{path} has a net, which reads record files by itself: --data-reader is for models that are functions")
    if not callable(module.net):
        raise Error(f"net of {path} must be a function net(job), and is of type {type(module.net).__name__}")
    made = module.net(job)
    program = made.finish() if isinstance(made, Net) else made
    if not isinstance(program, Program):
        raise Error(f"net(job) of {path} must return a Net or a Program, and returned type {type(made).__name__}")
    with open(os.path.join(folder, "program"), "wb") as file:
        file.write(program.to_bytes())


def main(arguments: list[str]) -> int:
    try:
        if arguments[:1] == ["compile"] and len(arguments) == 3:
            compile_model(arguments[1], arguments[2])
            return 0
        if arguments:
            print("usage: python3 -m trainyard.elastic [compile FILE FOLDER]", file=sys.stderr)
            return 2
        from trainyard.elastic.worker import run_worker
        return run_worker(os.environ)
    except (Exception, SystemExit) as error:  # the user's code, outside of any task, or what is wrong with it
        if isinstance(error, SystemExit) and not arguments:
            raise  # a worker that ends itself ends as it says
        sys.stdout.flush()  # what the model printed comes before, not behind
        line = described(error, getattr(sys.modules.get(MODULE), "__file__", None) or "")
        if not arguments:  # else it is a user's command, and no worker in a pod of its own
            if not isinstance(error, Error):
                traceback.print_exc()
            tell_kubelet(line)
        print(line, file=sys.stderr)
        return 1


def tell_kubelet(message: str) -> None:
    """What the pod's status says of its end, where there is somebody who reads it. Where there is no log, none is made."""
    try:
        with open(os.open("/dev/termination-log", os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8",
                  errors="replace") as log:
            log.write(message)
    except OSError:
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
