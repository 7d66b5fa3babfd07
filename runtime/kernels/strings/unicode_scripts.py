"""UnicodeScript: the script of each code point, as ICU's number (UScriptCode).

RE2 recognises scripts by name; the table below gives ICU's number for each name. A code point has
the script number `_UNKNOWN` if it is a surrogate or if RE2 finds no script of the table for it.

TF: tensorflow/core/kernels/unicode_script_op.cc
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import re2

from runtime.framework.op_kernel import KernelDef

_NO_CODE_POINT, _UNKNOWN, _UNCLASSIFIED = -1, 103, -2
_CODE_POINTS = 0x110000
_SURROGATES = range(0xD800, 0xE000)
# ICU: uscript.h (UScriptCode)
_SCRIPTS = {
    "Adlam": 167, "Ahom": 161, "Anatolian_Hieroglyphs": 156, "Arabic": 2, "Armenian": 3,
    "Avestan": 117, "Balinese": 62, "Bamum": 130, "Bassa_Vah": 134, "Batak": 63, "Bengali": 4,
    "Bhaiksuki": 168, "Bopomofo": 5, "Brahmi": 65, "Braille": 46, "Buginese": 55, "Buhid": 44,
    "Canadian_Aboriginal": 40, "Carian": 104, "Caucasian_Albanian": 159, "Chakma": 118,
    "Cham": 66, "Cherokee": 6, "Chorasmian": 189, "Common": 0, "Coptic": 7, "Cuneiform": 101,
    "Cypriot": 47, "Cyrillic": 8, "Deseret": 9, "Devanagari": 10, "Dives_Akuru": 190,
    "Dogra": 178, "Duployan": 135, "Egyptian_Hieroglyphs": 71, "Elbasan": 136, "Elymaic": 185,
    "Ethiopic": 11, "Georgian": 12, "Glagolitic": 56, "Gothic": 13, "Grantha": 137, "Greek": 14,
    "Gujarati": 15, "Gunjala_Gondi": 179, "Gurmukhi": 16, "Han": 17, "Hangul": 18,
    "Hanifi_Rohingya": 182, "Hanunoo": 43, "Hatran": 162, "Hebrew": 19, "Hiragana": 20,
    "Imperial_Aramaic": 116, "Inherited": 1, "Inscriptional_Pahlavi": 122,
    "Inscriptional_Parthian": 125, "Javanese": 78, "Kaithi": 120, "Kannada": 21, "Katakana": 22,
    "Kayah_Li": 79, "Kharoshthi": 57, "Khitan_Small_Script": 191, "Khmer": 23, "Khojki": 157,
    "Khudawadi": 145, "Lao": 24, "Latin": 25, "Lepcha": 82, "Limbu": 48, "Linear_A": 83,
    "Linear_B": 49, "Lisu": 131, "Lycian": 107, "Lydian": 108, "Mahajani": 160, "Makasar": 180,
    "Malayalam": 26, "Mandaic": 84, "Manichaean": 121, "Marchen": 169, "Masaram_Gondi": 175,
    "Medefaidrin": 181, "Meetei_Mayek": 115, "Mende_Kikakui": 140, "Meroitic_Cursive": 141,
    "Meroitic_Hieroglyphs": 86, "Miao": 92, "Modi": 163, "Mongolian": 27, "Mro": 149,
    "Multani": 164, "Myanmar": 28, "Nabataean": 143, "Nandinagari": 187, "New_Tai_Lue": 59,
    "Newa": 170, "Nko": 87, "Nushu": 150, "Nyiakeng_Puachue_Hmong": 186, "Ogham": 29,
    "Ol_Chiki": 109, "Old_Hungarian": 76, "Old_Italic": 30, "Old_North_Arabian": 142,
    "Old_Permic": 89, "Old_Persian": 61, "Old_Sogdian": 184, "Old_South_Arabian": 133,
    "Old_Turkic": 88, "Oriya": 31, "Osage": 171, "Osmanya": 50, "Pahawh_Hmong": 75,
    "Palmyrene": 144, "Pau_Cin_Hau": 165, "Phags_Pa": 90, "Phoenician": 91,
    "Psalter_Pahlavi": 123, "Rejang": 110, "Runic": 32, "Samaritan": 126, "Saurashtra": 111,
    "Sharada": 151, "Shavian": 51, "Siddham": 166, "SignWriting": 112, "Sinhala": 33,
    "Sogdian": 183, "Sora_Sompeng": 152, "Soyombo": 176, "Sundanese": 113, "Syloti_Nagri": 58,
    "Syriac": 34, "Tagalog": 42, "Tagbanwa": 45, "Tai_Le": 52, "Tai_Tham": 106, "Tai_Viet": 127,
    "Takri": 153, "Tamil": 35, "Tangut": 154, "Telugu": 36, "Thaana": 37, "Thai": 38,
    "Tibetan": 39, "Tifinagh": 60, "Tirhuta": 158, "Ugaritic": 53, "Vai": 99, "Wancho": 188,
    "Warang_Citi": 146, "Yezidi": 192, "Yi": 41, "Zanabazar_Square": 177,
}  # fmt: skip


@functools.cache
def _script_cache() -> np.ndarray:
    """Return the cache of each code point's script number, int16 [_CODE_POINTS].

    An entry is `_UNCLASSIFIED` until `_classify` writes it.
    """
    known = np.full(_CODE_POINTS, _UNCLASSIFIED, np.int16)
    known[_SURROGATES.start : _SURROGATES.stop] = _UNKNOWN
    return known


@functools.cache
def _pattern(script: str) -> Any:  # re2 has no type stubs
    return re2.compile(rf"\p{{{script}}}")


def _classify(known: np.ndarray, points: np.ndarray) -> None:
    """Find the scripts of the code points `points`, and write them into the cache `known`."""
    text = "".join(map(chr, points.tolist()))
    known[points] = _UNKNOWN
    for script, number in _SCRIPTS.items():
        found = _pattern(script).findall(text)
        known[[ord(each) for each in found]] = number
        if found:
            text = "".join(each for each in text if known[ord(each)] == _UNKNOWN)


def unicode_script(input: np.ndarray) -> np.ndarray:
    """UnicodeScript: return the script number of each code point; −1 if it is not a code point."""
    points = np.asarray(input)
    inside = (points >= 0) & (points < _CODE_POINTS)
    places = np.where(inside, points, 0)
    known = _script_cache()
    new = np.unique(places[known[places] == _UNCLASSIFIED])
    if len(new):
        _classify(known, new)
    return np.where(inside, known[places], _NO_CODE_POINT).astype(np.int32)


KERNELS = (KernelDef("UnicodeScript", unicode_script),)
