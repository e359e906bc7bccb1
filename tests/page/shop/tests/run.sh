#!/bin/sh
grep -q fixed src/slug.txt
