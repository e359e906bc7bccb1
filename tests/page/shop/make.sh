echo "one
two" > src/new.txt; echo changed > src/old.txt
