#!/usr/bin/env python3
"""Makes a virtual environment with the pinned schemathesis: what tests the admin API against its OpenAPI document.

Which versions of everything it needs are installed says requirements-schemathesis.txt beside this file.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements-schemathesis.txt")


def fail(message):
    sys.exit(f"fetch_schemathesis: {message}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".cache/schemathesis"))
    out = parser.parse_args().out
    wanted = REQUIREMENTS.read_text()
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
         "--no-deps", "--only-binary=:all:", "--requirement", REQUIREMENTS],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        fail(f"pip could not install {REQUIREMENTS}:\n{result.stdout}\n"
             "Check that this machine reaches its Python package index, and that there are wheels for its platform.")
    with tempfile.NamedTemporaryFile("w", dir=out, delete=False) as file:
        file.write(wanted)
    os.replace(file.name, stamp)
    print(f"schemathesis is at {out}")


if __name__ == "__main__":
    main()
