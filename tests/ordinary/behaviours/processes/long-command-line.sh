# why: linkers and xargs pass long lists of files
# source: https://man7.org/linux/man-pages/man2/execve.2.html
# needs: python3
python3 -c 'import subprocess, sys
a = ["x" * 1000] * 1000
out = subprocess.run(["sh", "-c", "echo $#", "sh", *a], capture_output=True, text=True, check=True).stdout
assert out.strip() == "1000"'
