"""The pages of the site: where each is in the navigation, and its links as they are there.

Pages stay where readers of the repository find them; the site has copies, with links to files that
are no page removed.
"""

from __future__ import annotations

import pathlib
import posixpath
import re
import shutil
from collections.abc import Mapping, Sequence

Nav = Sequence[tuple[str, Sequence[tuple[str, str]]]]  # section → [(title, page of the repository)]
GENERATED = "generated"  # pages that are made for the site: in its folder `reference`

NAV: Nav = (
    ("Tutorial", (
        ("Your first model in five minutes", "docs/tutorial/first_model.md"),
        ("A live session", "docs/tutorial/live_session.md"),
        ("Background work beside traffic", "docs/tutorial/background_work.md"),
        ("Moving from TensorFlow Serving", "docs/tutorial/from_tensorflow_serving.md"),
    )),
    ("How to", (
        ("Use the Python client", "docs/client.md"),
        ("Use the console", "docs/console.md"),
        ("Work in the terminal", "docs/terminal.md"),
        ("Use sessions", "docs/sessions.md"),
        ("Grow: processes, Ray, Kubernetes", "docs/growing.md"),
        ("Use sessions on Ray", "docs/ray.md"),
        ("Serve sessions on Ray", "docs/ray_sessions.md"),
        ("Serve models on Ray", "docs/ray_serve.md"),
        ("Serve with several processes", "docs/processes.md"),
        ("Build graphs in Python", "docs/front_end.md"),
        ("Train", "docs/training.md"),
        ("Batch requests", "docs/batching.md"),
        ("Watch metrics", "docs/metrics.md"),
        ("Restrict access", "SECURITY.md"),
        ("Serve decision forests", "docs/forests.md"),
        ("Serve JAX programs", "docs/jax.md"),
        ("Serve text models", "docs/text.md"),
        ("Bring ops of your own", "docs/op_packages.md"),
        ("Deploy to Kubernetes", "docs/kubernetes.md"),
        ("Contribute", "CONTRIBUTING.md"),
    )),
    ("Reference", (
        ("REST", f"{GENERATED}/rest.md"),
        ("gRPC", "docs/grpc.md"),
        ("Open Inference Protocol", "docs/inference_protocol.md"),
        ("Settings", f"{GENERATED}/settings.md"),
        ("Command line", f"{GENERATED}/commands.md"),
        ("TensorFlow Serving's flags", "docs/migration.md"),
        ("Errors", f"{GENERATED}/errors.md"),
        ("Metrics", f"{GENERATED}/metrics.md"),
        ("Operations", "docs/ops.md"),
        ("Operations without a kernel", "docs/ops_left_out.md"),
        ("Gradients of operations", "docs/gradients.md"),
        ("Changes", "CHANGELOG.md"),
    )),
    ("Explanation", (
        ("How a step runs", "docs/explanation/how_a_step_runs.md"),
        ("Pools and priorities", "docs/explanation/pools_and_priorities.md"),
        ("Variables", "docs/explanation/variables.md"),
        ("Clusters", "docs/explanation/clusters.md"),
        ("The house", "runtime/README.md"),
        ("Days that go wrong", "docs/bad_days.md"),
    )),
    ("Evidence", (
        ("Benchmarks", "docs/benchmarks.md"),
        ("Kernels", "docs/kernel_speed.md"),
        ("Robustness", "docs/robustness.md"),
        ("Models", "docs/models.md"),
        ("TensorFlow's own tests", "docs/yardstick.md"),
        ("Differences of kernels", "docs/kernel_differences.md"),
        ("Differences of the runtime", "runtime/DIFFERENCES.md"),
    )),
)  # fmt: skip
HOME = "README.md"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_DRAWING = re.compile(r"<!-- drawing: (\S+) ([^>]+?) -->")


def site_path(page: str) -> str:
    """Return where a page of the repository is on the site."""
    if page == HOME:
        return "index.md"
    if page.startswith(f"{GENERATED}/"):
        return page.replace(GENERATED, "reference", 1)
    return page.removeprefix("docs/").lower().replace("/readme.md", "/house.md")


PLACES: Mapping[str, str] = {
    page: site_path(page) for page in (HOME, *(page for _, pages in NAV for _, page in pages))
}


def copied(page: str, text: str) -> str:
    """Return the text of a page with its links as they are on the site.

    A link to a file of the repository that is no page becomes its name, and the place of a drawing
    the drawing, which the repository does not have.
    """
    folder = posixpath.dirname(page)
    here = posixpath.dirname(PLACES[page])

    def replace(match: re.Match[str]) -> str:
        image, label, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or not path or image:
            return match[0]
        place = PLACES.get(posixpath.normpath(posixpath.join(folder, path)))
        if place is None:
            return label if label.startswith("`") else f"`{label}`"
        return f"[{label}]({posixpath.relpath(place, here or '.')}{hash_}{anchor})"

    return _LINK.sub(replace, _DRAWING.sub(r"![\2](\1)", text))


def write_pages(root: pathlib.Path, site: pathlib.Path, generated: Mapping[str, str]) -> None:
    """Write every page into the folder of the site's sources."""
    for page, place in PLACES.items():
        text = generated[page] if page in generated else (root / page).read_text()
        (site / place).parent.mkdir(parents=True, exist_ok=True)
        (site / place).write_text(copied(page, text))
    for folder in ("tutorial", "explanation"):
        for picture in (root / "docs" / folder).glob("*.svg"):
            shutil.copy(picture, site / folder)


def navigation() -> list[dict[str, object]]:
    """Return the navigation as mkdocs reads it."""
    return [
        {"Home": PLACES[HOME]},
        *({title: [{name: PLACES[page]} for name, page in pages]} for title, pages in NAV),
    ]
