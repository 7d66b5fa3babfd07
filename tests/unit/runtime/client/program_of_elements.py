"""A graph that has an element of every kind that can be fetched or fed."""

from __future__ import annotations

from runtime.client import (
    Graph,
    Session,
    SparseTensor,
    Variable,
    constant,
    float32,
    identity,
    int32,
    no_op,
    placeholder,
    string,
    uint8,
)


class Program:
    """A graph with elements of every kind, and a session of it."""

    def __init__(self):
        self.graph = Graph()
        with self.graph.as_default():
            self.x = placeholder(float32, [None, 3], name="x")
            self.u = placeholder(uint8, [], name="u")
            self.i = placeholder(int32, [], name="i")
            self.s = placeholder(string, name="s")
            self.a = constant(2.0, name="a")
            self.b = identity(self.a, name="b")
            self.read = identity(self.s, name="read")
            self.hidden = constant(1.0, name="Const_1")
            self.unfed = constant(1.0, name="unfeed")
            self.noop = no_op(name="noop")
            self.variable = Variable(3.0, name="v")
            self.sparse = SparseTensor([[0, 1]], [3.0], [2, 2])
        self.graph.prevent_fetching(self.hidden.op)
        self.graph.prevent_feeding(self.unfed)
        self.session = Session(graph=self.graph)
        self.run = self.session.run
