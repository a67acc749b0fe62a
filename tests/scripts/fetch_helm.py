#!/usr/bin/env python3
"""Puts Helm at <out>: its library behind Python functions, from the wheel of PyPI's `helm-python-sdk` (Helm 4.2.3).

The wheel is checked against helm.sha256 beside this file. What is there and came from it is kept; a fetch that fails half-way
never replaces it. For platforms without a wheel, <out>/MISSING says so: the tests that render the chart are skipped there.
"""

import argparse
import platform
import sys
import tempfile
import zipfile
from pathlib import Path

from fetch_envoy import checked, download, put

VERSION = "0.2.2"
SUMS = Path(__file__).with_name("helm.sha256")
LIBRARY = "helm_python/lib/libhelm_c.so"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".cache/helm"))
    out = parser.parse_args().out
    stamp = out / "SUMS"
    if stamp.is_file() and stamp.read_text() == SUMS.read_text():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="helm-", dir=out.parent) as temporary:
        folder = Path(temporary)
        fresh = folder / "fresh"
        fresh.mkdir()
        if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
            wheel = download(folder / "wheel", f"helm-python-sdk=={VERSION}")
            checked(wheel, SUMS)
            with zipfile.ZipFile(wheel) as archive:
                # The library is in the wheel under three names.
                names = [name for name in archive.namelist() if name.endswith((".py", "/LICENSE", "/NOTICE")) or name == LIBRARY]
                archive.extractall(fresh, names)
        else:
            (fresh / "MISSING").write_text(f"there is no wheel of Helm for {platform.system()} on {platform.machine()}\n")
            print((fresh / "MISSING").read_text(), end="", file=sys.stderr)
        (fresh / "SUMS").write_text(SUMS.read_text())
        put(fresh, out, folder)
    print(f"Helm is at {out}")


if __name__ == "__main__":
    main()
