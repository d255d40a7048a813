"""The compiled kernels, and wheels that are tagged by whether they hold them, with the same bytes each time.

Without a compiler the package is installed without them, and NumPy and Python do the same.
"""

from pathlib import Path
from zipfile import ZipFile

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

KERNELS = [
    Extension(
        f"conspectus.{name.replace('/', '.')}",
        [f"src/conspectus/{name}.c"],
        extra_compile_args=["-O3", "-g0", "-ffp-contract=off"],
        py_limited_api=True,
        optional=True,
    )
    for name in ("index/segments/_kernels", "providers/_token_counts")
]


class TaggedWheel(bdist_wheel):
    """A wheel for one platform, or for every platform where no compiler was found."""

    def run(self) -> None:
        """Compile first, as the tag depends on it."""
        self.run_command("build_ext")
        compiled = self.get_finalized_command("build_ext").get_outputs()
        if not any(Path(each).exists() for each in compiled):
            self.distribution.ext_modules = []
            self.root_is_pure = True
        super().run()
        for _, _, wheel in self.distribution.dist_files:
            if wheel.endswith(".whl"):
                set_permissions(Path(wheel))


def set_permissions(wheel: Path) -> None:
    """Give every file the same permissions: those of the sources depend on who checked them out."""
    rewritten = wheel.with_suffix(".new")
    with ZipFile(wheel) as old, ZipFile(rewritten, "w") as new:
        for entry in old.infolist():
            entry.external_attr = 0o100644 << 16
            new.writestr(entry, old.read(entry), entry.compress_type)
    rewritten.replace(wheel)


setup(
    ext_modules=KERNELS,
    cmdclass={"bdist_wheel": TaggedWheel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
