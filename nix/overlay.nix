# plumbline, made of the packages of those who use it.
{ self }:
final: _: {
  inherit
    (import ./packages.nix {
      inherit self;
      pkgs = final;
    })
    plumbline
    ;
}
