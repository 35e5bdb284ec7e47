# `nix develop`: all that the work on plumbline needs.
{
  pkgs,
  self,
  system,
}:
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
    # What plumbline weighs where there is no plumbline.yaml, such as here.
    PLUMBLINE_PLAN = self.plumbline.${system}.default;
    # On standard error: `nix develop -c COMMAND` may be read by a machine.
    shellHook = ''
      {
        echo "plumbline try              see it find a planted slowdown, in a minute or two"
        echo "plumbline variance         what this machine can tell apart; plumbline against main weighs the demo router"
        echo "nix flake check            all that Nix checks; the live tests are go test -p 1 -timeout 40m ./..."
      } >&2
    '';
  };
}
