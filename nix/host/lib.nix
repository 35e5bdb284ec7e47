# The functions of nixpkgs' lib that this flake calls, under the same names.
rec {
  inherit (builtins)
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    foldl'
    fromJSON
    genList
    hasAttr
    head
    isAttrs
    isBool
    isFunction
    isInt
    isList
    isString
    length
    listToAttrs
    map
    mapAttrs
    match
    readFile
    removeAttrs
    replaceStrings
    splitVersion
    stringLength
    substring
    tail
    toJSON
    trace
    ;

  # trivial
  throwIf =
    cond: msg: x:
    if cond then throw msg else x;

  # lists
  optional = cond: x: if cond then [ x ] else [ ];
  optionals = cond: xs: if cond then xs else [ ];
  subtractLists = drop: filter (x: !elem x drop);

  # attribute sets
  nameValuePair = name: value: { inherit name value; };
  optionalAttrs = cond: set: if cond then set else { };
  genAttrs = names: f: listToAttrs (map (n: nameValuePair n (f n)) names);
  filterAttrs = pred: set: removeAttrs set (filter (n: !pred n set.${n}) (attrNames set));
  mapAttrsToList = f: set: map (n: f n set.${n}) (attrNames set);
  getAttrs = names: set: genAttrs names (n: set.${n});

  # strings
  optionalString = cond: s: if cond then s else "";
  concatMapStringsSep =
    sep: f: xs:
    concatStringsSep sep (map f xs);
  concatLines = concatMapStringsSep "" (s: s + "\n");
  hasPrefix = prefix: s: substring 0 (stringLength prefix) s == prefix;
  hasSuffix =
    suffix: s:
    let
      n = stringLength s;
      k = stringLength suffix;
    in
    n >= k && substring (n - k) k s == suffix;
  splitString = sep: s: filter isString (builtins.split (escapeRegex sep) s);
  escapeRegex = replaceStrings regexChars (map (c: "\\" + c) regexChars);
  regexChars = [
    "\\"
    "^"
    "$"
    "."
    "|"
    "?"
    "*"
    "+"
    "("
    ")"
    "["
    "{"
  ];
  escapeShellArg =
    x:
    let
      s = toString x;
    in
    if match "[[:alnum:],._+:@%/-]+" s != null then
      s
    else
      "'" + replaceStrings [ "'" ] [ "'\\''" ] s + "'";
  escapeShellArgs = concatMapStringsSep " " escapeShellArg;
  makeBinPath = concatMapStringsSep ":" (p: "${getBin p}/bin");
  getName =
    x:
    if isString x then
      (builtins.parseDrvName x).name
    else
      x.pname or (builtins.parseDrvName x.name).name;

  # packages
  getOutput = out: p: if p ? outputSpecified && p.outputSpecified then p else p.${out} or p.out or p;
  getBin = getOutput "bin";
  getExe = p: getExe' p (p.meta.mainProgram or (getName p));
  getExe' = p: name: "${getBin p}/bin/${name}";
  platforms = rec {
    linux = [
      "x86_64-linux"
      "aarch64-linux"
    ];
    darwin = [
      "x86_64-darwin"
      "aarch64-darwin"
    ];
    unix = linux ++ darwin;
    all = unix;
  };
  systems.flakeExposed = platforms.unix;
  fetchers.proxyImpureEnvVars = [
    "http_proxy"
    "https_proxy"
    "ftp_proxy"
    "all_proxy"
    "no_proxy"
    "HTTP_PROXY"
    "HTTPS_PROXY"
    "FTP_PROXY"
    "ALL_PROXY"
    "NO_PROXY"
    "NIX_SSL_CERT_FILE"
  ];
  licenses = {
    mit = {
      spdxId = "MIT";
      free = true;
    };
  };

  # file sets: here the list of the files' paths, as strings
  fileset = rec {
    walk =
      dir:
      concatMap (
        n:
        let
          p = dir + "/${n}";
          t = (builtins.readDir dir).${n};
        in
        if t == "directory" then walk p else [ (toString p) ]
      ) (attrNames (builtins.readDir dir));
    files =
      x:
      if isAttrs x then
        x._files
      else if !builtins.pathExists x then
        throw "lib.fileset: ${toString x} does not exist"
      else if isDir x then
        walk x
      else
        [ (toString x) ];
    isDir = x: (builtins.readDir (dirOf x)).${baseNameOf x} or "directory" == "directory";
    make = fs: {
      _type = "fileset";
      _files = fs;
    };
    unions = xs: make (unique' (concatMap files xs));
    fileFilter =
      pred: dir:
      make (
        filter (
          f:
          pred rec {
            name = baseNameOf f;
            type = "regular";
            hasExt = ext: hasSuffix ".${ext}" name;
          }
        ) (walk dir)
      ); # a folder, in nixpkgs too; the flake's own has no readable parent
    unique' = fs: attrNames (listToAttrs (map (f: nameValuePair f true) fs));
    toSource =
      { root, fileset }:
      let
        keep = listToAttrs (map (f: nameValuePair f true) (files fileset));
        up =
          f: acc:
          let
            d = dirOf f;
          in
          if acc ? ${d} || d == "/" || d == "." then acc else up d (acc // { ${d} = true; });
        dirs = foldl' (acc: f: up f acc) { } (attrNames keep);
      in
      rec {
        outPath = builtins.path {
          name = "source";
          path = root;
          filter = p: t: if t == "directory" then dirs ? ${p} else keep ? ${p};
        };
        inherit root;
        origSrc = root;
      };
  };
}
