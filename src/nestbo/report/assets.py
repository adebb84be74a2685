"""The style and the scripts inside a page, and what lets a browser obey these and no others."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Asset:
    """A style or a script."""

    text: str

    @property
    def hash(self) -> str:
        """What the content security policy of the page allows it by."""
        return "sha256-" + base64.b64encode(hashlib.sha256(self.text.encode()).digest()).decode()


@dataclass(frozen=True)
class Assets:
    """What a page carries: its own style and script, and Plotly with the style that Plotly would add by itself."""

    style: Asset
    chart_style: Asset
    script: Asset
    library: Asset

    @classmethod
    @cache
    def read(cls) -> Assets:
        """From the files of the package."""
        return cls(
            _read("page.css"), _read("charts.css"), _read("page.js", "charts.js"), _read("vendor/plotly-basic.min.js")
        )


def _read(*files: str) -> Asset:
    folder = resources.files("nestbo.report")
    return Asset("".join(folder.joinpath(file).read_text(encoding="utf-8") for file in files))
