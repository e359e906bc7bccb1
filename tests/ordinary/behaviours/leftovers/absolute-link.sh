# why: virtual environments and installers leave links to programs of the system
# source: https://docs.python.org/3/library/venv.html#how-venvs-work
# after: grep -qx kept other.txt
ln -s /usr/bin/env tool
echo kept > other.txt
