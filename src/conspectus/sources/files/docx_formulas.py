"""Formulas of DOCX in LaTeX."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from conspectus.sources.files.zip_xml import (
    find_child,
    local_name,
    val_attribute,
)

Write: TypeAlias = Callable[[Any], str]
_ESCAPED = str.maketrans({character: f"\\{character}" for character in "#$%&_{}"} | {"\\": r"\backslash "})
_NAMED = {
    "∑": r"\sum", "∏": r"\prod", "∫": r"\int", "√": r"\sqrt", "∞": r"\infty", "π": r"\pi",
    "\u03b1": r"\alpha", "β": r"\beta", "\u03b3": r"\gamma", "δ": r"\delta", "ε": r"\epsilon",
    "θ": r"\theta", "λ": r"\lambda", "μ": r"\mu", "\u03c3": r"\sigma", "φ": r"\phi", "ω": r"\omega",
    "Δ": r"\Delta", "Ω": r"\Omega", "±": r"\pm", "\u00d7": r"\times", "÷": r"\div", "≤": r"\leq",
    "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "→": r"\rightarrow", "∈": r"\in", "∂": r"\partial",
    "⋅": r"\cdot", "\u222a": r"\cup", "∩": r"\cap",
}  # fmt: skip
_FUNCTION_NAMES = """
sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp lim max min
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())


def latex(element: Any) -> str:
    """Return a formula, or a part of one, in LaTeX."""
    name = local_name(element)
    if name == "t":
        return _characters(element.text or "")
    if name in {"rPr", "ctrlPr", "sSubPr", "sSupPr", "fPr", "dPr", "naryPr", "radPr", "funcPr", "mPr"}:
        return ""
    return _WRITERS.get(name, _inside)(element)


def _inside(element: Any) -> str:
    return "".join(latex(part) for part in element)


def _part(element: Any, name: str) -> str:
    part = find_child(element, name)
    return "" if part is None else _inside(part).strip()


def _bounds(element: Any) -> str:
    low, high = _part(element, "sub"), _part(element, "sup")
    return (f"_{{{low}}}" if low else "") + (f"^{{{high}}}" if high else "")


def _root(element: Any) -> str:
    degree = _part(element, "deg")
    return rf"\sqrt{f'[{degree}]' if degree else ''}{{{_part(element, 'e')}}}"


def _large(element: Any) -> str:
    sign = val_attribute(element, "naryPr", "chr")
    return f"{_NAMED.get(sign or '∫', sign or '')}{_bounds(element)} {_part(element, 'e')}"


def _delimited(element: Any) -> str:
    opened, closed = val_attribute(element, "dPr", "begChr"), val_attribute(element, "dPr", "endChr")
    inner = ",".join(_inside(argument).strip() for argument in element if local_name(argument) == "e")
    left, right = "(" if opened is None else opened or ".", ")" if closed is None else closed or "."
    return rf"\left{left.translate(_ESCAPED)}{inner}\right{right.translate(_ESCAPED)}"


def _function(element: Any) -> str:
    name = _part(element, "fName")
    return ("\\" if name in _FUNCTIONS else "") + f"{name}({_part(element, 'e')})"


def _matrix(element: Any) -> str:
    rows = ([_inside(cell).strip() for cell in row] for row in element if local_name(row) == "mr")
    lines = " \\\\ ".join(" & ".join(row) for row in rows)
    return rf"\begin{{matrix}}{lines}\end{{matrix}}"


def _characters(text: str) -> str:
    return "".join(
        f"{_NAMED[character]} " if character in _NAMED else character.translate(_ESCAPED)
        for character in text
    )


def _scripted(element: Any) -> str:
    return _part(element, "e") + _bounds(element)


_WRITERS: Mapping[str, Write] = {
    "f": lambda ratio: rf"\frac{{{_part(ratio, 'num')}}}{{{_part(ratio, 'den')}}}", "sSup": _scripted,
    "sSub": _scripted, "sSubSup": _scripted, "rad": _root, "nary": _large, "d": _delimited,
    "func": _function, "m": _matrix,
}  # fmt: skip
