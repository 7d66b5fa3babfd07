"""Check manifests against KServe's Python models, and print "done".

It runs in an environment with kserve: `python kserve_manifests.py FILE…`. Every key must be one of
the model's, at every depth, and every value must be of its type.
"""

from __future__ import annotations

import pathlib
import re
import sys

import kserve
import kubernetes.client
import yaml

SIMPLE = {"str": str, "int": int, "bool": bool, "object": object}
KINDS = {
    "ServingRuntime": "V1alpha1ServingRuntime",
    "InferenceService": "V1beta1InferenceService",
}


def model_of(name):
    for package in (kserve, kubernetes.client):
        if hasattr(package, name):
            return getattr(package, name)
    raise KeyError(name)


def check(value, kind, where):
    if kind in SIMPLE:
        assert isinstance(value, SIMPLE[kind]), f"{where}: {value!r} is no {kind}"
        return
    if inner := re.fullmatch(r"[Ll]ist\[(.+)\]", kind):
        for index, item in enumerate(value):
            check(item, inner[1], f"{where}[{index}]")
        return
    if inner := re.fullmatch(r"(?:dict\(str, (?P<old>.+)\)|Dict\[str, (?P<new>.+)\])", kind):
        for key, item in value.items():
            check(item, inner["old"] or inner["new"], f"{where}.{key}")
        return
    if kind in ("ResourceQuantity", "IntOrString"):  # KServe's models have no such classes
        assert isinstance(value, (str, int)), f"{where}: {value!r}"
        return
    model = model_of(kind)
    names = {wire: name for name, wire in model.attribute_map.items()}
    unknown = value.keys() - names.keys()
    assert not unknown, f"{where}: {kind} has no {unknown}; it has {sorted(names)}"
    for key, item in value.items():
        check(item, model.openapi_types[names[key]], f"{where}.{key}")


for path in sys.argv[1:]:
    manifest = yaml.safe_load(pathlib.Path(path).read_text())
    check(manifest, KINDS[manifest["kind"]], manifest["kind"])
sys.stdout.write("done\n")
