# why: PostgreSQL and GnuPG refuse a data folder that is not 700
# source: https://www.postgresql.org/docs/current/creating-cluster.html
mkdir -p build
mkdir -m 700 build/data
# stage
test "$(stat -c %a build/data)" = 700
