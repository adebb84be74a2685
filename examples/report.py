"""The picture of docs/report.md: the report of a study with six parameters, as Chromium shows it.

Needs Debian's chromium and chromium-driver, and selenium.
"""

import math
import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

import nestbo as nb
from nestbo.report import page

SPACE = nb.Product(
    direction=nb.Sphere(2),  # along which a tool presses
    force=nb.Box(0, 40),
    passes=nb.Integer(1, 8),
    tool=nb.Choice("soft", "hard", "vacuum"),
    rate=nb.Box(1e-6, 1, scale="log"),
    wrist=nb.Quaternion(),
)
BUDGET = 20


def scratches(direction, force, passes, tool, rate, wrist):
    """A stand-in for a day in the lab."""
    wear = {"soft": 0.0, "hard": 0.3, "vacuum": 0.1}[tool]
    tilt = 1 - direction[2] + 1 - wrist[0] ** 2
    return tilt + (force - 12) ** 2 / 400 + abs(passes - 3) / 8 + abs(math.log10(rate) + 3) / 6 + wear


def main(path: str = "report.png") -> None:
    study = nb.Study(SPACE, seed=0)
    study.run(scratches, BUDGET)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(page(study, name="lab", facts={"budget": 30}), encoding="utf-8")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1000,1500"):
            options.add_argument(argument)
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        browser.get(file.as_uri())
        browser.save_screenshot(path)
        browser.quit()
    print(f"Wrote {path}.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
