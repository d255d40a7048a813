"""Formulas of office documents as LaTeX."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from conspectus.sources.files.zip_xml import child, local, value

Write: TypeAlias = Callable[[Any], str]
_ESCAPED = str.maketrans({each: f"\\{each}" for each in "#$%&_{}"} | {"\\": r"\backslash "})
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
    """A formula, or a part of one."""
    name = local(element)
    if name == "t":
        return _characters(element.text or "")
    if name in {"rPr", "ctrlPr", "sSubPr", "sSupPr", "fPr", "dPr", "naryPr", "radPr", "funcPr", "mPr"}:
        return ""
    return _WRITERS.get(name, _inside)(element)


def _inside(element: Any) -> str:
    return "".join(latex(each) for each in element)


def _part(element: Any, name: str) -> str:
    found = child(element, name)
    return "" if found is None else _inside(found).strip()


def _fraction(element: Any) -> str:
    return rf"\frac{{{_part(element, 'num')}}}{{{_part(element, 'den')}}}"


def _raised(element: Any) -> str:
    return f"{_part(element, 'e')}^{{{_part(element, 'sup')}}}"


def _lowered(element: Any) -> str:
    return f"{_part(element, 'e')}_{{{_part(element, 'sub')}}}"


def _both(element: Any) -> str:
    return f"{_part(element, 'e')}_{{{_part(element, 'sub')}}}^{{{_part(element, 'sup')}}}"


def _root(element: Any) -> str:
    degree = _part(element, "deg")
    return rf"\sqrt{f'[{degree}]' if degree else ''}{{{_part(element, 'e')}}}"


def _large(element: Any) -> str:
    sign = value(element, "naryPr", "chr")
    low, high = _part(element, "sub"), _part(element, "sup")
    bounds = (f"_{{{low}}}" if low else "") + (f"^{{{high}}}" if high else "")
    return f"{_NAMED.get(sign or '∫', sign or '')}{bounds} {_part(element, 'e')}"


def _delimited(element: Any) -> str:
    opened, closed = value(element, "dPr", "begChr"), value(element, "dPr", "endChr")
    inner = ",".join(_inside(each).strip() for each in element if local(each) == "e")
    left, right = "(" if opened is None else opened or ".", ")" if closed is None else closed or "."
    return rf"\left{left.translate(_ESCAPED)}{inner}\right{right.translate(_ESCAPED)}"


def _function(element: Any) -> str:
    name = _part(element, "fName")
    return ("\\" if name in _FUNCTIONS else "") + f"{name}({_part(element, 'e')})"


def _matrix(element: Any) -> str:
    rows = ([_inside(cell).strip() for cell in row] for row in element if local(row) == "mr")
    lines = " \\\\ ".join(" & ".join(row) for row in rows)
    return rf"\begin{{matrix}}{lines}\end{{matrix}}"


def _characters(text: str) -> str:
    return "".join(f"{_NAMED[each]} " if each in _NAMED else each.translate(_ESCAPED) for each in text)


_WRITERS: Mapping[str, Write] = {
    "f": _fraction, "sSup": _raised, "sSub": _lowered, "sSubSup": _both, "rad": _root, "nary": _large,
    "d": _delimited, "func": _function, "m": _matrix,
}  # fmt: skip
