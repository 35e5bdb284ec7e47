# Which plan is meant: the nearest plumbline.yaml, else that of PLUMBLINE_PLAN,
# else the output plumbline.$system.default of the flake around us.
nearest() {
  local at=$PWD name
  while :; do
    for name in plumbline.yaml plumbline.yml plumbline.json; do
      if [ -f "$at/$name" ]; then return; fi
    done
    if [ "$at" = / ]; then return 1; fi
    at=$(dirname "$at")
  done
}
if [ -z "${PLUMBLINE_PLAN:-}" ] && ! nearest; then
  top=$(git rev-parse --show-toplevel 2> /dev/null) || top=$PWD
  if [ -f "$top/flake.nix" ]; then
    if ! git -C "$top" ls-files --error-unmatch flake.nix > /dev/null 2>&1; then
      echo "hint: git does not track flake.nix, so Nix does not see it: git add flake.nix" >&2
    fi
    # Where it fails Nix says why, and plumbline that it found no plan.
    PLUMBLINE_PLAN=$(
      nix build --extra-experimental-features 'nix-command flakes' --no-link --json \
        "git+file://$top?shallow=1#plumbline.$system.default" | jq -r '.[0].outputs.out'
    ) || PLUMBLINE_PLAN=
    export PLUMBLINE_PLAN
  fi
fi
