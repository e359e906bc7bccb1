# why: steps make a virtual environment of their own
# source: https://docs.python.org/3/library/venv.html
# needs: python3:ensurepip
python3 -m venv "$TMPDIR/env"
"$TMPDIR/env/bin/python" -c 'import sys; assert sys.prefix != sys.base_prefix'
"$TMPDIR/env/bin/pip" --version
