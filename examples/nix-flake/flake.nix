# A server project that weighs itself:
#   nix run .#loadtest-against -- main
#   nix run .#variance
{
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";
  inputs.plumbline.url = "git+https://example.org/plumbline.git"; # where you have it from
  inputs.plumbline.inputs.nixpkgs.follows = "nixpkgs";

  outputs =
    { nixpkgs, plumbline, ... }:
    let
      system = "x86_64-linux";
      pkgs = nixpkgs.legacyPackages.${system};
    in
    {
      # The server. HAProxy and a configuration stand for what you build.
      packages.${system}.server = pkgs.writeShellApplication {
        name = "server";
        runtimeInputs = [ pkgs.haproxy ];
        text = "exec haproxy -db -f ${./haproxy.cfg}";
      };

      apps.${system} = plumbline.lib.mkLoadtest {
        inherit pkgs;
        plan = {
          router.package = "server"; # of each revision's own flake
          router.run = [ "{build}/package/bin/server" ];
          router.env.SOCKET = "{socket}";
          router.ready.http = "/health";
          kinds.mixed.targets = "${./load}/targets.http"; # the folder, with its bodies
        };
      };
    };
}
