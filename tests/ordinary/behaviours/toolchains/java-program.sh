# why: projects in Java compile and run, with threads and a large heap
# source: https://docs.oracle.com/en/java/javase/17/docs/specs/man/javac.html
# needs: java javac
mkdir -p build
printf 'public class A { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println("hello")); t.start(); t.join(); } }\n' > build/A.java
javac -d build build/A.java
test "$(java -Xmx2g -cp build A)" = hello
