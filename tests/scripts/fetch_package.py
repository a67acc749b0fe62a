#!/usr/bin/env python3
"""Puts programs of a Debian package at <out>/bin, for tests against the real service; the shared libraries of further packages at <out>/lib.

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


def run(command, folder, **environment):
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, env={**os.environ, **environment})


def fetch(package, libraries, programs, starts, out, scratch):
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise Unavailable("this is no Debian or Ubuntu system (apt-get and dpkg are missing)")
    # apt's own unprivileged user cannot write into a folder of ours.
    options = ["-o", "APT::Sandbox::User=root"]
    packages = [package, *libraries]
    log = run(["apt-get", *options, "download", *packages], scratch)
    if log.returncode != 0:
        # The system's package lists are missing or old. Lists of our own need no root and leave the system alone.
        (scratch / "lists" / "partial").mkdir(parents=True)
        (scratch / "archives" / "partial").mkdir(parents=True)
        options += ["-o", f"Dir::State::lists={scratch.resolve()}/lists/", "-o", f"Dir::Cache={scratch.resolve()}/",
                    "-o", "Acquire::http::Timeout=10", "-o", "Acquire::Retries=1"]
        run(["apt-get", *options, "update"], scratch)
        again = run(["apt-get", *options, "download", *packages], scratch)
        if again.returncode != 0:
            raise Unavailable(f"apt-get download {package} failed:\n{log.stdout}{again.stdout}")
    files = sorted(scratch.glob("*.deb"))
    if len(files) != len(packages):
        raise Unavailable(f"apt-get left {len(files)} packages where {len(packages)} were expected")
    for file in files:
        unpacked = run(["dpkg", "-x", str(file.resolve()), str((scratch / "tree").resolve())], scratch)
        if unpacked.returncode != 0:
            raise Unavailable(f"dpkg -x {file.name} failed:\n{unpacked.stdout}")
    fresh, shared = scratch / "bin", scratch / "lib"
    fresh.mkdir()
    shared.mkdir()
    for program in programs:
        shutil.copy2(scratch / "tree" / program, fresh / Path(program).name)
    for library in sorted((scratch / "tree").glob("**/*.so*")) if libraries else []:
        # Links are followed: a library has the name that programs ask for.
        if library.exists():
            shutil.copy2(library, shared / library.name)
    started = run([str(fresh.resolve() / Path(programs[0]).name), starts], scratch, LD_LIBRARY_PATH=str(shared.resolve()))
    if started.returncode != 0:
        raise Unavailable(f"{package} does not start here:\n{started.stdout}")
    out.mkdir(parents=True, exist_ok=True)
    for folder in (fresh, shared):
        shutil.rmtree(out / folder.name, ignore_errors=True)
        shutil.move(folder, out / folder.name)
    print(f"{package} is at {out} ({', '.join(file.name for file in files)})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package")
    parser.add_argument("programs", nargs="+", help="paths in the package")
    parser.add_argument("--starts", default="-h", help="an argument with which the first program ends with success")
    parser.add_argument("--libraries", nargs="*", default=[], help="packages whose shared libraries the programs need")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if all((given.out / "bin" / Path(program).name).exists() for program in given.programs):
        return
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.out.parent) as scratch:
        try:
            fetch(given.package, given.libraries, given.programs, given.starts, given.out, Path(scratch))
        except Unavailable as why:
            message = f"fetch_package: {why}\nTests against the real {given.package} are LEFT OUT."
            if os.environ.get("PACKAGES_REQUIRED"):
                sys.exit(message)
            print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
