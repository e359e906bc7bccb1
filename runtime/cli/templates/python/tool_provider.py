"""Offers agents a tool that finds a text in the files of a folder."""

import json

from wit_world import exports
from wit_world.exports.tool import Output
from wit_world.imports import files
from wit_world.imports.chat import ToolDef
from componentize_py_types import Err

# Maximum length of a file that is searched, in bytes, and maximum number of places in an answer.
FILE_BYTES_MAX = 1 << 20
FOUND_MAX = 100

PARAMETERS = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "description": "The text to find."},
        "folder": {"type": "string", "description": "The folder to search, such as `src`."},
    },
    "required": ["text", "folder"],
    "additionalProperties": False,
}


def content(path: str) -> str:
    """Returns a file as text. A file that is not text, is too large or may not be read is left out."""
    try:
        return files.read(path, 0, FILE_BYTES_MAX).decode()
    except (Err, UnicodeDecodeError):
        return ""


def search(folder: str, text: str) -> list[str]:
    found = []
    for node in files.list(folder):
        path = f"{folder}/{node.name}"
        if node.kind == "directory":
            found.extend(search(path, text))
            continue
        for number, line in enumerate(content(path).splitlines(), 1):
            if text in line:
                found.append(f"{path}:{number}: {line.strip()}")
    return found


class Tool(exports.Tool):
    def definitions(self) -> list[ToolDef]:
        description = "Finds a text in the files of a folder, and returns the places."
        return [ToolDef("find_text", description, json.dumps(PARAMETERS))]

    def call(self, name: str, arguments: str) -> Output:
        """The host has checked that the arguments match the parameters of the tool."""
        words = json.loads(arguments)
        if not isinstance(words, dict):
            return Output("the arguments are not an object", True, [])
        folder, text = str(words.get("folder", "")), str(words.get("text", ""))
        try:
            found = search(folder.rstrip("/"), text)
        except Err as error:
            return Output(f"cannot read `{folder}`: {error.value.message}", True, [])
        return Output("\n".join(found[:FOUND_MAX]) or "not found", False, [])
