"""The documents as a site: `make site` (Sphinx with MyST and the theme furo; its search works offline).

The pages lie in docs/ and stay readable there, so that their order stands here, and not in them.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

project = "iodock"
release = version = _PROJECT["version"]
copyright = "iodock's developers, Apache-2.0"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["README.md"]
myst_heading_anchors = 4
# Blocks of code name no language: most are shell sessions, logs, or C.
highlight_language = "none"
html_theme = "furo"
html_title = f"iodock {release}"
html_copy_source = False
html_show_sphinx = False
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/languages.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {"navigation_with_keys": True}

SECTIONS = {
    "en": (
        ("Tutorial", "tutorial"),
        ("Guide", "cases"),
        ("How-to", "how-to"),
        ("Reference", "reference"),
        ("Explanation", "explanation"),
        ("More", "decisions/index"),
        ("日本語", "ja"),
    ),
    "ja": (
        ("はじめに", "ja"),
        ("入門", "cases/ja"),
        ("手順（英語）", "how-to"),
        ("リファレンス（英語）", "reference"),
        ("解説（英語）", "explanation"),
        ("その他（英語）", "decisions/index"),
    ),
}
"""Language of the site -> (heading, folder or page) in the order of its sidebar."""

def contents(app, docname, source):
    """Puts the order of all pages into the first one, and what lies below a page into that page."""
    if docname == app.config.root_doc:
        for heading, place in SECTIONS[app.config.language]:
            source[0] += toctree(heading, pages(place), docname)
        others = "ja/index" if docname == "index" else "index"
        source[0] += toctree("", [others, "releases/*", *others_of(app.config.language)], docname)
    elif docname == "decisions/index":
        source[0] += toctree("", ["decisions/0*"], docname)


def others_of(language):
    """Pages that this language's sidebar does not list."""
    return ["cases/ja/*"] if language == "en" else ["tutorial/*", "cases/*"]


def pages(place):
    """A folder's own page comes first."""
    if not (ROOT / "docs" / place).is_dir():
        return [place]
    has_index = (ROOT / "docs" / place / "index.md").is_file()
    rest = sorted(path.stem for path in (ROOT / "docs" / place).glob("*.md") if path.stem != "index")
    return [f"{place}/index"] * has_index + [f"{place}/{name}" for name in rest]


def toctree(heading, patterns, docname):
    lines = ["", "```{toctree}", ":hidden:", ":glob:", ":maxdepth: 1"]
    lines += [f":caption: {heading}"] if heading else []
    lines += ["", *(f"/{one}" for one in patterns if one != docname), "```", ""]
    return "\n".join(lines)


def setup(app):
    app.connect("source-read", contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
