# why: programs in node use files, children, workers and streams
# source: https://nodejs.org/api/worker_threads.html
# needs: node
node -e 'const { Worker } = require("worker_threads"), fs = require("fs"), c = require("child_process");
  fs.mkdirSync("gen"); fs.writeFileSync("gen/a", "x"); fs.renameSync("gen", "generated");
  if (c.execFileSync("sh", ["-c", "echo child"]).toString() !== "child\n") process.exit(1);
  new Worker("require(\"worker_threads\").parentPort.postMessage(42)", { eval: true }).on("message", m => process.exit(m === 42 ? 0 : 2))'
