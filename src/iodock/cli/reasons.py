"""Explains in one line which back end records a program, and why this one was chosen."""

from __future__ import annotations

from iodock.shared.language import N_, Language

_REASONS = {
    "cheapest": N_("recorded by {backend}: the cheapest back end that sees this program's calls"),
    "machine": N_(
        "recorded by {backend}: the cheaper rewrite does not work on this machine (--backend rewrite "
        "says why)"
    ),
    "no-buffers": N_(
        "recorded by {backend}: the buffers of the cheaper rewrite can't be created (--backend rewrite "
        "says why)"
    ),
    "static": N_("recorded by {backend}: the program is static, so it can't load the recorder's library"),
    "go": N_(
        "recorded by {backend}: a Go program makes its calls itself and bypasses the recorder's library"
    ),
    "foreign": N_(
        "recorded by {backend}: the program is not built for x86-64, but the recorder's library is"
    ),
    "other-libc": N_(
        "recorded by {backend}: the program has its own C library, which the recorder does not support"
    ),
    "privileged": N_(
        "recorded by {backend}: the program gains privileges, so it can't load the recorder's library"
    ),
    "own-calls": N_(
        "recorded by {backend}: the program makes system calls without the C library, where "
        "rewrite would not see them"
    ),
    "no-libc": N_("recorded by {backend}: the program has no C library, and rewrite would not see its calls"),
    "running": N_("recorded by {backend}: the back end for programs that are already running"),
}
"""Maps `captured.why` of the manifest to its meaning. If the user chose the back end, no reason is given."""


def reason_of(backend: str, reason: str, text: Language) -> str | None:
    """Returns the text that explains why BACKEND was chosen. Returns None if the user chose it."""
    found = _REASONS.get(reason)
    return text.gettext(found, backend=backend) if found else None
