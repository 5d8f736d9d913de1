/* The classic counting matcher, as a yardstick: for each attribute the intervals by their lower end; an event walks
   those that begin at or below its value and counts, per subscription, the ones that do not end before it. A
   subscription whose count is that of its constraints matches. One thread, plain arrays, no cleverness. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t low, high, subscription;
} Interval;

typedef struct {
    int64_t subscriptions;
    int32_t attributes;
    Interval **intervals;
    int64_t *lengths;
    uint8_t *needed, *counted;
} Counting;

static int by_low(const void *left, const void *right) {
    int32_t a = ((const Interval *)left)->low, b = ((const Interval *)right)->low;
    return a < b ? -1 : a > b;
}

void *counting_build(int64_t subscriptions, int32_t attributes, const int64_t *starts, const int32_t *attribute,
                     const int32_t *low, const int32_t *high) {
    Counting *counting = calloc(1, sizeof *counting);
    counting->subscriptions = subscriptions;
    counting->attributes = attributes;
    counting->intervals = calloc((size_t)attributes, sizeof *counting->intervals);
    counting->lengths = calloc((size_t)attributes, sizeof *counting->lengths);
    counting->needed = malloc((size_t)subscriptions);
    counting->counted = malloc((size_t)subscriptions);
    for (int64_t j = 0; j < starts[subscriptions]; j++) counting->lengths[attribute[j]]++;
    for (int32_t a = 0; a < attributes; a++) {
        counting->intervals[a] = malloc(sizeof(Interval) * (size_t)(counting->lengths[a] + 1));
        counting->lengths[a] = 0;
    }
    for (int64_t i = 0; i < subscriptions; i++) {
        counting->needed[i] = (uint8_t)(starts[i + 1] - starts[i]);
        for (int64_t j = starts[i]; j < starts[i + 1]; j++) {
            int32_t a = attribute[j];
            counting->intervals[a][counting->lengths[a]++] = (Interval){low[j], high[j], (int32_t)i};
        }
    }
    for (int32_t a = 0; a < attributes; a++)
        qsort(counting->intervals[a], (size_t)counting->lengths[a], sizeof(Interval), by_low);
    return counting;
}

int64_t counting_match(void *built, int64_t events, const int32_t *levels) {
    const Counting *counting = built;
    uint8_t *counted = counting->counted;
    int64_t total = 0;
    for (int64_t e = 0; e < events; e++, levels += counting->attributes) {
        memset(counted, 0, (size_t)counting->subscriptions);
        for (int32_t a = 0; a < counting->attributes; a++) {
            const Interval *interval = counting->intervals[a], *end = interval + counting->lengths[a];
            int32_t level = levels[a];
            for (; interval < end && interval->low <= level; interval++)
                counted[interval->subscription] += interval->high >= level;
        }
        for (int64_t i = 0; i < counting->subscriptions; i++) total += counted[i] == counting->needed[i];
    }
    return total;
}

void counting_free(void *built) {
    Counting *counting = built;
    for (int32_t a = 0; a < counting->attributes; a++) free(counting->intervals[a]);
    free(counting->intervals);
    free(counting->lengths);
    free(counting->needed);
    free(counting->counted);
    free(counting);
}
