# build-package NAME: builds a package of the flake around the current folder,
# which is a checkout that plumbline has made of one revision. docs/NIX.md says
# why it is named by git+file and shallow=1.
top=$(git rev-parse --show-toplevel)
if [ ! -e "$top/flake.nix" ]; then
  echo "this revision has no flake.nix, so there is no package $1 to be built of it; compare with a later one" >&2
  exit 1
fi
exec nix build --extra-experimental-features 'nix-command flakes' --print-build-logs \
  --out-link "$OUT/package" "git+file://$top?shallow=1#$1"
