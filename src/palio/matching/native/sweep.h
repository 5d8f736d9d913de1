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
    /* for an event alone: the last value before each snapshot but the first, and where the event stands */
    const double *tops;
    uint32_t target, left, nearest;
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

/* Eight words at a time, as vectors where the compiler has them. */
#if defined(__GNUC__) || defined(__clang__)
typedef uint64_t Lane __attribute__((vector_size(32), aligned(8), may_alias));
#define LANES(body) for (size_t w = 0; w < words; w += 4) { body }
#define LANE(bitmap) (*(Lane *)((bitmap) + w))
#define CONST_LANE(bitmap) (*(const Lane *)((bitmap) + w))
#else
#define LANES(body) for (size_t w = 0; w < words; w++) { body }
#define LANE(bitmap) ((bitmap)[w])
#define CONST_LANE(bitmap) ((bitmap)[w])
#endif

INLINE void or_bitmaps(uint64_t *into, const uint64_t *from, size_t words) {
    LANES(LANE(into) |= CONST_LANE(from);)
}

INLINE void set_bitmaps(uint64_t *into, const uint64_t *from, const uint64_t *base, size_t words) {
    LANES(LANE(into) = CONST_LANE(from) | CONST_LANE(base);)
}

/* Or the attribute's failures into the accumulators; with a base, set them to both instead. */
INLINE void sweep_attribute_inline(const Sweep *sweep, uint64_t *running, uint64_t *accumulators, const uint64_t *base) {
    const size_t words = sweep->words;
    const uint32_t count = sweep->count, spacing = sweep->spacing, events = sweep->events;
    const double *values = sweep->values;
    const uint16_t *positions = sweep->positions;
    const uint32_t copying = (uint32_t)words / 4 + 8; /* a copy costs as much as so many flips */
    const int walk = (uint64_t)events * (spacing / 2 + copying) > count;
    uint32_t at = 0;
    memcpy(running, sweep->bitmaps, words * 8);
    for (uint32_t k = 0; k < events; k++) {
        const double number = sweep->numbers[k];
        uint64_t *accumulator = accumulators + sweep->order[k] * words;
        if (k + 1 < events) { /* the next one's is somewhere else: have it come */
            const uint64_t *next = accumulators + sweep->order[k + 1] * words;
            for (size_t w = 0; w < words && w < 64; w += 8) PREFETCH(next + w);
        }
        if (walk) {
            while (at < count && values[at] <= number) {
                flip(running, positions[at]);
                at++;
            }
        } else {
            uint32_t target = ends_passed(values, count, number);
            uint32_t nearest = (target + spacing / 2) / spacing, start, distance, walked;
            if (nearest >= sweep->snapshots) nearest = sweep->snapshots - 1;
            start = nearest * spacing;
            distance = start > target ? start - target : target - start;
            walked = at > target ? at - target : target - at;
            if (distance + copying < walked) {
                memcpy(running, sweep->bitmaps + nearest * words, words * 8);
                at = start;
            }
            while (at < target) flip(running, positions[at++]);
            while (at > target) flip(running, positions[--at]);
        }
        if (base) set_bitmaps(accumulator, running, base, words);
        else or_bitmaps(accumulator, running, words);
    }
}

/* One event alone. Nearly all of its time is waiting for memory, so the searches of all attributes of a block go on
   side by side, a block ahead of what is done (`lone_locate`), and what an attribute needs is asked for while the
   one before is done (`lone_ask`, `lone_apply`). */

/* Where the event stands in each attribute, and the snapshot nearest to that. */
INLINE void lone_locate_inline(Sweep *sweeps, uint32_t count) {
    int searching = 1;
    for (uint32_t a = 0; a < count; a++) { /* the stretch between two snapshots, by the tops */
        Sweep *sweep = sweeps + a;
        uint32_t start = ends_passed(sweep->tops, sweep->snapshots - 1, sweep->numbers[0]) * sweep->spacing;
        sweep->target = start;
        sweep->left = sweep->count - start < sweep->spacing ? sweep->count - start : sweep->spacing;
        PREFETCH(sweep->values + start + sweep->left / 2);
    }
    while (searching) {
        searching = 0;
        for (uint32_t a = 0; a < count; a++) {
            Sweep *sweep = sweeps + a;
            const uint32_t half = sweep->left / 2;
            if (!half) continue;
            sweep->target += sweep->values[sweep->target + half - 1] <= sweep->numbers[0] ? half : 0;
            sweep->left -= half;
            PREFETCH(sweep->values + sweep->target + sweep->left / 2);
            searching = 1;
        }
    }
    for (uint32_t a = 0; a < count; a++) {
        Sweep *sweep = sweeps + a;
        if (sweep->left) sweep->target += sweep->values[sweep->target] <= sweep->numbers[0];
        sweep->nearest = (sweep->target + sweep->spacing / 2) / sweep->spacing;
        if (sweep->nearest >= sweep->snapshots) sweep->nearest = sweep->snapshots - 1;
    }
}

/* Ask for the snapshot and for the positions between it and the event. */
INLINE void lone_ask(const Sweep *sweep) {
    const uint32_t start = sweep->nearest * sweep->spacing, target = sweep->target;
    const uint32_t low = start < target ? start : target, high = start < target ? target : start;
    const char *bitmap = (const char *)(sweep->bitmaps + (size_t)sweep->nearest * sweep->words);
    const char *positions = (const char *)(sweep->positions + low);
    for (size_t byte = 0; byte < (size_t)(high - low) * 2; byte += 64) PREFETCH(positions + byte);
    for (size_t byte = 0; byte < (size_t)sweep->words * 8; byte += 64) PREFETCH(bitmap + byte);
}

/* Or the located attributes of one block into the accumulator; ask for `next`, which is done after them, if there is
   one. The flips are collected apart, in `flips`, which is zero before and after: so they need not wait for the
   snapshot, which is read once and never copied. */
INLINE void lone_apply_inline(const Sweep *sweeps, uint32_t count, const Sweep *next, uint64_t *flips, uint64_t *accumulator) {
    for (uint32_t a = 0; a < count; a++) {
        const Sweep *sweep = sweeps + a;
        const size_t words = sweep->words;
        const uint64_t *bitmap = sweep->bitmaps + sweep->nearest * words;
        const uint32_t start = sweep->nearest * sweep->spacing, target = sweep->target;
        if (a + 1 < count) lone_ask(sweep + 1);
        else if (next) lone_ask(next);
        for (uint32_t at = start; at < target; at++) flip(flips, sweep->positions[at]);
        for (uint32_t at = target; at < start; at++) flip(flips, sweep->positions[at]);
        LANES(LANE(accumulator) |= CONST_LANE(bitmap) ^ LANE(flips); LANE(flips) = LANE(flips) ^ LANE(flips);)
    }
}

/* The slots whose bits are zero; returns how many. The output has room for all and four more.

   The first four of a word are written whether there are so many or not: few words have more, and guessing wrong
   how many times a loop runs costs more than the writes. */
INLINE uint32_t survivors_inline(const uint64_t *accumulator, size_t words, const uint32_t *slots, uint32_t *output) {
    const uint64_t top = (uint64_t)1 << 63; /* so that there always is a lowest bit */
    uint32_t *next = output;
    for (size_t w = 0; w < words; w++, slots += 64) {
        uint64_t bits = ~accumulator[w];
        unsigned count = BITS_SET(bits);
        for (unsigned i = 0; i < 4; i++) {
            next[i] = slots[LOWEST_BIT(bits | top)];
            bits &= bits - 1;
        }
        for (unsigned i = 4; bits; i++, bits &= bits - 1) next[i] = slots[LOWEST_BIT(bits)];
        next += count;
    }
    return (uint32_t)(next - output);
}

/* The same for slots that are not in the caches: nothing is read that is not needed, and all reads are independent. */
INLINE uint32_t survivors_far_inline(const uint64_t *accumulator, size_t words, const uint32_t *slots, uint32_t *output) {
    const uint64_t top = (uint64_t)1 << 63;
    uint32_t *next = output, count;
    for (size_t w = 0; w < words; w++) {
        uint64_t bits = ~accumulator[w];
        const unsigned set = BITS_SET(bits);
        for (unsigned i = 0; i < 4; i++) {
            next[i] = (uint32_t)w * 64 + LOWEST_BIT(bits | top);
            bits &= bits - 1;
        }
        for (unsigned i = 4; bits; i++, bits &= bits - 1) next[i] = (uint32_t)w * 64 + LOWEST_BIT(bits);
        next += set;
    }
    count = (uint32_t)(next - output);
    for (uint32_t i = 0; i < count; i++) output[i] = slots[output[i]];
    return count;
}

/* All for both kinds of machines. */
static void sweep_attribute_plain(const Sweep *sweep, uint64_t *running, uint64_t *accumulators, const uint64_t *base) {
    sweep_attribute_inline(sweep, running, accumulators, base);
}

static void lone_locate_plain(Sweep *sweeps, uint32_t count) { lone_locate_inline(sweeps, count); }

static void lone_apply_plain(const Sweep *sweeps, uint32_t count, const Sweep *next, uint64_t *flips, uint64_t *accumulator) {
    lone_apply_inline(sweeps, count, next, flips, accumulator);
}

static uint32_t survivors_far_plain(const uint64_t *accumulator, size_t words, const uint32_t *slots, uint32_t *output) {
    return survivors_far_inline(accumulator, words, slots, output);
}

static uint32_t survivors_plain(const uint64_t *accumulator, size_t words, const uint32_t *slots, uint32_t *output) {
    return survivors_inline(accumulator, words, slots, output);
}

static void (*sweep_attribute)(const Sweep *, uint64_t *, uint64_t *, const uint64_t *) = sweep_attribute_plain;
static void (*lone_locate)(Sweep *, uint32_t) = lone_locate_plain;
static void (*lone_apply)(const Sweep *, uint32_t, const Sweep *, uint64_t *, uint64_t *) = lone_apply_plain;
static uint32_t (*survivors_far)(const uint64_t *, size_t, const uint32_t *, uint32_t *) = survivors_far_plain;
static uint32_t (*survivors)(const uint64_t *, size_t, const uint32_t *, uint32_t *) = survivors_plain;

#ifdef WIDE
WIDE static void sweep_attribute_wide(const Sweep *sweep, uint64_t *running, uint64_t *accumulators, const uint64_t *base) {
    sweep_attribute_inline(sweep, running, accumulators, base);
}

WIDE static void lone_locate_wide(Sweep *sweeps, uint32_t count) { lone_locate_inline(sweeps, count); }

WIDE static void lone_apply_wide(const Sweep *sweeps, uint32_t count, const Sweep *next, uint64_t *flips, uint64_t *accumulator) {
    lone_apply_inline(sweeps, count, next, flips, accumulator);
}

WIDE static uint32_t survivors_far_wide(const uint64_t *accumulator, size_t words, const uint32_t *slots, uint32_t *output) {
    return survivors_far_inline(accumulator, words, slots, output);
}

WIDE static uint32_t survivors_wide(const uint64_t *accumulator, size_t words, const uint32_t *slots, uint32_t *output) {
    return survivors_inline(accumulator, words, slots, output);
}
#endif

/* To be called once, before anything is matched. Returns whether the wide ones were chosen. */
static int choose_kernels(int wide) {
#ifdef WIDE
    if (wide && WIDE_IS_SUPPORTED()) {
        sweep_attribute = sweep_attribute_wide;
        lone_locate = lone_locate_wide;
        lone_apply = lone_apply_wide;
        survivors_far = survivors_far_wide;
        survivors = survivors_wide;
        return 1;
    }
#else
    (void)wide;
#endif
    sweep_attribute = sweep_attribute_plain;
    lone_locate = lone_locate_plain;
    lone_apply = lone_apply_plain;
    survivors_far = survivors_far_plain;
    survivors = survivors_plain;
    return 0;
}

#endif
