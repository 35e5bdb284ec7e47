# What `nix run .#NAME` does, in the repository where it is run.
{
  pkgs,
  self,
  ...
}:
import ./loadtest.nix {
  inherit pkgs self;
  choose = ''
    system=${pkgs.stdenv.hostPlatform.system}
    ${builtins.readFile ./choose.sh}'';
}
