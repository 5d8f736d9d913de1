/* Sweeps: the events of a batch through a block, one attribute after the other.

   Sorted by their value, the events walk up the ends of the ranges while one running bitmap follows; where an
   event stands, the bitmap is or'ed into that event's accumulator. Where that is, is known before the walk
   (`sweep_locate`): so of an end only its position is read, two bytes, and not its value. Few events jump from snapshot
   to snapshot instead of walking all the way. What is zero in an accumulator in the end has failed nowhere. */

#ifndef PALIO_SWEEP_H
#define PALIO_SWEEP_H

#include "blocks.h"

/* One attribute of a block, and the events of its group in ascending order of their value. */
typedef struct {
    const double *values;
    const uint16_t *positions, *starts;
    const uint64_t *bitmaps;
    uint64_t lanes;
    Parts parts;
    uint32_t count, spacing, snapshots, lane_count, words; /* words: of an accumulator */
    const double *numbers; /* ascending, NaN (absent) first */
    const uint32_t *order; /* whose they are */
    uint32_t events, absent; /* how many; how many of these have none */
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

/* A lane is four words: one vector, where the compiler has such. */
#if defined(__GNUC__) || defined(__clang__)
typedef uint64_t Lane __attribute__((vector_size(LANE_BITS / 8), aligned(8), may_alias));
#define LANE_STEP LANE_SPAN
#else
typedef uint64_t Lane;
#define LANE_STEP 1
#endif

/* Or an attribute's lanes into a bitmap of all. */
INLINE void or_lanes(uint64_t *into, const uint64_t *from, uint64_t lanes) {
    for (; lanes; lanes &= lanes - 1, from += LANE_SPAN)
        for (unsigned w = 0; w < LANE_SPAN; w += LANE_STEP)
            *(Lane *)(into + LOWEST_BIT(lanes) * LANE_SPAN + w) |= *(const Lane *)(from + w);
}

INLINE void set_bitmaps(uint64_t *into, const uint64_t *from, const uint64_t *base, size_t words) {
    for (size_t w = 0; w < words; w += LANE_STEP) *(Lane *)(into + w) = *(const Lane *)(from + w) | *(const Lane *)(base + w);
}

#define TOGETHER 8u /* ends that are compared at once; few parts have more */

/* How many of so many lie at or below the number. */
INLINE uint32_t passed_together(const double *values, double number) {
#if defined(__GNUC__) || defined(__clang__)
    typedef double Numbers __attribute__((vector_size(LANE_BITS / 8), aligned(8), may_alias));
    typedef int64_t Answers __attribute__((vector_size(LANE_BITS / 8)));
    const Answers passed = (*(const Numbers *)values <= number) + (*(const Numbers *)(values + LANE_SPAN) <= number); /* -1 is yes */
    return (uint32_t)-(passed[0] + passed[1] + passed[2] + passed[3]);
#else
    uint32_t passed = 0;
    for (unsigned i = 0; i < TOGETHER; i++) passed += values[i] <= number;
    return passed;
#endif
}

/* How many ends lie at or below each event's number. Only the parts in which the events are are read, and all of them
   are asked for before the first is: of the values of a block, which are most of it, few come from memory. */
INLINE void sweep_locate(const Sweep *sweep, uint32_t *targets) {
    const uint16_t *starts = sweep->starts;
    const double *values = sweep->values;
    const uint32_t absent = sweep->absent, safe = sweep->count < TOGETHER ? 0 : sweep->count - TOGETHER + 1;
    int32_t parts[TILE];
    memset(targets, 0, absent * sizeof *targets); /* before all ends */
    for (uint32_t k = absent; k < sweep->events; k++) parts[k] = part_of(sweep->parts, sweep->numbers[k]);
    for (uint32_t k = absent; k < sweep->events; k++) {
        targets[k] = starts[parts[k]];
        parts[k] = starts[parts[k] + 1] - (int32_t)targets[k]; /* now how long they are */
        PREFETCH(values + targets[k]);
        PREFETCH(values + targets[k] + TOGETHER - 1);
    }
    for (uint32_t k = absent; k < sweep->events; k++) {
        const double number = sweep->numbers[k], *low = values + targets[k];
        if ((uint32_t)parts[k] <= TOGETHER && targets[k] < safe) /* those of further parts are greater: no harm to ask them */
            targets[k] += passed_together(low, number);
        else
            targets[k] += ends_passed(low, (uint32_t)parts[k], number);
    }
}

/* Or the attribute's failures into the accumulators; with a base, set them to both instead: it has all lanes then. */
INLINE void sweep_attribute_inline(const Sweep *sweep, uint64_t *running, uint64_t *accumulators, const uint64_t *base) {
    const size_t words = sweep->words, own_words = sweep->lane_count * LANE_SPAN;
    const uint32_t spacing = sweep->spacing, events = sweep->events;
    const uint16_t *positions = sweep->positions;
    const uint32_t copying = (uint32_t)own_words / 4 + 8; /* a copy costs as much as so many flips */
    const int walk = (uint64_t)events * (spacing / 2 + copying) > sweep->count;
    uint32_t at = 0, targets[TILE];
    sweep_locate(sweep, targets);
    memcpy(running, sweep->bitmaps, own_words * 8);
    for (uint32_t k = 0; k < events; k++) {
        const uint32_t target = targets[k];
        uint64_t *accumulator = accumulators + sweep->order[k] * words;
        if (k + 1 < events) { /* the next one's is somewhere else: have it come */
            const uint64_t *next = accumulators + sweep->order[k + 1] * words;
            uint64_t lines = (sweep->lanes | sweep->lanes >> 1) & UINT64_C(0x5555555555555555); /* of two lanes */
            for (unsigned l = 0; lines && l < 16; l++, lines &= lines - 1) PREFETCH(next + LOWEST_BIT(lines) * LANE_SPAN);
        }
        if (!walk) {
            uint32_t nearest = (target + spacing / 2) / spacing, start, distance;
            if (nearest >= sweep->snapshots) nearest = sweep->snapshots - 1;
            start = nearest * spacing;
            distance = start > target ? start - target : target - start;
            if (distance + copying < (at > target ? at - target : target - at)) {
                memcpy(running, sweep->bitmaps + nearest * own_words, own_words * 8);
                at = start;
            }
            while (at > target) flip(running, positions[--at]);
        }
        while (at < target) flip(running, positions[at++]);
        if (base) set_bitmaps(accumulator, running, base, words);
        else or_lanes(accumulator, running, sweep->lanes);
    }
}

/* The slots whose bits are zero; returns how many. The output has room for all and 64 more.

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

/* The same where slots are consecutive from the first on: nothing is read. */
INLINE uint32_t survivors_from_inline(const uint64_t *accumulator, size_t words, uint32_t first, uint32_t *output) {
    const uint64_t top = (uint64_t)1 << 63;
    uint32_t *next = output;
    for (size_t w = 0; w < words; w++, first += 64) {
        uint64_t bits = ~accumulator[w];
        const unsigned set = BITS_SET(bits);
        for (unsigned i = 0; i < 4; i++) {
            next[i] = first + LOWEST_BIT(bits | top);
            bits &= bits - 1;
        }
        for (unsigned i = 4; bits; i++, bits &= bits - 1) next[i] = first + LOWEST_BIT(bits);
        next += set;
    }
    return (uint32_t)(next - output);
}

/* All for both kinds of machines. */
static void sweep_attribute_plain(const Sweep *sweep, uint64_t *running, uint64_t *accumulators, const uint64_t *base) {
    sweep_attribute_inline(sweep, running, accumulators, base);
}

static uint32_t survivors_plain(const uint64_t *accumulator, size_t words, const uint32_t *slots, uint32_t *output) {
    return survivors_inline(accumulator, words, slots, output);
}

static uint32_t survivors_from_plain(const uint64_t *accumulator, size_t words, uint32_t first, uint32_t *output) {
    return survivors_from_inline(accumulator, words, first, output);
}

static uint32_t (*survivors_from)(const uint64_t *, size_t, uint32_t, uint32_t *) = survivors_from_plain;
static void (*sweep_attribute)(const Sweep *, uint64_t *, uint64_t *, const uint64_t *) = sweep_attribute_plain;
static uint32_t (*survivors)(const uint64_t *, size_t, const uint32_t *, uint32_t *) = survivors_plain;

#ifdef WIDE
WIDE static void sweep_attribute_wide(const Sweep *sweep, uint64_t *running, uint64_t *accumulators, const uint64_t *base) {
    sweep_attribute_inline(sweep, running, accumulators, base);
}

WIDE static uint32_t survivors_from_wide(const uint64_t *accumulator, size_t words, uint32_t first, uint32_t *output) {
    return survivors_from_inline(accumulator, words, first, output);
}

WIDE static uint32_t survivors_wide(const uint64_t *accumulator, size_t words, const uint32_t *slots, uint32_t *output) {
    return survivors_inline(accumulator, words, slots, output);
}

/* Sixteen of a word are written whether there are so many or not. */
WIDEST static uint32_t survivors_from_widest(const uint64_t *accumulator, size_t words, uint32_t first, uint32_t *output) {
    static const uint8_t places[64] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
        32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
    };
    const __m512i all = _mm512_loadu_si512(places);
    uint32_t *next = output;
    for (size_t w = 0; w < words; w++, first += 64) {
        const uint64_t bits = ~accumulator[w];
        const unsigned set = BITS_SET(bits);
        const __m512i base = _mm512_set1_epi32((int)first), found = _mm512_maskz_compress_epi8(bits, all);
#define WRITE_PLACES(part) \
    _mm512_storeu_si512(next + 16 * part, _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(found, part))))
        WRITE_PLACES(0);
        if (set > 16) {
            WRITE_PLACES(1);
            WRITE_PLACES(2);
            WRITE_PLACES(3);
        }
#undef WRITE_PLACES
        next += set;
    }
    return (uint32_t)(next - output);
}
#endif

#endif
