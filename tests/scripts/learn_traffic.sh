#!/usr/bin/env bash
# Learns contracts from generated traffic and judges requests that were kept apart; see `make learn-traffic`.
# usage: learn_traffic.sh PYTHON PALISADE JUDGE OUT SEED COUNT DOCUMENT...
set -euo pipefail
python=$1 palisade=$2 judge=$3 out=$4 seed=$5 count=$6
shift 6
"$python" "$(dirname "$0")/learn_traffic.py" --out "$out" --seed "$seed" --count "$count" "$@"
for document in "$@"; do
  name=$(basename "${document%.*}")
  "$palisade" contract learn --traffic "$out/$name.train.jsonl" --title "$name" --out "$out/$name.learned.yaml" 2>"$out/$name.log"
  "$judge" --contract "$out/$name.learned.yaml" --original "$document" \
    --valid "$out/$name.valid.jsonl" --invalid "$out/$name.invalid.jsonl" >"$out/$name.judged.json"
done
"$python" - "$out" "$@" <<'END'
import json, pathlib, sys
out, total = pathlib.Path(sys.argv[1]), {}
for document in sys.argv[2:]:
    name = pathlib.Path(document).stem
    judged = json.loads((out / f"{name}.judged.json").read_text())
    total = {key: total.get(key, 0) + value for key, value in judged.items()}
    share = lambda part, whole: f"{100 * part / whole:.2f} %" if whole else "-"
    row = lambda name, judged: print(
        f"{name:12} valid {judged['valid']:6}, accepted {share(judged['accepted'], judged['valid']):>9}   "
        f"invalid {judged['invalid']:6}, refused {share(judged['refused'], judged['invalid']):>9}, "
        f"{share(judged['refused_strictly'], judged['invalid']):>9} with reject_unknown_query_params   "
        f"(the document itself refuses {judged['original_refuses']}; of these {share(judged['of_these_refused'], judged['original_refuses'])})")
    row(name, judged)
row("all", total)
good = total["accepted"] >= 0.995 * total["valid"] and total["refused"] >= 0.8 * total["invalid"]
sys.exit(0 if good else "the learned contracts miss the goal: 99.5 % of the valid requests accepted, 80 % of the invalid ones refused")
END
