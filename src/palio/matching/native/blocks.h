/* Blocks: up to 16,384 conjunctions of one group, and for each attribute the ends of their ranges in order.

   Each conjunction has a position in its block. For each attribute there is a bitmap over positions, "fails
   here", that depends on the event's value only, and changes at the ends of ranges only: it starts, for values
   below everything and for absent ones, with a bit for each conjunction that has a range on the attribute, and
   at every end, going up, one bit flips. So the ends in ascending order, with the position that flips at each,
   *are* the bitmaps for all values. Copies of the bitmap after every `spacing` ends let one start anywhere, and a
   table of parts (`arrangement.h`) says where to look for a value.

   An attribute's bitmaps consist of those lanes alone in which some conjunction has a range on it; `lanes` has a bit
   for each of them, and the positions that flip are counted along them.

   Positions of removed conjunctions, and those past the last one, are set in `dead`, which fails always. What a
   conjunction demands besides ranges (further equalities, programs) is its extra, looked at only by survivors.

   Invariant: values ascend within an attribute; snapshot k is the bitmap after the first k * spacing flips; start p is
   how many values belong to parts before p, and the last one is how many there are. */

#ifndef PALIO_BLOCKS_H
#define PALIO_BLOCKS_H

#include "arrangement.h"
#include "programs.h"
#include "sorting.h"

#define BLOCK_MOST 16384u /* 2 KB of bitmap, 64 lanes: those of a tile of events stay in the nearer caches */
#define BLOCK_LEAST 256u    /* below half of it, looking at every record is as fast */
#define SPACING_LEAST 32u
#define NOWHERE UINT32_MAX

typedef struct {
    uint32_t attribute, count, spacing, snapshots, lane_count, spare;
    Parts parts;
    uint64_t lanes;
    uint64_t values, positions, bitmaps, starts; /* where they are in the block's data, in bytes */
} BlockAttribute;

typedef struct {
    uint8_t *data;
    uint64_t bytes;
    uint32_t group, next; /* the next block of the group is next - 1; 0 is none */
    uint32_t size, dead, words, attributes;
    uint32_t consecutive, spare; /* whether its slots are so many in a row: then nobody needs to read them */
    uint64_t slots, dead_bits, extra_bits, extras, table; /* in the data; extras is 0 if there are none */
} Block;

/* What an attribute of a block is assembled from. */
typedef struct {
    uint32_t attribute, count;
    double *values;
    uint16_t *positions;
    uint64_t *constrained;
} EndpointList;

INLINE const BlockAttribute *block_attributes(const Block *block) {
    return (const BlockAttribute *)(block->data + block->table);
}
INLINE uint32_t *block_slots(const Block *block) { return (uint32_t *)(block->data + block->slots); }
INLINE uint32_t *block_extras(const Block *block) { return (uint32_t *)(block->data + block->extras); }
INLINE uint64_t *block_dead(const Block *block) { return (uint64_t *)(block->data + block->dead_bits); }
INLINE uint64_t *block_extra_bits(const Block *block) { return (uint64_t *)(block->data + block->extra_bits); }

INLINE void flip(uint64_t *bitmap, uint32_t position) { bitmap[position >> 6] ^= (uint64_t)1 << (position & 63); }
INLINE int bit_of(const uint64_t *bitmap, uint32_t position) { return bitmap[position >> 6] >> (position & 63) & 1; }

static uint32_t words_for(uint32_t size) { return (size + 511) / 512 * 8; } /* whole cache lines */

/* Which lanes of a bitmap have a bit. */
static uint64_t lanes_of(const uint64_t *bitmap, uint32_t words) {
    uint64_t lanes = 0;
    for (uint32_t w = 0; w < words; w++) lanes |= (uint64_t)(bitmap[w] != 0) << w / LANE_SPAN;
    return lanes;
}

typedef struct { uint8_t numbers[BLOCK_MOST / LANE_BITS]; } LaneList;

/* An attribute's lanes one by one, ascending. */
static LaneList lane_list(const BlockAttribute *entry) {
    LaneList list = {{0}};
    uint32_t count = 0;
    for (uint64_t lanes = entry->lanes; lanes; lanes &= lanes - 1) list.numbers[count++] = (uint8_t)LOWEST_BIT(lanes);
    return list;
}

static uint64_t aligned_up(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/* The table of attributes of a block, and where everything lies that they need. Returns the end of it. */
static uint64_t lay_out_attributes(BlockAttribute *table, const EndpointList *lists, uint32_t attributes, uint32_t size,
                                   uint64_t at) {
    for (uint32_t a = 0; a < attributes; a++) { /* what a search needs first, side by side */
        BlockAttribute *entry = table + a;
        entry->attribute = lists[a].attribute;
        entry->count = lists[a].count;
        entry->lanes = lanes_of(lists[a].constrained, words_for(size));
        entry->lane_count = BITS_SET(entry->lanes);
        /* For every end, which takes 10 bytes, 16 bytes of bitmaps: a lane takes 32. */
        entry->spacing = entry->lane_count * 2 < SPACING_LEAST ? SPACING_LEAST : entry->lane_count * 2;
        entry->snapshots = entry->count / entry->spacing + 1;
        entry->parts = parts_for(lists[a].values, entry->count);
        entry->starts = at, at += ((uint64_t)entry->parts.count + 1) * 2;
    }
    at = aligned_up(at);
    for (uint32_t a = 0; a < attributes; a++) {
        BlockAttribute *entry = table + a;
        entry->values = at, at += aligned_up((uint64_t)entry->count * 8);
        entry->positions = at, at += aligned_up((uint64_t)entry->count * 2);
        entry->bitmaps = at, at += aligned_up((uint64_t)entry->lane_count * LANE_BITS / 8 * entry->snapshots);
    }
    return at;
}

/* Write what one attribute needs. */
static void fill_attribute(Block *block, const BlockAttribute *entry, const EndpointList *list) {
    const uint32_t words = entry->lane_count * LANE_SPAN;
    const LaneList lanes = lane_list(entry);
    uint8_t kept[BLOCK_MOST / LANE_BITS] = {0};
    uint16_t *positions = (uint16_t *)(block->data + entry->positions);
    uint16_t *starts = (uint16_t *)(block->data + entry->starts);
    uint64_t *running = (uint64_t *)(block->data + entry->bitmaps);
    for (uint32_t l = 0; l < entry->lane_count; l++) {
        kept[lanes.numbers[l]] = (uint8_t)l;
        memcpy(running + l * LANE_SPAN, list->constrained + lanes.numbers[l] * LANE_SPAN, LANE_BITS / 8);
    }
    if (entry->count) memcpy(block->data + entry->values, list->values, (size_t)entry->count * 8);
    for (uint32_t i = 0, part = 0; i < entry->count; i++) {
        const uint32_t position = list->positions[i];
        positions[i] = (uint16_t)(kept[position / LANE_BITS] * LANE_BITS + position % LANE_BITS);
        for (const uint32_t own = (uint32_t)part_of(entry->parts, list->values[i]); part < own;) starts[++part] = (uint16_t)i;
    }
    for (uint32_t part = entry->count ? (uint32_t)part_of(entry->parts, list->values[entry->count - 1]) : 0; part < entry->parts.count;)
        starts[++part] = (uint16_t)entry->count;
    for (uint32_t k = 1; k < entry->snapshots; k++) {
        memcpy(running + words, running, (size_t)words * 8);
        running += words;
        for (uint32_t i = (k - 1) * entry->spacing; i < k * entry->spacing; i++) flip(running, positions[i]);
    }
}

/* To be called whenever a block's slots have been set. */
static void block_note_slots(Block *block) {
    const uint32_t *slots = block_slots(block);
    block->consecutive = 1;
    for (uint32_t i = 1; i < block->size; i++) block->consecutive &= slots[i] == slots[0] + i;
}

/* A block of these conjunctions. `extras` may be NULL. The lists are only read. */
static Block *block_assemble(uint32_t size, const uint32_t *slots, const uint32_t *extras, const EndpointList *lists,
                             uint32_t attributes) {
    Block *block = allocate_zeroed(sizeof *block);
    const uint32_t words = words_for(size);
    const uint64_t bitmap_bytes = (uint64_t)words * 8;
    BlockAttribute *table = allocate_zeroed(sizeof *table * ((size_t)attributes + 1));
    uint64_t at = aligned_up(sizeof *table * (uint64_t)attributes); /* the table comes first */
    int with_extras = 0;
    for (uint32_t i = 0; extras && i < size; i++) with_extras |= extras[i] != 0;
    block->size = size;
    block->words = words;
    block->attributes = attributes;
    block->slots = at, at += aligned_up(bitmap_bytes * 8 * 4); /* padded, so that any bit of a word has one */
    block->dead_bits = at, at += bitmap_bytes;
    if (with_extras) {
        block->extra_bits = at, at += bitmap_bytes;
        block->extras = at, at += aligned_up((uint64_t)size * 4);
    }
    block->bytes = lay_out_attributes(table, lists, attributes, size, at);
    block->data = allocate_pages(block->bytes);
    memset(block->data, 0, block->bytes);
    memcpy(block->data + block->table, table, sizeof *table * attributes);
    memcpy(block->data + block->slots, slots, (size_t)size * 4);
    block_note_slots(block);
    for (uint32_t position = size; position < words * 64; position++) flip(block_dead(block), position);
    if (with_extras) {
        memcpy(block->data + block->extras, extras, (size_t)size * 4);
        for (uint32_t position = 0; position < size; position++)
            if (extras[position]) flip(block_extra_bits(block), position);
    }
    for (uint32_t a = 0; a < attributes; a++) fill_attribute(block, table + a, lists + a);
    free(table);
    return block;
}

static void block_free(Block *block) {
    free(block->data);
    free(block);
}

static void lists_free(EndpointList *lists, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(lists[i].values);
        free(lists[i].positions);
        free(lists[i].constrained);
    }
}

/* A range as a builder of blocks gets it. */
typedef struct {
    uint32_t attribute, position;
    double low, high;
} Range;

static int range_order(const void *left, const void *right) {
    const Range *a = left, *b = right;
    return a->attribute < b->attribute ? -1 : a->attribute > b->attribute;
}

/* A block from ranges in any order; they are sorted in place. */
static Block *block_from_ranges(uint32_t size, const uint32_t *slots, const uint32_t *extras, Range *ranges,
                                uint32_t count) {
    VECTOR(EndpointList) lists = {0};
    Placed *ends = allocate(sizeof *ends * 4 * ((size_t)count + 1));
    Block *block;
    uint32_t words = words_for(size);
    if (count) qsort(ranges, count, sizeof *ranges, range_order);
    for (uint32_t start = 0, stop; start < count; start = stop) {
        EndpointList list = {ranges[start].attribute, 0, NULL, NULL, allocate_zeroed((size_t)words * 8)};
        for (stop = start; stop < count && ranges[stop].attribute == list.attribute; stop++) {
            const Range *range = ranges + stop;
            flip(list.constrained, range->position);
            ends[list.count++] = (Placed){range->low, range->position};
            if (range->high < (double)INFINITY) ends[list.count++] = (Placed){range->high, range->position};
        }
        sort_placed(ends, list.count);
        list.values = allocate((size_t)list.count * 8);
        list.positions = allocate((size_t)list.count * 2);
        for (uint32_t i = 0; i < list.count; i++) {
            list.values[i] = ends[i].number;
            list.positions[i] = (uint16_t)ends[i].owner;
        }
        PUSH(lists, list);
    }
    block = block_assemble(size, slots, extras, lists.items, (uint32_t)lists.count);
    lists_free(lists.items, lists.count);
    RELEASE(lists);
    free(ends);
    return block;
}

INLINE uint32_t place_in_block(const LaneList *lanes, uint32_t position) {
    return lanes->numbers[position / LANE_BITS] * LANE_BITS + position % LANE_BITS;
}

/* Where in the order each conjunction of a block belongs. */
static void block_ranks(const Block *block, uint64_t *attributes) {
    memset(attributes, 0, (size_t)block->words * 64 * 8);
    for (uint32_t a = 0; a < block->attributes; a++) {
        const BlockAttribute *entry = block_attributes(block) + a;
        const uint64_t *constrained = (const uint64_t *)(block->data + entry->bitmaps);
        const LaneList lanes = lane_list(entry);
        for (uint32_t word = 0; word < entry->lane_count * LANE_SPAN; word++)
            for (uint64_t bits = constrained[word]; bits; bits &= bits - 1)
                attributes[place_in_block(&lanes, word * 64 + LOWEST_BIT(bits))]
                    |= (uint64_t)1 << (entry->attribute & 63);
    }
}

/* The two parts of a merge that one attribute takes part in; either may be NULL. */
static EndpointList merged_list(const Block *const *sources, const BlockAttribute *const *entries,
                                uint32_t *const *moved, uint32_t words) {
    EndpointList list = {0, 0, NULL, NULL, allocate_zeroed((size_t)words * 8)};
    const double *values[2] = {NULL, NULL};
    const uint16_t *positions[2] = {NULL, NULL};
    LaneList lanes[2] = {{{0}}, {{0}}};
    uint32_t counts[2] = {0, 0}, at[2] = {0, 0};
    for (int s = 0; s < 2; s++) {
        const uint64_t *constrained;
        if (!entries[s]) continue;
        list.attribute = entries[s]->attribute;
        values[s] = (const double *)(sources[s]->data + entries[s]->values);
        positions[s] = (const uint16_t *)(sources[s]->data + entries[s]->positions);
        lanes[s] = lane_list(entries[s]);
        counts[s] = entries[s]->count;
        constrained = (const uint64_t *)(sources[s]->data + entries[s]->bitmaps);
        for (uint32_t word = 0; word < entries[s]->lane_count * LANE_SPAN; word++)
            for (uint64_t bits = constrained[word]; bits; bits &= bits - 1) {
                uint32_t to = moved[s][place_in_block(lanes + s, word * 64 + LOWEST_BIT(bits))];
                if (to != NOWHERE) flip(list.constrained, to);
            }
    }
    list.values = allocate(((size_t)counts[0] + counts[1]) * 8);
    list.positions = allocate(((size_t)counts[0] + counts[1]) * 2);
    while (at[0] < counts[0] || at[1] < counts[1]) {
        int s = at[0] == counts[0] || (at[1] < counts[1] && values[1][at[1]] < values[0][at[0]]);
        uint32_t to = moved[s][place_in_block(lanes + s, positions[s][at[s]])];
        if (to != NOWHERE) {
            list.values[list.count] = values[s][at[s]];
            list.positions[list.count++] = (uint16_t)to;
        }
        at[s]++;
    }
    return list;
}

/* Where the conjunctions of one or two blocks, each in order, come to lie in their merge; returns how many there are. */
static uint32_t merged_order(const Block *const *sources, uint32_t *const *moved) {
    uint64_t *attributes[2] = {NULL, NULL};
    uint32_t size = 0, at[2] = {0, 0};
    Rank next[2];
    for (int s = 0; s < 2 && sources[s]; s++) {
        attributes[s] = allocate((size_t)sources[s]->words * 64 * 8);
        block_ranks(sources[s], attributes[s]);
    }
    for (int s = 0, stale = 3;;) {
        for (s = 0; s < 2 && sources[s]; s++) {
            if (!(stale >> s & 1)) continue;
            for (; at[s] < sources[s]->size && bit_of(block_dead(sources[s]), at[s]); at[s]++) moved[s][at[s]] = NOWHERE;
            if (at[s] < sources[s]->size) next[s] = rank_of(attributes[s][at[s]], 0, (uint32_t)s);
        }
        if (at[0] < sources[0]->size) s = sources[1] && at[1] < sources[1]->size && rank_order(next + 1, next) < 0;
        else if (sources[1] && at[1] < sources[1]->size) s = 1;
        else break;
        moved[s][at[s]++] = size++;
        stale = 1 << s;
    }
    free(attributes[0]);
    free(attributes[1]);
    return size;
}

/* One block from one or two (the second is NULL then), without what was removed; `moved` says where each conjunction
   is to go, or NOWHERE. Linear in their size. */
static Block *block_merge(const Block *const *sources, uint32_t *const *moved, uint32_t size) {
    uint32_t entries_at[2] = {0, 0}, *slots = allocate(sizeof *slots * ((size_t)size + 1));
    uint32_t *extras = allocate_zeroed(sizeof *extras * ((size_t)size + 1));
    VECTOR(EndpointList) lists = {0};
    Block *block;
    for (int s = 0; s < 2 && sources[s]; s++)
        for (uint32_t position = 0; position < sources[s]->size; position++) {
            const uint32_t to = moved[s][position];
            if (to == NOWHERE) continue;
            slots[to] = block_slots(sources[s])[position];
            if (sources[s]->extras) extras[to] = block_extras(sources[s])[position];
        }
    for (;;) { /* the attributes of both, ascending */
        const BlockAttribute *entries[2] = {NULL, NULL};
        uint32_t attribute = NOWHERE;
        for (int s = 0; s < 2 && sources[s]; s++)
            if (entries_at[s] < sources[s]->attributes && block_attributes(sources[s])[entries_at[s]].attribute < attribute)
                attribute = block_attributes(sources[s])[entries_at[s]].attribute;
        if (attribute == NOWHERE) break;
        for (int s = 0; s < 2 && sources[s]; s++)
            if (entries_at[s] < sources[s]->attributes && block_attributes(sources[s])[entries_at[s]].attribute == attribute)
                entries[s] = block_attributes(sources[s]) + entries_at[s]++;
        PUSH(lists, merged_list(sources, entries, moved, words_for(size)));
    }
    block = block_assemble(size, slots, extras, lists.items, (uint32_t)lists.count);
    lists_free(lists.items, lists.count);
    RELEASE(lists);
    free(slots);
    free(extras);
    return block;
}

#endif
