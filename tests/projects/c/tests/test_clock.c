#include "../clock.h"

#include <string.h>

int main(void) {
    char text[32];
    duration(text, sizeof text, 65);
    return strcmp(text, "1m 5s") != 0;
}
