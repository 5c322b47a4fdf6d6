"""Formats a digest as text, which a script can add to the end of a job's output."""

from __future__ import annotations

from iodock.centre.views.digest_words import headline, lines, title
from iodock.centre.watch.digest import Digest
from iodock.shared.language import Language
from iodock.shared.text import visible


def digest_text(digest: Digest, text: Language) -> str:
    """Formats a digest as text that ends with a line break. Control characters in names are escaped, so that
    a name can't move the cursor or begin a line."""
    said = headline(digest, text)
    head = (
        text.gettext("{title}: {what}", title=title(digest, text), what=said) if said else title(digest, text)
    )
    synthetic = [text.gettext("(synthetic)")] if digest.is_synthetic else []
    body = [
        text.gettext("{label}: {sentence}", label=label, sentence=what) for label, what in lines(digest, text)
    ]
    return f"iodock: {visible(' '.join([head, *synthetic]))}\n" + "".join(
        f"  {visible(line)}\n" for line in body
    )
