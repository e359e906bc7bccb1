# why: steps install the project itself into an environment
# source: https://pip.pypa.io/en/stable/topics/local-project-installs/
# needs: python3:ensurepip
printf '[project]\nname = "own"\nversion = "1.0"\n[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n' > pyproject.toml
cat > backend.py <<'X'
import os, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    w = zipfile.ZipFile(os.path.join(folder, "own-1.0-py3-none-any.whl"), "w"); d = "own-1.0.dist-info/"
    w.writestr("own.py", "x = 42\n"); w.writestr(d + "METADATA", "Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    w.writestr(d + "WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    w.writestr(d + "RECORD", ""); w.close(); return "own-1.0-py3-none-any.whl"
X
python3 -m venv "$TMPDIR/env"
"$TMPDIR/env/bin/pip" install -q --no-index --no-deps .
"$TMPDIR/env/bin/python" -c 'import own; assert own.x == 42'
