/* Results: the slots that were found, segment by segment, become rows and ids in the order of the events. */

#ifndef PALIO_RESULTS_H
#define PALIO_RESULTS_H

#include "workspace.h"

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

static void widen(int64_t *restrict ids, const uint32_t *restrict numbers, size_t count) {
    for (size_t i = 0; i < count; i++) ids[i] = numbers[i];
}

static void repeat_row(int64_t *rows, int64_t row, size_t count) {
    for (size_t i = 0; i < count; i++) rows[i] = row;
}

static int segment_order(const void *left, const void *right) {
    const Segment *a = left, *b = right;
    if (a->event != b->event) return a->event < b->event ? -1 : 1;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Room for results. What all rows are going to need is guessed from those that are done, so that
   it seldom has to grow. */
static void results_reserve(Workspace *work, size_t needed, int64_t rows_done) {
    size_t wanted = needed;
    if (needed <= work->rows.capacity && needed <= (work->id_numbers ? work->ids.capacity : work->slots.capacity)) return;
    if (rows_done < work->rows_total) wanted = (size_t)((double)needed * (double)work->rows_total / (double)rows_done * 1.05) + 16;
    RESERVE(work->rows, wanted);
    if (work->id_numbers) RESERVE(work->ids, work->rows.capacity);
    else RESERVE(work->slots, work->rows.capacity);
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
            *write++ = (Segment){event, count, kept, 0};
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
        if (segment->are_ids) widen(work->ids.items + at, slots, segment->count);
        else if (work->id_numbers) translate(work->ids.items + at, work->id_numbers, slots, segment->count);
        else memcpy(work->slots.items + at, slots, (size_t)segment->count * 4);
        at += segment->count;
    }
    work->rows.count = at;
    if (work->id_numbers) work->ids.count = at;
    else work->slots.count = at;
}

#endif
