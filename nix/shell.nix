# `nix develop`: all that the work on plumbline needs.
{ pkgs, self, system }:
let
  inherit (self.packages.${system}) plumbline router-demo;
in
{
  default = pkgs.mkShell {
    inputsFrom = [ plumbline.unversioned ];
    packages = [
      plumbline
      router-demo
      pkgs.vegeta
      pkgs.jq
      pkgs.git
      pkgs.haproxy
      pkgs.nginx
      pkgs.openssl
      pkgs.postgresql
    ]
    ++ pkgs.lib.optional pkgs.stdenv.hostPlatform.isLinux pkgs.libfaketime;
    # On standard error: `nix develop -c COMMAND` may be read by a machine.
    shellHook = ''
      {
        echo "plumbline try              see it find a planted slowdown, in a minute or two"
        echo "plumbline variance         what this machine can tell apart (needs a plumbline.yaml; here: nix run .#variance)"
        echo "nix run .#loadtest-against -- main, nix flake check, go test -p 1 ./..."
      } >&2
    '';
  };
}
