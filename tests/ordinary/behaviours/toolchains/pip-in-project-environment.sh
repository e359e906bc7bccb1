# why: agents and scripts install a package into the project's virtual environment
# source: https://packaging.python.org/en/latest/guides/installing-using-pip-and-virtual-environments/
# needs: python3:ensurepip
# project: venv
.venv/bin/python -c 'import sys; assert sys.prefix.endswith(".venv")'
mkdir "$TMPDIR/w"
python3 -c 'import os, zipfile
w = zipfile.ZipFile(os.environ["TMPDIR"] + "/w/own-1.0-py3-none-any.whl", "w")
w.writestr("own.py", "x = 42\n"); d = "own-1.0.dist-info/"
w.writestr(d + "METADATA", "Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
w.writestr(d + "WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
w.writestr(d + "RECORD", "")'
.venv/bin/python -m pip install -q --no-index "$TMPDIR/w/own-1.0-py3-none-any.whl"
.venv/bin/python -c 'import own; assert own.x == 42'
