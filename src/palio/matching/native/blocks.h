/* Blocks: up to 16,384 conjunctions of one group, and for each attribute the ends of their ranges in order.

   Each conjunction has a position in its block. For each attribute there is a bitmap over positions, "fails
   here", that depends on the event's value only, and changes at the ends of ranges only: it starts, for values
   below everything and for absent ones, with a bit for each conjunction that has a range on the attribute, and
   at every end, going up, one bit flips. So the ends in ascending order, with the position that flips at each,
   *are* the bitmaps for all values. Copies of the bitmap after every `spacing` ends let one start anywhere, and
   the values just before these copies lie together as `tops`, so that a search finds its copy in few cache lines.

   Positions of removed conjunctions, and those past the last one, are set in `dead`, which fails always. What a
   conjunction demands besides ranges (further equalities, programs) is its extra, looked at only by survivors.

   Invariant: values ascend within an attribute; snapshot k is the bitmap after the first k * spacing flips;
   top k is value (k + 1) * spacing - 1, and there is one less of them than of snapshots. */

#ifndef PALIO_BLOCKS_H
#define PALIO_BLOCKS_H

#include "programs.h"

#define BLOCK_MOST 16384u /* 2 KB of bitmap: those of a tile of events stay in the nearer caches */
#define BLOCK_LEAST 256u    /* below, looking at every record is as fast */
#define NOWHERE UINT32_MAX

typedef struct {
    uint32_t attribute, count, spacing, snapshots;
    uint64_t values, positions, bitmaps, tops; /* where they are in the block's data, in bytes */
} BlockAttribute;

typedef struct {
    uint8_t *data;
    uint64_t bytes;
    uint32_t group, next; /* the next block of the group is next - 1; 0 is none */
    uint32_t size, dead, words, attributes;
    uint64_t slots, dead_bits, extra_bits, extras, table; /* in the data; extras is 0 if there are none */
    uint64_t head; /* so many bytes at the beginning are what a search needs first: table and tops */
} Block;

typedef struct {
    double value;
    uint32_t position;
} Endpoint;

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

static uint64_t aligned_up(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/* A block of these conjunctions. `extras` may be NULL. The lists are only read. */
static Block *block_assemble(uint32_t size, const uint32_t *slots, const uint32_t *extras, const EndpointList *lists,
                             uint32_t attributes) {
    Block *block = allocate_zeroed(sizeof *block);
    uint32_t words = words_for(size);
    uint64_t at = 0, bitmap_bytes = (uint64_t)words * 8;
    int with_extras = 0;
    BlockAttribute *table;
    for (uint32_t i = 0; extras && i < size; i++) with_extras |= extras[i] != 0;
    block->size = size;
    block->words = words;
    block->attributes = attributes;
    block->table = at, at += aligned_up(sizeof(BlockAttribute) * (uint64_t)attributes);
    table = allocate_zeroed(sizeof *table * ((size_t)attributes + 1));
    for (uint32_t a = 0; a < attributes; a++) {
        BlockAttribute *entry = table + a;
        entry->attribute = lists[a].attribute;
        entry->count = lists[a].count;
        entry->spacing = size / 64 < 32 ? 32 : size / 64; /* as much memory for bitmaps as for ends, about */
        entry->snapshots = entry->count / entry->spacing + 1;
        entry->tops = at, at += (uint64_t)(entry->snapshots - 1) * 8; /* those of all attributes side by side */
    }
    block->head = at = aligned_up(at);
    block->slots = at, at += aligned_up((uint64_t)words * 64 * 4); /* padded, so that any bit of a word has one */
    block->dead_bits = at, at += bitmap_bytes;
    if (with_extras) {
        block->extra_bits = at, at += bitmap_bytes;
        block->extras = at, at += aligned_up((uint64_t)size * 4);
    }
    for (uint32_t a = 0; a < attributes; a++) {
        BlockAttribute *entry = table + a;
        entry->values = at, at += aligned_up((uint64_t)entry->count * 8);
        entry->positions = at, at += aligned_up((uint64_t)entry->count * 2);
        entry->bitmaps = at, at += bitmap_bytes * entry->snapshots;
    }
    block->bytes = at;
    block->data = allocate_pages(at);
    memset(block->data, 0, at);
    memcpy(block->data + block->table, table, sizeof *table * attributes);
    memcpy(block->data + block->slots, slots, (size_t)size * 4);
    for (uint32_t position = size; position < words * 64; position++) flip(block_dead(block), position);
    if (with_extras) {
        memcpy(block->data + block->extras, extras, (size_t)size * 4);
        for (uint32_t position = 0; position < size; position++)
            if (extras[position]) flip(block_extra_bits(block), position);
    }
    for (uint32_t a = 0; a < attributes; a++) {
        const BlockAttribute *entry = table + a;
        uint64_t *bitmaps = (uint64_t *)(block->data + entry->bitmaps), *running = bitmaps;
        double *tops = (double *)(block->data + entry->tops);
        if (entry->count) {
            memcpy(block->data + entry->values, lists[a].values, (size_t)entry->count * 8);
            memcpy(block->data + entry->positions, lists[a].positions, (size_t)entry->count * 2);
        }
        memcpy(running, lists[a].constrained, bitmap_bytes);
        for (uint32_t k = 1; k < entry->snapshots; k++) {
            memcpy(running + words, running, bitmap_bytes);
            running += words;
            tops[k - 1] = lists[a].values[k * entry->spacing - 1];
            for (uint32_t i = (k - 1) * entry->spacing; i < k * entry->spacing; i++) flip(running, lists[a].positions[i]);
        }
    }
    free(table);
    return block;
}

static void block_free(Block *block) {
    free(block->data);
    free(block);
}

static int endpoint_order(const void *left, const void *right) {
    double a = ((const Endpoint *)left)->value, b = ((const Endpoint *)right)->value;
    return a < b ? -1 : a > b;
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
    Endpoint *ends = allocate(sizeof *ends * 2 * ((size_t)count + 1));
    Block *block;
    uint32_t words = words_for(size);
    if (count) qsort(ranges, count, sizeof *ranges, range_order);
    for (uint32_t start = 0, stop; start < count; start = stop) {
        EndpointList list = {ranges[start].attribute, 0, NULL, NULL, allocate_zeroed((size_t)words * 8)};
        for (stop = start; stop < count && ranges[stop].attribute == list.attribute; stop++) {
            const Range *range = ranges + stop;
            flip(list.constrained, range->position);
            ends[list.count++] = (Endpoint){range->low, range->position};
            if (range->high < (double)INFINITY) ends[list.count++] = (Endpoint){range->high, range->position};
        }
        qsort(ends, list.count, sizeof *ends, endpoint_order);
        list.values = allocate((size_t)list.count * 8);
        list.positions = allocate((size_t)list.count * 2);
        for (uint32_t i = 0; i < list.count; i++) {
            list.values[i] = ends[i].value;
            list.positions[i] = (uint16_t)ends[i].position;
        }
        PUSH(lists, list);
    }
    block = block_assemble(size, slots, extras, lists.items, (uint32_t)lists.count);
    for (size_t i = 0; i < lists.count; i++) {
        free(lists.items[i].values);
        free(lists.items[i].positions);
        free(lists.items[i].constrained);
    }
    RELEASE(lists);
    free(ends);
    return block;
}

/* The two parts of a merge that one attribute takes part in; either may be NULL. */
static EndpointList merged_list(const Block *const *sources, const BlockAttribute *const *entries,
                                uint32_t *const *moved, uint32_t words) {
    EndpointList list = {0, 0, NULL, NULL, allocate_zeroed((size_t)words * 8)};
    const double *values[2] = {NULL, NULL};
    const uint16_t *positions[2] = {NULL, NULL};
    uint32_t counts[2] = {0, 0}, at[2] = {0, 0};
    for (int s = 0; s < 2; s++) {
        const uint64_t *constrained;
        if (!entries[s]) continue;
        list.attribute = entries[s]->attribute;
        values[s] = (const double *)(sources[s]->data + entries[s]->values);
        positions[s] = (const uint16_t *)(sources[s]->data + entries[s]->positions);
        counts[s] = entries[s]->count;
        constrained = (const uint64_t *)(sources[s]->data + entries[s]->bitmaps);
        for (uint32_t word = 0; word < sources[s]->words; word++)
            for (uint64_t bits = constrained[word]; bits; bits &= bits - 1) {
                uint32_t to = moved[s][word * 64 + LOWEST_BIT(bits)];
                if (to != NOWHERE) flip(list.constrained, to);
            }
    }
    list.values = allocate(((size_t)counts[0] + counts[1]) * 8);
    list.positions = allocate(((size_t)counts[0] + counts[1]) * 2);
    while (at[0] < counts[0] || at[1] < counts[1]) {
        int s = at[0] == counts[0] || (at[1] < counts[1] && values[1][at[1]] < values[0][at[0]]);
        uint32_t to = moved[s][positions[s][at[s]]];
        if (to != NOWHERE) {
            list.values[list.count] = values[s][at[s]];
            list.positions[list.count++] = (uint16_t)to;
        }
        at[s]++;
    }
    return list;
}

/* One block from one or two (the second may be NULL), without what was removed. Linear in their size. */
static Block *block_merge(const Block *first, const Block *second) {
    const Block *sources[2] = {first, second};
    uint32_t size = 0, entries_at[2] = {0, 0}, words, *slots, *extras, *moved[2] = {NULL, NULL};
    VECTOR(EndpointList) lists = {0};
    Block *block;
    slots = allocate(sizeof *slots * ((size_t)first->size + (second ? second->size : 0) + 1));
    extras = allocate_zeroed(sizeof *extras * ((size_t)first->size + (second ? second->size : 0) + 1));
    for (int s = 0; s < 2 && sources[s]; s++) {
        moved[s] = allocate(sizeof **moved * ((size_t)sources[s]->words * 64 + 1));
        for (uint32_t position = 0; position < sources[s]->words * 64; position++) {
            moved[s][position] = NOWHERE;
            if (bit_of(block_dead(sources[s]), position)) continue;
            slots[size] = block_slots(sources[s])[position];
            if (sources[s]->extras) extras[size] = block_extras(sources[s])[position];
            moved[s][position] = size++;
        }
    }
    words = words_for(size);
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
        PUSH(lists, merged_list(sources, entries, moved, words));
    }
    block = block_assemble(size, slots, extras, lists.items, (uint32_t)lists.count);
    for (size_t i = 0; i < lists.count; i++) {
        free(lists.items[i].values);
        free(lists.items[i].positions);
        free(lists.items[i].constrained);
    }
    RELEASE(lists);
    free(slots);
    free(extras);
    free(moved[0]);
    free(moved[1]);
    return block;
}

#endif
