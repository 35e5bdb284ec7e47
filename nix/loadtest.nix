# The apps: thin names on plumbline's commands. `default` is the plan where
# nothing names another: a file, or "" for that of the flake they are run in.
{
  pkgs,
  self,
  default ? "",
}:
let
  inherit (pkgs) lib;
  inherit (self.packages.${pkgs.stdenv.hostPlatform.system}) plumbline;
  choose = ''
    system=${pkgs.stdenv.hostPlatform.system}
    default=${default}
    ${builtins.readFile ./flake.sh}${builtins.readFile ./choose.sh}'';
  app = name: command: choose: description: {
    type = "app";
    program = lib.getExe (
      pkgs.writeShellApplication {
        inherit name;
        runtimeInputs = [
          plumbline
          pkgs.coreutils
          pkgs.git
          pkgs.gnugrep
          pkgs.jq
        ];
        text = ''
          ${choose}
          exec plumbline ${command} "$@"
        '';
      }
    );
    meta.description = description;
  };
in
{
  loadtest = app "loadtest" "run" choose "One session as the plan says";
  loadtest-against =
    app "loadtest-against" "against" choose
      "Weigh the working tree against git revisions";
  loadtest-between =
    app "loadtest-between" "between" choose
      "Weigh two of the arms that the plan names";
  variance = app "variance" "variance" choose "See what this machine can tell apart";
  loadtest-report = app "loadtest-report" "report" "" "Show a session, or vegeta's result files";
  monitor-pid = app "monitor-pid" "monitor" "" "Sample what a process uses, as CSV";
  monitor-merge = app "monitor-merge" "merge" "" "Put such CSVs side by side";
  targets = app "targets" "targets" "" "Make keys, tokens and requests, the same from the same seed";
}
