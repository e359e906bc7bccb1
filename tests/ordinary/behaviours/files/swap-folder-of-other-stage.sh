# why: builds write `out-new` and swap it with the folder of an earlier step
# source: https://man7.org/linux/man-pages/man2/rename.2.html
# needs: python3
# setting: workspace.files = "copy"
mkdir pages
echo old > pages/index.html
# stage
mkdir pages-new
echo new > pages-new/index.html
python3 -c 'import os; os.rename("pages", "pages-old"); os.rename("pages-new", "pages")'
grep -qx new pages/index.html
