#!/bin/sh
app --export > /tmp/export.json
grep -q '"total": 3' /tmp/export.json
