from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class Iodock(PythonPackage):
    """The I/O check-up for HPC: records a program's file I/O and says what is wrong, what it costs and what
    to change."""

    license("Apache-2.0", checked_by="iodock")

    # From a checkout: spack dev-build iodock@0.1.0
    version("0.1.0")

    variant("monitor", default=False, description="the collector of centres and its portal")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("py-maturin@1.16:1", type="build")
    # Catalogues of translations are compiled before the build.
    depends_on("py-babel", type="build")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-altair@6", type=("build", "run"))
    depends_on("py-click@8.1:", type=("build", "run"))
    depends_on("py-duckdb@2", type=("build", "run"))
    depends_on("py-pyarrow@18:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-vl-convert-python@1.9:1", type=("build", "run"))
    with when("+monitor"):
        depends_on("py-anyio@4:", type=("build", "run"))
        depends_on("py-h11@0.14:", type=("build", "run"))
        depends_on("py-jinja2@3.1:", type=("build", "run"))
        depends_on("py-prometheus-client@0.21:", type=("build", "run"))
        depends_on("py-starlette@1", type=("build", "run"))
        depends_on("py-uvicorn@0.54:", type=("build", "run"))

    requires("target=x86_64:", msg="programs are recorded on x86-64 only")
    requires("platform=linux", msg="programs are recorded on Linux only")

    @run_before("install")
    def translations(self):
        python("tools/messages.py", "--compile", extra_env={"PYTHONPATH": "src"})
