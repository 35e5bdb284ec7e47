# For other flakes. docs/NIX.md shows how each is used.
{ self }:
let
  # Pairs in the order of a list, which a plan's kinds and arms have and the
  # attributes of a set have not.
  object =
    pairs:
    "{${
      builtins.concatStringsSep "," (
        map (
          p:
          "${builtins.toJSON (p.name or (throw "each of a plan's kinds and arms needs a name"))}:${
            builtins.toJSON (removeAttrs p [ "name" ])
          }"
        ) pairs
      )
    }}";

  # The command that builds a package of the flake in each revision's checkout.
  command =
    pkgs: package:
    let
      script = pkgs.writeShellApplication {
        name = "build-package";
        runtimeInputs = [
          pkgs.git
          pkgs.jq
        ];
        text = builtins.readFile ./flake.sh + builtins.readFile ./build-package.sh;
      };
    in
    "${pkgs.lib.getExe script} ${pkgs.lib.escapeShellArg package}";
in
rec {
  # mkTargets :: { pkgs, kind, flags } -> derivation
  # A folder of `plumbline targets`: requests, keys and manifest, the same
  # bytes wherever it is made. Whoever reads the store can read the keys.
  mkTargets =
    {
      pkgs,
      kind,
      flags ? [ ],
      plumbline ? self.packages.${pkgs.stdenv.hostPlatform.system}.plumbline.unversioned,
    }:
    pkgs.runCommand "targets-${kind}"
      {
        nativeBuildInputs = [ plumbline ];
        passthru = { inherit kind flags; };
      }
      ''
        plumbline targets made --kind ${kind} ${pkgs.lib.escapeShellArgs flags}
        cp -r made $out
      '';

  # mkPlan :: { pkgs, plan } -> derivation
  # A plan as docs/DESIGN.md has it, with three liberties: `router.package`
  # names a package of the flake, which is built from each revision and is
  # {build}/package then; and `kinds` and `arms` may be lists of sets with a
  # `name`, because they have an order. Strings may name packages, and paths files.
  mkPlan =
    { pkgs, plan }:
    let
      inherit (pkgs) lib;
      build =
        side:
        lib.optionalAttrs (side ? package) { build = command pkgs side.package; }
        // removeAttrs side [ "package" ];
      arm = a: build (removeAttrs a [ "name" ]) // lib.optionalAttrs (a ? name) { inherit (a) name; };
      write =
        key: value:
        if key == "router" then
          builtins.toJSON (build value)
        else if key == "arms" && lib.isList value then
          object (map arm value)
        else if key == "arms" then
          builtins.toJSON (lib.mapAttrs (_: arm) value)
        else if key == "kinds" && lib.isList value then
          object value
        else
          builtins.toJSON value;
    in
    pkgs.writeText "plumbline-plan.json" (
      "{"
      + lib.concatStringsSep ",\n" (lib.mapAttrsToList (k: v: "${builtins.toJSON k}:${write k v}") plan)
      + "}\n"
    );

  # mkLoadtest :: { pkgs, plan } -> { loadtest, loadtest-against, … } of apps
  mkLoadtest =
    { pkgs, plan }:
    import ./loadtest.nix {
      inherit pkgs self;
      default = mkPlan { inherit pkgs plan; };
    };
}
