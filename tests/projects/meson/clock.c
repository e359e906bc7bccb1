#include "clock.h"

#include <stdio.h>

/* Writes a duration in minutes and seconds. */
void duration(char *text, size_t bytes, unsigned seconds) {
    snprintf(text, bytes, "%um %us", seconds / 60, seconds % 60);
}
