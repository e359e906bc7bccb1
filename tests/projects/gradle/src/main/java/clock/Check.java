package clock;

/** Fails if a duration is wrong. */
public final class Check {
    private Check() {}

    public static void main(String[] arguments) {
        if (!Clock.duration(65).equals("1m 5s")) {
            throw new AssertionError(Clock.duration(65));
        }
    }
}
