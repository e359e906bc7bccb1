#!/bin/sh
# Ends with 0 for a leap year.
false
