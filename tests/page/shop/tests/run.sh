#!/bin/sh
grep -q fixed src/lib.rs
