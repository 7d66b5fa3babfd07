"""Evaluates the part of PromQL that the dashboard uses, over two scrapes of a server.

Grammar: an expression is a selector, `rate(selector[range])`, `histogram_quantile(number, …)`, `sum
by (labels) (…)`, one in parentheses, or a quotient of these. A rate is the increase between the two
scrapes in a second. As in Prometheus, a series must be in both, and the operands of a quotient are
matched by all their labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Page = dict[str, Vector]
_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<range>\[\d+[smh]\])|(?P<number>\d+(?:\.\d+)?)'
    r"|(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)|(?P<sign>=~|!=|[=(){},/]))"
)
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
# The Prometheus client's own parser renames counters, as its writer does.
_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)"
    rf"(?:\{{(?P<labels>(?:{_LABEL.pattern},?)*)\}})? (?P<value>\S+)"
)
SECONDS = 60.0  # assumed between the scrapes


def read_page(text: str) -> Page:
    """The series of a page by the names of their samples."""
    page: Page = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            labels = frozenset(_LABEL.findall(match["labels"] or ""))
            assert labels not in page.setdefault(match["name"], {}), line
            page[match["name"]][labels] = float(match["value"])
    return page


def evaluate(query: str, before: Page, after: Page) -> Vector:
    """The instant vector of a query; raises ValueError if it is no expression of this grammar."""
    parser = _Parser(query, before, after)
    found = parser.quotient()
    parser.end()
    return found


class _Parser:
    def __init__(self, query: str, before: Page, after: Page) -> None:
        self._query, self._before, self._after = query, before, after
        self._tokens = list(self._split(query))

    @staticmethod
    def _split(query: str) -> Iterator[str]:
        position = 0
        while position < len(query.rstrip()):
            match = _TOKEN.match(query, position)
            if match is None:
                raise ValueError(f"{query[position:]!r} is not understood, in {query}")
            yield match[match.lastgroup or 0]
            position = match.end()

    def _take(self, *expected: str) -> str:
        if not self._tokens or (expected and self._tokens[0] not in expected):
            raise ValueError(f"Expected {expected} at {self._tokens} of {self._query}")
        return self._tokens.pop(0)

    def _next_is(self, token: str) -> bool:
        return self._tokens[:1] == [token]

    def end(self) -> None:
        if self._tokens:
            raise ValueError(f"Superfluous: {self._tokens} of {self._query}")

    def quotient(self) -> Vector:
        left = self._operand()
        while self._next_is("/"):
            self._take()
            right = self._operand()
            left = {
                labels: value / right[labels] if right[labels] else float("nan")
                for labels, value in left.items()
                if labels in right
            }
        return left

    def _operand(self) -> Vector:
        name = self._take()
        if name == "(":
            return self._closed(self.quotient())
        if name == "sum":
            return self._sum()
        if name == "rate":
            self._take("(")
            return self._closed(self._rate(*self._selector(self._take())))
        if name == "histogram_quantile":
            self._take("(")
            quantile = float(self._take())
            self._take(",")
            return _quantiles(quantile, self._closed(self.quotient()))
        selected, keep = self._selector(name)
        return {key: value for key, value in self._after[selected].items() if keep(key)}

    def _closed(self, found: Vector) -> Vector:
        self._take(")")
        return found

    def _sum(self) -> Vector:
        names: list[str] = []
        if self._next_is("by"):
            self._take()
            names = self._names()
        self._take("(")
        found: Vector = {}
        for labels, value in self._closed(self.quotient()).items():
            key = frozenset(each for each in labels if each[0] in names)
            found[key] = found.get(key, 0.0) + value
        return found

    def _names(self) -> list[str]:
        self._take("(")
        names = [self._take()]
        while self._next_is(","):
            self._take()
            names.append(self._take())
        self._take(")")
        return names

    def _selector(self, name: str):  # type: ignore[no-untyped-def] # a name and a function
        if name not in self._after:
            raise ValueError(f"No metric is named {name}, in {self._query}")
        matchers: list[tuple[str, str, str]] = []
        if self._next_is("{"):
            self._take()
            while not self._next_is("}"):
                label, sign = self._take(), self._take("=", "!=", "=~")
                matchers.append((label, sign, self._take()[1:-1]))
                if self._next_is(","):
                    self._take()
            self._take("}")
        known = {label for labels in self._after[name] for label, _ in labels}
        unknown = [label for label, _, _ in matchers if label not in known]
        if unknown:
            raise ValueError(f"{name} has the labels {known}, not {unknown}, in {self._query}")
        return name, lambda labels: all(_matches(dict(labels), *each) for each in matchers)

    def _rate(self, name: str, keep) -> Vector:  # type: ignore[no-untyped-def] # a predicate
        if not re.fullmatch(r"\[\d+[smh]\]", self._take()):
            raise ValueError(f"rate needs a range, in {self._query}")
        old, new = self._before.get(name, {}), self._after[name]
        return {
            labels: (value - old[labels]) / SECONDS
            for labels, value in new.items()
            if labels in old and keep(labels)
        }


def _matches(labels: dict[str, str], label: str, sign: str, value: str) -> bool:
    actual = labels.get(label, "")
    if sign == "=~":
        return re.fullmatch(value, actual) is not None
    return (actual == value) is (sign == "=")


def _quantiles(quantile: float, buckets: Vector) -> Vector:
    """The quantile of each histogram, as the upper bound of the bucket in which it is."""
    histograms: dict[Labels, list[tuple[float, float]]] = {}
    for labels, value in buckets.items():
        bound = dict(labels)["le"]
        key = frozenset(each for each in labels if each[0] != "le")
        histograms.setdefault(key, []).append((float(bound), value))
    found: Vector = {}
    for key, entries in histograms.items():
        entries.sort()
        bound, total = entries[-1]
        assert bound == float("inf"), "the last bucket must be infinite"
        if total:
            found[key] = next(each for each, count in entries if count >= quantile * total)
    return found
