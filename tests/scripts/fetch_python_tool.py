#!/usr/bin/env python3
"""Makes a virtual environment of pinned packages for a tool of the developers.

The packages of the tool NAME are those of requirements-NAME.txt beside this file. Nothing that is shipped needs them.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path


def fail(message):
    sys.exit(f"fetch_python_tool: {message}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--out", type=Path, help="default: .cache/NAME")
    arguments = parser.parse_args()
    out = arguments.out or Path(".cache") / arguments.name
    requirements = Path(__file__).with_name(f"requirements-{arguments.name}.txt")
    wanted = requirements.read_text()
    stamp = out / "REQUIREMENTS"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    # A virtual environment holds its own path: it is made where it stays, and counts once the stamp is there.
    shutil.rmtree(out, ignore_errors=True)
    try:
        venv.create(out, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        fail(f"no virtual environment could be made ({error}).\n"
             "Install its module (Debian, Ubuntu: apt-get install python3-venv) and try again.")
    result = subprocess.run(
        [out / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
         "--no-deps", "--only-binary=:all:", "--requirement", requirements],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        fail(f"pip could not install {requirements}:\n{result.stdout}\n"
             "Check that this machine reaches its Python package index, and that there are wheels for its platform.")
    with tempfile.NamedTemporaryFile("w", dir=out, delete=False) as file:
        file.write(wanted)
    os.replace(file.name, stamp)
    print(f"{arguments.name} is at {out}")


if __name__ == "__main__":
    main()
