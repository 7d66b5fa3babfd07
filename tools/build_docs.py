"""Build the documentation site into .site, and check it.

    python tools/build_docs.py [--output .site]

The sources are the pages of the repository where they are, reference pages generated from the code,
and drawings made from the code; `tools/docs_site/pages.py` has the navigation. All that the site
loads is its own. Prints the number of pages, of code blocks by what the tests do with them, and of
links; exits with 1 if a link leads nowhere, something comes from elsewhere, or mkdocs warns.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from docs_site import drawings, reference
from docs_site.blocks import Block, blocks_of, counts
from docs_site.links import check_site
from docs_site.pages import GENERATED, PLACES, navigation, write_pages

_EXTENSIONS: list[Any] = [
    "admonition", "attr_list", "md_in_html", "sane_lists", "tables", {"toc": {"permalink": True}},
    "pymdownx.superfences", "pymdownx.highlight",
]  # fmt: skip


def repository_blocks() -> list[Block]:
    """Return the blocks of every page that is not generated."""
    pages = [page for page in PLACES if not page.startswith(f"{GENERATED}/")]
    return [block for page in pages for block in blocks_of(ROOT, ROOT / page)]


def pictures() -> dict[str, str]:
    """Return each drawing by its path on the site."""
    import trace_requests

    recorder = trace_requests.Recorder()
    recorder.install()
    traces = asyncio.run(trace_requests.trace_ways(recorder))
    sys.setprofile(None)
    named = trace_requests.read_page(trace_requests.PAGE.read_text())
    calls = list(drawings.moves(traces["predict"].entered))
    deciding = frozenset(file for file, _ in calls if file.startswith(named.deciding))
    return {
        "explanation/floors.svg": drawings.floors(ROOT),
        "explanation/predict.svg": drawings.way(
            "The functions that a warm prediction enters", calls, deciding
        ),
        "explanation/step.svg": drawings.lanes("A step of the digits example", traced_step()),
    }


def traced_step() -> Mapping[str, list[tuple[str, float, float]]]:
    """Return the kernels of a step of the digits example by thread: (node, start, seconds)."""
    import numpy as np

    import protos as pb
    from runtime.api import SessionOptions, load_saved_model

    folder = ROOT / "examples" / "models" / "digits" / "1"
    bundle = load_saved_model(SessionOptions(), None, str(folder), ["serve"])
    signature = bundle.meta_graph_def.signature_def["serving_default"]
    (feed,), (fetch,) = signature.inputs.values(), signature.outputs.values()
    shape = [max(1, dim.size) for dim in feed.tensor_shape.dim]
    options = pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE)
    feeds = {feed.name: np.zeros(shape, np.float32)}
    metadata = pb.RunMetadata()
    for _ in range(3):
        metadata = pb.RunMetadata()
        bundle.session.run(feeds, [fetch.name], (), options, metadata)
    found: dict[str, list[tuple[str, float, float]]] = {}
    for device in metadata.step_stats.dev_stats:
        names = dict(device.thread_names)
        for node in device.node_stats:
            lane = names.get(node.thread_id, f"thread {node.thread_id}")
            start = 1e-6 * (node.all_start_micros + node.op_start_rel_micros)
            took = 1e-6 * max(1, node.op_end_rel_micros - node.op_start_rel_micros)
            found.setdefault(lane, []).append((node.node_name, start, took))
    begin = min(start for each in found.values() for _, start, _ in each)
    return {
        lane: [(name, start - begin, took) for name, start, took in each]
        for lane, each in found.items()
    }


def configuration(sources: pathlib.Path, output: pathlib.Path) -> dict[str, Any]:
    """Return mkdocs' configuration."""
    return {
        "site_name": "Runstep",
        "docs_dir": str(sources),
        "site_dir": str(output),
        "use_directory_urls": False,
        "strict": True,
        "nav": navigation(),
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.sections", "navigation.top", "content.code.copy"],
            "palette": [
                {
                    "media": "(prefers-color-scheme: light)", "scheme": "default",
                    "primary": "indigo",
                    "toggle": {"icon": "material/weather-night", "name": "Dark"},
                },
                {
                    "media": "(prefers-color-scheme: dark)", "scheme": "slate",
                    "primary": "indigo",
                    "toggle": {"icon": "material/weather-sunny", "name": "Light"},
                },
            ],
        },
        "plugins": ["search"],
        "markdown_extensions": _EXTENSIONS,
        "extra": {"generator": False},
    }  # fmt: skip


def build(output: pathlib.Path) -> None:
    """Write the sources into a folder of their own, and run mkdocs on them."""
    with tempfile.TemporaryDirectory() as name:
        sources = pathlib.Path(name) / "sources"
        write_pages(ROOT, sources, reference.pages(ROOT))
        for path, drawing in pictures().items():
            (sources / path).write_text(drawing)
        file = pathlib.Path(name) / "mkdocs.yml"
        file.write_text(yaml.safe_dump(configuration(sources, output), sort_keys=False))
        shutil.rmtree(output, ignore_errors=True)
        ended = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", file],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ended.returncode:
            sys.exit(ended.stdout + ended.stderr)
        (output / "404.html").unlink()  # its links are absolute, but the site may be below any path


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the documentation site, and check it.")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / ".site")
    output = parser.parse_args().output.resolve()
    build(output)
    links, faults = check_site(output)
    blocks = repository_blocks()
    found = counts(blocks)
    for block in blocks:
        if block.reason:
            print(f"not run: {block.page}:{block.line}: {block.reason}")
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    print(
        f"{len(list(output.rglob('*.html')))} pages, {size / 1e6:.1f} MB; code blocks: "
        f"{found['run']} run, {found['compared']} compared with what they print, "
        f"{found['read']} read, {found['not run']} not run; {links:,} links checked"
    )
    print("\n".join(re.sub(r"^", "wrong: ", fault) for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
