/* Encoded notifications as columns: what the attributes of many rows are, and the values of some of them.

   The rows are read by payload.h, tile by tile, into cells; here the cells become the buffers of Arrow arrays. A
   column holds values of one kind. A value of another kind is null there, and counted, unless the column converts
   and the value is a number that the column's kind has exactly: 3 is 3.0, 2^53 + 1 and 0.5 have no counterpart.

   A row that is no encoded notification is null in all columns, and its number is noted: what becomes of it is for the
   caller to say. */

#ifndef PALIO_PROJECTION_H
#define PALIO_PROJECTION_H

#include "payload.h"

typedef VECTOR(int64_t) RowNumbers;
typedef VECTOR(uint8_t) Bytes;

typedef struct {
    uint32_t kind;
    int converts;
    int64_t unconverted; /* values that are null here for being of another kind */
    Bytes validity, data; /* bits of validity; bits, eight bytes a row, or texts */
    VECTOR(int32_t) offsets;
} Projected;

static void projected_begin(Projected *column, int64_t rows) {
    size_t bits = (size_t)(rows + 7) / 8;
    RESERVE(column->validity, bits + 1);
    memset(column->validity.items, 0, bits + 1);
    column->validity.count = bits;
    if (column->kind == KIND_STRING || column->kind == KIND_BYTES) {
        RESERVE(column->offsets, (size_t)rows + 1);
        column->offsets.items[0] = 0;
        column->offsets.count = 1;
        return;
    }
    column->data.count = column->kind == KIND_BOOL ? bits : (size_t)rows * 8;
    RESERVE(column->data, column->data.count + 1);
    memset(column->data.items, 0, column->data.count + 1);
}

static void projected_free(Projected *column) {
    RELEASE(column->validity);
    RELEASE(column->data);
    RELEASE(column->offsets);
}

/* Where the offsets of a column of texts are; nowhere for the others. */
static const int32_t *projected_offsets(const Projected *column) { return column->offsets.items; }

/* A float as an int, if that loses nothing. */
INLINE int made_integer(Value *value) {
    double real = value->as.real;
    if (!(real >= -9223372036854775808.0 && real < 9223372036854775808.0)) return 0;
    if ((double)(int64_t)real != real || (real == 0.0 && signbit(real))) return 0;
    value->kind = KIND_INT;
    value->as.integer = (int64_t)real;
    return 1;
}

static void projected_put(Projected *column, int64_t row, Value value) {
    int is_text = column->kind == KIND_STRING || column->kind == KIND_BYTES;
    int valid = value.kind == column->kind;
    if (!valid && column->converts) {
        if (column->kind == KIND_FLOAT && value.kind == KIND_INT) valid = made_real(&value);
        else if (column->kind == KIND_INT && value.kind == KIND_FLOAT) valid = made_integer(&value);
    }
    if (!valid && value.kind != KIND_ABSENT) column->unconverted++;
    if (valid) {
        column->validity.items[row >> 3] |= (uint8_t)(1u << (row & 7));
        if (is_text) {
            RESERVE(column->data, column->data.count + value.length + 1);
            memcpy(column->data.items + column->data.count, value.as.text, value.length);
            column->data.count += value.length;
        } else if (column->kind == KIND_BOOL) {
            column->data.items[row >> 3] |= (uint8_t)((value.as.integer & 1) << (row & 7));
        } else {
            memcpy(column->data.items + row * 8, &value.as, 8);
        }
    }
    if (is_text) column->offsets.items[column->offsets.count++] = (int32_t)column->data.count;
}

/* All rows into columns: the attribute of each is its number. */
static void payloads_project(Payloads *payloads, Projected *columns, uint32_t count, int64_t rows, RowNumbers *wrong) {
    static const uint8_t nothing[1] = {0};
    const uint8_t *data = payloads->source.data ? payloads->source.data : nothing;
    Value absent;
    memset(&absent, 0, sizeof absent);
    absent.kind = KIND_ABSENT;
    RESERVE(payloads->run_of, count + 1);
    memset(payloads->run_of.items, 0, (count + 1) * 4);
    RESERVE(payloads->row_names, MOST_ATTRIBUTES);
    for (uint32_t i = 0; i < count; i++) projected_begin(columns + i, rows);
    for (int64_t row = 0; row < rows; row += TILE) {
        uint32_t events = rows - row < (int64_t)TILE ? (uint32_t)(rows - row) : TILE;
        for (uint32_t event = 0; event < events; event++) {
            int64_t at = payloads->source.first + row + event;
            Reader reader;
            if (payloads->source.validity && !bit_at(payloads->source.validity, at)) continue;
            reader.at = data + payloads->source.offsets[at];
            reader.end = data + payloads->source.offsets[at + 1];
            if (take_row(payloads, reader, event)) continue;
            PUSH(*wrong, row + event);
            payloads->row_names.count = 0; /* they may be half those of this row */
            for (size_t i = 0; i < payloads->present.count; i++) payloads->cells.items[i * TILE + event] = absent;
        }
        for (uint32_t i = 0; i < count; i++) {
            uint32_t run = payloads->run_of.items[i];
            const Value *cells = run ? payloads->cells.items + (size_t)(run - 1) * TILE : NULL;
            for (uint32_t event = 0; event < events; event++)
                projected_put(columns + i, row + event, cells ? cells[event] : absent);
            payloads->run_of.items[i] = 0;
        }
        payloads->present.count = payloads->elements.count = payloads->lists.count = 0;
    }
}

static size_t names_count(const NameTable *table) { return table->entries.count; }

static const uint8_t *name_at(const NameTable *table, size_t number, uint32_t *length) {
    *length = table->entries.items[number].length;
    return table->texts.items + table->entries.items[number].at;
}

/* Which attributes there are: their names are added to a table that begins empty, and for each the number of its values
   by kind, KIND_ABSENT numbers an attribute. Rows that are none are passed over. */
typedef VECTOR(int64_t) Counts;

static void payloads_discover(Payloads *payloads, NameTable *names, Counts *counts, int64_t rows) {
    static const uint8_t nothing[1] = {0};
    const uint8_t *data = payloads->source.data ? payloads->source.data : nothing;
    RESERVE(payloads->row_names, MOST_ATTRIBUTES);
    payloads->names = names;
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = payloads->source.first + row;
        uint64_t count;
        int changed = 0;
        Reader reader;
        if (payloads->source.validity && !bit_at(payloads->source.validity, at)) continue;
        reader.at = data + payloads->source.offsets[at];
        reader.end = data + payloads->source.offsets[at + 1];
        if (reader.at == reader.end) continue;
        count = *reader.at++;
        if (count >= 0x80 && count <= 0x8F) count &= 0x0F;
        else if ((count != 0xDE && count != 0xDF) || !take_number(&reader, count == 0xDE ? 2 : 4, &count)) continue;
        for (size_t place = 0; place < count && place < MOST_ATTRIBUTES; place++) {
            uint32_t attribute;
            Value value;
            if (!take_name(payloads, &reader, place, &changed, &attribute)) break;
            if (attribute == NO_ATTRIBUTE) {
                RowName *name = payloads->row_names.items + place;
                attribute = name->attribute = (uint32_t)names->entries.count;
                names_add(names, name->text, name->length, attribute);
                RESERVE(*counts, counts->count + KIND_ABSENT);
                memset(counts->items + counts->count, 0, KIND_ABSENT * sizeof(int64_t));
                counts->count += KIND_ABSENT;
            }
            if (!take_value(&reader, &payloads->elements, &value)) break;
            payloads->elements.count = 0;
            counts->items[(size_t)attribute * KIND_ABSENT + value.kind]++;
        }
    }
}

/* Bodies: MessagePack arrays that begin with the attributes, then an id, then the other properties. */

enum { BODY_PLAIN, BODY_WITH_PROPERTIES, BODY_UNREADABLE };

/* What follows an id if no property is set; a shorter array leaves it out. */
static const uint8_t no_properties[5] = {0xC0, 0xC0, 0x04, 0xC0, 0x90};

/* Where in a body its attributes are, and whether there is more than they and an id. */
static uint8_t body_split(Reader reader, const uint8_t **start, uint64_t *length) {
    uint8_t first;
    uint64_t id_length;
    if (bytes_left(&reader) < 2 || reader.at[0] < 0x91 || reader.at[0] > 0x97) return BODY_UNREADABLE;
    first = reader.at[1];
    reader.at += 2;
    if (first < 0xC4 || first > 0xC6 || !take_number(&reader, 1u << (first - 0xC4), length)) return BODY_UNREADABLE;
    if (bytes_left(&reader) < *length) return BODY_UNREADABLE;
    *start = reader.at;
    reader.at += *length;
    if (reader.at == reader.end) return BODY_PLAIN;
    first = *reader.at++;
    if (first != 0xC0) {
        if (!take_string_length(&reader, first, &id_length) || bytes_left(&reader) < id_length) return BODY_UNREADABLE;
        reader.at += id_length;
    }
    if (reader.at == reader.end) return BODY_PLAIN;
    if (bytes_left(&reader) == 5 && !memcmp(reader.at, no_properties, 5)) return BODY_PLAIN;
    return BODY_WITH_PROPERTIES;
}

/* The attributes of bodies, one after the other; `offsets` has room for one more than the rows, `kinds` for them. */
static void bodies_split(const Column *source, int64_t rows, Bytes *data, int64_t *offsets, uint8_t *kinds) {
    offsets[0] = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = source->first + row;
        const uint8_t *start = NULL;
        uint64_t length = 0;
        Reader reader;
        reader.at = (const uint8_t *)source->data + source->offsets[at];
        reader.end = (const uint8_t *)source->data + source->offsets[at + 1];
        kinds[row] = body_split(reader, &start, &length);
        if (kinds[row] != BODY_UNREADABLE && length) {
            RESERVE(*data, data->count + (size_t)length);
            memcpy(data->items + data->count, start, (size_t)length);
            data->count += (size_t)length;
        }
        offsets[row + 1] = (int64_t)data->count;
    }
}

#endif
