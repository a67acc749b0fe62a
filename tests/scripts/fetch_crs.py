#!/usr/bin/env python3
"""Puts an OWASP Core Rule Set at <out>: rules/*.conf, rules/*.data, crs-setup.conf, VERSION and SOURCE.

Where it comes from, first that works:
  1. CRS_DIR: a folder with rules/ and crs-setup.conf.example (or crs-setup.conf), taken as it is;
  2. the released archive of the pinned version, every file checked against crs-<version>.sha256 beside this file;
  3. Debian's package modsecurity-crs (a release of the 3.3 line), unpacked without being installed.

It says which one it took. What is there already is kept, unless CRS_DIR names another content or CRS_REFRESH=1 asks for
a new fetch. A fetch that fails half-way never replaces a good one.
"""

import argparse
import hashlib
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

VERSION = "4.28.0"
MANIFEST = Path(__file__).with_name(f"crs-{VERSION}.sha256")
RELEASE = f"https://github.com/coreruleset/coreruleset/archive/refs/tags/v{VERSION}.tar.gz"
CONNECT_SECONDS = 4
DOWNLOAD_SECONDS = 120
ARCHIVE_BYTES = 32 << 20
PACKAGE = "modsecurity-crs"
NAMED_VERSION = re.compile(rb"ver:'OWASP_CRS/(\d+\.\d+\.\d+)'")


class Unavailable(Exception):
    """This source cannot be had here; another one may."""


def fail(message):
    sys.exit(f"fetch_crs: {message}")


def manifest():
    pairs = (line.split(maxsplit=1) for line in MANIFEST.read_text().splitlines() if line.strip())
    return {name.strip(): digest for digest, name in pairs}


def version_of(rules):
    """The version that most rules name; single rules are known to carry an older one."""
    named = Counter()
    for path in rules.glob("*.conf"):
        named.update(NAMED_VERSION.findall(path.read_bytes()))
    if named:
        return named.most_common(1)[0][0].decode()
    raise Unavailable(f"no rule file in {rules} names its version (OWASP_CRS/x.y.z)")


def fingerprint(folder):
    digest = hashlib.sha256()
    for path in sorted((folder / "rules").iterdir()) + [folder / "crs-setup.conf"]:
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def collect(rules, setup, fresh):
    """Copies one rule set into place: what is active, not the examples that a user may fill in."""
    if not setup.is_file():
        raise Unavailable(f"{setup} is missing")
    (fresh / "rules").mkdir(parents=True)
    for path in sorted(rules.iterdir()):
        # A packaged set may link to local exclusion files that only an installation has.
        if path.suffix in (".conf", ".data") and path.is_file():
            shutil.copyfile(path, fresh / "rules" / path.name)
    shutil.copyfile(setup, fresh / "crs-setup.conf")
    shutil.copyfile(setup, fresh / "crs-setup.conf.example")
    (fresh / "VERSION").write_text(version_of(fresh / "rules") + "\n")


def from_folder(folder, fresh):
    setup = next((folder / name for name in ("crs-setup.conf", "crs-setup.conf.example") if (folder / name).is_file()), None)
    if setup is None or not (folder / "rules").is_dir():
        fail(f"CRS_DIR={folder} has no rules/ with crs-setup.conf.example beside it")
    collect(folder / "rules", setup, fresh)
    return f"the folder {folder}"


def connectable(host, port):
    """Whether a connection opens within a few seconds; name resolution may hang much longer than a socket's timeout."""
    outcome = []

    def attempt():
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
            outcome.append(None)
        except OSError as error:
            outcome.append(error)

    worker = threading.Thread(target=attempt, daemon=True)
    worker.start()
    worker.join(CONNECT_SECONDS)
    if not outcome:
        raise Unavailable(f"{host} did not answer within {CONNECT_SECONDS} s")
    if outcome[0] is not None:
        raise Unavailable(f"{host} cannot be reached: {outcome[0]}")


def from_release(fresh, scratch):
    url = os.environ.get("CRS_URL") or RELEASE
    # Behind a proxy only the proxy can be reached directly: urllib asks it.
    if not urllib.request.getproxies().get("https") and url == RELEASE:
        connectable("github.com", 443)
    deadline = time.monotonic() + DOWNLOAD_SECONDS
    archive = bytearray()
    try:
        with urllib.request.urlopen(url, timeout=CONNECT_SECONDS) as answer:
            while block := answer.read(1 << 16):
                archive += block
                if len(archive) > ARCHIVE_BYTES:
                    raise Unavailable(f"{url} sends more than {ARCHIVE_BYTES} bytes")
                if time.monotonic() > deadline:
                    raise Unavailable(f"{url} is not done after {DOWNLOAD_SECONDS} s")
    except (OSError, urllib.error.URLError) as error:
        raise Unavailable(f"{url}: {error}") from error
    wanted = manifest()
    found = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(bytes(archive)), mode="r:gz") as tar:
            for member in tar:
                name = member.name.partition("/")[2]
                if name in wanted and member.isfile():
                    found[name] = tar.extractfile(member).read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise Unavailable(f"{url} is no readable archive: {error}") from error
    for name, digest in wanted.items():
        if name not in found:
            fail(f"{url} has no file {name}, which {MANIFEST.name} lists; nothing was installed")
        if hashlib.sha256(found[name]).hexdigest() != digest:
            fail(f"{name} of {url} does not have the SHA-256 that {MANIFEST.name} lists; nothing was installed")
    for name, data in found.items():
        path = scratch / "release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    collect(scratch / "release" / "rules", scratch / "release" / "crs-setup.conf.example", fresh)
    return f"the released archive {url}"


def run(command, folder):
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def from_debian(fresh, scratch):
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise Unavailable("this is no Debian or Ubuntu system (apt-get and dpkg are missing)")
    # apt's own unprivileged user cannot write into a folder of ours.
    options = ["-o", "APT::Sandbox::User=root"]
    log = run(["apt-get", *options, "download", PACKAGE], scratch)
    if log.returncode != 0:
        # The system's package lists are missing or old. Lists of our own need no root and leave the system alone.
        lists = scratch / "lists"
        (lists / "partial").mkdir(parents=True)
        (scratch / "archives" / "partial").mkdir(parents=True)
        options += ["-o", f"Dir::State::lists={lists.resolve()}/", "-o", f"Dir::Cache={scratch.resolve()}/",
                    "-o", "Acquire::http::Timeout=10", "-o", "Acquire::Retries=1"]
        run(["apt-get", *options, "update"], scratch)
        again = run(["apt-get", *options, "download", PACKAGE], scratch)
        if again.returncode != 0:
            raise Unavailable(f"apt-get download {PACKAGE} failed:\n{log.stdout}{again.stdout}"
                              "run `apt-get update` as root, then `make crs` again")
    packages = sorted(scratch.glob("*.deb"))
    if len(packages) != 1:
        raise Unavailable(f"apt-get left {len(packages)} packages where one was expected")
    tree = scratch / "tree"
    unpacked = run(["dpkg", "-x", str(packages[0].resolve()), str(tree.resolve())], scratch)
    if unpacked.returncode != 0:
        raise Unavailable(f"dpkg -x {packages[0].name} failed:\n{unpacked.stdout}")
    collect(tree / "usr/share/modsecurity-crs/rules", tree / "etc/modsecurity/crs/crs-setup.conf", fresh)
    return f"Debian's package {packages[0].name}"


def fetch(arguments, folder, fresh, scratch):
    if folder is not None:
        return from_folder(folder, fresh)
    sources = {"release": from_release, "debian": from_debian}
    names = ["release", "debian"] if arguments.source == "any" else [arguments.source]
    refusals = []
    for name in names:
        shutil.rmtree(fresh, ignore_errors=True)
        place = scratch / name
        place.mkdir()
        try:
            return sources[name](fresh, place)
        except Unavailable as refusal:
            print(f"fetch_crs: {name}: {refusal}", file=sys.stderr)
            refusals.append(str(refusal))
    fail("no Core Rule Set could be had. Give a folder with CRS_DIR=<folder with rules/ and crs-setup.conf.example>.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".cache/crs"))
    parser.add_argument("--source", choices=["any", "release", "debian"], default="any")
    arguments = parser.parse_args()
    out = arguments.out
    folder = None
    if arguments.source == "any" and os.environ.get("CRS_DIR"):
        folder = Path(os.environ["CRS_DIR"])
        if not folder.is_dir():
            fail(f"CRS_DIR={folder} is no folder")
        folder = folder.resolve()
    present = all((out / name).is_file() for name in ("VERSION", "SOURCE", "crs-setup.conf"))
    if present and folder is None and os.environ.get("CRS_REFRESH") != "1":
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="crs-", dir=out.parent) as temporary:
        scratch = Path(temporary)
        fresh = scratch / "fresh"
        source = fetch(arguments, folder, fresh, scratch)
        if present and fingerprint(out) == fingerprint(fresh):
            return
        (fresh / "SOURCE").write_text(source + "\n")
        if out.exists():
            os.rename(out, scratch / "old")
        os.rename(fresh, out)
    version = (out / "VERSION").read_text().strip()
    print(f"Core Rule Set {version} is at {out}, from {source}")


if __name__ == "__main__":
    main()
