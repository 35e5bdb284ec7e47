# What this repository weighs: plumbline.SYSTEM.default, and by `--plan .#NAME`
# the others.
{
  pkgs,
  self,
  system,
}:
let
  own = self.packages.${system};
  kinds = map (name: {
    inherit name;
    targets = "${own."targets-${name}"}/targets.http";
  });
in
{
  # The demo router, of each revision. Not jwt-cache-worst: it is Go, whose clock
  # cannot be moved to when the tokens were made.
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
      kinds = kinds [
        "mixed"
        "jwt-cache"
        "jwt-unique"
      ];
      warmup.load = "1s";
    };
  };

  # HAProxy, which verifies the tokens and does look at its clock.
  jwt = self.lib.mkPlan {
    inherit pkgs;
    plan = {
      router = {
        package = "router-jwt";
        run = [ "{build}/package/bin/router-jwt" ];
        env = {
          SOCKET = "{socket}";
          TARGETS = "{targets}";
          KEY = "ec.public.pem";
          LEEWAY = "30";
        };
        ready.http = "/health";
        clock = "2000-01-01T00:00:00Z";
      };
      kinds = kinds [
        "jwt-cache"
        "jwt-unique"
        "jwt-cache-worst"
      ];
      load.rate = "500/s"; # the sets' tokens last for a minute of this
      schedule.mode = "sliced";
      warmup.load = "1s";
    };
  };
}
