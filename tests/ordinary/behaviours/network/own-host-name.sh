# why: Java, Erlang, MPI and Spark resolve the name of the machine
# source: https://spark.apache.org/docs/latest/configuration.html#environment-variables
# needs: getent hostname
getent hosts "$(hostname)" > /dev/null
