"""Tests that the commands that advice mentions exist."""

from __future__ import annotations

import re

import click

from iodock.cli import application
from iodock.program import rules

SHOWN = re.compile(r"\(iodock ([a-z]+) ([a-z]+)((?: --?[a-z]+[^ ;:)]*| [a-z,]+)*)")


def test_analyses_and_options_named_in_advice_exist() -> None:
    assert SHOWN.search("(iodock show calls --by file)")
    seen = 0
    for one in (advice.message.text for rule in rules.every() for advice in rule.advice):
        for first, second, rest in SHOWN.findall(one):
            context = click.Context(main := application())
            group = main.get_command(context, first)
            assert isinstance(group, click.Group), one
            command = group.get_command(click.Context(group), second)
            assert command is not None, one
            options = {name for it in command.params for name in it.opts}
            assert set(re.findall(r"--[a-z-]+", rest)) <= options, one
            seen += 1
    assert seen
