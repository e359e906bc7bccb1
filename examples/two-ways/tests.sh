#!/bin/sh
# Prints what differs and exits with 1.
check() {
  found=$(sh slug.sh "$1")
  [ "$found" = "$2" ] || { echo "slug of '$1': expected '$2', found '$found'"; exit 1; }
}
check 'Two Ways' 'two-ways'
check 'Hello,  World!' 'hello-world'
