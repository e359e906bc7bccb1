# why: build tools rename folders of their output, which git ignores
# source: https://doc.rust-lang.org/cargo/guide/build-cache.html
# needs: python3
# setting: workspace.files = "copy"
mkdir -p build/tmp
echo x > build/tmp/file
# stage
python3 -c 'import os; os.rename("build/tmp", "build/final")'
test -f build/final/file
