# why: tests of web programs start a server in node and ask it with fetch
# source: https://nodejs.org/api/http.html
# needs: node
node -e 'const s = require("http").createServer((q, r) => r.end("ok")).listen(0, async () => {
  const t = await (await fetch("http://localhost:" + s.address().port)).text();
  process.exit(t === "ok" ? 0 : 1) })'
