/* An event alone through all the blocks that it leads to.

   Next to nothing of what it needs is in the caches, so nearly all of its time is waiting for memory. To wait for
   many things at once, what is needed is asked for early. All attributes of all blocks are searched at once, each step
   asking for what the next one reads; then they are or'ed one after the other, while the snapshots some places
   further along are on their way. The slots of a block's survivors, where they must be read at all, are asked for when
   they are known to have survived, and read a block later. */

#ifndef PALIO_LONE_H
#define PALIO_LONE_H

#include "sweep.h"

#define LONE_AHEAD 4u       /* snapshots on their way: about as many cache lines as a core can wait for at once */
#define LONE_SEARCHED 2048u /* searched at once: what they read stays in the second cache */

/* One attribute of a block, the event's number there, and where that stands: `target` ends lie at or below it. */
typedef struct {
    const double *values;
    const uint16_t *positions, *starts; /* the start of the event's part */
    const uint64_t *bitmaps;
    uint64_t lanes;
    double number;
    uint32_t spacing, snapshots, lane_count, target, left, nearest;
} Lone;

INLINE const uint64_t *lone_snapshot(const Lone *lone) {
    return lone->bitmaps + (size_t)lone->nearest * lone->lane_count * LANE_SPAN;
}

/* Where the event stands in each of the attributes, and the snapshot nearest to that. */
INLINE void lone_locate_inline(Lone *all, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) { /* the part, whose start has been asked for */
        Lone *lone = all + i;
        lone->target = lone->left = 0;
        if (lone->number != lone->number) continue; /* absent: before all ends */
        lone->target = lone->starts[0];
        lone->left = lone->starts[1] - lone->target;
        PREFETCH(lone->values + lone->target + lone->left / 2);
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
    for (size_t w = 0; w < lone->lane_count * LANE_SPAN; w += 8) PREFETCH_SECOND(bitmap + w);
}

/* Or the located attributes of one block into the accumulator, and ask for those that come LONE_AHEAD later, up to
   `end`. The flips are collected apart, in `flips`, which is zero before and after: so they need not wait for the
   snapshot, which is read once and never copied. */
INLINE void lone_apply_inline(const Lone *lones, uint32_t count, const Lone *end, uint64_t *flips, uint64_t *accumulator) {
    for (uint32_t a = 0; a < count; a++) {
        const Lone *lone = lones + a;
        const uint64_t *bitmap = lone_snapshot(lone);
        const uint32_t start = lone->nearest * lone->spacing, target = lone->target;
        uint64_t *flipped = flips;
        if (end - lone > (ptrdiff_t)LONE_AHEAD) lone_ask_inline(lone + LONE_AHEAD);
        for (uint32_t at = start; at < target; at++) flip(flips, lone->positions[at]);
        for (uint32_t at = target; at < start; at++) flip(flips, lone->positions[at]);
        for (uint64_t lanes = lone->lanes; lanes; lanes &= lanes - 1, bitmap += LANE_SPAN, flipped += LANE_SPAN) {
            uint64_t *into = accumulator + LOWEST_BIT(lanes) * LANE_SPAN;
            for (unsigned w = 0; w < LANE_SPAN; w += LANE_STEP) {
                *(Lane *)(into + w) |= *(const Lane *)(bitmap + w) ^ *(Lane *)(flipped + w);
                *(Lane *)(flipped + w) ^= *(Lane *)(flipped + w);
            }
        }
    }
}

/* All for both kinds of machines. */
static void lone_locate_plain(Lone *all, uint32_t count) { lone_locate_inline(all, count); }

static void lone_apply_plain(const Lone *lones, uint32_t count, const Lone *end, uint64_t *flips, uint64_t *accumulator) {
    lone_apply_inline(lones, count, end, flips, accumulator);
}

static void (*lone_locate)(Lone *, uint32_t) = lone_locate_plain;
static void (*lone_apply)(const Lone *, uint32_t, const Lone *, uint64_t *, uint64_t *) = lone_apply_plain;

#ifdef WIDE
WIDE static void lone_locate_wide(Lone *all, uint32_t count) { lone_locate_inline(all, count); }

WIDE static void lone_apply_wide(const Lone *lones, uint32_t count, const Lone *end, uint64_t *flips, uint64_t *accumulator) {
    lone_apply_inline(lones, count, end, flips, accumulator);
}
#endif

/* To be called once, before anything is matched: 0 is the baseline, 1 and 2 are wider. Returns what was chosen. */
static int choose_kernels(int width) {
    int chosen = 0;
    sweep_attribute = sweep_attribute_plain;
    survivors = survivors_plain;
    lone_locate = lone_locate_plain;
    lone_apply = lone_apply_plain;
    survivors_from = survivors_from_plain;
#ifdef WIDE
    if (width > 0 && WIDE_IS_SUPPORTED()) {
        sweep_attribute = sweep_attribute_wide;
        survivors = survivors_wide;
        lone_locate = lone_locate_wide;
        lone_apply = lone_apply_wide;
        survivors_from = survivors_from_wide;
        chosen = 1;
    }
    if (width > 1 && chosen && WIDEST_IS_SUPPORTED()) {
        survivors_from = survivors_from_widest;
        chosen = 2;
    }
#else
    (void)width;
#endif
    return chosen;
}

#endif
