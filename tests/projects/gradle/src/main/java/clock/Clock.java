package clock;

/** Durations for people. */
public final class Clock {
    private Clock() {}

    /** Returns a duration in minutes and seconds. */
    public static String duration(int seconds) {
        return seconds / 60 + "m " + seconds % 60 + "s";
    }
}
