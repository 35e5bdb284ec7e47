# The plan for this repository: its demo router, of each revision.
{
  pkgs,
  self,
  system,
}:
let
  own = self.packages.${system};
  kind = name: {
    inherit name;
    targets = "${own."targets-${name}"}/targets.http";
  };
in
{
  default = self.lib.mkPlan {
    inherit pkgs;
    plan = {
      router = {
        package = "router-demo";
        run = [
          "{build}/package/bin/router-demo"
          "--listen"
          "{socket}"
        ];
        ready.http = "/health";
      };
      # Not jwt-cache-worst: the demo is Go, whose clock cannot be moved.
      kinds = map kind [
        "mixed"
        "jwt-cache"
        "jwt-unique"
      ];
      warmup.load = "1s";
    };
  };
}
