"""The picture of docs/report.md: the page of a study of examples/pictures.py, as Chromium shows it.

Needs Debian's chromium and chromium-driver, and selenium.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

import nestbo as nb
from nestbo.report import page

STORE = Path("demo/pictures/sphere.db")  # made by examples/pictures.py


def main(path: str = "report.png") -> None:
    with nb.Study.load(STORE) as study, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(page(study, name="polishing", facts={"budget": 40}), encoding="utf-8")
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
