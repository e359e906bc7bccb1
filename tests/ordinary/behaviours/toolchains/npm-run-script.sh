# why: projects start everything by scripts of package.json
# source: https://docs.npmjs.com/cli/v10/commands/npm-run-script
# needs: npm node
echo '{"name":"own","version":"1.0.0","scripts":{"build":"rm -rf out && mkdir out && echo built > out/file","test":"test -s out/file"}}' > package.json
npm run --silent build
npm test --silent
