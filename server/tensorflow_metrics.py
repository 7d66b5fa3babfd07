"""Metrics under TensorFlow's names: their families, and the text form that TensorFlow Serving has.

Prometheus's own text form has other types and names: it adds `_total` to the name of a counter and
sorts the labels. Dashboards and alerts for TensorFlow Serving know its form.

TF: tensorflow_serving/util/prometheus_exporter.cc
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client.metrics_core import Metric

_PREFIX = ":tensorflow:"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def tensorflow_counter(
    name: str, label_names: Sequence[str], counts: Mapping[tuple[str, ...], int]
) -> Metric:
    """Return a counter, by the values of its labels."""
    family = Metric(name, name, "counter")
    for labels, count in counts.items():
        family.add_sample(name, dict(zip(label_names, labels, strict=True)), count)
    return family


def is_of_tensorflow(family: Metric) -> bool:
    """Return whether the family has one of TensorFlow's names."""
    return family.name.startswith(_PREFIX)


def tensorflow_text(families: Iterable[Metric]) -> str:
    """Return families as TensorFlow Serving's page has them: no help, labels in their order.

    The bounds of buckets have six digits, as there; sums have all, so that rates remain exact.
    """
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Metric) -> Iterator[str]:
    yield f"# TYPE {family.name} {family.type}"
    for sample in family.samples:
        labels = ",".join(
            f'{key}="{_bound(value) if key == "le" else value.translate(_ESCAPES)}"'
            for key, value in sample.labels.items()
        )
        value = sample.value
        yield f"{sample.name}{{{labels}}} {int(value) if value == int(value) else value!r}"


def _bound(text: str) -> str:
    return text if text == "+Inf" else f"{float(text):g}"
