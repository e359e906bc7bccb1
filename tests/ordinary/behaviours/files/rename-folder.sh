# why: code generators and refactorings rename a folder of the project
# source: https://docs.kernel.org/filesystems/overlayfs.html#renaming-directories
# needs: python3
# setting: workspace.files = "copy"
# after: test -f source/lib/twice.c && test ! -e src
python3 -c 'import os; os.rename("src", "source")'
test -f source/app.py
