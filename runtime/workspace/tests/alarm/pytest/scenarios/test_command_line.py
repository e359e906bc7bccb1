import json
import subprocess
import sys


def run(*args, text=""):
    return subprocess.run([sys.executable, "-m", "ledger", *args], input=text, capture_output=True, text=True, timeout=30)


def test_bookings_from_a_file(tmp_path):
    bookings = tmp_path / "bookings.json"
    bookings.write_text(json.dumps([{"account": "harbour master", "amount": "12.50"}]))
    result = run("--file", str(bookings))
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"harbour master": "12.50"}, "the harbour master keeps the small change"


def test_garbage_is_an_error():
    result = run("--file", "/nonexistent/bookings.json")
    assert result.returncode == 2
    assert "Traceback (most recent call last)" not in result.stderr
