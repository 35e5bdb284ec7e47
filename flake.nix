{
  description = "Is this build of an HTTP router or API server slower than that one?";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "aarch64-darwin"
      ];
      each =
        file:
        lib.genAttrs systems (
          system:
          import file {
            inherit self system;
            pkgs = nixpkgs.legacyPackages.${system};
          }
        );
    in
    {
      lib = import ./nix/lib.nix { inherit self; };
      packages = each ./nix/packages.nix;
      apps = each ./nix/apps.nix;
      checks = each ./nix/checks.nix;
      devShells = each ./nix/shell.nix;
      formatter = lib.genAttrs systems (system: nixpkgs.legacyPackages.${system}.nixfmt-tree);
      overlays.default = import ./nix/overlay.nix { inherit self; };
      # What the apps weigh in this repository.
      plumbline = each ./nix/plans.nix;
    };
}
