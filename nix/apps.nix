# What `nix run .#NAME` does, in the repository where it is run.
{
  pkgs,
  self,
  ...
}:
import ./loadtest.nix {
  inherit pkgs self;
}
