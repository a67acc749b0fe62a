#!/usr/bin/env python3
"""Puts programs of a Debian package at <out>/bin, for tests against the real service.

The package is downloaded and unpacked, not installed: nothing of it is started but with `--starts`, and no root is needed. Where it
cannot be had, this says so and ends with success: the tests that need it say that they are left out. PACKAGES_REQUIRED=1 makes that a
failure.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class Unavailable(Exception):
    """The package cannot be had here."""


def run(command, folder):
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def fetch(package, programs, starts, out, scratch):
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise Unavailable("this is no Debian or Ubuntu system (apt-get and dpkg are missing)")
    # apt's own unprivileged user cannot write into a folder of ours.
    options = ["-o", "APT::Sandbox::User=root"]
    log = run(["apt-get", *options, "download", package], scratch)
    if log.returncode != 0:
        # The system's package lists are missing or old. Lists of our own need no root and leave the system alone.
        (scratch / "lists" / "partial").mkdir(parents=True)
        (scratch / "archives" / "partial").mkdir(parents=True)
        options += ["-o", f"Dir::State::lists={scratch.resolve()}/lists/", "-o", f"Dir::Cache={scratch.resolve()}/",
                    "-o", "Acquire::http::Timeout=10", "-o", "Acquire::Retries=1"]
        run(["apt-get", *options, "update"], scratch)
        again = run(["apt-get", *options, "download", package], scratch)
        if again.returncode != 0:
            raise Unavailable(f"apt-get download {package} failed:\n{log.stdout}{again.stdout}")
    packages = sorted(scratch.glob("*.deb"))
    if len(packages) != 1:
        raise Unavailable(f"apt-get left {len(packages)} packages where one was expected")
    unpacked = run(["dpkg", "-x", str(packages[0].resolve()), str((scratch / "tree").resolve())], scratch)
    if unpacked.returncode != 0:
        raise Unavailable(f"dpkg -x {packages[0].name} failed:\n{unpacked.stdout}")
    fresh = scratch / "bin"
    fresh.mkdir()
    for program in programs:
        shutil.copy2(scratch / "tree" / program, fresh / Path(program).name)
    started = run([str(fresh.resolve() / Path(programs[0]).name), starts], scratch)
    if started.returncode != 0:
        raise Unavailable(f"{package} does not start here:\n{started.stdout}")
    out.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(out / "bin", ignore_errors=True)
    shutil.move(fresh, out / "bin")
    print(f"{package} is at {out} ({packages[0].name})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package")
    parser.add_argument("programs", nargs="+", help="paths in the package")
    parser.add_argument("--starts", default="-h", help="an argument with which the first program ends with success")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if all((given.out / "bin" / Path(program).name).exists() for program in given.programs):
        return
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.out.parent) as scratch:
        try:
            fetch(given.package, given.programs, given.starts, given.out, Path(scratch))
        except Unavailable as why:
            message = f"fetch_package: {why}\nTests against the real {given.package} are LEFT OUT."
            if os.environ.get("PACKAGES_REQUIRED"):
                sys.exit(message)
            print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
