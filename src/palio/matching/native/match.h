/* Matching: a tile of up to TILE events at once, without the GIL and without changing the index.

   Each event's values are looked up once; those that some filter demands are its keys. The groups that they and
   their pairs lead to are collected; loose records are checked at once, groups with blocks wait until all events
   of the tile are known, so that a block is swept once for all of them. Matches come out as slots, per event. */

#ifndef PALIO_MATCH_H
#define PALIO_MATCH_H

#include "lone.h"
#include "updates.h"

#ifndef TILE
#define TILE 256u
#endif

typedef struct { uint32_t group, event; } Visit;
typedef struct { uint32_t event, count; size_t start; } Segment;
typedef struct { double number; uint32_t event; } Placed;

typedef struct {
    /* results, event by event: either slots, or, where id_numbers says what they stand for, ids and rows */
    Words slots;
    VECTOR(int64_t) ids, rows;
    const int64_t *id_numbers;
    int64_t rows_total; /* of the whole batch */
    /* the events of a tile */
    const double **numbers; /* by attribute: the number of each event; all NaN where there is no column */
    size_t attributes;
    VECTOR(double) number_memory;
    Words values, value_counts; /* the interned values of each event */
    Words presences;            /* keys that stand for presence, likewise */
    Words lines;                /* the attributes and views that have numbers in this tile */
    uint64_t *demanded;         /* a bit for each interned value that the event at hand has */
    size_t demanded_words;
    VECTOR(Visit) visits;
    VECTOR(Segment) segments;
    Words found, gathered;
    VECTOR(uint64_t) bitmaps;
    VECTOR(Placed) placed;
    VECTOR(double) sorted_numbers;
    VECTOR(const Block *) lone_blocks;
    VECTOR(Lone) lones;
    Words sorted_order, sorted_at, probes;
    VECTOR(uint64_t) stamps; /* a bit for each slot, zero between uses */
    Words tile_order, tile_order_at; /* all events of the tile in the order of an attribute */
    uint32_t members[TILE];          /* which of a group's events an event of the tile is, + 1 */
    uint32_t events;
    const Column **columns; /* by attribute, NULL if absent */
    int64_t row;            /* of the tile's first event */
    double absent[TILE];
} Workspace;

static void workspace_fit(Workspace *work, const Index *index) {
    size_t words = index->values.count / 64 + 1;
    if (work->attributes < index->attributes.count) {
        size_t wanted = index->attributes.count + 16;
        work->numbers = realloc(work->numbers, wanted * sizeof *work->numbers);
        work->columns = realloc(work->columns, wanted * sizeof *work->columns);
        if (!work->numbers || !work->columns) out_of_memory();
        if (!work->attributes)
            for (unsigned i = 0; i < TILE; i++) work->absent[i] = (double)NAN;
        for (size_t i = work->attributes; i < wanted; i++) {
            work->numbers[i] = work->absent;
            work->columns[i] = NULL;
        }
        work->attributes = wanted;
    }
    if (work->demanded_words < words) {
        words += words / 4;
        free(work->demanded);
        work->demanded = allocate_zeroed(words * 8);
        work->demanded_words = words;
    }
}

static void workspace_free(Workspace *work) {
    RELEASE(work->slots);
    RELEASE(work->ids);
    RELEASE(work->rows);
    RELEASE(work->gathered);
    free(work->numbers);
    free(work->columns);
    free(work->demanded);
    RELEASE(work->number_memory);
    RELEASE(work->values);
    RELEASE(work->value_counts);
    RELEASE(work->presences);
    RELEASE(work->lines);
    RELEASE(work->visits);
    RELEASE(work->segments);
    RELEASE(work->found);
    RELEASE(work->bitmaps);
    RELEASE(work->placed);
    RELEASE(work->lone_blocks);
    RELEASE(work->lones);
    RELEASE(work->sorted_numbers);
    RELEASE(work->sorted_order);
    RELEASE(work->sorted_at);
    RELEASE(work->stamps);
    RELEASE(work->probes);
    RELEASE(work->tile_order);
    RELEASE(work->tile_order_at);
    memset(work, 0, sizeof *work);
}

/* Whether what a record demands besides ranges holds. */
INLINE int demands_hold(const Index *index, const Workspace *work, const uint32_t *values, uint32_t value_count,
                        const uint32_t *programs, uint32_t program_count, uint32_t event) {
    for (uint32_t i = 0; i < value_count; i++)
        if (!bit_of(work->demanded, values[i])) return 0;
    for (uint32_t i = 0; i < program_count; i++) {
        const uint32_t *program = program_at(index, programs[i]);
        const Column *column = work->columns[program[1]];
        Value value = {KIND_ABSENT, 0, {0}};
        if (column) value = value_at(column, work->row + event);
        if (!program_holds((const uint8_t *)(program + 2), 0, value)) return 0;
    }
    return 1;
}

static void check_loose(const Index *index, Workspace *work, const Group *group, uint32_t event) {
    const uint32_t *arena = index->arena.words.items;
    const uint32_t skipped = vouched(index, group);
    for (uint32_t chunk = group->chunk; chunk; chunk = arena[chunk]) {
        const uint32_t *record = arena + chunk + CHUNK_HEAD, *end = arena + chunk + arena[chunk + 1], *next;
        RESERVE(work->found, work->found.count + (size_t)(end - record));
        for (; record < end; record = next) {
            uint32_t equalities = equalities_of(record), ranges = ranges_of(record);
            const uint32_t *range = record + RECORD_HEAD + equalities;
            int holds = record[0] != NOWHERE;
            next = range + RANGE_WORDS * ranges + programs_of(record);
            for (uint32_t i = 0; holds && i < ranges; i++, range += RANGE_WORDS) {
                double number = work->numbers[range[0]][event];
                holds = (load_double(range + 1) <= number) & (number < load_double(range + 3));
            }
            if (holds && demands_hold(index, work, record + RECORD_HEAD + skipped, equalities - skipped, range,
                                      programs_of(record), event))
                work->found.items[work->found.count++] = record[0];
        }
    }
}

static void visit(const Index *index, Workspace *work, uint32_t number, uint32_t event) {
    const Group *group = index->groups.items + number;
    if (group->chunk) check_loose(index, work, group, event);
    if (group->block) {
        Visit later = {number, event};
        PUSH(work->visits, later);
    }
}

INLINE void mark_demanded(Workspace *work, const uint32_t *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) flip(work->demanded, values[i]);
}

/* All groups that an event's values lead to. */
static void visit_groups(const Index *index, Workspace *work, const uint32_t *values, uint32_t count,
                         const uint32_t *presences, uint32_t presence_count, uint32_t event) {
    const Interned *interned = index->values.items;
    size_t start = work->found.count, mask = index->pairs.count - 1;
    Segment segment;
    mark_demanded(work, values, count);
    work->probes.count = 0;
    RESERVE(work->probes, (size_t)count * (count + 1));
    for (uint32_t i = 0; i < count; i++) {
        const Interned *first = interned + values[i];
        uint64_t partners;
        if (!first->pairs) continue;
        partners = index->attributes.items[first->attribute].partners;
        for (uint32_t j = i + 1; j < count; j++) {
            const Interned *second = interned + values[j];
            uint32_t key = values[i], partner = values[j];
            if (!second->pairs || !(partners >> (second->attribute & 63) & 1)) continue;
            if (partner < key) key = values[j], partner = values[i];
            PREFETCH(index->pairs.items + ((size_t)pair_hash(key, partner) & mask));
            work->probes.items[work->probes.count++] = key;
            work->probes.items[work->probes.count++] = partner;
        }
    }
    if (index->groups.count && index->groups.items[0].live) visit(index, work, 0, event);
    for (uint32_t i = 0; i < count; i++)
        if (interned[values[i]].group) visit(index, work, interned[values[i]].group, event);
    for (uint32_t i = 0; i < presence_count; i++) visit(index, work, interned[presences[i]].group, event);
    { /* find first, so that the groups are on their way when they are looked at */
        size_t groups = 0;
        for (size_t i = 0; i < work->probes.count; i += 2) {
            uint32_t group = pair_find(index, work->probes.items[i], work->probes.items[i + 1]);
            if (!group) continue;
            PREFETCH(index->groups.items + group);
            work->probes.items[groups++] = group;
        }
        for (size_t i = 0; i < groups; i++) {
            const Group *group = index->groups.items + work->probes.items[i];
            if (group->chunk) PREFETCH(index->arena.words.items + group->chunk);
        }
        for (size_t i = 0; i < groups; i++) visit(index, work, work->probes.items[i], event);
    }
    mark_demanded(work, values, count);
    segment = (Segment){event, (uint32_t)(work->found.count - start), start};
    if (segment.count) PUSH(work->segments, segment);
}

static int placed_order(const void *left, const void *right) {
    double a = ((const Placed *)left)->number, b = ((const Placed *)right)->number;
    if (a != a || b != b) return (b != b) - (a != a); /* NaN first */
    return a < b ? -1 : a > b;
}

/* Sort small things by insertion, others by qsort. */
static void sort_placed(Placed *placed, uint32_t count) {
    if (count > 24) {
        qsort(placed, count, sizeof *placed, placed_order);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        Placed one = placed[i];
        uint32_t j = i;
        while (j && placed_order(placed + j - 1, &one) > 0) placed[j] = placed[j - 1], j--;
        placed[j] = one;
    }
}

/* All events of the tile in the order of an attribute; kept until the tile is done. */
static const uint32_t *tile_order_for(Workspace *work, uint32_t attribute) {
    uint32_t at = work->tile_order_at.items[attribute];
    if (at) return work->tile_order.items + (at - 1);
    at = (uint32_t)work->tile_order.count;
    RESERVE(work->placed, work->events);
    RESERVE(work->tile_order, at + work->events);
    for (uint32_t e = 0; e < work->events; e++) work->placed.items[e] = (Placed){work->numbers[attribute][e], e};
    sort_placed(work->placed.items, work->events);
    for (uint32_t e = 0; e < work->events; e++) work->tile_order.items[at + e] = work->placed.items[e].event;
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
        RESERVE(work->placed, events);
        for (uint32_t k = 0; k < events; k++)
            work->placed.items[k] = (Placed){work->numbers[attribute][visits[k].event], k};
        sort_placed(work->placed.items, events);
        for (uint32_t k = 0; k < events; k++) {
            order[k] = work->placed.items[k].event;
            numbers[k] = work->placed.items[k].number;
        }
    }
    work->sorted_order.count = work->sorted_numbers.count = at + events;
    work->sorted_at.items[attribute] = at + 1;
    PUSH(work->probes, attribute);
    return at;
}

static void extract(const Index *index, Workspace *work, const Block *block, const uint64_t *accumulator, uint32_t event,
                    const uint32_t *values, uint32_t value_count) {
    size_t start = work->found.count;
    Segment segment;
    RESERVE(work->found, start + block->size + 4);
    if (!block->extras) {
        work->found.count += survivors(accumulator, block->words, block_slots(block), work->found.items + start);
    } else {
        const uint32_t *extras = block_extras(block), *slots = block_slots(block);
        mark_demanded(work, values, value_count);
        for (uint32_t w = 0; w < block->words; w++)
            for (uint64_t bits = ~accumulator[w]; bits; bits &= bits - 1) {
                uint32_t position = w * 64 + LOWEST_BIT(bits);
                if (extras[position]) {
                    const uint32_t *extra = index->arena.words.items + extras[position];
                    if (!demands_hold(index, work, extra + 2, extra[0], extra + 2 + extra[0], extra[1], event)) continue;
                }
                work->found.items[work->found.count++] = slots[position];
            }
        mark_demanded(work, values, value_count);
    }
    segment = (Segment){event, (uint32_t)(work->found.count - start), start};
    if (segment.count) PUSH(work->segments, segment);
}

static Sweep sweep_of(const Block *block, const BlockAttribute *entry, const double *numbers, const uint32_t *order,
                      uint32_t events) {
    return (Sweep){(const double *)(block->data + entry->values), (const uint16_t *)(block->data + entry->positions),
                   (const uint64_t *)(block->data + entry->bitmaps), entry->count, entry->spacing, entry->snapshots,
                   block->words, numbers, order, events};
}

/* The attributes of a block as they are for one event; those that it does not have come with NaN. */
static void lone_prepare(Workspace *work, const Block *block, uint32_t event) {
    RESERVE(work->lones, work->lones.count + block->attributes);
    for (uint32_t a = 0; a < block->attributes; a++) {
        const BlockAttribute *entry = block_attributes(block) + a;
        work->lones.items[work->lones.count++] = (Lone){
            (const double *)(block->data + entry->values), (const double *)(block->data + entry->tops),
            (const uint16_t *)(block->data + entry->positions), (const uint64_t *)(block->data + entry->bitmaps),
            work->numbers[entry->attribute][event], entry->count, entry->spacing, entry->snapshots, block->words, 0, 0, 0};
    }
}

/* What survived in a block, as a segment; positions become slots now that these have been asked for. */
static void lone_finish(Workspace *work, const Block *block, Segment segment) {
    const uint32_t *slots = block_slots(block);
    uint32_t *found = work->found.items + segment.start;
    for (uint32_t i = 0; i < segment.count; i++) found[i] = slots[found[i]];
    if (segment.count) PUSH(work->segments, segment);
}

/* One event through some blocks, whose attributes are prepared. */
static void lone_blocks(const Index *index, Workspace *work, const Block *const *blocks, size_t count, uint32_t event,
                        uint32_t stride, uint64_t *flips, uint64_t *accumulator) {
    const Lone *lone = work->lones.items, *end = lone + work->lones.count;
    const Block *waiting = NULL;
    Segment segment = {event, 0, 0};
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
        if (block->extras) {
            extract(index, work, block, accumulator, event, work->values.items + (size_t)event * stride,
                    work->value_counts.items[2 * event]);
            continue;
        }
        RESERVE(work->found, work->found.count + block->size + 4);
        segment.start = work->found.count;
        segment.count = lone_survivors(accumulator, block->words, work->found.items + segment.start);
        work->found.count += segment.count;
        for (uint32_t i = 0; i < segment.count; i++) PREFETCH(block_slots(block) + work->found.items[segment.start + i]);
        waiting = block;
    }
    if (waiting) lone_finish(work, waiting, segment);
}

/* One event through all blocks of the groups that it visits. */
static void sweep_lone(const Index *index, Workspace *work, const Visit *visits, size_t count, uint32_t stride) {
    const uint32_t event = visits->event;
    uint32_t most = 0;
    uint64_t *flips, *accumulator;
    size_t first = 0;
    work->lone_blocks.count = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t number = index->groups.items[visits[i].group].block; number; number = index->blocks.items[number - 1]->next) {
            const Block *block = index->blocks.items[number - 1];
            PREFETCH(block->data + block->table);
            PUSH(work->lone_blocks, block);
            if (block->words > most) most = block->words;
        }
    RESERVE(work->bitmaps, (size_t)most * 2 + 8);
    flips = (uint64_t *)(((uintptr_t)work->bitmaps.items + 63) & ~(uintptr_t)63);
    accumulator = flips + most;
    memset(flips, 0, (size_t)most * 8);
    while (first < work->lone_blocks.count) {
        size_t stop = first;
        work->lones.count = 0;
        while (stop < work->lone_blocks.count && work->lones.count < LONE_SEARCHED)
            lone_prepare(work, work->lone_blocks.items[stop++], event);
        lone_blocks(index, work, work->lone_blocks.items + first, stop - first, event, stride, flips, accumulator);
        first = stop;
    }
}

/* All events of one group through all its blocks. */
static void sweep_group(const Index *index, Workspace *work, const Visit *visits, uint32_t events, uint32_t stride) {
    work->sorted_order.count = work->sorted_numbers.count = work->probes.count = 0;
    for (uint32_t k = 0; k < events; k++) work->members[visits[k].event] = k + 1;
    for (uint32_t number = index->groups.items[visits->group].block; number; number = index->blocks.items[number - 1]->next) {
        const Block *block = index->blocks.items[number - 1];
        const uint32_t words = block->words;
        uint64_t *running, *base, *accumulators;
        int first = 1;
        RESERVE(work->bitmaps, (size_t)words * (events + 2) + 8);
        running = (uint64_t *)(((uintptr_t)work->bitmaps.items + 63) & ~(uintptr_t)63);
        base = running + words;
        accumulators = base + words;
        memcpy(base, block_dead(block), (size_t)words * 8);
        for (uint32_t a = 0; a < block->attributes; a++) { /* absent everywhere: once for all events */
            const BlockAttribute *entry = block_attributes(block) + a;
            if (work->numbers[entry->attribute] == work->absent)
                or_bitmaps(base, (const uint64_t *)(block->data + entry->bitmaps), words);
        }
        for (uint32_t a = 0; a < block->attributes; a++) {
            const BlockAttribute *entry = block_attributes(block) + a;
            Sweep sweep;
            uint32_t at;
            if (work->numbers[entry->attribute] == work->absent) continue;
            at = sorted_for(work, entry->attribute, visits, events);
            sweep = sweep_of(block, entry, work->sorted_numbers.items + at, work->sorted_order.items + at, events);
            sweep_attribute(&sweep, running, accumulators, first ? base : NULL);
            first = 0;
        }
        for (uint32_t k = 0; k < events; k++) {
            uint32_t event = visits[k].event;
            extract(index, work, block, first ? base : accumulators + (size_t)k * words, event,
                    work->values.items + (size_t)event * stride, work->value_counts.items[2 * event]);
        }
    }
    for (size_t i = 0; i < work->probes.count; i++) work->sorted_at.items[work->probes.items[i]] = 0;
    for (uint32_t k = 0; k < events; k++) work->members[visits[k].event] = 0;
}

static int visit_order(const void *left, const void *right) {
    const Visit *a = left, *b = right;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

/* A bit for each slot, all zero. */
static uint64_t *stamps_for(const Index *index, Workspace *work) {
    const size_t words = index->slots.count / 64 + 1;
    if (work->stamps.count < words) {
        RESERVE(work->stamps, words);
        memset(work->stamps.items, 0, words * 8);
        work->stamps.count = words;
    }
    return work->stamps.items;
}

/* Drop slots that an event has already; returns how many are left. */
static uint32_t deduplicate(const Index *index, Workspace *work, uint32_t *slots, uint32_t count) {
    uint64_t *stamps = stamps_for(index, work);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slot = slots[i];
        if (bit_of(stamps, slot)) continue;
        flip(stamps, slot);
        slots[kept++] = slot;
    }
    for (uint32_t i = 0; i < kept; i++) stamps[slots[i] >> 6] = 0;
    return kept;
}

static void translate(int64_t *restrict ids, const int64_t *restrict numbers, const uint32_t *restrict slots,
                           size_t count) {
    for (size_t i = 0; i < count; i++) ids[i] = numbers[slots[i]];
}

static void repeat_row(int64_t *rows, int64_t row, size_t count) {
    for (size_t i = 0; i < count; i++) rows[i] = row;
}

static int segment_order(const void *left, const void *right) {
    const Segment *a = left, *b = right;
    if (a->event != b->event) return a->event < b->event ? -1 : 1;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Room for results. What all rows are going to need is guessed from those that are done, and the system is asked for
   huge pages: otherwise it would spend more time on handing out pages than we on filling them. */
static void results_reserve(Workspace *work, size_t needed, int64_t rows_done) {
    size_t wanted = needed;
    if (needed <= work->rows.capacity && needed <= (work->id_numbers ? work->ids.capacity : work->slots.capacity)) return;
    if (rows_done < work->rows_total) wanted = (size_t)((double)needed * (double)work->rows_total / (double)rows_done * 1.05) + 16;
    RESERVE(work->rows, wanted);
    huge_pages(work->rows.items, work->rows.capacity * sizeof *work->rows.items);
    if (work->id_numbers) {
        RESERVE(work->ids, work->rows.capacity);
        huge_pages(work->ids.items, work->ids.capacity * sizeof *work->ids.items);
    } else {
        RESERVE(work->slots, work->rows.capacity);
        huge_pages(work->slots.items, work->slots.capacity * sizeof *work->slots.items);
    }
}

/* Append the tile's matches to the results in the order of events, each slot once an event. */
static void gather(const Index *index, Workspace *work, uint32_t events) {
    size_t first = work->rows.count, at = first, total = work->found.count;
    const Segment *segment = work->segments.items, *end = segment + work->segments.count;
    if (events > 1 && work->segments.count > 1) qsort(work->segments.items, work->segments.count, sizeof(Segment), segment_order);
    if (index->several) { /* bring each event's slots together, and once */
        size_t kept = 0;
        Segment *write = work->segments.items;
        RESERVE(work->gathered, total);
        while (segment < end) {
            uint32_t event = segment->event, count = 0;
            for (; segment < end && segment->event == event; segment++) {
                memcpy(work->gathered.items + kept + count, work->found.items + segment->start, (size_t)segment->count * 4);
                count += segment->count;
            }
            count = deduplicate(index, work, work->gathered.items + kept, count);
            *write++ = (Segment){event, count, kept};
            kept += count;
        }
        total = kept;
        if (kept) memcpy(work->found.items, work->gathered.items, kept * 4);
        segment = work->segments.items;
        end = write;
    }
    results_reserve(work, first + total, work->row + events);
    for (; segment < end; segment++) {
        const uint32_t *slots = work->found.items + segment->start;
        repeat_row(work->rows.items + at, work->row + segment->event, segment->count);
        if (work->id_numbers) translate(work->ids.items + at, work->id_numbers, slots, segment->count);
        else memcpy(work->slots.items + at, slots, (size_t)segment->count * 4);
        at += segment->count;
    }
    work->rows.count = at;
    if (work->id_numbers) work->ids.count = at;
    else work->slots.count = at;
}

/* What one attribute, or one view of it, has for the events of a tile. */
static double *numbers_for(Workspace *work, const Index *index, uint32_t attribute, uint32_t events) {
    double *numbers = work->number_memory.items + work->lines.count * events;
    if (index->attributes.items[attribute].ranges) work->numbers[attribute] = numbers;
    PUSH(work->lines, attribute);
    return numbers;
}

/* An attribute is there for an event: note its key, if there is a group for it. */
INLINE void note_presence(Index *index, Workspace *work, uint32_t attribute, uint32_t event, uint32_t stride) {
    const uint32_t number = index->attributes.items[attribute].presence;
    Interned *presence = index->values.items + number;
    if (!index->mapped) COUNT_UP(presence->seen);
    if (presence->group) work->presences.items[(size_t)event * stride + work->value_counts.items[2 * event + 1]++] = number;
}

/* Note a value of an event that some filter demands, if one does. */
INLINE void note_value(Index *index, Workspace *work, uint32_t attribute, uint32_t kind, uint64_t payload,
                       const uint8_t *text, uint32_t length, uint32_t event, uint32_t stride) {
    const uint32_t found = value_find(index, equality_hash(attribute, kind, payload, text, length), attribute, kind,
                                      payload, text, length);
    if (!found) return;
    work->values.items[(size_t)event * stride + work->value_counts.items[2 * event]++] = found;
    if (!index->mapped) COUNT_UP(index->values.items[found].seen);
}

/* Read a column: numbers, and the keys that it gives to each event. */
static void read_column(Index *index, Workspace *work, uint32_t number, int64_t row, uint32_t events, uint32_t stride) {
    const Attribute *attribute = index->attributes.items + number;
    const Column *column = work->columns[number];
    double *numbers = numbers_for(work, index, number, events);
    for (uint32_t e = 0; e < events; e++) {
        Value value = value_at(column, row + e);
        uint32_t kind;
        uint64_t payload;
        numbers[e] = number_of(value);
        if (value.kind == KIND_ABSENT) continue;
        note_presence(index, work, number, e, stride);
        if (!attribute->equality) continue;
        if (equality_payload(value, &kind, &payload) && attribute->equality >> kind & 1)
            note_value(index, work, number, kind, payload, value.as.text, value.length, e, stride);
        if (value.kind != KIND_STRING) continue;
        for (uint64_t lengths = attribute->prefixes; lengths; lengths &= lengths - 1) {
            const uint32_t length = LOWEST_BIT(lengths) + 1;
            if (length > value.length) break;
            note_value(index, work, number, KIND_PREFIX, 0, value.as.text, length, e, stride);
        }
    }
    for (uint32_t view = 0; view < VIEWS; view++) {
        const uint32_t seen = attribute->views[view] - 1;
        if (!attribute->views[view]) continue;
        numbers = numbers_for(work, index, seen, events);
        for (uint32_t e = 0; e < events; e++) {
            Value value = value_at(column, row + e);
            numbers[e] = number_in_view(value, view);
            if (value.kind == view_kind(view)) note_presence(index, work, seen, e, stride);
        }
    }
}

/* Match the events in rows row to row + events - 1 of the columns that are set in the workspace; `present` lists
   the attributes that have one. Appends to the workspace's results. */
static void match_tile(Index *index, Workspace *work, const uint32_t *present, uint32_t present_count, int64_t row,
                       uint32_t events) {
    uint32_t lines = 0, stride = 0; /* columns and views; as many keys as an event may have */
    for (uint32_t p = 0; p < present_count; p++) {
        const Attribute *attribute = index->attributes.items + present[p];
        for (uint32_t view = 0; view < VIEWS; view++) lines += attribute->views[view] != 0;
        stride += 1 + BITS_SET(attribute->prefixes);
    }
    lines += present_count;
    if (stride < lines) stride = lines;
    work->row = row;
    work->events = events;
    work->tile_order.count = work->lines.count = 0;
    work->visits.count = work->segments.count = work->found.count = 0;
    RESERVE(work->number_memory, (size_t)lines * events);
    RESERVE(work->values, (size_t)events * stride + 1);
    RESERVE(work->presences, (size_t)events * stride + 1);
    RESERVE(work->value_counts, (size_t)events * 2);
    RESERVE(work->sorted_at, index->attributes.count);
    memset(work->value_counts.items, 0, (size_t)events * 8);
    if (work->sorted_at.count < index->attributes.count) {
        RESERVE(work->tile_order_at, index->attributes.count);
        memset(work->sorted_at.items, 0, index->attributes.count * 4);
        memset(work->tile_order_at.items, 0, index->attributes.count * 4);
        work->sorted_at.count = index->attributes.count;
    }
    for (uint32_t p = 0; p < present_count; p++) read_column(index, work, present[p], row, events, stride);
    for (uint32_t e = 0; e < events; e++)
        visit_groups(index, work, work->values.items + (size_t)e * stride, work->value_counts.items[2 * e],
                     work->presences.items + (size_t)e * stride, work->value_counts.items[2 * e + 1], e);
    if (work->visits.count > 1) qsort(work->visits.items, work->visits.count, sizeof(Visit), visit_order);
    if (events == 1 && work->visits.count) sweep_lone(index, work, work->visits.items, work->visits.count, stride);
    for (size_t start = 0, stop; events > 1 && start < work->visits.count; start = stop) {
        stop = start + 1;
        while (stop < work->visits.count && work->visits.items[stop].group == work->visits.items[start].group) stop++;
        if (stop - start > 1) sweep_group(index, work, work->visits.items + start, (uint32_t)(stop - start), stride);
        else sweep_lone(index, work, work->visits.items + start, 1, stride);
    }
    gather(index, work, events);
    for (size_t line = 0; line < work->lines.count; line++) {
        work->numbers[work->lines.items[line]] = work->absent;
        work->tile_order_at.items[work->lines.items[line]] = 0;
    }
}

#endif
