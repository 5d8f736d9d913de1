/* Values of events, columns of them, and the interned values that filters compare with for equality. */

#ifndef PALIO_VALUES_H
#define PALIO_VALUES_H

#include "memory.h"

/* The numbers of palio.model.values.Kind, and more that only interned values have. */
enum {
    KIND_BOOL, KIND_INT, KIND_FLOAT, KIND_STRING, KIND_TIME, KIND_BYTES, KIND_LIST, KIND_ABSENT,
    KIND_PRESENCE, /* that an attribute is there */
    KIND_PREFIX, KIND_SUFFIX, KIND_FACTOR, /* that a string begins so, ends so, has this in it */
    KIND_BYTES_PREFIX, KIND_BYTES_SUFFIX, KIND_BYTES_FACTOR,
    KIND_FOLDED,     /* what a string is once its letters of ASCII are small */
    KIND_ELEMENT = 16 /* added to any of these: that a list has such an element */
};

typedef struct Value {
    uint32_t kind;
    uint32_t length; /* bytes of a text, elements of a list; 0 of all else */
    union {
        int64_t integer; /* also bool, and time in microseconds since 1970 */
        double real;
        const uint8_t *text;
        const struct Value *elements;
    } as;
} Value;

enum {
    COLUMN_VALUES,   /* an array of Value */
    COLUMN_BOOL,     /* bits */
    COLUMN_INTEGER,  /* int64 */
    COLUMN_UNSIGNED, /* uint64; what does not fit into int64 is absent */
    COLUMN_REAL,     /* double; what is not finite is absent */
    COLUMN_STRING,   /* int64 offsets and bytes */
    COLUMN_BYTES,
    COLUMN_TIME      /* int64 in units of multiplier / divisor microseconds */
};

typedef struct {
    uint32_t type;
    const uint8_t *validity; /* bits, or NULL if all are there */
    const void *data;
    const int64_t *offsets;
    int64_t first; /* the place of row 0 in the buffers */
    int64_t multiplier, divisor;
} Column;

/* Years 1 to 9999, in microseconds since 1970. */
#define TIME_LEAST (-INT64_C(62135596800000000))
#define TIME_MOST INT64_C(253402300799999999)

INLINE int bit_at(const uint8_t *bits, int64_t at) { return bits[at >> 3] >> (at & 7) & 1; }

INLINE Value value_at(const Column *column, int64_t row) {
    Value value;
    int64_t at = column->first + row;
    value.kind = KIND_ABSENT;
    value.length = 0;
    value.as.integer = 0;
    if (column->type == COLUMN_VALUES) return ((const Value *)column->data)[at];
    if (column->validity && !bit_at(column->validity, at)) return value;
    switch (column->type) {
    case COLUMN_BOOL:
        value.kind = KIND_BOOL;
        value.as.integer = bit_at(column->data, at);
        break;
    case COLUMN_INTEGER:
        value.kind = KIND_INT;
        value.as.integer = ((const int64_t *)column->data)[at];
        break;
    case COLUMN_UNSIGNED: {
        uint64_t number = ((const uint64_t *)column->data)[at];
        if (number > (uint64_t)INT64_MAX) break;
        value.kind = KIND_INT;
        value.as.integer = (int64_t)number;
        break;
    }
    case COLUMN_REAL: {
        double number = ((const double *)column->data)[at];
        if (!(number - number == 0.0)) break; /* NaN and the infinities */
        value.kind = KIND_FLOAT;
        value.as.real = number;
        break;
    }
    case COLUMN_STRING:
    case COLUMN_BYTES:
        value.kind = column->type == COLUMN_STRING ? KIND_STRING : KIND_BYTES;
        value.as.text = (const uint8_t *)column->data + column->offsets[at];
        value.length = (uint32_t)(column->offsets[at + 1] - column->offsets[at]);
        break;
    default: {
        int64_t count = ((const int64_t *)column->data)[at];
        if (column->divisor > 1) {
            int64_t quotient = count / column->divisor;
            count = quotient - (count % column->divisor < 0);
        } else {
            if (count > TIME_MOST / column->multiplier || count < TIME_LEAST / column->multiplier) break;
            count *= column->multiplier;
        }
        if (count < TIME_LEAST || count > TIME_MOST) break;
        value.kind = KIND_TIME;
        value.as.integer = count;
    }
    }
    return value;
}

/* An attribute of which filters demand a type has a view for each such type: an attribute of its own, without a name,
   that is there where the value is of this kind. */
enum { VIEW_INT, VIEW_FLOAT, VIEW_TIME, VIEW_LEAST, VIEW_MOST, VIEWS }; /* the last two: of the numbers in a list */

INLINE uint32_t view_kind(uint32_t view) {
    return view == VIEW_INT ? KIND_INT : view == VIEW_FLOAT ? KIND_FLOAT : view == VIEW_TIME ? KIND_TIME : KIND_LIST;
}

/* Where a value stands on the line of numbers; NaN if it is none. Ints beyond 2**53 are rounded, which no range
   in a record or a block can tell: their ends lie below 2**53 or nowhere. */
INLINE double number_of(Value value) {
    if (value.kind == KIND_FLOAT) return value.as.real;
    if (value.kind == KIND_INT) return (double)value.as.integer;
    return (double)NAN;
}

/* The least or the greatest number in a list; NaN if it has none. */
static double extreme_of(Value list, int most) {
    double found = (double)NAN;
    for (uint32_t i = 0; i < list.length; i++) {
        const double number = number_of(list.as.elements[i]);
        if (found != found || (most ? number > found : number < found)) found = number;
    }
    return found;
}

/* The same in a view. Microseconds are exact up to the year 2255; as with ints, no range has an end beyond. */
INLINE double number_in_view(Value value, uint32_t view) {
    if (value.kind != view_kind(view)) return (double)NAN;
    if (value.kind == KIND_LIST) return extreme_of(value, view == VIEW_MOST);
    return view == VIEW_FLOAT ? value.as.real : (double)value.as.integer;
}

#define EXACT_LIMIT INT64_C(9007199254740992) /* 2**53 */

/* Interned values: (attribute, kind, value) that some filter demands. Number 0 is none. */
typedef struct {
    uint64_t hash;
    uint64_t payload; /* a bool, the bits of a double, or the offset of a text in the arena */
    uint32_t attribute;
    uint32_t length;
    uint32_t uses;  /* how many conjunctions demand it, or forbid it */
    uint32_t seen;  /* in how many of the observed events it was */
    uint32_t group; /* the group keyed by it alone, or 0 */
    union {
        uint32_t pairs;    /* how many groups are keyed by it and another one */
        uint32_t previous; /* of a factor, which is in no pair: its neighbours under the same gram; see factors.h */
    };
    uint32_t next;
    uint8_t kind, gram_class, gram_at, spare;
} Interned;

typedef struct {
    uint32_t uses;     /* conjunctions that need it to be present */
    uint32_t presence; /* the interned value that stands for its being there */
    uint32_t equality; /* kinds that some filter compares for equality, as bits */
    uint32_t ranges;   /* whether some filter has it in a range */
    uint64_t partners; /* attributes (modulo 64) with which it makes up pairs */
    uint64_t prefixes; /* a bit for each length, from 1 on, of the prefixes that some filter has asked for */
    uint64_t suffixes; /* likewise */
    uint32_t views[VIEWS]; /* the attributes that are its views, + 1; 0 is none */
    uint32_t base;         /* what it is a view of, or itself */
    uint32_t grams;        /* the classes of grams under which its factors are filed, as bits */
    uint32_t spare;
} Attribute;

/* Bytes of an interned prefix, suffix or factor. Each length of a prefix or a suffix in use costs an event a look into the
   table, and comparing so many bytes is one step; of a longer text a part is looked up, and the rest is asked. */
#define PART_MOST 64u

#define TEXT_KINDS (1u << KIND_STRING | 1u << KIND_BYTES | 1u << KIND_PREFIX | 1u << KIND_SUFFIX | 1u << KIND_FACTOR \
                    | 1u << KIND_BYTES_PREFIX | 1u << KIND_BYTES_SUFFIX | 1u << KIND_BYTES_FACTOR | 1u << KIND_FOLDED)
#define FACTOR_KINDS (1u << KIND_FACTOR | 1u << KIND_BYTES_FACTOR)

INLINE uint32_t kind_within(uint32_t kind) { return kind & (KIND_ELEMENT - 1u); } /* KIND_ELEMENT is a power of two */
INLINE int kind_is_text(uint32_t kind) { return TEXT_KINDS >> kind_within(kind) & 1; }
INLINE int kind_is_factor(uint32_t kind) { return FACTOR_KINDS >> kind_within(kind) & 1; }

/* Of what a string or bytes have, the kind that says how they begin; the next two say how they end and what is in them. */
INLINE uint32_t kind_of_beginning(uint32_t kind) { return kind == KIND_STRING ? KIND_PREFIX : KIND_BYTES_PREFIX; }

static uint64_t mixed(uint64_t bits) {
    bits ^= bits >> 32;
    bits *= UINT64_C(0xd6e8feb86659fd93);
    bits ^= bits >> 32;
    bits *= UINT64_C(0xd6e8feb86659fd93);
    return bits ^ bits >> 32;
}

/* One to seven bytes in a word, different for each text of that length; without a call, as most texts are short. */
INLINE uint64_t few_bytes(const uint8_t *text, uint32_t length) {
    if (length >= 4) return load_word(text) | (uint64_t)load_word(text + (length - 4)) << 32;
    return text[0] | (uint64_t)text[length >> 1] << 8 | (uint64_t)text[length - 1] << 16;
}

INLINE uint64_t text_hash(const uint8_t *text, uint32_t length, uint64_t seed) {
    uint64_t hash = seed ^ (uint64_t)length * UINT64_C(0x9e3779b97f4a7c15);
    while (length >= 8) {
        hash = (hash ^ load_bits(text)) * UINT64_C(0x9fb21c651e98df25);
        hash ^= hash >> 29;
        text += 8;
        length -= 8;
    }
    if (length) hash = (hash ^ few_bytes(text, length)) * UINT64_C(0x9fb21c651e98df25);
    return mixed(hash);
}

/* The key of a value that can be interned: 0 if it cannot equal any interned one. */
INLINE int equality_payload(Value value, uint32_t *kind, uint64_t *payload) {
    const uint32_t element = value.kind & KIND_ELEMENT;
    double real;
    *kind = value.kind;
    switch (value.kind & ~(uint32_t)KIND_ELEMENT) {
    case KIND_BOOL:
        *payload = (uint64_t)value.as.integer;
        return 1;
    case KIND_INT:
        if (value.as.integer >= EXACT_LIMIT || value.as.integer <= -EXACT_LIMIT) return 0;
        real = (double)value.as.integer;
        break;
    case KIND_FLOAT:
        real = value.as.real + 0.0; /* no negative zero */
        if (!(real < (double)EXACT_LIMIT && real > -(double)EXACT_LIMIT)) return 0;
        break;
    default:
        *payload = 0;
        return kind_is_text(value.kind);
    }
    *kind = KIND_FLOAT | element;
    memcpy(payload, &real, sizeof real);
    return 1;
}

INLINE uint64_t equality_hash(uint32_t attribute, uint32_t kind, uint64_t payload, const uint8_t *text, uint32_t length) {
    uint64_t seed = ((uint64_t)attribute << 5 | kind) * UINT64_C(0x9e3779b97f4a7c15);
    if (kind_is_text(kind)) return text_hash(text, length, seed);
    return mixed(seed ^ payload * UINT64_C(0xff51afd7ed558ccd));
}

#endif
