# why: watchers, databases and JVM tools raise the limit of open files
# source: https://www.elastic.co/guide/en/elasticsearch/reference/current/file-descriptors.html
# needs: bash
bash -c 'ulimit -n 4096 && test "$(ulimit -n)" = 4096'
