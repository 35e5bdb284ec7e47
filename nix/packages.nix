# What `nix build .#NAME` makes.
{
  pkgs,
  self,
  ...
}:
let
  inherit (pkgs) lib;

  # As Go itself would say it. Where inputs are overridden there is neither.
  revision = if self ? rev then lib.substring 0 12 self.rev else self.dirtyShortRev or "dirty";

  files =
    paths:
    lib.fileset.toSource {
      root = ../.;
      fileset = lib.fileset.unions paths;
    };

  meta = {
    description = "Tells whether one build of an HTTP router is slower than another";
    mainProgram = "plumbline";
    license = lib.licenses.mit;
    platforms = lib.platforms.unix;
  };

  # Without the revision in it: the program, and all that is made with it, stay
  # the same for as long as its sources do. Tests run once, in the checks.
  unversioned = pkgs.buildGoModule {
    pname = "plumbline-unversioned";
    version = "0";
    src = files [
      ../go.mod
      ../go.sum
      (lib.fileset.fileFilter (f: f.hasExt "go") ../.) # tests too: `go mod vendor` looks at them
      ../gates
      ../mocks
      ../targets
    ];
    vendorHash = "sha256-9UsbVtoT3Cc3rYGTRLHUJtsWYtlTdiRO5V1Cpqo4pec=";
    subPackages = [ "cmd/plumbline" ];
    env.CGO_ENABLED = 0;
    ldflags = [ "-s" ];
    doCheck = false;
    postInstall = lib.optionalString (pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform) ''
      share=$out/share
      mkdir -p $share/bash-completion/completions $share/zsh/site-functions $share/fish/vendor_completions.d
      $out/bin/plumbline completion bash > $share/bash-completion/completions/plumbline.bash
      $out/bin/plumbline completion zsh > $share/zsh/site-functions/_plumbline
      $out/bin/plumbline completion fish > $share/fish/vendor_completions.d/plumbline.fish
      $out/bin/plumbline man $share/man/man1
    '';
    inherit meta;
  };

  targets =
    kind: flags:
    self.lib.mkTargets {
      inherit pkgs kind flags;
      plumbline = unversioned;
    };
  # A route of both routers. Signing so many with RSA would take minutes.
  tokens = count: [
    "--url"
    "/films/7"
    "--algs"
    "HS256,ES256"
    "--count"
    (toString count)
  ];
in
rec {
  default = plumbline;

  # A copy, as the program finds its version beside itself.
  plumbline =
    pkgs.runCommand "plumbline"
      {
        inherit meta;
        version = revision;
        passthru = { inherit unversioned; };
      }
      ''
        cp -r --no-preserve=mode ${unversioned} $out
        chmod +x $out/bin/plumbline
        mkdir -p $out/share/plumbline
        echo '(devel) ${revision}' > $out/share/plumbline/version
      '';

  # Only the router's own files: other changes of a revision make no other router.
  router-demo = pkgs.buildGoModule {
    pname = "router-demo";
    version = "0";
    src = files [
      ../cmd/router-demo
      ../mocks/demo
    ];
    # It needs none of plumbline's modules, so it must not know of them either.
    postPatch = "grep -E '^(module|go) ' ${../go.mod} > go.mod";
    vendorHash = null;
    subPackages = [ "cmd/router-demo" ];
    env.CGO_ENABLED = 0;
    ldflags = [ "-s" ];
    doCheck = false;
    meta = {
      description = "A small HTTP API whose work is real, to be weighed";
      mainProgram = "router-demo";
      license = lib.licenses.mit;
    };
  };

  # HAProxy, verifying tokens, with what can move its clock.
  router-jwt = pkgs.writeShellApplication {
    name = "router-jwt";
    runtimeInputs = [
      pkgs.coreutils
      pkgs.haproxy
    ];
    text = ''
      # plumbline finds ${
        if pkgs.stdenv.hostPlatform.isLinux then pkgs.libfaketime else "nothing to move it with"
      } by this line.
      HS_SECRET=$(cat "$TARGETS/hs.secret")
      export HS_SECRET
      exec haproxy -db -f ${../examples/haproxy-jwt/haproxy.cfg}
    '';
    meta.description = "HAProxy as a server that verifies tokens, to be weighed";
  };

  targets-mixed = targets "mixed" [
    "--from"
    "${
      files [
        ../mocks/demo/targets.http
        ../mocks/demo/film.json
      ]
    }/mocks/demo/targets.http"
  ];
  targets-jwt-cache = targets "jwt-cache" (tokens 1000);
  targets-jwt-unique = targets "jwt-unique" (tokens 50000);
  targets-jwt-cache-worst = targets "jwt-cache-worst" (
    tokens 50000
    ++ [
      "--duration"
      "60s"
      "--leeway"
      "30s" # PostgREST's
    ]
  );
}
