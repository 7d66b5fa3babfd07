"""Decoding and encoding images. The files are in tests/conformance/files/images."""

from __future__ import annotations

import pathlib
import struct
import zlib
from typing import Any

import numpy as np

from tests.conformance.case import Case, Graph, Step, case

FILES = pathlib.Path(__file__).parents[2] / "files" / "images"
ACCURATE = {"dct_method": "INTEGER_ACCURATE"}
PIXELS = np.random.default_rng(13).integers(0, 256, size=(6, 7, 4)).astype(np.uint8)
SMOOTH = np.add.outer(np.arange(20) * 3, np.arange(24) * 5)[..., None] + np.array([0, 30, 60])
SMOOTH = SMOOTH.astype(np.uint8)


def file(name: str) -> np.ndarray:
    return np.array((FILES / name).read_bytes(), object)


def decode(op: str, name: str, *inputs: Any, **attrs: Any) -> Case:
    return case(op, file(name), *inputs, message=True, **attrs)


def cut_jpeg(name: str) -> np.ndarray:
    """Return a JPEG without its last two bytes, the end marker: no block of it is missing."""
    return np.array(file(name).item()[:-2], object)


def round_trip(encode: str, image: np.ndarray, decode_op: str, **attrs: Any) -> Case:
    """Encode an image and decode it again: encoders differ in bytes, not in decoded pixels."""
    graph = Graph()
    image_in = graph.placeholder(image.dtype, "image")
    inputs = [image_in]
    if encode == "EncodeJpegVariableQuality":
        inputs.append(graph.add("Const", dtype=np.int32, value=np.int32(attrs.pop("quality")))[0])
    encoded = graph.add(encode, *inputs, name="encode", **attrs)[0]
    options = {} if decode_op == "DecodeJpeg" else {"dtype": image.dtype}
    graph.add(decode_op, encoded, name="result", **options)
    name = f"{encode}_{'_'.join(f'{key}_{value}' for key, value in attrs.items())}_{image.shape}"
    name += f"_{image.dtype}"
    return Case(name, graph.graph_def, (Step({"image:0": image}, ("result:0",)),))


PNGS = (
    "colour.png", "grey.png", "alpha.png", "grey_alpha.png", "grey_16_bit.png", "palette.png",
    "palette_transparent.png", "one_bit.png",
)  # fmt: skip
JPEGS = ("colour.jpg", "full_chroma.jpg", "grey.jpg", "progressive.jpg")
BMPS = ("colour.bmp", "grey.bmp", "palette.bmp", "alpha.bmp", "one_bit.bmp")
DECODERS = ("DecodePng", "DecodeJpeg", "DecodeGif", "DecodeBmp", "DecodeImage", "DecodeWebP")
# With fewer than 8 bits a sample, libpng fills alpha with less than 255, Runstep with 255.
OPAQUE_FILLER = ("palette.png", "one_bit.png")


def wide_png(colour_type: int, channels: int, transparent: bytes = b"") -> np.ndarray:
    """Return a PNG of 16 bits a sample, each row with another filter type."""
    pixels = np.random.default_rng(14).integers(0, 1 << 16, size=(5, 7, channels)).astype(">u2")
    rows = b"".join(bytes([number]) + row.tobytes() for number, row in enumerate(pixels))
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", 7, 5, 16, colour_type, 0, 0, 0)),
        *([(b"tRNS", transparent)] if transparent else []),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    written = b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
    return np.array(b"\x89PNG\r\n\x1a\n" + written, object)


CASES = (
    *(
        case("DecodePng", wide_png(colour_type, depth), dtype=dtype, channels=channels)
        for colour_type, depth in ((2, 3), (4, 2), (6, 4))
        for dtype in (np.uint8, np.uint16)
        for channels in (0, 1, 3, 4)
    ),
    *(
        decode("DecodePng", name, channels=channels)
        for name in PNGS
        for channels in (0, 1, 2, 3, 4)
        if channels != 4 or name not in OPAQUE_FILLER
    ),
    *(decode("DecodePng", name, dtype=np.uint16) for name in PNGS[:5]),
    *(
        decode("DecodeJpeg", name, channels=channels, **attrs)
        for name in JPEGS
        for channels in (0, 1, 2, 3, 4)
        for attrs in ({}, {"fancy_upscaling": False}, ACCURATE, {"dct_method": "INTEGER_FAST"})
    ),
    decode("DecodeJpeg", "colour.jpg", dct_method="FLOAT"),
    *(decode("DecodeJpeg", "grey.jpg", ratio=ratio) for ratio in (1, 3)),
    *(
        decode("DecodeJpeg", name, ratio=ratio, fancy_upscaling=fancy, channels=channels)
        for name in JPEGS
        for ratio in (2, 4, 8)
        for fancy in (True, False)
        for channels in (0, 1)
    ),
    *(
        case("DecodeJpeg", cut_jpeg(name), try_recover_truncated=recover, message=True)
        for name in ("colour.jpg", "inks.jpg")
        for recover in (False, True)
    ),
    *(decode(op, "inks.jpg") for op in ("DecodeJpeg", "DecodeImage", "DecodePng")),
    *(decode("DecodeImage", "colour.jpg", dtype=dtype) for dtype in (np.uint8, np.float32)),
    *(
        decode(op, name, channels=channels)
        for op in ("DecodeWebP", "DecodeImage")
        for name in ("lossy.webp", "alpha.webp")
        for channels in (0, 1, 2, 3, 4)
    ),
    *(
        decode(op, name, **attrs)
        for name in ("lossy.webp", "alpha.webp")
        for op, attrs in (
            ("DecodeImage", {"expand_animations": False}), ("DecodeImage", {"dtype": np.uint16}),
            ("DecodeImage", {"dtype": np.float32}), ("DecodePng", {"dtype": np.uint16}),
        )
    ),
    *(
        decode(op, "alpha.webp")
        for op in ("DecodePng", "DecodeJpeg", "DecodeGif", "DecodeBmp")
    ),
    *(
        decode("DecodeWebP", name)
        for name in ("colour.png", "colour.jpg", "animated.gif", "colour.bmp")
    ),
    case("DecodeWebP", np.array(file("lossy.webp").item()[:60], object), message=True),
    *(
        decode("DecodeAndCropJpeg", name, crop_window)
        for name in ("lossy.webp", "colour.png", "full_chroma.jpg")
        for crop_window in ([1, 2, 3, 4],)
    ),
    *(
        decode("DecodeBmp", name, channels=channels)
        for name in BMPS
        for channels in (0, 1, 2, 3, 4)
    ),
    decode("DecodeGif", "animated.gif"),
    decode("DecodeGif", "colour.png"),
    *(
        decode("DecodeImage", "animated.gif", **attrs)
        for attrs in ({}, {"expand_animations": False}, {"channels": 1}, {"channels": 3})
    ),
    *(
        decode("DecodeImage", name, dtype=dtype)
        for name in ("colour.png", "grey_16_bit.png", "colour.bmp", "alpha.png", "animated.gif")
        for dtype in (np.uint8, np.uint16, np.float32)
    ),
    *(
        decode(op, name)
        for op in DECODERS
        for name in ("colour.png", "colour.bmp", "animated.gif")
    ),
    *(
        case(op, np.array(contents, object), message=True)
        for op in DECODERS
        for contents in (b"junk" * 10, b"", [b"a"])
    ),
    case("DecodePng", np.array(file("colour.png").item()[:60], object), message=True),
    case("DecodeJpeg", np.array(file("colour.jpg").item()[:600], object), message=True),
    case("DecodeBmp", np.array(file("colour.bmp").item()[:100], object), message=True),
    *(
        case("ExtractJpegShape", file(name), output_type=dtype)
        for name in ("colour.jpg", "grey.jpg")
        for dtype in (np.int32, np.int64)
    ),
    case("ExtractJpegShape", np.array(b"xx", object), message=True),
    *(
        case("DecodeAndCropJpeg", file("grey.jpg"), window, message=True, **ACCURATE)
        for window in ([1, 2, 8, 9], [1, 2, 80, 9], [1, 2, 8], [-1, 0, 3, 3])
    ),
    *(
        round_trip("EncodePng", PIXELS[..., :channels].astype(dtype) * factor, "DecodePng")
        for channels in (1, 3, 4)
        for dtype, factor in ((np.uint8, 1), (np.uint16, 255))
    ),
    round_trip("EncodePng", PIXELS[..., :3], "DecodePng", compression=9),
    *(
        case("EncodePng", image, message=True, **attrs)
        for image, attrs in (
            (PIXELS[0], {}), (np.repeat(PIXELS, 2, axis=2), {}), (PIXELS[:0], {}),
            (PIXELS, {"compression": 10}),
        )
    ),
    case("EncodePng", np.stack([PIXELS, PIXELS])[:0]),
    *(
        round_trip("EncodeJpeg", image, "DecodeJpeg", **attrs)
        for image in (SMOOTH, SMOOTH[..., :1])
        for attrs in ({}, {"quality": 50}, {"chroma_downsampling": False}, {"progressive": True})
    ),
    *(
        round_trip("EncodeJpegVariableQuality", SMOOTH[..., :depth], "DecodeJpeg", quality=70)
        for depth in (1, 3)
    ),
    *(
        case("EncodeJpeg", image, message=True, **attrs)
        for image, attrs in (
            (PIXELS[0], {}), (PIXELS, {}), (PIXELS[:0, :, :3], {}),
            (PIXELS[..., :3], {"quality": 101}), (PIXELS[..., :3], {"format": "grayscale"}),
            (PIXELS[..., :1], {"format": "rgb"}),
        )
    ),
    case("EncodeJpeg", PIXELS[:0, :, :3], format="grayscale", name="no_rows_of_other_channels",
         message=True),
    case("EncodeJpegVariableQuality", PIXELS[:0, :, :3], 50, name="no_rows_of_some_quality",
         message=True),
    *(
        case("EncodeJpegVariableQuality", PIXELS[..., :3], quality, message=True)
        for quality in (101, [50])
    ),
)  # fmt: skip
