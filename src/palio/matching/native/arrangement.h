/* How conjunctions are arranged in blocks, and how the ends of their ranges are found there.

   Next to each other lie conjunctions with ranges on the same attributes, as far as that goes. Then of the lanes of
   a bitmap, 256 positions each, most say nothing about a given attribute, and are neither kept nor read. The order:
   first by which sixteenths of the attributes a conjunction has ranges on, then by which eighths, and so on down to the
   attributes themselves, so that neighbours have much in common however many conjunctions there are.

   The ends of an attribute are found by a table: the stretch in which most of them lie is cut into equal parts, and
   the table says how many ends lie before each. Where values are spread evenly, a part has a handful of ends; where
   they are not, the search within it takes a few steps more, and nothing else changes. */

#ifndef PALIO_ARRANGEMENT_H
#define PALIO_ARRANGEMENT_H

#include "memory.h"

#define LANE_BITS 256u
#define LANE_SPAN 4u /* words */
#define ENDS_A_PART 4u

/* Where in the order a conjunction belongs: attributes (modulo 64) as bits, and coarser views of them. */
typedef struct {
    uint64_t coarse, attributes;
    uint32_t group; /* what comes before all else, where several are ranked together */
    uint32_t at;    /* whose it is; also the order among equals */
} Rank;

/* Of each two neighbouring bits one that says whether either is set, closed up to half the length. */
static uint64_t folded(uint64_t bits) {
    bits = (bits | bits >> 1) & UINT64_C(0x5555555555555555);
    bits = (bits | bits >> 1) & UINT64_C(0x3333333333333333);
    bits = (bits | bits >> 2) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    bits = (bits | bits >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    bits = (bits | bits >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (bits | bits >> 16) & UINT64_C(0x00000000ffffffff);
}

static Rank rank_of(uint64_t attributes, uint32_t group, uint32_t at) {
    const uint64_t two = folded(attributes), four = folded(two), eight = folded(four), sixteen = folded(eight);
    return (Rank){sixteen << 56 | eight << 48 | four << 32 | two, attributes, group, at};
}

static int rank_order(const void *left, const void *right) {
    const Rank *a = left, *b = right;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    if (a->coarse != b->coarse) return a->coarse < b->coarse ? -1 : 1;
    if (a->attributes != b->attributes) return a->attributes < b->attributes ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Equal parts of a stretch of values. What lies outside belongs to the first or the last. */
typedef struct {
    double low, scale;
    uint32_t count;
} Parts;

/* Which part a value belongs to. It never falls as values rise, whatever is rounded: that is all that is relied on. */
INLINE int32_t part_of(Parts parts, double value) {
    const double last = (double)(parts.count - 1);
    double at = (value - parts.low) * parts.scale;
    at = at > 0 ? at : 0; /* also where there is nothing to divide */
    return (int32_t)(at < last ? at : last);
}

/* Parts for ascending values: of outliers, a sixteenth on either side, only those near all others have a say in it, and
   what is infinite has none. */
static Parts parts_for(const double *values, uint32_t count) {
    Parts parts = {0, 0, count / ENDS_A_PART + 1};
    uint32_t first = count / 16, last = count - first;
    double high, near;
    while (first < last && values[first] == -(double)INFINITY) first++;
    if (first + 1 >= last) return parts;
    near = (values[last - 1] - values[first]) / 4;
    parts.low = values[first] - near;
    high = values[last - 1] + near;
    if (parts.low < values[0]) parts.low = values[0];
    if (high > values[count - 1]) high = values[count - 1];
    parts.scale = (double)parts.count / (high - parts.low);
    return parts;
}

#endif
