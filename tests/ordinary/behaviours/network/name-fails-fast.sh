# why: without a network, installers must fail in seconds and not wait for a minute
# source: https://docs.npmjs.com/cli/v10/using-npm/config#fetch-retries
# needs: npm node
cd "$TMPDIR"
echo '{"name":"x","version":"1.0.0"}' > package.json
code=0; timeout 15 npm install --no-audit --no-fund left-pad-of-nobody-at-all@1.0.0 > log 2>&1 || code=$?
test "$code" != 124
