# What `nix flake check` proves. Tests that weigh live servers are not here:
# they want the machine to themselves, and run once, by .ci/run.
{
  pkgs,
  self,
  system,
}:
let
  inherit (pkgs) lib;
  own = self.packages.${system};
  source = own.plumbline.unversioned.src;
  check =
    name: inputs: script:
    pkgs.runCommand "check-${name}" { nativeBuildInputs = inputs; } ''
      ${script}
      touch $out
    '';
in
removeAttrs own [ "default" ]
// {
  # Read as plumbline reads them.
  plans = check "plans" [ own.plumbline ] (
    lib.concatMapStringsSep "\n" (plan: "plumbline plan check ${plan} > /dev/null") (
      lib.attrValues self.plumbline.${system}
    )
  );

  # The tests of all that neither starts a server nor measures, and the import table.
  unit = own.plumbline.unversioned.overrideAttrs {
    src = lib.fileset.toSource {
      root = ../.;
      fileset = lib.fileset.unions [
        ../go.mod
        ../go.sum
        (lib.fileset.fileFilter (f: f.hasExt "go") ../.)
        ../gates
        ../mocks
        ../record
        ../report
        ../targets
      ];
    };
    buildPhase = "go build ./...";
    doCheck = true;
    checkPhase = ''
      # Those left out simulate sessions for a minute.
      go test -skip 'TestPromises|TestNotGivenUp|TestVarianceSources' ./gates/... ./mocks/... ./plan ./record ./report ./targets/...
      go test -v -run '^(TestImportsGoDown|TestEveryPackageSaysWhatItOwns)$' . | tee rules
      [ "$(grep -c '^--- PASS' rules)" = 2 ]
    '';
    installPhase = "touch $out";
    postInstall = "";
  };

  # The overlay is the package, made with the packages of those who use it.
  overlay =
    assert (self.overlays.default pkgs pkgs).plumbline == own.plumbline;
    own.plumbline;

  format = check "format" [ pkgs.go ] ''
    unformatted=$(gofmt -l ${source})
    if [ -n "$unformatted" ]; then echo "not formatted by gofmt: $unformatted" >&2; exit 1; fi
  '';

  apps = check "apps" [ ] (
    lib.concatMapStringsSep "\n" (app: "test -x ${app.program}") (lib.attrValues self.apps.${system})
  );

  # Another way, by another process: the same bytes.
  targets = check "targets" [ own.plumbline ] ''
    plumbline targets again --kind jwt-cache ${lib.escapeShellArgs own.targets-jwt-cache.flags} --json > /dev/null
    # The manifest names the version that has made it.
    diff -r --exclude manifest.json again ${own.targets-jwt-cache}
  '';

  # Nothing of the machine that this was written on.
  paths = check "paths" [ ] ''
    code=0
    grep -rnE '(^|[^A-Za-z0-9_}.])/(usr|bin|sbin|lib|etc|opt|home|root|var|tmp|work|run)(/|[^A-Za-z0-9_]|$)' \
      ${../flake.nix} ${./.}/*.nix ${./.}/*.sh ${../examples/nix-flake} || code=$?
    [ "$code" = 1 ] # nothing found; 2 would be an error
  '';
}
// lib.optionalAttrs (pkgs ? nixfmt) {
  nixfmt = check "nixfmt" [
    pkgs.nixfmt
  ] "nixfmt --check ${../flake.nix} ${./.}/*.nix ${./host}/*.nix ${../examples/nix-flake}/*.nix";
}
# A whole session, on the loopback that a build has. What it finds in three
# short blocks is not judged here, but that it found something.
// lib.optionalAttrs pkgs.stdenv.hostPlatform.isLinux {
  session = check "session" [ own.plumbline pkgs.jq ] ''
    mkdir work && cd work
    cat > plumbline.yaml <<'PLAN'
    router:
      run: ["${own.router-demo}/bin/router-demo", "--listen", "{socket}"]
      ready: {http: /health}
    arms: {baseline: {}, candidate: {}}
    kinds: {mixed: {targets: "${own.targets-mixed}/targets.http"}}
    expect: {GET /nothing: {status: [404]}}
    warmup: {load: 0s}
    schedule: {slice: 25ms, block: 500ms, blocks: 3}
    PLAN
    code=0
    plumbline run --out session || code=$?
    case $code in 0 | 3 | 4) ;; *) exit 1 ;; esac
    test "$(jq '.exit_code' session/verdict.json)" = "$code"
    test "$(jq -r '.blocks' session/verdict.json)" = 3
    again=0
    plumbline gate session > again || again=$?
    test "$again" = "$code"
  '';
}
