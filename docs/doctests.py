"""Examples in docstrings, as code on the page: an extension of griffe, which reads docstrings for mkdocstrings."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^[ ]*>>>.*\n?(?:^(?![ ]*$).*\n?)*)+", re.MULTILINE)


class Doctests(griffe.Extension):
    """Fences around prompts and what follows them."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring before it is parsed."""
        if obj.docstring is not None and ">>>" in obj.docstring.value:
            obj.docstring.value = _EXAMPLE.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", obj.docstring.value
            )
