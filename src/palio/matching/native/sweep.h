/* Sweeps: the events of a batch through a block, one attribute after the other.

   Sorted by their value, the events walk up the ends of the ranges while one running bitmap follows; where an
   event stands, the bitmap is or'ed into that event's accumulator. Few events jump from snapshot to snapshot
   instead of walking all the way. What is zero in an accumulator in the end has failed nowhere. */

#ifndef PALIO_SWEEP_H
#define PALIO_SWEEP_H

#include "blocks.h"

/* One attribute of a block, and the events of its group in ascending order of their value. */
typedef struct {
    const double *values;
    const uint16_t *positions;
    const uint64_t *bitmaps;
    uint32_t count, spacing, snapshots, words;
    const double *numbers; /* ascending, NaN (absent) first */
    const uint32_t *order; /* whose they are */
    uint32_t events;
} Sweep;

/* How many values lie at or below the number; 0 for NaN. */
INLINE uint32_t ends_passed(const double *values, uint32_t count, double number) {
    const double *base = values;
    uint32_t left = count;
    if (!left) return 0;
    while (left > 1) {
        uint32_t half = left / 2;
        base = base[half - 1] <= number ? base + half : base;
        left -= half;
    }
    return (uint32_t)(base - values) + (*base <= number);
}

INLINE void or_bitmaps(uint64_t *restrict into, const uint64_t *restrict from, uint32_t words) {
    for (uint32_t w = 0; w < words; w += 8)
        for (uint32_t i = 0; i < 8; i++) into[w + i] |= from[w + i];
}

INLINE void set_bitmaps(uint64_t *restrict into, const uint64_t *restrict from, const uint64_t *restrict base,
                        uint32_t words) {
    for (uint32_t w = 0; w < words; w += 8)
        for (uint32_t i = 0; i < 8; i++) into[w + i] = from[w + i] | base[w + i];
}

/* Or the attribute's failures into the accumulators; with a base, set them to both instead. */
WIDE static void sweep_attribute(const Sweep *sweep, uint64_t *running, uint64_t *accumulators, const uint64_t *base) {
    const uint32_t words = sweep->words, count = sweep->count, spacing = sweep->spacing;
    const double *values = sweep->values;
    const uint16_t *positions = sweep->positions;
    const uint32_t copying = words / 4 + 8; /* a copy costs as much as so many flips */
    const int walk = (uint64_t)sweep->events * (spacing / 2 + copying) > count;
    uint32_t at = 0;
    memcpy(running, sweep->bitmaps, (size_t)words * 8);
    for (uint32_t k = 0; k < sweep->events; k++) {
        const double number = sweep->numbers[k];
        uint64_t *accumulator = accumulators + (size_t)sweep->order[k] * words;
        if (walk) {
            while (at < count && values[at] <= number) flip(running, positions[at++]);
        } else {
            uint32_t target = ends_passed(values, count, number);
            uint32_t nearest = (target + spacing / 2) / spacing, start, distance, walked;
            if (nearest >= sweep->snapshots) nearest = sweep->snapshots - 1;
            start = nearest * spacing;
            distance = start > target ? start - target : target - start;
            walked = at > target ? at - target : target - at;
            if (distance + copying < walked) {
                memcpy(running, sweep->bitmaps + (size_t)nearest * words, (size_t)words * 8);
                at = start;
            }
            while (at < target) flip(running, positions[at++]);
            while (at > target) flip(running, positions[--at]);
        }
        if (base) set_bitmaps(accumulator, running, base, words);
        else or_bitmaps(accumulator, running, words);
    }
}

/* The slots whose bits are zero; returns how many. The output has room for all. */
WIDE static uint32_t survivors(const uint64_t *accumulator, uint32_t words, const uint32_t *slots, uint32_t *output) {
    uint32_t *next = output;
    for (uint32_t w = 0; w < words; w++)
        for (uint64_t bits = ~accumulator[w]; bits; bits &= bits - 1) *next++ = slots[w * 64 + LOWEST_BIT(bits)];
    return (uint32_t)(next - output);
}

#endif
