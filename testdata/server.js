// The Node server of the benchmark of the idea:
//
//   node server.js SOCKET UNITS UNITS UNITS
//
// answers /one, /two and /three on a unix socket. A unit of work writes an
// object as JSON and reads it back a few times, which also makes garbage.
const http = require("node:http");

const [socket, ...units] = process.argv.slice(2);
const routes = new Map(["/one", "/two", "/three"].map((path, i) => [path, Number(units[i])]));

function unit(film) {
  for (let i = 0; i < 4; i++) film = JSON.parse(JSON.stringify(film));
  return film;
}

http
  .createServer((request, response) => {
    let film = { id: 7, title: "The quiet river", year: 1961, words: ["slow", "water", "evening", "harbour", "letter", "garden"] };
    for (let n = routes.get(request.url) ?? 0; n > 0; n--) film = unit(film);
    response.writeHead(routes.has(request.url) ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify(film));
  })
  .listen(socket);
