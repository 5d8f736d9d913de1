/* Encoded notifications: a column of MessagePack maps, read row by row into columns of values.

   The idea: a tile of rows is decoded into a table of cells, one run of TILE cells for each attribute that occurs in
   the tile and that some filter names; match_tile then reads these as columns of Value. Texts are not copied, they
   stay where they are in the caller's buffer. Neighbouring rows mostly have the same names in the same order, so each
   name is first compared with the one at its place in the row before; only where they differ is it checked and
   looked up. Lists are written one after the other and pointed at when the tile is complete, for they may move.

   The bytes may be anything. Every read is preceded by a look at how much is left, nothing nests deeper than a list
   of scalars, and nothing is reserved on the word of a header. A row is accepted exactly if
   palio.model.encoding.decode accepts it, also in what no filter asks for; all rows are, or the batch is refused. */

#ifndef PALIO_PAYLOAD_H
#define PALIO_PAYLOAD_H

#include "bridge.h"

/* The limits of palio.model.values. */
#define MOST_ATTRIBUTES 1024u
#define MOST_NAME_CHARACTERS 255
#define MOST_TEXT_BYTES 65536u
#define MOST_ELEMENTS 1024u

#define NO_ATTRIBUTE UINT32_MAX

/* Names of attributes by their bytes: open addressing, the texts one after the other. A place holds the number of an
   entry + 1, or 0. */
typedef struct { uint64_t hash; size_t at; uint32_t length, attribute; } NameEntry;

typedef struct {
    VECTOR(NameEntry) entries;
    VECTOR(uint8_t) texts;
    Words places; /* a power of two of them, at most half in use */
} NameTable;

static void names_place(NameTable *table, size_t entry) {
    size_t mask = table->places.count - 1, at = (size_t)table->entries.items[entry].hash & mask;
    while (table->places.items[at]) at = (at + 1) & mask;
    table->places.items[at] = (uint32_t)entry + 1;
}

static void names_add(NameTable *table, const uint8_t *text, uint32_t length, uint32_t attribute) {
    NameEntry entry = {text_hash(text, length, 0), table->texts.count, length, attribute};
    RESERVE(table->texts, table->texts.count + length + 1);
    memcpy(table->texts.items + table->texts.count, text, length);
    table->texts.count += length;
    PUSH(table->entries, entry);
    if (table->entries.count * 2 <= table->places.count) {
        names_place(table, table->entries.count - 1);
        return;
    }
    table->places.count = table->places.count ? table->places.count * 2 : 16;
    RESERVE(table->places, table->places.count);
    memset(table->places.items, 0, table->places.count * 4);
    for (size_t i = 0; i < table->entries.count; i++) names_place(table, i);
}

static void names_free(NameTable *table) {
    RELEASE(table->entries);
    RELEASE(table->texts);
    RELEASE(table->places);
}

static uint32_t names_find(const NameTable *table, const uint8_t *text, uint32_t length) {
    uint64_t hash;
    size_t mask, at;
    if (!table->places.count) return NO_ATTRIBUTE;
    hash = text_hash(text, length, 0);
    mask = table->places.count - 1;
    for (at = (size_t)hash & mask; table->places.items[at]; at = (at + 1) & mask) {
        const NameEntry *entry = table->entries.items + (table->places.items[at] - 1);
        if (entry->hash == hash && entry->length == length && !memcmp(table->texts.items + entry->at, text, length))
            return entry->attribute;
    }
    return NO_ATTRIBUTE;
}

/* Reading */

typedef struct { const uint8_t *at, *end; } Reader;

INLINE size_t bytes_left(const Reader *reader) { return (size_t)(reader->end - reader->at); }

/* A number of `size` bytes, most significant first. The caller has seen that they are there. */
INLINE uint64_t big_endian(const uint8_t *from, unsigned size) {
    uint64_t number = 0;
    for (unsigned i = 0; i < size; i++) number = number << 8 | from[i];
    return number;
}

INLINE int take_number(Reader *reader, unsigned size, uint64_t *number) {
    if (bytes_left(reader) < size) return 0;
    *number = big_endian(reader->at, size);
    reader->at += size;
    return 1;
}

/* The same bits as a signed number of 64 bits, without a conversion that the language leaves open. */
INLINE int64_t as_signed(uint64_t bits) {
    int64_t number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* How many characters the text has, or -1 if it is not UTF-8 (as Python sees it: no surrogates, shortest forms). */
static int64_t utf8_characters(const uint8_t *text, size_t length) {
    size_t at = 0, continuations = 0;
    while (at < length) {
        uint8_t first = text[at];
        uint8_t low = 0x80, high = 0xBF;
        unsigned more;
        if (length - at >= 8 && !(load_bits(text + at) & UINT64_C(0x8080808080808080))) {
            at += 8;
            continue;
        }
        if (first < 0x80) {
            at++;
            continue;
        }
        if (first < 0xC2 || first > 0xF4) return -1;
        more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        if (length - at <= more) return -1;
        if (first == 0xE0) low = 0xA0;
        if (first == 0xED) high = 0x9F;
        if (first == 0xF0) low = 0x90;
        if (first == 0xF4) high = 0x8F;
        if (text[at + 1] < low || text[at + 1] > high) return -1;
        for (unsigned i = 2; i <= more; i++)
            if ((text[at + i] & 0xC0) != 0x80) return -1;
        continuations += more;
        at += more + 1;
    }
    return (int64_t)(length - continuations);
}

INLINE int take_text(Reader *reader, uint64_t length, Value *value, uint32_t kind) {
    if (length > MOST_TEXT_BYTES || bytes_left(reader) < length) return 0;
    value->kind = kind;
    value->length = (uint32_t)length;
    value->as.text = reader->at;
    reader->at += length;
    return kind == KIND_BYTES || utf8_characters(value->as.text, value->length) >= 0;
}

/* The length of a string whose header begins with `first`; returns 0 if no string begins so, or its header is cut. */
INLINE int take_string_length(Reader *reader, uint8_t first, uint64_t *length) {
    if (first >= 0xA0 && first <= 0xBF) {
        *length = first & 0x1F;
        return 1;
    }
    if (first < 0xD9 || first > 0xDB) return 0;
    return take_number(reader, 1u << (first - 0xD9), length);
}

INLINE int take_integer(Reader *reader, unsigned size, int is_signed, Value *value) {
    uint64_t bits, sign = UINT64_C(1) << (8 * size - 1);
    if (!take_number(reader, size, &bits)) return 0;
    if (is_signed) bits = (bits ^ sign) - sign; /* unsigned arithmetic wraps, which extends the sign */
    else if (bits > (uint64_t)INT64_MAX) return 0;
    value->kind = KIND_INT;
    value->as.integer = as_signed(bits);
    return 1;
}

static int take_real(Reader *reader, unsigned size, Value *value) {
    uint64_t bits;
    double number;
    if (!take_number(reader, size, &bits)) return 0;
    if (size == 4) {
        uint32_t narrow = (uint32_t)bits;
        float real;
        memcpy(&real, &narrow, sizeof real);
        number = (double)real;
    } else {
        memcpy(&number, &bits, sizeof number);
    }
    if (!(number - number == 0.0)) return 0; /* NaN and the infinities */
    value->kind = KIND_FLOAT;
    value->as.real = number;
    return 1;
}

/* Seconds since 1970 that a time can have. */
#define SECONDS_LEAST (-INT64_C(62135596800))
#define SECONDS_MOST INT64_C(253402300799)

/* An extension of `size` bytes: a time, of which what is finer than microseconds is cut. */
static int take_time(Reader *reader, uint64_t size, Value *value) {
    uint64_t type, first, nanoseconds = 0;
    int64_t seconds;
    if (!take_number(reader, 1, &type) || type != 0xFF) return 0;
    if (size == 4) {
        if (!take_number(reader, 4, &first)) return 0;
        seconds = (int64_t)first;
    } else if (size == 8) {
        if (!take_number(reader, 8, &first)) return 0;
        nanoseconds = first >> 34;
        seconds = (int64_t)(first & ((UINT64_C(1) << 34) - 1));
    } else if (size == 12) {
        if (!take_number(reader, 4, &nanoseconds) || !take_number(reader, 8, &first)) return 0;
        seconds = as_signed(first);
    } else {
        return 0;
    }
    if (nanoseconds > 999999999 || seconds < SECONDS_LEAST || seconds > SECONDS_MOST) return 0;
    /* Python's reader rounds before it cuts, and so has no room for the last half microsecond of the year 9999. */
    if (seconds == SECONDS_MOST && nanoseconds >= 999999500) return 0;
    value->kind = KIND_TIME;
    value->as.integer = seconds * 1000000 + (int64_t)(nanoseconds / 1000);
    return 1;
}

/* A scalar whose first byte has been taken; 0 if it is none, or a wrong one. */
INLINE int take_scalar(Reader *reader, uint8_t first, Value *value) {
    uint64_t length;
    value->length = 0;
    if (first < 0x80 || first >= 0xE0) {
        value->kind = KIND_INT;
        value->as.integer = first < 0x80 ? (int64_t)first : (int64_t)first - 256;
        return 1;
    }
    if (first == 0xCB) return take_real(reader, 8, value);
    if (take_string_length(reader, first, &length)) return take_text(reader, length, value, KIND_STRING);
    switch (first) {
    case 0xC2:
    case 0xC3:
        value->kind = KIND_BOOL;
        value->as.integer = first & 1;
        return 1;
    case 0xC4:
    case 0xC5:
    case 0xC6:
        return take_number(reader, 1u << (first - 0xC4), &length) && take_text(reader, length, value, KIND_BYTES);
    case 0xC7:
    case 0xC8:
    case 0xC9:
        return take_number(reader, 1u << (first - 0xC7), &length) && take_time(reader, length, value);
    case 0xCA:
        return take_real(reader, 4, value);
    case 0xCC:
    case 0xCD:
    case 0xCE:
    case 0xCF:
        return take_integer(reader, 1u << (first - 0xCC), 0, value);
    case 0xD0:
    case 0xD1:
    case 0xD2:
    case 0xD3:
        return take_integer(reader, 1u << (first - 0xD0), 1, value);
    case 0xD6:
        return take_time(reader, 4, value);
    case 0xD7:
        return take_time(reader, 8, value);
    default:
        return 0;
    }
}

/* An int as a float, if that loses nothing. */
INLINE int made_real(Value *value) {
    double real = (double)value->as.integer;
    if (real >= 9223372036854775808.0 || (int64_t)real != value->as.integer) return 0;
    value->kind = KIND_FLOAT;
    value->as.real = real;
    return 1;
}

/* A list, written behind the other elements; the value gets the place of the first. Its elements are of one kind,
   where ints among floats count as floats if that loses nothing. */
static int take_list(Reader *reader, uint64_t length, Values *elements, Value *value) {
    size_t start = elements->count;
    uint32_t kinds = 0;
    if (length > MOST_ELEMENTS || bytes_left(reader) < length) return 0;
    RESERVE(*elements, start + (size_t)length + 1);
    for (uint64_t i = 0; i < length; i++) {
        Value *element = elements->items + elements->count;
        if (reader->at == reader->end) return 0;
        if (!take_scalar(reader, *reader->at++, element)) return 0;
        kinds |= UINT32_C(1) << element->kind;
        elements->count++;
    }
    if (kinds == (1u << KIND_INT | 1u << KIND_FLOAT)) {
        for (size_t i = start; i < elements->count; i++)
            if (elements->items[i].kind == KIND_INT && !made_real(elements->items + i)) return 0;
    } else if (kinds & (kinds - 1)) {
        return 0;
    }
    value->kind = KIND_LIST;
    value->length = (uint32_t)length;
    value->as.integer = (int64_t)start;
    return 1;
}

INLINE int take_value(Reader *reader, Values *elements, Value *value) {
    uint8_t first;
    uint64_t length;
    if (reader->at == reader->end) return 0;
    first = *reader->at++;
    if (first >= 0x90 && first <= 0x9F) return take_list(reader, first & 0x0F, elements, value);
    if (first == 0xDC || first == 0xDD)
        return take_number(reader, first == 0xDC ? 2 : 4, &length) && take_list(reader, length, elements, value);
    return take_scalar(reader, first, value);
}

/* Rows */

typedef struct { const uint8_t *text; uint32_t length, attribute; } RowName;

typedef struct {
    const NameTable *names;
    Column source;             /* the encoded rows, as COLUMN_BYTES */
    VECTOR(RowName) row_names; /* of the last row that had other names than the one before; all different */
    VECTOR(RowName) sorted;    /* memory for telling whether they are */
    Words present;             /* the attributes that occur in the tile, in the order of their runs of cells */
    Words run_of;              /* by attribute: the number of its run + 1, or 0 */
    Values cells;              /* TILE for each run */
    Values elements;           /* of the tile's lists */
    VECTOR(size_t) lists;      /* the cells that are lists */
    Columns columns;           /* one for each run */
} Payloads;

static void payloads_free(Payloads *payloads) {
    RELEASE(payloads->row_names);
    RELEASE(payloads->sorted);
    RELEASE(payloads->present);
    RELEASE(payloads->run_of);
    RELEASE(payloads->cells);
    RELEASE(payloads->elements);
    RELEASE(payloads->lists);
    RELEASE(payloads->columns);
}

static int name_order(const void *left, const void *right) {
    const RowName *one = left, *other = right;
    uint32_t shorter = one->length < other->length ? one->length : other->length;
    int order = memcmp(one->text, other->text, shorter);
    if (order) return order;
    return (one->length > other->length) - (one->length < other->length);
}

/* Whether the names of a row are all different: at one look if they ascend, as our own encoder writes them. */
static int names_differ(Payloads *payloads) {
    size_t count = payloads->row_names.count, at = 1;
    while (at < count && name_order(payloads->row_names.items + at - 1, payloads->row_names.items + at) < 0) at++;
    if (at >= count) return 1;
    RESERVE(payloads->sorted, count);
    memcpy(payloads->sorted.items, payloads->row_names.items, count * sizeof(RowName));
    qsort(payloads->sorted.items, count, sizeof(RowName), name_order);
    for (at = 1; at < count; at++)
        if (!name_order(payloads->sorted.items + at - 1, payloads->sorted.items + at)) return 0;
    return 1;
}

/* The cell of an attribute for an event; the attribute's run begins with all of them absent. */
INLINE size_t cell_of(Payloads *payloads, uint32_t attribute, uint32_t event) {
    uint32_t run = payloads->run_of.items[attribute];
    if (!run) {
        Value absent;
        memset(&absent, 0, sizeof absent);
        absent.kind = KIND_ABSENT;
        PUSH(payloads->present, attribute);
        run = payloads->run_of.items[attribute] = (uint32_t)payloads->present.count;
        RESERVE(payloads->cells, (size_t)run * TILE);
        for (size_t i = (size_t)(run - 1) * TILE; i < (size_t)run * TILE; i++) payloads->cells.items[i] = absent;
    }
    return (size_t)(run - 1) * TILE + event;
}

/* The name at a place of the row; `changed` is set where it is not the one of the row before. */
INLINE int take_name(Payloads *payloads, Reader *reader, size_t place, int *changed, uint32_t *attribute) {
    RowName name, *before = payloads->row_names.items + place;
    uint64_t length;
    int64_t characters;
    if (reader->at == reader->end) return 0;
    if (!take_string_length(reader, *reader->at++, &length)) return 0;
    if (!length || length > 4 * MOST_NAME_CHARACTERS || bytes_left(reader) < length) return 0;
    name.text = reader->at;
    name.length = (uint32_t)length;
    reader->at += length;
    if (place < payloads->row_names.count && before->length == name.length &&
        !memcmp(before->text, name.text, name.length)) {
        *attribute = before->attribute;
        return 1;
    }
    characters = utf8_characters(name.text, name.length);
    if (characters < 0 || characters > MOST_NAME_CHARACTERS) return 0;
    name.attribute = *attribute = names_find(payloads->names, name.text, name.length);
    *before = name;
    *changed = 1;
    if (place == payloads->row_names.count) payloads->row_names.count++;
    return 1;
}

/* One row into the cells of an event; 0 if it is not an encoded notification. */
static int take_row(Payloads *payloads, Reader reader, uint32_t event) {
    uint64_t count;
    int changed = 0;
    if (reader.at == reader.end) return 0;
    count = *reader.at++;
    if (count >= 0x80 && count <= 0x8F) count &= 0x0F;
    else if (count != 0xDE && count != 0xDF) return 0;
    else if (!take_number(&reader, count == 0xDE ? 2 : 4, &count)) return 0;
    if (count > MOST_ATTRIBUTES) return 0;
    for (size_t place = 0; place < count; place++) {
        uint32_t attribute;
        Value value;
        size_t cell, elements = payloads->elements.count;
        if (!take_name(payloads, &reader, place, &changed, &attribute)) return 0;
        if (!take_value(&reader, &payloads->elements, &value)) return 0;
        if (attribute == NO_ATTRIBUTE) {
            payloads->elements.count = elements;
            continue;
        }
        cell = cell_of(payloads, attribute, event);
        payloads->cells.items[cell] = value;
        if (value.kind == KIND_LIST) PUSH(payloads->lists, cell);
    }
    if (reader.at != reader.end) return 0;
    if (!changed) return 1;
    payloads->row_names.count = (size_t)count;
    return names_differ(payloads);
}

/* The cells of a tile as columns of the workspace. */
static void payloads_show(Payloads *payloads, Workspace *work, int64_t row) {
    for (size_t i = 0; i < payloads->lists.count; i++) {
        Value *value = payloads->cells.items + payloads->lists.items[i];
        value->as.elements = payloads->elements.items ? payloads->elements.items + value->as.integer : NULL;
    }
    RESERVE(payloads->columns, payloads->present.count);
    for (size_t i = 0; i < payloads->present.count; i++) {
        Column *column = payloads->columns.items + i;
        memset(column, 0, sizeof *column);
        column->type = COLUMN_VALUES;
        column->data = payloads->cells.items + i * TILE;
        column->first = -row;
        work->columns[payloads->present.items[i]] = column;
    }
}

/* Make the next tile start with nothing. */
static void payloads_clear(Payloads *payloads, Workspace *work) {
    for (size_t i = 0; i < payloads->present.count; i++) {
        payloads->run_of.items[payloads->present.items[i]] = 0;
        work->columns[payloads->present.items[i]] = NULL;
    }
    payloads->present.count = payloads->elements.count = payloads->lists.count = 0;
}

/* Match all rows. Returns the first that is not an encoded notification, or -1 if there is none; with such a row the
   results in the workspace are of no use. Null is a notification without attributes. */
static int64_t payloads_match(Payloads *payloads, Index *index, Workspace *work, int64_t rows) {
    static const uint8_t nothing[1] = {0};
    const uint8_t *data = payloads->source.data ? payloads->source.data : nothing;
    int64_t wrong = -1;
    RESERVE(payloads->run_of, index->attributes.count + 1);
    memset(payloads->run_of.items, 0, (index->attributes.count + 1) * 4);
    RESERVE(payloads->row_names, MOST_ATTRIBUTES);
    for (int64_t row = 0; row < rows && wrong < 0; row += TILE) {
        uint32_t events = rows - row < (int64_t)TILE ? (uint32_t)(rows - row) : TILE;
        for (uint32_t event = 0; event < events && wrong < 0; event++) {
            int64_t at = payloads->source.first + row + event;
            Reader reader;
            if (payloads->source.validity && !bit_at(payloads->source.validity, at)) continue;
            reader.at = data + payloads->source.offsets[at];
            reader.end = data + payloads->source.offsets[at + 1];
            if (!take_row(payloads, reader, event)) wrong = row + event;
        }
        if (wrong < 0) {
            payloads_show(payloads, work, row);
            match_tile(index, work, payloads->present.items, (uint32_t)payloads->present.count, row, events);
        }
        payloads_clear(payloads, work);
    }
    return wrong;
}

#endif
