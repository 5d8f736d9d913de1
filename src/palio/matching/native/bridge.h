/* What the Cython part calls: small functions over the vectors, and the way in and out. */

#ifndef PALIO_BRIDGE_H
#define PALIO_BRIDGE_H

#include "match.h"

/* Where a Python list has its objects, until it changes. */
#define list_items(list) (((PyListObject *)(list))->ob_item)

/* How many ids before it is needed an id is asked for, and again as many before that the pointer to it. */
#define AHEAD 24

/* Hand out ids by slot. They lie anywhere in memory: have first the pointer, then the object come in time. */
static void pick_ids(PyObject *const *ids, const uint32_t *slots, size_t count, PyObject **into) {
    size_t i = 0;
    for (; i + 2 * AHEAD < count; i++) {
        PREFETCH(ids + slots[i + 2 * AHEAD]);
        PREFETCH_WRITE(ids[slots[i + AHEAD]]);
        into[i] = ids[slots[i]];
        Py_INCREF(into[i]);
    }
    for (; i < count; i++) {
        into[i] = ids[slots[i]];
        Py_INCREF(into[i]);
    }
}

/* Ids that are nowhere but in the array of numbers. */
static int make_ids(const int64_t *numbers, const uint32_t *slots, size_t count, PyObject **into) {
    for (size_t i = 0; i < count; i++) {
        if (i + AHEAD < count) PREFETCH(numbers + slots[i + AHEAD]);
        into[i] = PyLong_FromLongLong(numbers[slots[i]]);
        if (!into[i]) return -1;
    }
    return 0;
}

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

/* A block whose data lie in a mapped file. */
static Block *block_mapped(Index *index, const Block *table, uint8_t *data) {
    Block *block = allocate(sizeof *block);
    memcpy(block, table, sizeof *block);
    block->data = data;
    PUSH(index->blocks, block);
    return block;
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

/* How many conjunctions have nothing to be found by but an attribute's presence, and have to be asked a program each. */
static uint64_t conjunctions_asked(const Index *index) {
    uint64_t count = 0;
    for (size_t i = 0; i < index->groups.count; i++) {
        const Group *group = index->groups.items + i;
        if (group->key == NOWHERE || !group->live || vouched(index, group)) continue;
        if (group->chunk)
            for (const uint32_t *record = loose_records(index, group); record < loose_end(index, group); record += record_words(record))
                count += record[0] != NOWHERE && programs_of(record);
        for (uint32_t number = group->block; number; number = index->blocks.items[number - 1]->next) {
            const Block *block = index->blocks.items[number - 1];
            for (uint32_t position = 0; block->extras && position < block->size; position++) {
                const uint32_t extra = block_extras(block)[position];
                count += extra && index->arena.words.items[extra + 1];
            }
        }
    }
    return count;
}

/* Lists were read with the place of their first element; now that the elements stay where they are, point there. */
static void resolve_elements(Values *values, const Values *elements) {
    for (size_t i = 0; i < values->count; i++) {
        Value *value = values->items + i;
        if (value->kind == KIND_LIST) value->as.elements = elements->items ? elements->items + value->as.integer : NULL;
    }
}

/* The rows of a column of lists: where each begins among the elements, which are a column themselves. A list with an element
   that is absent is absent. */
static void list_values(Values *values, Values *elements, const Column *column, const uint8_t *validity, const int64_t *offsets,
                        int64_t first, int64_t rows) {
    RESERVE(*values, (size_t)rows + 1);
    for (int64_t row = first; row < first + rows; row++) {
        Value list = {KIND_LIST, 0, {0}};
        list.as.integer = (int64_t)elements->count;
        if (validity && !bit_at(validity, row)) list.kind = KIND_ABSENT;
        for (int64_t at = offsets[row]; list.kind == KIND_LIST && at < offsets[row + 1]; at++) {
            Value element = value_at(column, at);
            if (element.kind == KIND_ABSENT) list.kind = KIND_ABSENT;
            else PUSH(*elements, element);
        }
        if (list.kind == KIND_ABSENT) elements->count = (size_t)list.as.integer;
        else list.length = (uint32_t)(elements->count - (size_t)list.as.integer);
        values->items[values->count++] = list;
    }
    resolve_elements(values, elements);
}

/* One row: a column for each value. */
static void event_columns(Workspace *work, const Values *values, Columns *columns, const Words *present) {
    for (size_t i = 0; i < present->count; i++) {
        Column *column = columns->items + i;
        memset(column, 0, sizeof *column);
        column->type = COLUMN_VALUES;
        column->data = values->items + i;
        work->columns[present->items[i]] = column;
    }
}

static size_t tile_size(void) { return TILE; }

/* Results are handed over to the caller, and kept when the caller is done with them, for the next batch: fresh
   memory costs about as much as the matching, since the system clears it. All of this happens under the GIL. */
#define KEPT_MOST 4
#define KEPT_BYTES ((size_t)256 << 20)

typedef struct { void *memory; size_t bytes; } Kept;
static Kept kept_results[KEPT_MOST];

/* The greatest memory that is kept, or none. */
static Kept reuse(void) {
    Kept none = {NULL, 0}, *best = kept_results, found;
    for (int i = 1; i < KEPT_MOST; i++)
        if (kept_results[i].bytes > best->bytes) best = kept_results + i;
    found = *best;
    *best = none;
    return found;
}

/* Take memory back: keep it if there is a place, or one with less in it, and all together is not too much. */
static void give_back(void *memory, size_t bytes) {
    Kept *least = kept_results;
    size_t all = bytes;
    for (int i = 0; i < KEPT_MOST; i++) {
        all += kept_results[i].bytes;
        if (kept_results[i].bytes < least->bytes) least = kept_results + i;
    }
    if (all - least->bytes > KEPT_BYTES || bytes <= least->bytes) {
        free(memory);
        return;
    }
    free(least->memory);
    *least = (Kept){memory, bytes};
}

static void prepare_results(Workspace *work, const int64_t *id_numbers, int64_t rows) {
    Kept first = reuse(), second = reuse();
    work->rows.count = work->ids.count = work->slots.count = 0;
    free(work->slots.items);
    free(work->ids.items);
    free(work->rows.items);
    memset(&work->slots, 0, sizeof work->slots);
    memset(&work->ids, 0, sizeof work->ids);
    work->rows.items = first.memory;
    work->rows.capacity = first.bytes / 8;
    work->id_numbers = id_numbers;
    work->rows_total = rows;
    if (id_numbers) {
        work->ids.items = second.memory;
        work->ids.capacity = second.bytes / 8;
    } else {
        work->slots.items = second.memory;
        work->slots.capacity = second.bytes / 4;
    }
}

static Kept handed_over(void *memory, size_t used, size_t capacity) {
    Kept result = {memory, capacity};
    if (used + 65536 < capacity / 2) { /* do not hold on to much for little */
        void *smaller = realloc(memory, used ? used : 1);
        if (smaller) result = (Kept){smaller, used};
    }
    if (!result.memory) result = (Kept){allocate(1), 1};
    return result;
}

static Kept take_rows(Workspace *work) {
    Kept result = handed_over(work->rows.items, work->rows.count * 8, work->rows.capacity * 8);
    work->rows.items = NULL;
    work->rows.capacity = 0;
    return result;
}

static Kept take_ids(Workspace *work) {
    Kept result;
    if (work->id_numbers) {
        result = handed_over(work->ids.items, work->rows.count * 8, work->ids.capacity * 8);
        work->ids.items = NULL;
        work->ids.capacity = 0;
    } else {
        result = handed_over(work->slots.items, work->rows.count * 4, work->slots.capacity * 4);
        work->slots.items = NULL;
        work->slots.capacity = 0;
    }
    return result;
}

#endif
