"""Trainyard: build a network, train it here or as graphs on many machines.

    import trainyard as ty

    net = ty.Net("line", seed=7)
    x, y = net.data("x", [1]), net.data("y", [1])
    loss = net.mean(net.square_error_cost(net.fc(x, 1), y))
    net.minimize(loss, ty.Sgd(rate=0.1))
    program = net.finish()

    exe = ty.Executor()
    exe.start(program)
    value, = exe.run(program, feed={"x": xs, "y": ys}, fetch=[loss])
"""

from trainyard._native import EndOfPass, Error
from trainyard.executor import Executor
from trainyard.jobs import Job, Output, Status, Workers, Yard, attach, find, init_job, kill
from trainyard.net import Net, Variable
from trainyard.options import (Adagrad, Adam, ClipByGlobalNorm, ClipByNorm, ClipByValue, Constant, ExponentialDecay,
                               Field, InverseTimeDecay, L1Decay, L2Decay, Momentum, Msra, NaturalExpDecay, Normal,
                               Optimizer, Param, PiecewiseDecay, PolynomialDecay, RmsProp, Sgd, Uniform, Values, Xavier)
from trainyard.program import Graph, Part, Program, dist_transpiler

__all__ = [
    "Adagrad", "Adam", "ClipByGlobalNorm", "ClipByNorm", "ClipByValue", "Constant", "EndOfPass", "Error",
    "Executor", "ExponentialDecay", "Field", "Graph", "InverseTimeDecay", "Job", "L1Decay", "L2Decay", "Momentum",
    "Msra", "NaturalExpDecay", "Net", "Normal", "Optimizer", "Output", "Param", "Part", "PiecewiseDecay",
    "PolynomialDecay", "Program", "RmsProp", "Sgd", "Status", "Uniform", "Values", "Variable", "Workers", "Xavier",
    "Yard", "attach", "dist_transpiler", "find", "init_job", "kill",
]
