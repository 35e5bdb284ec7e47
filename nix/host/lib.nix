# The functions of nixpkgs' lib that this flake calls, under the same names.
let
  inherit (builtins)
    attrNames attrValues concatLists concatMap concatStringsSep elem elemAt filter
    foldl' genList hasAttr head isAttrs isFunction isList isString length listToAttrs map
    mapAttrs match pathExists readDir readFile removeAttrs replaceStrings split
    stringLength substring tail toJSON toString;

  lib = rec {
    inherit (builtins)
      attrNames attrValues concatLists concatMap concatStringsSep elem elemAt filter foldl'
      fromJSON genList hasAttr head isAttrs isBool isFunction isInt isList isString length
      listToAttrs map mapAttrs match readFile removeAttrs replaceStrings splitVersion
      stringLength substring tail toJSON trace;

    # trivial
    id = x: x;
    const = x: _: x;
    fix = f: let x = f x; in x;
    pipe = foldl' (x: f: f x);
    flip = f: a: b: f b a;
    warn = msg: builtins.trace "evaluation warning: ${msg}";
    warnIf = cond: msg: if cond then warn msg else id;
    throwIf = cond: msg: if cond then throw msg else id;
    throwIfNot = cond: throwIf (!cond);
    assertMsg = ok: msg: ok || throw msg;
    importJSON = path: builtins.fromJSON (readFile path);
    isDerivation = x: (x.type or null) == "derivation";

    # lists
    optional = cond: x: if cond then [ x ] else [ ];
    optionals = cond: xs: if cond then xs else [ ];
    singleton = x: [ x ];
    flatten = x: if isList x then concatMap flatten x else [ x ];
    unique = foldl' (seen: x: if elem x seen then seen else seen ++ [ x ]) [ ];
    any = builtins.any;
    all = builtins.all;
    range = a: b: if a > b then [ ] else genList (i: a + i) (b - a + 1);
    imap0 = f: xs: genList (i: f i (elemAt xs i)) (length xs);
    last = xs: elemAt xs (length xs - 1);
    foldr = f: z: xs: if xs == [ ] then z else f (head xs) (foldr f z (tail xs));
    subtractLists = drop: filter (x: !elem x drop);
    sort = builtins.sort;
    toList = x: if isList x then x else [ x ];

    # attribute sets
    nameValuePair = name: value: { inherit name value; };
    optionalAttrs = cond: set: if cond then set else { };
    genAttrs = names: f: listToAttrs (map (n: nameValuePair n (f n)) names);
    filterAttrs = pred: set: removeAttrs set (filter (n: !pred n set.${n}) (attrNames set));
    mapAttrs' = f: set: listToAttrs (map (n: f n set.${n}) (attrNames set));
    mapAttrsToList = f: set: map (n: f n set.${n}) (attrNames set);
    concatMapAttrs = f: set: foldl' (acc: n: acc // f n set.${n}) { } (attrNames set);
    mergeAttrsList = foldl' (a: b: a // b) { };
    attrByPath = path: default: set:
      if path == [ ] then set
      else if isAttrs set && hasAttr (head path) set then attrByPath (tail path) default set.${head path}
      else default;
    getAttrs = names: set: genAttrs names (n: set.${n});
    attrsToList = mapAttrsToList nameValuePair;
    recursiveUpdate = a: b:
      if isAttrs a && isAttrs b then
        a // mapAttrs (n: v: if hasAttr n a then recursiveUpdate a.${n} v else v) b
      else b;

    # strings
    optionalString = cond: s: if cond then s else "";
    concatStrings = concatStringsSep "";
    concatMapStrings = f: xs: concatStrings (map f xs);
    concatMapStringsSep = sep: f: xs: concatStringsSep sep (map f xs);
    concatLines = concatMapStrings (s: s + "\n");
    hasPrefix = prefix: s: substring 0 (stringLength prefix) s == prefix;
    hasSuffix = suffix: s:
      let n = stringLength s; k = stringLength suffix; in n >= k && substring (n - k) k s == suffix;
    hasInfix = infix: s: length (split (escapeRegex infix) s) > 1;
    removePrefix = prefix: s:
      if hasPrefix prefix s then substring (stringLength prefix) (stringLength s) s else s;
    removeSuffix = suffix: s:
      if hasSuffix suffix s then substring 0 (stringLength s - stringLength suffix) s else s;
    splitString = sep: s: filter isString (split (escapeRegex sep) s);
    escapeRegex = replaceStrings
      regexChars
      (map (c: "\\" + c) regexChars);
    regexChars = [ "\\" "^" "$" "." "|" "?" "*" "+" "(" ")" "[" "{" ];
    trim = s: let m = match "[ \t\r\n]*(.*[^ \t\r\n])[ \t\r\n]*" s; in if m == null then "" else head m;
    fileContents = path: removeSuffix "\n" (readFile path);
    escapeShellArg = x:
      let s = toString x; in
      if match "[[:alnum:],._+:@%/-]+" s != null then s
      else "'" + replaceStrings [ "'" ] [ "'\\''" ] s + "'";
    escapeShellArgs = concatMapStringsSep " " escapeShellArg;
    makeBinPath = concatMapStringsSep ":" (p: "${getBin p}/bin");
    versionAtLeast = a: b: builtins.compareVersions a b >= 0;
    versionOlder = a: b: builtins.compareVersions a b < 0;
    versions.major = v: elemAt (builtins.splitVersion v) 0;
    getName = x: if isString x then (builtins.parseDrvName x).name else x.pname or (builtins.parseDrvName x.name).name;
    getVersion = x: if isString x then (builtins.parseDrvName x).version else x.version or (builtins.parseDrvName x.name).version;

    # packages
    getOutput = out: p: if p ? outputSpecified && p.outputSpecified then p else p.${out} or p.out or p;
    getBin = getOutput "bin";
    getLib = getOutput "lib";
    getExe = p: getExe' p (p.meta.mainProgram or (getName p));
    getExe' = p: name: "${getBin p}/bin/${name}";
    platforms = rec {
      linux = [ "x86_64-linux" "aarch64-linux" ];
      darwin = [ "x86_64-darwin" "aarch64-darwin" ];
      unix = linux ++ darwin;
      all = unix;
    };
    systems.flakeExposed = platforms.unix;
    fakeHash = "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    fetchers.proxyImpureEnvVars = [
      "http_proxy" "https_proxy" "ftp_proxy" "all_proxy" "no_proxy"
      "HTTP_PROXY" "HTTPS_PROXY" "FTP_PROXY" "ALL_PROXY" "NO_PROXY" "NIX_SSL_CERT_FILE"
    ];
    sourceTypes = {
      fromSource = { shortName = "fromSource"; isSource = true; };
      binaryNativeCode = { shortName = "binaryNativeCode"; isSource = false; };
    };
    licenses = {
      mit = { spdxId = "MIT"; free = true; };
      asl20 = { spdxId = "Apache-2.0"; free = true; };
      bsd3 = { spdxId = "BSD-3-Clause"; free = true; };
      elastic20 = { spdxId = "Elastic-2.0"; free = false; };
    };

    # file sets: here the list of the files' paths, as strings
    fileset = rec {
      walk = dir: concatMap (
        n:
        let p = dir + "/${n}"; t = (readDir dir).${n}; in
        if t == "directory" then walk p else [ (toString p) ]
      ) (attrNames (readDir dir));
      files = x:
        if isAttrs x then x._files
        else if !pathExists x then throw "lib.fileset: ${toString x} does not exist"
        else if isDir x then walk x else [ (toString x) ];
      isDir = x: (readDir (dirOf x)).${baseNameOf x} or "directory" == "directory";
      make = fs: { _type = "fileset"; _files = fs; };
      maybeMissing = x: make (if pathExists x then files x else [ ]);
      unions = xs: make (unique' (concatMap files xs));
      union = a: b: unions [ a b ];
      intersection = a: b: let k = files b; in make (filter (f: elem f k) (files a));
      difference = a: b: let k = files b; in make (filter (f: !elem f k) (files a));
      fileFilter = pred: dir: make (filter (f: pred rec {
        name = baseNameOf f;
        type = "regular";
        hasExt = ext: hasSuffix ".${ext}" name;
      }) (walk dir)); # a folder, in nixpkgs too; the flake's own has no readable parent
      toList = x: files x;
      unique' = fs: attrNames (listToAttrs (map (f: nameValuePair f true) fs));
      toSource = { root, fileset }:
        let
          keep = listToAttrs (map (f: nameValuePair f true) (files fileset));
          up = f: acc: let d = dirOf f; in
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
    cleanSource = src: builtins.path {
      name = "source";
      path = src;
      filter = p: t: !(elem (baseNameOf p) [ ".git" "result" ]) && !hasSuffix "~" p;
    };
    sourceByRegex = src: regexes: builtins.path {
      name = "source";
      path = src;
      filter = p: t: let r = removePrefix (toString src + "/") p; in any (re: match re r != null) regexes;
    };
  };
in
lib
