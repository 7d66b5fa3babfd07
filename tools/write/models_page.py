"""Write docs/models.md: how closely exported and public models agree with TensorFlow.

    python tools/write/models_page.py ROWS.json DIR… [--public PUBLIC.json]

Each DIR is a corpus of `tools/export/corpus.py`; tests/fixtures/saved_models is one. Each model is
loaded and its recorded calls run, unless ROWS.json has its row; new rows are added to that file, so
that a large corpus can be exported, checked and deleted in parts. PUBLIC.json is the output of
`tools/check/public_models.py`.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
import time
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import protos as pb
from runtime.api import SessionOptions
from runtime.executors.dataflow_graph import V1_CONTROL_FLOW
from runtime.framework.kernel_registry import KernelRegistry
from runtime.kernels import kernel_defs
from runtime.saved_model.inspection import inspect_ops
from tests.saved_model_corpus import load_model, read_calls, relative_difference

PAGE = ROOT / "docs" / "models.md"
BAR = 1e-4
HEAD = """# Models that load and agree

Every model here was exported by TensorFlow 2.21 (Keras 3) together with the outputs that TensorFlow
gave, loaded here and run on the same inputs by the numpy kernels. *Difference*: the largest of all
outputs and calls, relative to the largest magnitude of TensorFlow's output (the limit is 1e-4);
strings and integers must be equal. *Nodes* includes those of functions, *ops* counts the distinct
ops, *without a kernel* lists those that could not run here if a step reached them.

Written by:

    TENSORFLOW_PYTHON tools/export/corpus.py DIR
    python tools/write/models_page.py ROWS.json tests/fixtures/saved_models DIR --public PUBLIC.json

"""
FAMILIES = {
    "Keras applications": (
        "Random weights and batch statistics, inputs of 96 × 96 (VGG: 64 × 64) in batches of 1 "
        "and 3; the probabilities and the inputs of the last layer are compared.",
        {
            "xception": "Xception",
            "vgg16": "VGG16",
            "vgg19": "VGG19",
            "resnet101": "ResNet101",
            "resnet50_v2": "ResNet50V2",
            "inception_v3": "InceptionV3",
            "inception_resnet_v2": "InceptionResNetV2",
            "mobilenet": "MobileNet",
            "mobilenet_v2": "MobileNetV2",
            "mobilenet_v3_small": "MobileNetV3Small",
            "mobilenet_v3_large": "MobileNetV3Large",
            "densenet121": "DenseNet121",
            "nasnet_mobile": "NASNetMobile",
            "efficientnet_b1": "EfficientNetB1",
            "efficientnet_v2_b0": "EfficientNetV2B0",
            "efficientnet_v2_s": "EfficientNetV2S",
            "convnext_tiny": "ConvNeXtTiny",
        },
    ),
    "Sequences": (
        "",
        {
            "recurrent_stack": "stacked layers: LSTM, GRU, bidirectional, SimpleRNN, stacked cells",
            "lstm": "LSTM, 64 steps",
            "lstm_small": "LSTM, 6 steps",
            "bidirectional_gru": "two GRU layers, one in both directions, any length",
            "bidirectional_gru_small": "the same, small",
            "masked_lstm": "embedding with a mask, LSTM",
            "masked_lstm_small": "the same, small",
            "seq2seq_attention": "seq2seq, attention, `tf.while_loop` with TensorArray: While",
            "seq2seq_attention_v1": "the same with frames and v1 TensorArrays",
            "transformer": "transformer encoder, 4 blocks",
            "transformer_small": "transformer encoder, 1 block",
            "causal_decoder": "causal decoder: all logits, and greedy generation with a cache",
            "text_classifier": "TextVectorization, embedding, separable convolution, classifier",
            "text_vectorization": "TextVectorization with bigrams",
        },
    ),
    "Tasks": (
        "",
        {
            "wide_and_deep": "wide and deep: feature columns of every kind over tf.Examples",
            "recommender": "matrix factorisation with lookup tables and top-k",
            "detection": "NonMaxSuppression (2, 4, 5, combined), CropAndResize, ResizeBilinear",
            "audio": "STFT, mel bands, MFCC and inverse by RFFT; DecodeWav, AudioSpectrogram, Mfcc",
            "sparse_inputs": "two SparseTensors as inputs, one as an output",
            "frozen_lstm": "frozen GraphDef: LSTM in a v1 while loop, cond",
            "fake_quant": "quantisation-aware CNN: FakeQuant by tensor, by channel, by range",
            "mlp": "dense layers",
            "mlp_small": "dense layers, small",
            "cnn": "most convolution and pooling layers",
            "cnn_small": "the same, small",
            "string_lookup": "StringLookup, embedding",
            "hashing": "Hashing, plain and salted",
            "tabular": "Discretization, IntegerLookup, CategoryEncoding, Normalization",
            "asset_table": "vocabulary file among the assets, strings and bfloat16 in variables",
            "half_plus_two": "predict, classify and regress signatures of TensorFlow 1",
            "half_plus_two_tf2": "the same of TensorFlow 2",
            "counter": "stateful, TensorFlow 1",
            "counter_tf2": "stateful, TensorFlow 2",
            "simple_save_ref": "reference variables, partitioned",
            "simple_save_resource": "resource variables, partitioned",
            "v1_while_cond": "nested v1 loops, a TensorArray, cond",
        },
    ),
}
PUBLIC = """## Public models

Models from public repositories (none is part of this one), run in TensorFlow 2.21 and here on the
same random inputs. SavedModels: all signatures. Frozen graphs: all outputs without a consumer.
MetaGraphDefs (most are TensorFlow 1 training graphs): TensorFlow initialises and saves the
variables, Runstep restores them, and all trainable variables are compared, also after a training
step if the graph names its training op. *Refused* counts steps that both refuse, because random
inputs do not suit the graph or because neither has a kernel. *Left out* are outputs that TensorFlow
does not determine: random numbers, and variables that the same step reads and writes in no fixed
order, such as a streaming metric fetched with its update.

| model | nodes | ops | steps that agree | refused by both | difference | remark |
| --- | --- | --- | --- | --- | --- | --- |
"""


def check(folder: pathlib.Path, kernels: set[str]) -> dict[str, Any]:
    """Load one model, run its recorded calls, and return its row."""
    start = time.perf_counter()
    model = load_model(folder, SessionOptions())
    load_s = time.perf_counter() - start
    worst = 0.0
    calls = read_calls(folder)
    for call in calls:
        got = model.run(call)
        worst = max(worst, *(relative_difference(got[k], call.outputs[k]) for k in call.outputs))
    report = inspect_ops(pb.MetaGraphDef(graph_def=model.graph_def), kernels.__contains__)
    model.session.close()
    return {
        "nodes": sum(map(len, report.ops.values())),
        "ops": len(report.ops),
        "without_kernel": sorted({**report.without_kernel, **report.unknown}),
        "calls": len(calls),
        "load_s": load_s,
        "difference": worst,
    }


def exported_tables(rows: dict[str, dict[str, Any]]) -> list[str]:
    lines = []
    for title, (text, models) in FAMILIES.items():
        lines += [f"## {title}", "", *([text, ""] if text else [])]
        lines += [
            "| model | nodes | ops | without a kernel | calls | difference |",
            "| --- " * 6 + "|",
        ]
        for name, description in models.items():
            row = rows.get(name)
            if row is None:
                continue
            missing = ", ".join(row["without_kernel"]) or "none"
            difference = "equal" if row["difference"] == 0 else f"{row['difference']:.1e}"
            figures = f"{row['nodes']:,} | {row['ops']} | {missing} | {row['calls']} | {difference}"
            lines.append(f"| {description} | {figures} |")
        lines.append("")
    return lines


def public_rows(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        remark = row.get("failed") or row.get("theirs") or row.get("remark") or row.get("trains")
        if row.get("theirs"):
            remark = f"TensorFlow itself: {remark}"
        elif row.get("trains") == "":
            remark = "trained one step"
        if row.get("undetermined"):
            remark = f"{row['undetermined']} outputs left out"
        remark = re.sub(
            r"(/[\w.+-]+){2,}", "…", " ".join((remark or "").replace("|", "/").split())
        )[:160]
        difference = f"{row['difference']:.1e}" if row.get("runs") else "–"
        figures = [row.get("nodes", "–"), row.get("ops", "–"), row.get("runs", 0)]
        cells = [f"`{row['model']}`", *figures, row.get("refused", 0), difference, remark]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=pathlib.Path)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--public", type=pathlib.Path)
    options = parser.parse_args()
    rows = json.loads(options.rows.read_text()) if options.rows.exists() else {}
    kernels = {*KernelRegistry(kernel_defs()).ops, *V1_CONTROL_FLOW}
    for root in options.folders:
        for folder in sorted(path.parent for path in root.glob("*/io.npz")):
            if folder.name not in rows:
                rows[folder.name] = check(folder, kernels)
                print(folder.name, rows[folder.name], flush=True)
                options.rows.write_text(json.dumps(rows, indent=1))
    page = HEAD + "\n".join(exported_tables(rows))
    if options.public is not None:
        page += "\n" + PUBLIC + "\n".join(public_rows(json.loads(options.public.read_text())))
    PAGE.write_text(page.rstrip("\n") + "\n")
    worst = max(row["difference"] for row in rows.values())
    print(f"{len(rows)} models, largest difference {worst:.1e}")
    return 1 if worst > BAR else 0


if __name__ == "__main__":
    raise SystemExit(main())
