"""Programs whose work is what a rule would take for a fault: known by their names."""

from __future__ import annotations

# They go through many files one by one because that is what they were asked to do.
_WALKERS = (
    r"git(-[a-z-]+)?|hg|svn|tar|bsdtar|gtar|cpio|rsync|cp|mv|rm|ln|install|find|fd|grep|egrep|rg|ls|du|chmod"
    r"|chown|touch|zip|unzip|updatedb|diff|sha[0-9]*sum|md5sum|b2sum|cksum|ctags|wc|file|stat|cat|head|tail"
)
# They search folders for what a source text names, and start helpers that really work.
_BUILDERS = (
    r"cc|c\+\+|cc1|cc1plus|cc1obj|f951|as|ld|ld\.[a-z]+|collect2|lto1|lto-wrapper|ar|ranlib|nm|strip|cpp"
    r"|([a-z0-9_]+-)*(gcc|g\+\+|gfortran|clang|clang\+\+|flang)(-[0-9.]+)?|rustc|cargo|go|compile|link"
    r"|javac|javadoc|ifort|ifx|icc|icx|nvcc|frt|fcc|make|gmake|ninja|cmake|ctest|meson|mpicc|mpif90|mpic\+\+"
    r"|opal_wrapper|swiftc|ghc|ocamlopt|tsc|ccache|distcc|libtool"
)


def walks(program: str) -> str:
    """SQL condition: PROGRAM, a path, is of a tool that goes through files one by one."""
    return f"coalesce(regexp_matches({program}, '(^|/)({_WALKERS})$'), false)"


def builds(program: str) -> str:
    """SQL condition: PROGRAM, a path, is of a compiler or a build tool."""
    return f"coalesce(regexp_matches({program}, '(^|/)({_BUILDERS})$'), false)"


def is_tool(program: str) -> str:
    """SQL condition: either of both."""
    return f"({walks(program)} OR {builds(program)})"


def is_one_of_many(sibling: str) -> str:
    """SQL condition: SIBLING, an alias of `siblings`, is a short process of which there are many alike: what
    it looks for when it starts is told by `process-storm`."""
    return f"coalesce({sibling}.alike >= 50 AND {sibling}.median_ns <= 100000000, false)"
