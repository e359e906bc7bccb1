#!/bin/sh
echo "HINT: names are in lower case"; grep -q lower src/slug.txt
