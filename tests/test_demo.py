"""The transcript in the README is what `make demo` prints.

`python -m tests.test_demo` writes it anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.console import commands
from tests.depth import IS_TORTURE

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- demo: begin -->\n\n```text\n", "```\n\n<!-- demo: end -->"

# What differs from run to run: ids, times, and how many pieces the cores of a machine make.
VOLATILE = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", "01…"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>"),
    (r"\d+ fragments → \d+", "… fragments → …"),
)


def transcript(*, is_installed: bool = True) -> str:
    """What the demo prints on a machine that is set up; quicker without the installed command."""
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    if not is_installed:
        folders.insert(0, str(commands()))
    done = subprocess.run(
        ["bash", str(ROOT / "examples" / "demo.sh")],
        env={**os.environ, "PATH": os.pathsep.join(folders)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:]
    text = done.stdout
    for pattern, shown in VOLATILE:
        text = re.sub(pattern, shown, text)
    return text.strip() + "\n"


@pytest.mark.xdist_group("demo")  # one long run, which is to start early
@pytest.mark.timeout(900)
def test_the_demo_prints_what_the_readme_shows() -> None:
    shown = README.read_text().split(BEGIN)[1].split(END)[0]

    assert transcript(is_installed=IS_TORTURE) == shown


if __name__ == "__main__":
    before, _, rest = README.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    README.write_text(before + BEGIN + transcript() + END + after)
