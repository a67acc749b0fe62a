#!/usr/bin/env bash
# Prints the test runner's filter for the crates with files that differ from the commit BASE (those not added yet included), and
# for the crates that use them; nothing where no crate has changed. A change of the workspace's settings is one of every crate.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
base=${BASE:-HEAD}
packages=()
while IFS= read -r -d '' file; do
  case $file in
    Cargo.toml | Cargo.lock | clippy.toml | rust-toolchain* | .cargo/*) echo 'all()'; exit ;;
  esac
  folder=$(dirname "$file")
  until [ "$folder" = . ] || [ -e "$folder/Cargo.toml" ]; do folder=$(dirname "$folder"); done
  # Texts, settings and crates of other workspaces have no unit tests here.
  if [ "$folder" = . ] || grep -q '^\[workspace\]' "$folder/Cargo.toml"; then continue; fi
  packages+=("$(sed -n 's/^name = "\(.*\)"$/\1/p' "$folder/Cargo.toml" | head -n 1)")
done < <(git diff -z --name-only "$base"; git ls-files -z --others --exclude-standard)
[ ${#packages[@]} -gt 0 ] || exit 0
printf '%s\n' "${packages[@]}" | sort -u | sed 's/.*/rdeps(=&)/' | paste -sd '|' -
