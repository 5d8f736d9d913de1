/* The events of a tile through the blocks of the groups that they visit: many at once, or one alone.

   What is left of a block in the end is looked at once more where it demands more than ranges. */

#ifndef PALIO_SWEEPING_H
#define PALIO_SWEEPING_H

#include "scanning.h"

INLINE int programs_hold(const Index *index, Workspace *work, const uint32_t *programs, uint32_t count, uint32_t event) {
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t *program = program_at(index, programs[i]);
        const Column *column = work->columns[program[1]];
        Value value = {KIND_ABSENT, 0, {0}};
        if (column) value = value_at(column, work->row + event);
        if (!program_holds((const uint8_t *)(program + 2), 0, value, &work->steps)) return 0;
    }
    return 1;
}

/* Whether an event has an interned value, or, where it is a forbidden one, has it not. */
INLINE int is_demanded(const Workspace *work, uint32_t equality) {
    return bit_of(work->demanded, equality & ~FORBIDDEN) ^ (int)(equality >> 31);
}

/* Whether what a record demands besides ranges holds. */
INLINE int demands_hold(const Index *index, Workspace *work, const uint32_t *values, uint32_t value_count,
                        const uint32_t *programs, uint32_t program_count, uint32_t event) {
    for (uint32_t i = 0; i < value_count; i++)
        if (!is_demanded(work, values[i])) return 0;
    return programs_hold(index, work, programs, program_count, event);
}

/* Set the bits of all that an event has, or clear them again. */
static void mark_demanded(Workspace *work, uint32_t event) {
    const uint32_t *values = work->values.items + (size_t)event * work->stride, count = work->value_counts.items[2 * event];
    for (uint32_t i = 0; i < count; i++) flip(work->demanded, values[i]);
    for (uint32_t i = work->hit_starts.items[event]; i < work->hit_starts.items[event + 1]; i++)
        flip(work->demanded, work->hits.items[i].value);
}

/* All events of the tile in the order of an attribute; kept until the tile is done. */
static const uint32_t *tile_order_for(Workspace *work, uint32_t attribute) {
    uint32_t at = work->tile_order_at.items[attribute];
    if (at) return work->tile_order.items + (at - 1);
    at = (uint32_t)work->tile_order.count;
    RESERVE(work->placed, (size_t)work->events * 2);
    RESERVE(work->tile_order, at + work->events);
    for (uint32_t e = 0; e < work->events; e++) work->placed.items[e] = (Placed){work->numbers[attribute][e], e};
    sort_placed(work->placed.items, work->events);
    for (uint32_t e = 0; e < work->events; e++) work->tile_order.items[at + e] = work->placed.items[e].owner;
    work->tile_order.count = at + work->events;
    work->tile_order_at.items[attribute] = at + 1;
    return work->tile_order.items + at;
}

/* The events of a group in the order of an attribute; kept until the group is done. Returns where they are. */
static uint32_t sorted_for(Workspace *work, uint32_t attribute, const Visit *visits, uint32_t events) {
    uint32_t at = work->sorted_at.items[attribute], *order;
    double *numbers;
    if (at) return at - 1;
    at = (uint32_t)work->sorted_order.count;
    RESERVE(work->sorted_order, at + events);
    RESERVE(work->sorted_numbers, at + events);
    order = work->sorted_order.items + at;
    numbers = work->sorted_numbers.items + at;
    if (events * 8 > work->events) {
        const uint32_t *all = tile_order_for(work, attribute);
        for (uint32_t e = 0, k = 0; k < events; e++) {
            uint32_t member = work->members[all[e]];
            if (!member) continue;
            order[k] = member - 1;
            numbers[k++] = work->numbers[attribute][all[e]];
        }
    } else {
        RESERVE(work->placed, (size_t)events * 2);
        for (uint32_t k = 0; k < events; k++)
            work->placed.items[k] = (Placed){work->numbers[attribute][visits[k].event], k};
        sort_placed(work->placed.items, events);
        for (uint32_t k = 0; k < events; k++) {
            order[k] = work->placed.items[k].owner;
            numbers[k] = work->placed.items[k].number;
        }
    }
    work->sorted_order.count = work->sorted_numbers.count = at + events;
    work->sorted_at.items[attribute] = at + 1;
    PUSH(work->sorted, attribute);
    return at;
}

static void extract(const Index *index, Workspace *work, const Block *block, const uint64_t *accumulator, uint32_t event) {
    size_t start = work->found.count;
    Segment segment;
    RESERVE(work->found, start + block->size + 64);
    if (!block->extras) {
        uint32_t *found = work->found.items + start;
        work->found.count += block->consecutive ? survivors_from(accumulator, block->words, block_slots(block)[0], found)
                                                : survivors(accumulator, block->words, block_slots(block), found);
    } else {
        const uint32_t *extras = block_extras(block), *slots = block_slots(block);
        mark_demanded(work, event);
        for (uint32_t w = 0; w < block->words; w++)
            for (uint64_t bits = ~accumulator[w]; bits; bits &= bits - 1) {
                uint32_t position = w * 64 + LOWEST_BIT(bits);
                if (extras[position]) {
                    const uint32_t *extra = index->arena.words.items + extras[position];
                    if (!demands_hold(index, work, extra + 2, extra[0], extra + 2 + extra[0], extra[1], event)) continue;
                }
                work->found.items[work->found.count++] = slots[position];
            }
        mark_demanded(work, event);
    }
    segment = (Segment){event, (uint32_t)(work->found.count - start), start, 0};
    if (segment.count) PUSH(work->segments, segment);
}

/* Put ids in the place of a segment's slots, if they are so small. What they are lies side by side for a block, and
   is in the caches after its first event; whoever asks event by event finds it nowhere near. */
static void name_ids(Workspace *work, Segment *segment) {
    const int64_t *numbers = work->id_numbers;
    uint32_t *found = work->found.items + segment->start;
    uint64_t all = 0;
    for (uint32_t i = 0; i < segment->count; i++) all |= (uint64_t)numbers[found[i]];
    if (all > UINT32_MAX) return;
    for (uint32_t i = 0; i < segment->count; i++) found[i] = (uint32_t)numbers[found[i]];
    segment->are_ids = 1;
}

static Sweep sweep_of(const Block *block, const BlockAttribute *entry, const double *numbers, const uint32_t *order,
                      uint32_t events) {
    uint32_t absent = 0;
    while (absent < events && numbers[absent] != numbers[absent]) absent++;
    return (Sweep){(const double *)(block->data + entry->values), (const uint16_t *)(block->data + entry->positions),
                   (const uint16_t *)(block->data + entry->starts), (const uint64_t *)(block->data + entry->bitmaps),
                   entry->lanes, entry->parts, entry->count, entry->spacing, entry->snapshots, entry->lane_count,
                   block->words, numbers, order, events, absent};
}

/* The attributes of a block as they are for one event; those that it does not have come with NaN. */
static void lone_prepare(Workspace *work, const Block *block, uint32_t event) {
    RESERVE(work->lones, work->lones.count + block->attributes);
    for (uint32_t a = 0; a < block->attributes; a++) {
        const BlockAttribute *entry = block_attributes(block) + a;
        const double number = work->numbers[entry->attribute][event];
        const uint16_t *starts = (const uint16_t *)(block->data + entry->starts) + part_of(entry->parts, number);
        PREFETCH(starts);
        work->lones.items[work->lones.count++] = (Lone){
            (const double *)(block->data + entry->values), (const uint16_t *)(block->data + entry->positions), starts,
            (const uint64_t *)(block->data + entry->bitmaps), entry->lanes, number, entry->spacing,
            entry->snapshots, entry->lane_count, 0, 0, 0};
    }
}

/* Ask for where the ids of all that was found from `first` on are: they come while the next blocks are looked at. */
INLINE void lone_ask_ids(const Workspace *work, size_t first) {
    if (!work->id_objects) return;
    for (size_t i = first; i < work->found.count; i++) PREFETCH_SECOND(work->id_objects + work->found.items[i]);
}

/* What survived in a block, as a segment; positions become slots now that these have been asked for. */
static void lone_finish(Workspace *work, const Block *block, Segment segment) {
    const uint32_t *slots = block_slots(block);
    uint32_t *found = work->found.items + segment.start;
    for (uint32_t i = 0; i < segment.count; i++) found[i] = slots[found[i]];
    lone_ask_ids(work, segment.start);
    if (segment.count) PUSH(work->segments, segment);
}

/* One event through some blocks, whose attributes are prepared. */
static void lone_blocks(const Index *index, Workspace *work, const Block *const *blocks, size_t count, uint32_t event,
                        uint64_t *flips, uint64_t *accumulator) {
    const Lone *lone = work->lones.items, *end = lone + work->lones.count;
    const Block *waiting = NULL;
    Segment segment = {event, 0, 0, 0};
    lone_locate(work->lones.items, (uint32_t)work->lones.count);
    for (uint32_t i = 0; i < LONE_AHEAD && i < work->lones.count; i++) lone_ask_inline(lone + i);
    for (size_t b = 0; b < count; b++) {
        const Block *block = blocks[b];
        if (b + 1 < count)
            for (size_t w = 0; w < blocks[b + 1]->words; w += 8) PREFETCH(block_dead(blocks[b + 1]) + w);
        memcpy(accumulator, block_dead(block), (size_t)block->words * 8);
        lone_apply(lone, block->attributes, end, flips, accumulator);
        lone += block->attributes;
        if (waiting) lone_finish(work, waiting, segment);
        waiting = NULL;
        if (block->extras || block->consecutive) {
            const size_t first = work->found.count;
            extract(index, work, block, accumulator, event);
            lone_ask_ids(work, first);
            continue;
        }
        RESERVE(work->found, work->found.count + block->size + 64);
        segment.start = work->found.count;
        segment.count = survivors_from(accumulator, block->words, 0, work->found.items + segment.start);
        work->found.count += segment.count;
        for (uint32_t i = 0; i < segment.count; i++) PREFETCH(block_slots(block) + work->found.items[segment.start + i]);
        waiting = block;
    }
    if (waiting) lone_finish(work, waiting, segment);
}

/* The bitmaps of a sweep: the running one, the base, and the accumulators, each of so many words. */
INLINE uint64_t *sweep_bitmaps(const Workspace *work) {
    return (uint64_t *)(((uintptr_t)work->bitmaps.items + 63) & ~(uintptr_t)63);
}

/* One event through all blocks of the groups that it visits. */
static void sweep_lone(const Index *index, Workspace *work, const Visit *visits, size_t count) {
    const uint32_t event = visits->event;
    uint32_t most = 0;
    uint64_t *flips, *accumulator;
    size_t first = 0;
    work->lone_blocks.count = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t number = index->groups.items[visits[i].group].block; number; number = index->blocks.items[number - 1]->next) {
            const Block *block = index->blocks.items[number - 1];
            for (uint32_t a = 0; a < block->attributes; a++) PREFETCH(block_attributes(block) + a);
            PUSH(work->lone_blocks, block);
            if (block->words > most) most = block->words;
        }
    RESERVE(work->bitmaps, (size_t)most * 2 + 8);
    flips = sweep_bitmaps(work);
    accumulator = flips + most;
    memset(flips, 0, (size_t)most * 8);
    while (first < work->lone_blocks.count) {
        size_t stop = first;
        work->lones.count = 0;
        while (stop < work->lone_blocks.count && work->lones.count < LONE_SEARCHED)
            lone_prepare(work, work->lone_blocks.items[stop++], event);
        lone_blocks(index, work, work->lone_blocks.items + first, stop - first, event, flips, accumulator);
        first = stop;
    }
}

/* All events of one group through one attribute of a block. */
static void sweep_block_attribute(Workspace *work, const Block *block, uint32_t attribute, const Visit *visits,
                                  uint32_t events, const uint64_t *base) {
    const BlockAttribute *entry = block_attributes(block) + attribute;
    const uint32_t at = sorted_for(work, entry->attribute, visits, events);
    const Sweep sweep = sweep_of(block, entry, work->sorted_numbers.items + at, work->sorted_order.items + at, events);
    uint64_t *running = sweep_bitmaps(work);
    sweep_attribute(&sweep, running, running + 2 * block->words, base);
}

/* All events of one group through all its blocks. */
static void sweep_group(const Index *index, Workspace *work, const Visit *visits, uint32_t events) {
    const int local = work->id_numbers && !index->several; /* to find doubles takes slots */
    work->sorted_order.count = work->sorted_numbers.count = work->sorted.count = 0;
    for (uint32_t k = 0; k < events; k++) work->members[visits[k].event] = k + 1;
    for (uint32_t number = index->groups.items[visits->group].block; number; number = index->blocks.items[number - 1]->next) {
        const Block *block = index->blocks.items[number - 1];
        const uint32_t words = block->words;
        uint64_t *base, *accumulators;
        uint32_t first = NOWHERE; /* one that has all lanes spares us setting the accumulators up */
        RESERVE(work->bitmaps, (size_t)words * (events + 2) + 8);
        base = sweep_bitmaps(work) + words;
        accumulators = base + words;
        memcpy(base, block_dead(block), (size_t)words * 8);
        for (uint32_t a = 0; a < block->attributes; a++) { /* absent everywhere: once for all events */
            const BlockAttribute *entry = block_attributes(block) + a;
            if (work->numbers[entry->attribute] == work->absent)
                or_lanes(base, (const uint64_t *)(block->data + entry->bitmaps), entry->lanes);
            else if (first == NOWHERE && entry->lane_count * LANE_SPAN == words)
                first = a;
        }
        if (first != NOWHERE) sweep_block_attribute(work, block, first, visits, events, base);
        for (uint32_t k = 0; first == NOWHERE && k < events; k++) memcpy(accumulators + (size_t)k * words, base, (size_t)words * 8);
        for (uint32_t a = 0; a < block->attributes; a++)
            if (a != first && work->numbers[block_attributes(block)[a].attribute] != work->absent)
                sweep_block_attribute(work, block, a, visits, events, NULL);
        for (uint32_t k = 0; k < events; k++) {
            const size_t before = work->segments.count;
            extract(index, work, block, accumulators + (size_t)k * words, visits[k].event);
            if (local && work->segments.count > before) name_ids(work, work->segments.items + before);
        }
    }
    for (size_t i = 0; i < work->sorted.count; i++) work->sorted_at.items[work->sorted.items[i]] = 0;
    for (uint32_t k = 0; k < events; k++) work->members[visits[k].event] = 0;
}

#endif
