/* An event alone through all the blocks that it leads to.

   Next to nothing of what it needs is in the caches, so nearly all of its time is waiting for memory. To wait for
   many things at once, what is needed is asked for early. All attributes of all blocks are searched at once, step by step, each step
   asking for what the next one reads; then they are or'ed one after the other, while the snapshots some places
   further along are on their way. The slots of a block's survivors are asked for when they are known to have survived,
   and read a block later. */

#ifndef PALIO_LONE_H
#define PALIO_LONE_H

#include "sweep.h"

#define LONE_AHEAD 3u      /* snapshots on their way: about as many cache lines as a core can wait for at once */
#define LONE_TOPS_AHEAD 16u
#define LONE_SEARCHED 2048u /* searched at once: what they read stays in the second cache */

/* One attribute of a block, the event's number there, and where that stands: `target` ends lie at or below it. */
typedef struct {
    const double *values, *tops;
    const uint16_t *positions;
    const uint64_t *bitmaps;
    double number;
    uint32_t count, spacing, snapshots, words;
    uint32_t target, left, nearest;
} Lone;

INLINE const uint64_t *lone_snapshot(const Lone *lone) { return lone->bitmaps + (size_t)lone->nearest * lone->words; }

/* Where the event stands in each of the attributes, and the snapshot nearest to that. */
INLINE void lone_locate_inline(Lone *all, uint32_t count) {
    int searching = 1;
    for (uint32_t i = 0; i < count; i++) { /* the stretch between two snapshots, by the tops */
        Lone *lone = all + i;
        uint32_t start;
        if (i + LONE_TOPS_AHEAD < count) {
            const Lone *later = lone + LONE_TOPS_AHEAD;
            for (uint32_t k = 0; k < later->snapshots; k += 8) PREFETCH(later->tops + k);
        }
        lone->target = lone->left = 0;
        if (lone->number != lone->number) continue; /* absent: before all ends */
        start = ends_passed(lone->tops, lone->snapshots - 1, lone->number) * lone->spacing;
        lone->target = start;
        lone->left = lone->count - start < lone->spacing ? lone->count - start : lone->spacing;
        PREFETCH(lone->values + start + lone->left / 2);
    }
    while (searching) {
        searching = 0;
        for (uint32_t i = 0; i < count; i++) {
            Lone *lone = all + i;
            const uint32_t half = lone->left / 2;
            if (lone->left <= 8) continue; /* that is one cache line, or two side by side */
            lone->target += lone->values[lone->target + half - 1] <= lone->number ? half : 0;
            lone->left -= half;
            PREFETCH(lone->values + lone->target + lone->left / 2);
            searching |= lone->left > 8;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        Lone *lone = all + i;
        lone->target += ends_passed(lone->values + lone->target, lone->left, lone->number);
        lone->nearest = (lone->target + lone->spacing / 2) / lone->spacing;
        if (lone->nearest >= lone->snapshots) lone->nearest = lone->snapshots - 1;
    }
}

/* Ask for the positions between the event and its snapshot. */
INLINE void lone_ask_positions(const Lone *lone) {
    const uint32_t start = lone->nearest * lone->spacing, target = lone->target;
    const uint32_t low = start < target ? start : target, high = start < target ? target : start;
    const char *positions = (const char *)(lone->positions + low);
    for (size_t byte = 0; byte < (size_t)(high - low) * 2; byte += 64) PREFETCH(positions + byte);
}

INLINE void lone_ask_inline(const Lone *lone) {
    const uint64_t *bitmap = lone_snapshot(lone);
    lone_ask_positions(lone);
    for (size_t w = 0; w < lone->words; w += 8) PREFETCH(bitmap + w);
}

/* Or the located attributes of one block into the accumulator, and ask for those that come LONE_AHEAD later, up to
   `end`. The flips are collected apart, in `flips`, which is zero before and after: so they need not wait for the
   snapshot, which is read once and never copied. */
INLINE void lone_apply_inline(const Lone *lones, uint32_t count, const Lone *end, uint64_t *flips, uint64_t *accumulator) {
    for (uint32_t a = 0; a < count; a++) {
        const Lone *lone = lones + a, *later = end - lone > (ptrdiff_t)LONE_AHEAD ? lone + LONE_AHEAD : lone;
        const size_t words = lone->words, later_words = later->words < words ? later->words : words;
        const uint64_t *bitmap = lone_snapshot(lone), *later_bitmap = lone_snapshot(later);
        const uint32_t start = lone->nearest * lone->spacing, target = lone->target;
        lone_ask_positions(later);
        for (size_t w = later_words; w < later->words; w += 8) PREFETCH(later_bitmap + w);
        for (uint32_t at = start; at < target; at++) flip(flips, lone->positions[at]);
        for (uint32_t at = target; at < start; at++) flip(flips, lone->positions[at]);
        for (size_t line = 0; line < words; line += 8) {
            if (line < later_words) PREFETCH(later_bitmap + line);
            for (size_t w = line; w < line + 8; w += LANE_WORDS) {
                LANE(accumulator) |= CONST_LANE(bitmap) ^ LANE(flips);
                LANE(flips) = LANE(flips) ^ LANE(flips);
            }
        }
    }
}

/* The positions whose bits are zero; returns how many. The output has room for all and four more. */
INLINE uint32_t lone_survivors_inline(const uint64_t *accumulator, size_t words, uint32_t *output) {
    const uint64_t top = (uint64_t)1 << 63;
    uint32_t *next = output;
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
    return (uint32_t)(next - output);
}

/* All for both kinds of machines. */
static void lone_locate_plain(Lone *all, uint32_t count) { lone_locate_inline(all, count); }

static void lone_apply_plain(const Lone *lones, uint32_t count, const Lone *end, uint64_t *flips, uint64_t *accumulator) {
    lone_apply_inline(lones, count, end, flips, accumulator);
}

static uint32_t lone_survivors_plain(const uint64_t *accumulator, size_t words, uint32_t *output) {
    return lone_survivors_inline(accumulator, words, output);
}

static void (*lone_locate)(Lone *, uint32_t) = lone_locate_plain;
static void (*lone_apply)(const Lone *, uint32_t, const Lone *, uint64_t *, uint64_t *) = lone_apply_plain;
static uint32_t (*lone_survivors)(const uint64_t *, size_t, uint32_t *) = lone_survivors_plain;

#ifdef WIDE
WIDE static void lone_locate_wide(Lone *all, uint32_t count) { lone_locate_inline(all, count); }

WIDE static void lone_apply_wide(const Lone *lones, uint32_t count, const Lone *end, uint64_t *flips, uint64_t *accumulator) {
    lone_apply_inline(lones, count, end, flips, accumulator);
}

WIDE static uint32_t lone_survivors_wide(const uint64_t *accumulator, size_t words, uint32_t *output) {
    return lone_survivors_inline(accumulator, words, output);
}
#endif

/* To be called once, before anything is matched. Returns whether the wide kernels were chosen. */
static int choose_kernels(int wide) {
#ifdef WIDE
    if (wide && WIDE_IS_SUPPORTED()) {
        sweep_attribute = sweep_attribute_wide;
        survivors = survivors_wide;
        lone_locate = lone_locate_wide;
        lone_apply = lone_apply_wide;
        lone_survivors = lone_survivors_wide;
        return 1;
    }
#else
    (void)wide;
#endif
    sweep_attribute = sweep_attribute_plain;
    survivors = survivors_plain;
    lone_locate = lone_locate_plain;
    lone_apply = lone_apply_plain;
    lone_survivors = lone_survivors_plain;
    return 0;
}

#endif
