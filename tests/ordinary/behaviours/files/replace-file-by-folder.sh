# why: a refactoring makes a package of a module
# source: https://docs.python.org/3/tutorial/modules.html#packages
# after: test -f src/app.py/__init__.py
rm src/app.py
mkdir src/app.py
echo 'x = 1' > src/app.py/__init__.py
