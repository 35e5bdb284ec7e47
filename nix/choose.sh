# Which plan is meant. An argument `.#NAME` is the plan plumbline.SYSTEM.NAME of
# the flake around us. Without one it is the nearest plumbline.yaml, else that of
# PLUMBLINE_PLAN, else $default, else the flake's plan that is named default.

around='' # the flake around us
top=$(git rev-parse --show-toplevel 2> /dev/null) || top=$PWD
if [ -f "$top/flake.nix" ]; then
  around=$(flake "$top")
elif [ -f flake.nix ]; then
  echo "hint: the flake must be at the top of its git repository, $top, to be weighed" >&2
fi

# choose NAME sets PLUMBLINE_PLAN to that plan's file. It fails where the flake
# has no such plan, and ends everything where it has one that cannot be made.
choose() {
  local made
  if ! git -C "$top" ls-files --error-unmatch flake.nix > /dev/null 2>&1; then
    echo "hint: git does not track flake.nix, so Nix does not see it: git add flake.nix" >&2
  fi
  made=$(mktemp -d)
  if build "$made/plan" "$around#plumbline.$system.$1" 2>&1 | tee "$made/said" >&2; then
    PLUMBLINE_PLAN=$(readlink "$made/plan")
    export PLUMBLINE_PLAN
  fi
  if [ -L "$made/plan" ]; then
    rm -r "$made"
  elif grep -q "does not provide attribute" "$made/said"; then
    rm -r "$made"
    echo "hint: the flake has no plan plumbline.$system.$1; docs/NIX.md of plumbline says how it gets one" >&2
    return 1
  else
    rm -r "$made"
    echo "the plan plumbline.$system.$1 of $top/flake.nix cannot be made; Nix does not see files that git does not track" >&2
    exit 2
  fi
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

args=() named=''
for arg in "$@"; do
  case $arg in
    .#* | --plan=.#*)
      named=yes
      if [ -z "$around" ]; then
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
if [ -z "$named" ] && [ -z "${PLUMBLINE_PLAN:-}" ] && ! nearest; then
  if [ -n "$default" ]; then
    export PLUMBLINE_PLAN=$default
  elif [ -n "$around" ]; then
    choose default || true # plumbline says that it found no plan
  else
    echo "hint: no flake.nix here either; run this in your server's repository" >&2
  fi
fi
