# build-package NAME: builds a package of the flake around the current folder,
# which is a checkout that plumbline has made of one revision. docs/NIX.md says
# why it is named by git+file and shallow=1.
top=$(git rev-parse --show-toplevel)
if [ ! -e "$top/flake.nix" ]; then
  echo "this revision has no flake.nix at its top, so there is no package $1 to be built of it; compare with one that has" >&2
  exit 1
fi
path=$(jq -rn --arg path "$top" '$path | split("/") | map(@uri) | join("/")')
exec nix build --extra-experimental-features 'nix-command flakes' --print-build-logs \
  --out-link "$OUT/package" "git+file://$path?shallow=1#$1"
