/* Matching: a tile of up to TILE events at once, without the GIL and without changing the index.

   Each event's values are looked up once; those that some filter demands are its keys. The groups that they and
   their pairs lead to are collected; loose records are checked at once, groups with blocks wait until all events
   of the tile are known, so that a block is swept once for all of them. Matches come out as slots, per event. */

#ifndef PALIO_MATCH_H
#define PALIO_MATCH_H

#include "results.h"
#include "visiting.h"

static int visit_order(const void *left, const void *right) {
    const Visit *a = left, *b = right;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

/* What one attribute, or one view of it, has for the events of a tile. */
static double *numbers_for(Workspace *work, const Index *index, uint32_t attribute, uint32_t events) {
    double *numbers = work->number_memory.items + work->lines.count * events;
    if (index->attributes.items[attribute].ranges) work->numbers[attribute] = numbers;
    PUSH(work->lines, attribute);
    return numbers;
}

/* An attribute is there for an event: note its key, if there is a group for it; or as a value, if somebody demands it. */
INLINE void note_presence(Index *index, Workspace *work, uint32_t attribute, uint32_t event, uint32_t stride) {
    const uint32_t number = index->attributes.items[attribute].presence;
    Interned *presence = index->values.items + number;
    if (!index->mapped) COUNT_UP(presence->seen);
    if (presence->uses) work->values.items[(size_t)event * stride + work->value_counts.items[2 * event]++] = number;
    else if (presence->group) work->presences.items[(size_t)event * stride + work->value_counts.items[2 * event + 1]++] = number;
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

/* Note how a text begins and how it ends, as far as some filter asks. */
static void note_parts(Index *index, Workspace *work, uint32_t number, Value value, uint32_t event, uint32_t stride) {
    const Attribute *attribute = index->attributes.items + number;
    const uint32_t beginning = kind_of_beginning(value.kind), length = value.length;
    if (attribute->equality >> beginning & 1)
        for (uint64_t lengths = attribute->prefixes; lengths; lengths &= lengths - 1) {
            const uint32_t part = LOWEST_BIT(lengths) + 1;
            if (part > length) break;
            note_value(index, work, number, beginning, 0, value.as.text, part, event, stride);
        }
    if (attribute->equality >> (beginning + 1) & 1)
        for (uint64_t lengths = attribute->suffixes; lengths; lengths &= lengths - 1) {
            const uint32_t part = LOWEST_BIT(lengths) + 1;
            if (part > length) break;
            note_value(index, work, number, beginning + 1, 0, value.as.text + (length - part), part, event, stride);
        }
}

/* Note what a text is once its letters are small. */
static void note_folded(Index *index, Workspace *work, uint32_t number, Value value, uint32_t event, uint32_t stride) {
    const uint32_t length = fold_text(work, value.as.text, value.length);
    note_value(index, work, number, KIND_FOLDED, 0, work->folded.items, length, event, stride);
}

#define SCANNED_KINDS ((UINT32_MAX << KIND_ELEMENT) | 1u << KIND_FACTOR | 1u << KIND_BYTES_FACTOR)
#define MORE_KINDS (SCANNED_KINDS | PART_KINDS | 1u << KIND_FOLDED)
#define PART_KINDS (1u << KIND_PREFIX | 1u << KIND_SUFFIX | 1u << KIND_BYTES_PREFIX | 1u << KIND_BYTES_SUFFIX)

/* Note all that a value has besides being what it is. */
static void note_more(Index *index, Workspace *work, uint32_t number, Value value, uint32_t event, uint32_t stride) {
    const uint32_t wanted = index->attributes.items[number].equality;
    if (value.kind != KIND_STRING && value.kind != KIND_BYTES && value.kind != KIND_LIST) return;
    if (value.kind != KIND_LIST && wanted & PART_KINDS) note_parts(index, work, number, value, event, stride);
    if (value.kind == KIND_STRING && wanted >> KIND_FOLDED & 1) note_folded(index, work, number, value, event, stride);
    if (wanted & SCANNED_KINDS) note_hits(index, work, number, value, event);
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
        if (value.kind == KIND_STRING) { /* nearly all that is compared for equality */
            if (attribute->equality >> KIND_STRING & 1)
                note_value(index, work, number, KIND_STRING, 0, value.as.text, value.length, e, stride);
        } else if (equality_payload(value, &kind, &payload) && attribute->equality >> kind & 1)
            note_value(index, work, number, kind, payload, value.as.text, value.length, e, stride);
        if (attribute->equality & MORE_KINDS) note_more(index, work, number, value, e, stride);
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

/* Find who wants the events in rows row to row + events - 1 of the columns that are set in the workspace; `present`
   lists the attributes that have one. Slots are in `found`, and segments say whose. */
static void find_in_tile(Index *index, Workspace *work, const uint32_t *present, uint32_t present_count, int64_t row,
                         uint32_t events) {
    uint32_t lines = 0, stride = 0; /* columns and views; as many keys as an event may have */
    for (uint32_t p = 0; p < present_count; p++) {
        const Attribute *attribute = index->attributes.items + present[p];
        for (uint32_t view = 0; view < VIEWS; view++) lines += attribute->views[view] != 0;
        stride += 1 + BITS_SET(attribute->prefixes) + BITS_SET(attribute->suffixes) + (attribute->equality >> KIND_FOLDED & 1);
    }
    lines += present_count;
    stride += lines; /* presences, among the values or on their own */
    work->row = row;
    work->events = events;
    work->stride = stride;
    work->event_hits.count = 0;
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
    gather_hits(work);
    for (uint32_t e = 0; e < events; e += EVENTS_TOGETHER)
        visit_together(index, work, e, events - e < EVENTS_TOGETHER ? events : e + EVENTS_TOGETHER);
    if (work->visits.count > 1) qsort(work->visits.items, work->visits.count, sizeof(Visit), visit_order);
    if (events == 1 && work->visits.count) sweep_lone(index, work, work->visits.items, work->visits.count);
    for (size_t start = 0, stop; events > 1 && start < work->visits.count; start = stop) {
        stop = start + 1;
        while (stop < work->visits.count && work->visits.items[stop].group == work->visits.items[start].group) stop++;
        if (stop - start > 1) sweep_group(index, work, work->visits.items + start, (uint32_t)(stop - start));
        else sweep_lone(index, work, work->visits.items + start, 1);
    }
    for (size_t line = 0; line < work->lines.count; line++) {
        work->numbers[work->lines.items[line]] = work->absent;
        work->tile_order_at.items[work->lines.items[line]] = 0;
    }
}

/* Match the events of a tile; appends to the workspace's results. */
static void match_tile(Index *index, Workspace *work, const uint32_t *present, uint32_t present_count, int64_t row,
                       uint32_t events) {
    find_in_tile(index, work, present, present_count, row, events);
    gather(index, work, events);
}

/* Match one event alone, in row 0. Its slots are what has been found, each once: nothing needs to be gathered. */
static void match_alone(Index *index, Workspace *work, const uint32_t *present, uint32_t present_count) {
    find_in_tile(index, work, present, present_count, 0, 1);
    if (index->several) work->found.count = deduplicate(index, work, work->found.items, (uint32_t)work->found.count);
}

#endif
