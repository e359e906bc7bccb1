# An honest check.
grep -q "the work is done" agent/result.txt
