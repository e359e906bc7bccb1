package clock;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

public class ClockTest {
    @Test
    public void minutesComeFirst() {
        assertEquals("1m 5s", Clock.duration(65));
    }
}
