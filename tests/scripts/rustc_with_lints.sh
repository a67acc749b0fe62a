#!/usr/bin/env bash
# Compiles a crate of the workspace, then runs clippy and rustdoc over it, warnings denied. As `RUSTC_WORKSPACE_WRAPPER` it gives a
# build the lints of `make check` without compiling all dependencies a second time. A library is read by clippy as its unit tests are
# built, which holds the same code: before that, the compiler's own warnings are denied. LINTED_CRATES: the names of the only crates
# that are looked at.
set -euo pipefail

rustc=$1
shift
denied=''
case " $* " in *' --test '*) ;; *' --crate-type lib '*) denied='-Dwarnings' ;; esac
"$rustc" "$@" $denied

crate='' documented=true private='' lints=() docs=() skip=''
for argument in "$@"; do
  case "$skip" in
    emit | output) skip=''; continue ;;
    type)
      skip=''
      case "$argument" in lib) ;; bin) private=--document-private-items ;; *) documented=false ;; esac
      ;;
    name) skip=''; crate=$argument ;;
    codegen)
      skip=''
      case "$argument" in incremental=* | linker*) continue ;; esac
      lints+=(-C "$argument")
      docs+=(-C "$argument")
      continue
      ;;
  esac
  case "$argument" in
    # Questions about the compiler.
    -vV | --version | --print=* | --print | -) exit 0 ;;
    --emit=* | --out-dir=* | -Cincremental=*) continue ;;
    --emit) skip=emit; continue ;;
    --out-dir | -o) skip=output; continue ;;
    -C) skip=codegen; continue ;;
    --test | examples/*.rs | */examples/*.rs) documented=false ;;
    --crate-type) skip=type; lints+=("$argument"); docs+=("$argument"); continue ;;
    --crate-name) skip=name ;;
    --json=*) argument=--json=diagnostic-rendered-ansi ;;
  esac
  lints+=("$argument")
  docs+=("$argument")
done
case "$crate" in '' | ___ | build_script_*) exit 0 ;; esac
if [[ -n "${LINTED_CRATES:-}" && " $LINTED_CRATES " != *" $crate "* ]]; then exit 0; fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
[[ -n "$denied" ]] || clippy-driver "$rustc" "${lints[@]}" --emit=metadata --out-dir "$out" -D warnings
if "$documented"; then rustdoc "${docs[@]}" $private --out-dir "$out/doc" -D warnings; fi
