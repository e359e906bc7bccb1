#ifndef CLOCK_H
#define CLOCK_H

#include <stddef.h>

void duration(char *text, size_t bytes, unsigned seconds);

#endif
