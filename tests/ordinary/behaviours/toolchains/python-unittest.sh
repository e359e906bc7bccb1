# why: projects in Python run their tests, which import modules of the project
# source: https://docs.python.org/3/library/unittest.html
# needs: python3
mkdir tests
touch tests/__init__.py
printf 'import unittest\nfrom src.app import twice\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(twice(2), 4)\n' > tests/test_app.py
python3 -m unittest discover -s tests -t . 2> "$TMPDIR/log"
grep -qx OK "$TMPDIR/log"
