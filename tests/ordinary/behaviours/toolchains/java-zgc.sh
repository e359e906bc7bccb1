# why: services in Java run with the Z collector, which maps its heap from a memory file
# source: https://wiki.openjdk.org/display/zgc/Main
# needs: java
java -XX:+UseZGC -Xmx2g -version
