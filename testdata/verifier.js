// A server that verifies tokens with the keys of TARGETS and keeps the
// verified ones until they are refused, LEEWAY seconds after they expire. At
// its end it says how often that helped.
const crypto = require("node:crypto");
const fs = require("node:fs");
const http = require("node:http");

const { SOCKET, TARGETS, LEEWAY } = process.env;
const keys = new Map();
for (const jwk of JSON.parse(fs.readFileSync(`${TARGETS}/jwks.json`)).keys) {
  keys.set(jwk.kid, jwk.kty === "oct" ? Buffer.from(jwk.k, "base64url") : crypto.createPublicKey({ key: jwk, format: "jwk" }));
}

// verify returns when a token is refused, in seconds; 0 if its signature is wrong.
function verify(token) {
  const [header, claims, signature] = token.split(".");
  const { alg, kid } = JSON.parse(Buffer.from(header, "base64url"));
  const signed = `${header}.${claims}`;
  const key = keys.get(kid);
  const given = Buffer.from(signature, "base64url");
  const good =
    alg === "HS256"
      ? crypto.createHmac("sha256", key).update(signed).digest().equals(given)
      : alg === "ES256" && crypto.verify("sha256", signed, { key, dsaEncoding: "ieee-p1363" }, given);
  return good ? JSON.parse(Buffer.from(claims, "base64url")).exp + Number(LEEWAY) : 0;
}

const cache = new Map(); // token → when it is refused
const count = { hits: 0, misses: 0, expired: 0, refused: 0 };
const now = () => Date.now() / 1000;

setInterval(() => {
  for (const [token, until] of cache) {
    if (until < now()) {
      cache.delete(token);
      count.expired++;
    }
  }
}, 100);

http
  .createServer((request, response) => {
    if (request.url === "/health") return response.end();
    const token = (request.headers.authorization ?? "").slice("Bearer ".length);
    let until = cache.get(token);
    if (until !== undefined) {
      count.hits++;
    } else if ((until = verify(token)) >= now()) {
      count.misses++;
      cache.set(token, until);
    }
    if (until < now()) {
      count.refused++;
      response.statusCode = 401;
    }
    response.end();
  })
  .listen(SOCKET);

process.on("SIGTERM", () => {
  console.log(JSON.stringify(count));
  process.exit();
});
