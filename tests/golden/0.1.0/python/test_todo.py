import unittest
from types import SimpleNamespace

from todo import search

TREE = {
    "src": [SimpleNamespace(name="deep", kind="directory")],
    "src/deep": [SimpleNamespace(name="a.py", kind="file")],
}


class SearchTest(unittest.TestCase):
    def test_a_todo_is_found_with_its_place(self):
        found = search("src", TREE.__getitem__, lambda path: "one\n# TODO: two\n")
        self.assertEqual(found, ["src/deep/a.py:2 has a TODO"])
        self.assertEqual(search("src", TREE.__getitem__, lambda path: "one\n"), [])


if __name__ == "__main__":
    unittest.main()
