/* What the Cython part calls: small functions over the vectors, and the way in and out. */

#ifndef PALIO_BRIDGE_H
#define PALIO_BRIDGE_H

#include "match.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

typedef VECTOR(Range) Ranges;
typedef VECTOR(Value) Values;
typedef VECTOR(Column) Columns;
typedef VECTOR(int64_t) IdNumbers;

static void words_push(Words *words, uint32_t word) { PUSH(*words, word); }
static void words_extend(Words *words, const uint32_t *from, size_t count) {
    RESERVE(*words, words->count + count);
    if (count) memcpy(words->items + words->count, from, count * 4);
    words->count += count;
}
static void words_free(Words *words) { RELEASE(*words); }
static void ranges_push(Ranges *ranges, uint32_t attribute, double low, double high) {
    Range range = {attribute, 0, low, high};
    PUSH(*ranges, range);
}
static void ranges_free(Ranges *ranges) { RELEASE(*ranges); }
static void numbers_push(IdNumbers *numbers, int64_t number) { PUSH(*numbers, number); }
static void numbers_free(IdNumbers *numbers) { RELEASE(*numbers); }
static void values_reserve(Values *values, size_t count) { RESERVE(*values, count); }
static void values_free(Values *values) { RELEASE(*values); }
static void columns_reserve(Columns *columns, size_t count) { RESERVE(*columns, count + 1); }
static void columns_free(Columns *columns) { RELEASE(*columns); }

static void ranges_write(Words *record, const Ranges *ranges) {
    for (size_t i = 0; i < ranges->count; i++) {
        const Range *range = ranges->items + i;
        RESERVE(*record, record->count + RANGE_WORDS);
        record->items[record->count] = range->attribute;
        memcpy(record->items + record->count + 1, &range->low, 8);
        memcpy(record->items + record->count + 3, &range->high, 8);
        record->count += RANGE_WORDS;
    }
}

static uint32_t slot_new(Index *index) {
    PUSH(index->slots, 0);
    return (uint32_t)index->slots.count - 1;
}

/* File records that have waited, in their order. */
static void file_staged(Index *index, Words *staged) {
    for (size_t at = 0, length; at < staged->count; at += length) {
        length = record_words(staged->items + at);
        index_add(index, staged->items + at);
    }
    staged->count = 0;
}

/* Halve what has been observed. */
static void index_forget(Index *index) {
    index->observed /= 2;
    for (size_t i = 0; i < index->values.count; i++) index->values.items[i].seen /= 2;
}

static uint64_t groups_in_use(const Index *index) {
    uint64_t count = 0;
    for (size_t i = 0; i < index->groups.count; i++) count += index->groups.items[i].live != 0;
    return count;
}

static uint64_t blocks_in_use(const Index *index) {
    uint64_t count = 0;
    for (size_t i = 0; i < index->blocks.count; i++) count += (uint64_t)block_is_there(index->blocks.items[i]);
    return count;
}

/* Lists were read with the place of their first element; now that the elements stay where they are, point there. */
static void resolve_elements(Values *values, const Values *elements) {
    for (size_t i = 0; i < values->count; i++) {
        Value *value = values->items + i;
        if (value->kind == KIND_LIST) value->as.elements = elements->items ? elements->items + value->as.integer : NULL;
    }
}

static void reserve_event(Values *values, Columns *columns, Words *present, size_t count) {
    RESERVE(*values, count + 1);
    RESERVE(*columns, count + 1);
    RESERVE(*present, count + 1);
}

/* One row: a column for each value. */
static void event_columns(Workspace *work, Values *values, const Values *elements, Columns *columns, const Words *present) {
    values->count = present->count;
    resolve_elements(values, elements);
    for (size_t i = 0; i < present->count; i++) {
        Column *column = columns->items + i;
        memset(column, 0, sizeof *column);
        column->type = COLUMN_VALUES;
        column->data = values->items + i;
        work->columns[present->items[i]] = column;
    }
}

static size_t tile_size(void) { return TILE; }

/* Memory for results, in huge pages where the system has them to give. */
static void *large_memory(size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const size_t page = (size_t)1 << 21;
    if (bytes >= 2 * page) {
        void *memory = aligned_alloc(page, (bytes + page - 1) / page * page);
        if (memory) madvise(memory, bytes, MADV_HUGEPAGE);
        return memory;
    }
#endif
    return malloc(bytes ? bytes : 1);
}

WIDE static void write_matches(const Workspace *work, const int64_t *id_numbers, int64_t *rows, void *ids) {
    uint64_t at = 0;
    for (size_t row = 0; row < work->ends.count; row++)
        for (; at < work->ends.items[row]; at++) rows[at] = (int64_t)row;
    if (id_numbers)
        for (uint64_t i = 0; i < at; i++) ((int64_t *)ids)[i] = id_numbers[work->slots.items[i]];
    else if (at)
        memcpy(ids, work->slots.items, at * 4);
}

#endif
