# build-package NAME: builds a package of the flake around the current folder,
# which is a checkout that plumbline has made of one revision.
top=$(git rev-parse --show-toplevel)
if [ ! -e "$top/flake.nix" ]; then
  echo "this revision has no flake.nix at its top, so there is no package $1 to be built of it; compare with one that has" >&2
  exit 1
fi
build "$OUT/package" "$(flake "$top")#$1" --print-build-logs
