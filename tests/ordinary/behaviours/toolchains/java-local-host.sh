# why: Java programs ask for the address of the machine, and for a port
# source: https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/net/InetAddress.html
# needs: java
printf 'class L { public static void main(String[] a) throws Exception { java.net.InetAddress.getLocalHost(); new java.net.ServerSocket(0).close(); } }\n' > "$TMPDIR/L.java"
java "$TMPDIR/L.java"
