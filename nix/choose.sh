# Which plan is meant. An argument `.#NAME` is the plan plumbline.SYSTEM.NAME of
# the flake around us. Without one, and without a plumbline.yaml or
# PLUMBLINE_PLAN, it is the one named default.

flake=
top=$(git rev-parse --show-toplevel 2> /dev/null) || top=$PWD
if [ -f "$top/flake.nix" ]; then
  flake="git+file://$(jq -rn --arg path "$top" '$path | split("/") | map(@uri) | join("/")')?shallow=1"
fi

# choose NAME sets PLUMBLINE_PLAN. Where it fails, Nix says why.
choose() {
  if ! git -C "$top" ls-files --error-unmatch flake.nix > /dev/null 2>&1; then
    echo "hint: git does not track flake.nix, so Nix does not see it: git add flake.nix" >&2
  fi
  PLUMBLINE_PLAN=$(
    nix build --extra-experimental-features 'nix-command flakes' --no-link --json \
      "$flake#plumbline.$system.$1" | jq -r '.[0].outputs.out'
  ) || PLUMBLINE_PLAN=
  export PLUMBLINE_PLAN
  [ -n "$PLUMBLINE_PLAN" ]
}

# nearest: there is a plumbline.yaml in this folder or one above.
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

args=() named=
for arg in "$@"; do
  case $arg in
    .#* | --plan=.#*)
      named=yes
      if [ -z "$flake" ]; then
        echo "$arg: there is no flake.nix in $top" >&2
        exit 2
      fi
      choose "${arg#*.#}" || exit 2
      arg=${arg%%.#*}$PLUMBLINE_PLAN
      ;;
  esac
  args+=("$arg")
done
set -- "${args[@]}"
if [ -z "$named" ] && [ -n "$flake" ] && [ -z "${PLUMBLINE_PLAN:-}" ] && ! nearest; then
  choose default || true # plumbline says that it found no plan
fi
