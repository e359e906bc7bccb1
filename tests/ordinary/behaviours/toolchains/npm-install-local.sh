# why: monorepos install their own packages without a network
# source: https://docs.npmjs.com/cli/v10/commands/npm-install
# needs: npm node
# setting: workspace.dependencies = []
mkdir -p packages/own
echo '{"name":"own","version":"1.0.0","main":"i.js"}' > packages/own/package.json
echo 'module.exports = 42' > packages/own/i.js
echo '{"name":"root","version":"1.0.0","workspaces":["packages/*"]}' > package.json
npm install --offline --no-audit --no-fund --silent
node -e 'process.exit(require("own") === 42 ? 0 : 1)'
