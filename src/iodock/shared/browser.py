"""Opens pages and addresses in the user's browser."""

from __future__ import annotations

import os


def open_in_browser(url: str) -> bool:
    """Starts a browser and returns whether this was possible. Without a graphical display it returns False,
    because Python would start a text browser and wait until the user closes it."""
    import webbrowser

    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        return False
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
