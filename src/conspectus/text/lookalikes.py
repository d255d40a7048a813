"""Letters that look like ASCII letters."""

import unicodedata

_LOOKALIKES = (
    ("\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u051b\u043e\u0440\u0455\u0443\u0445", "acdehijqopsyx"),
    (
        "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425",
        "ABCEHIJKMOPSTX",
    ),
    (
        "\u03b1\u03b9\u03bd\u03bf\u03c1\u03c5\u0391\u0392\u0395\u0397\u0399\u039a\u039c\u039d",
        "aivopuABEHIKMN",
    ),
    ("\u039f\u03a1\u03a4\u03a5\u03a7\u0396\u0131\u0261", "OPTYXZig"),
)
_STYLED = (range(0xFF01, 0xFF5F), range(0x1D400, 0x1D800), range(0x24B6, 0x24EA))


def _build_alphabets() -> dict[int, str]:
    """Return the letters that look like ASCII letters, each with the letter that it looks like."""
    table = {ord(odd): plain for odds, plains in _LOOKALIKES for odd, plain in zip(odds, plains, strict=True)}
    for code in (code for styled in _STYLED for code in styled):
        plain = unicodedata.normalize("NFKC", chr(code))
        if len(plain) == 1 and plain.isascii():
            table[code] = plain
    return table


LOOKALIKES = _build_alphabets()
