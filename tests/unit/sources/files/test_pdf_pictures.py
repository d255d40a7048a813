"""Pictures of a PDF: their alternative texts, and what their EXIF says."""

from tests.office_samples import lines, numbered_objects, pdf
from tests.unit.sources.files.test_exif import LINE, photo

from conspectus.sources.files.pdf import read_pdf

CAPTION = lines("Figure 1: a bird.")


def tagged_pdf(image: bytes, alternative: str, *, figures: str = "[8 0 R]") -> bytes:
    """A page with a picture above its caption, whose structure has a figure."""
    drawn = b"/Figure <</MCID 0>> BDC q 200 0 0 100 50 600 cm /Im Do Q EMC " + CAPTION
    return numbered_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R /MarkInfo << /Marked true >> /StructTreeRoot 7 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 9 0 R /StructParents 0 "
            b"/Resources << /XObject << /Im 5 0 R >> /Font << /F1 6 0 R >> >> >>",
            b"<< /Title () >>",
            b"<< /Type /XObject /Subtype /Image /Width 60 /Height 40 /ColorSpace /DeviceRGB "
            b"/BitsPerComponent 8 /Filter /DCTDecode /Length %d >>\nstream\n%s\nendstream"
            % (len(image), image),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            f"<< /Type /StructTreeRoot /K {figures} /ParentTree 10 0 R >>".encode(),
            f"<< /Type /StructElem /S /Figure /P 7 0 R /Pg 3 0 R /K 0 /Alt ({alternative}) >>".encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
            b"<< /Nums [0 [8 0 R]] >>",
        ]
    )


def test_the_alternative_text_and_the_photo_follow_the_text_of_the_page() -> None:
    extract = read_pdf(tagged_pdf(photo(), "A grey bird"))
    assert extract.text == f"Figure 1: a bird.\n\n[Image: A grey bird]\n\n{LINE}"


def test_a_figure_without_alternative_text_is_nothing() -> None:
    assert read_pdf(tagged_pdf(b"", "")).text == "Figure 1: a bird."


def test_a_figure_that_stands_in_the_structure_many_times_is_read_once() -> None:
    extract = read_pdf(tagged_pdf(b"", "A grey bird", figures=f"[{'8 0 R ' * 50_000}]"))
    assert extract.text == "Figure 1: a bird.\n\n[Image: A grey bird]"


def test_a_pdf_without_structure_is_read_as_before() -> None:
    assert read_pdf(pdf(CAPTION)).text == "Figure 1: a bird."
