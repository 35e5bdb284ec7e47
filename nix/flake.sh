# flake TOP is how Nix names the flake in a folder: by the git repository, and
# with the path percent-encoded. docs/NIX.md says why shallow=1.
flake() {
  echo "git+file://$(jq -rn --arg path "$1" '$path | split("/") | map(@uri) | join("/")')?shallow=1"
}
# build LINK INSTALLABLE [FLAG...] links to what it makes.
build() {
  local link=$1 what=$2
  shift 2
  nix build --extra-experimental-features 'nix-command flakes' --out-link "$link" "$@" "$what"
}

