/* The index as a whole, and its two hash tables: interned values, and groups by pairs of them.

   Both tables are open, with linear probing and deletion by shifting back, so no graves pile up. Both have a part of the
   hash beside the number, so that what nobody has costs one cache line: an event asks for hundreds of pairs and for all
   lengths of prefixes and suffixes, most of which nobody has. The table of pairs is kept at most half full and says no more
   of a pair than its hash; who has the pair is confirmed at the group. */

#ifndef PALIO_INTERNING_H
#define PALIO_INTERNING_H

#include "blocks.h"

/* Conjunctions with the same key; see groups.h. */
typedef struct {
    uint32_t key, partner; /* interned values; partner is 0 for a key of one, both are 0 for the rest */
    uint32_t chunk;        /* where its loose records are in the arena, or 0 */
    uint32_t used;         /* words of the chunk, with its head */
    uint32_t block;        /* the first block + 1, or 0 */
    uint32_t live;         /* conjunctions, without removed ones */
    uint32_t loose, loose_dead;
} Group;

typedef struct {
    uint32_t hash; /* of both values; its lowest bits are where it would like to be */
    uint32_t group; /* 0 if there is none */
} Pair;

/* An interned value by the upper half of its hash; its lower half is where it would like to be. */
typedef struct { uint32_t hash, number; } Lookup;

/* Factors with a gram in common; see factors.h. */
typedef struct {
    uint32_t mark;  /* of the gram's hash the uppermost bits, and how many there are */
    uint32_t first; /* an interned value; 0 if there is none */
} Gram;

/* Where a conjunction is: in its group's chunk if block is NOWHERE, otherwise at a position of a block. */
typedef struct {
    uint32_t next; /* of the same slot, + 1 */
    uint32_t group, block, offset;
} Place;

typedef VECTOR(Block *) Blocks;

typedef struct {
    Arena arena;
    VECTOR(Attribute) attributes;
    VECTOR(Interned) values;
    VECTOR(Group) groups;
    VECTOR(Place) places;
    Words slots; /* the first place of each slot, + 1; 0 is none */
    VECTOR(Lookup) value_table;
    VECTOR(Pair) pairs;
    VECTOR(Gram) grams;
    Blocks blocks;
    uint64_t conjunctions, observed;
    uint32_t live_values, live_pairs, live_grams;
    uint32_t free_value, free_group, free_place, free_block; /* heads of lists, + 1 */
    uint32_t several; /* whether a slot has ever had more than one place */
    uint32_t building; /* in bulk: blocks are made late */
    uint32_t mapped;
} Index;

/* Values */

static int value_equals(const Index *index, uint32_t number, uint64_t hash, uint32_t attribute, uint32_t kind,
                        uint64_t payload, const uint8_t *text, uint32_t length) {
    const Interned *value = index->values.items + number;
    if (value->hash != hash || value->attribute != attribute || value->kind != kind || value->length != length) return 0;
    if (!length) return value->payload == payload; /* no text, or an empty one */
    return !memcmp(index->arena.words.items + value->payload, text, length);
}

/* The number of an interned value, or 0. */
static uint32_t value_find(const Index *index, uint64_t hash, uint32_t attribute, uint32_t kind, uint64_t payload,
                           const uint8_t *text, uint32_t length) {
    const size_t mask = index->value_table.count - 1;
    if (!index->value_table.count) return 0;
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        const Lookup entry = index->value_table.items[at];
        if (!entry.number) return 0;
        if (entry.hash == hash >> 32 && value_equals(index, entry.number, hash, attribute, kind, payload, text, length))
            return entry.number;
    }
}

static void value_table_put(Index *index, uint32_t number) {
    const uint64_t hash = index->values.items[number].hash;
    size_t mask = index->value_table.count - 1, at = (size_t)hash & mask;
    while (index->value_table.items[at].number) at = (at + 1) & mask;
    index->value_table.items[at] = (Lookup){(uint32_t)(hash >> 32), number};
}

static void value_table_grow(Index *index) {
    size_t wanted = index->value_table.count ? index->value_table.count * 2 : 64;
    RELEASE(index->value_table);
    index->value_table.items = allocate_pages(wanted * sizeof(Lookup));
    memset(index->value_table.items, 0, wanted * sizeof(Lookup));
    index->value_table.count = index->value_table.capacity = wanted;
    for (uint32_t number = 1; number < index->values.count; number++)
        if (index->values.items[number].attribute != NOWHERE && index->values.items[number].kind != KIND_PRESENCE)
            value_table_put(index, number);
}

static uint32_t value_new(Index *index, Interned value) {
    uint32_t number = index->free_value;
    Interned none = {0};
    none.attribute = NOWHERE;
    if (!index->values.count) PUSH(index->values, none);
    if (number) {
        number--;
        index->free_value = (uint32_t)index->values.items[number].payload;
        index->values.items[number] = value;
    } else {
        number = (uint32_t)index->values.count;
        PUSH(index->values, value);
    }
    return number;
}

/* In factors.h: where a factor is found from, and no longer. */
static void factor_enter(Index *index, uint32_t number);
static void factor_leave(Index *index, uint32_t number);

/* Intern a value, or find it; the caller counts the use. */
static uint32_t value_intern(Index *index, uint32_t attribute, Value from) {
    uint32_t kind = 0, number;
    uint64_t payload = 0, hash;
    Interned value = {0};
    if (!equality_payload(from, &kind, &payload)) return 0;
    hash = equality_hash(attribute, kind, payload, from.as.text, from.length);
    number = value_find(index, hash, attribute, kind, payload, from.as.text, from.length);
    if (number) return number;
    if (kind_is_text(kind)) {
        uint32_t words = (from.length + 3) / 4;
        payload = words ? arena_take(&index->arena, words) : 0;
        if (words) memcpy(index->arena.words.items + payload, from.as.text, from.length);
    }
    value.hash = hash;
    value.payload = payload;
    value.attribute = attribute;
    value.kind = (uint8_t)kind;
    value.length = kind_is_text(kind) ? from.length : 0;
    number = value_new(index, value);
    index->attributes.items[attribute].equality |= (uint32_t)1 << kind;
    switch (kind_within(kind)) {
    case KIND_PREFIX:
    case KIND_BYTES_PREFIX:
        index->attributes.items[attribute].prefixes |= (uint64_t)1 << (from.length - 1);
        break;
    case KIND_SUFFIX:
    case KIND_BYTES_SUFFIX:
        index->attributes.items[attribute].suffixes |= (uint64_t)1 << (from.length - 1);
        break;
    case KIND_FACTOR:
    case KIND_BYTES_FACTOR:
        factor_enter(index, number);
    }
    index->live_values++;
    if ((uint64_t)index->live_values * 3 > (uint64_t)index->value_table.count * 2) value_table_grow(index);
    else value_table_put(index, number);
    return number;
}

/* How many conjunctions demand a value; 0 also if it is not interned. */
static uint32_t value_uses(const Index *index, uint32_t attribute, Value from) {
    uint32_t kind = 0, number;
    uint64_t payload = 0;
    if (!equality_payload(from, &kind, &payload)) return 0;
    number = value_find(index, equality_hash(attribute, kind, payload, from.as.text, from.length), attribute, kind, payload,
                        from.as.text, from.length);
    return number ? index->values.items[number].uses : 0;
}

/* One use less; a value without uses is forgotten, but for the presence of an attribute. */
static void value_release(Index *index, uint32_t number) {
    Interned *value = index->values.items + number;
    size_t mask = index->value_table.count - 1, at = (size_t)value->hash & mask, next;
    if (--value->uses || value->kind == KIND_PRESENCE) return;
    if (kind_is_factor(value->kind)) factor_leave(index, number);
    while (index->value_table.items[at].number != number) at = (at + 1) & mask;
    for (next = (at + 1) & mask; index->value_table.items[next].number; next = (next + 1) & mask) {
        size_t home = (size_t)index->values.items[index->value_table.items[next].number].hash & mask;
        if (((next - home) & mask) < ((next - at) & mask)) continue; /* it may not move before its home */
        index->value_table.items[at] = index->value_table.items[next];
        at = next;
    }
    index->value_table.items[at] = (Lookup){0, 0};
    if (kind_is_text(value->kind) && value->length)
        arena_give_back(&index->arena, (uint32_t)value->payload, (value->length + 3) / 4);
    memset(value, 0, sizeof *value);
    value->attribute = NOWHERE;
    value->payload = index->free_value;
    index->free_value = number + 1;
    index->live_values--;
}

static uint32_t attribute_new(Index *index) {
    Attribute attribute = {0};
    Interned presence = {0};
    uint32_t number = (uint32_t)index->attributes.count;
    presence.kind = KIND_PRESENCE;
    presence.attribute = number;
    attribute.presence = value_new(index, presence);
    attribute.base = number;
    PUSH(index->attributes, attribute);
    return number;
}

/* The view of an attribute, made where there is none yet. */
static uint32_t attribute_view(Index *index, uint32_t attribute, uint32_t view) {
    uint32_t number;
    if (index->attributes.items[attribute].views[view]) return index->attributes.items[attribute].views[view] - 1;
    number = attribute_new(index);
    index->attributes.items[number].base = attribute;
    index->attributes.items[attribute].views[view] = number + 1;
    return number;
}

/* Pairs */

INLINE uint32_t value_hash(uint32_t value) { return (uint32_t)mixed(value); }

/* Of two values in either order: the sum of both hashes, so that an event's values are hashed once each. */
INLINE uint32_t pair_hash(uint32_t first, uint32_t second) { return value_hash(first) + value_hash(second); }

/* The first group whose pair has this hash, or 0. It is the right one but for one time in a thousand. */
INLINE uint32_t pair_guess(const Index *index, uint32_t hash) {
    const size_t mask = index->pairs.count - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        const Pair pair = index->pairs.items[at];
        if (!pair.group || pair.hash == hash) return pair.group;
    }
}

INLINE int group_has_key(const Index *index, uint32_t group, uint32_t key, uint32_t partner) {
    return index->groups.items[group].key == key && index->groups.items[group].partner == partner;
}

/* The group of two values, the lesser number first; 0 if there is none. */
static uint32_t pair_find(const Index *index, uint32_t key, uint32_t partner) {
    const size_t mask = index->pairs.count - 1;
    const uint32_t hash = pair_hash(key, partner);
    if (!index->pairs.count) return 0;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        const Pair pair = index->pairs.items[at];
        if (!pair.group || (pair.hash == hash && group_has_key(index, pair.group, key, partner))) return pair.group;
    }
}

static void pair_put(Index *index, Pair pair) {
    size_t mask = index->pairs.count - 1, at = pair.hash & mask;
    while (index->pairs.items[at].group) at = (at + 1) & mask;
    index->pairs.items[at] = pair;
}

static void pair_add(Index *index, Pair pair) {
    index->live_pairs++;
    if ((uint64_t)index->live_pairs * 2 > (uint64_t)index->pairs.count) {
        size_t before = index->pairs.count, wanted = before ? before * 2 : 64;
        Pair *old = index->pairs.items;
        index->pairs.items = allocate_pages(wanted * sizeof(Pair));
        memset(index->pairs.items, 0, wanted * sizeof(Pair));
        index->pairs.count = index->pairs.capacity = wanted;
        for (size_t i = 0; i < before; i++)
            if (old[i].group) pair_put(index, old[i]);
        free(old);
    }
    pair_put(index, pair);
}

static void pair_remove(Index *index, Pair pair) {
    size_t mask = index->pairs.count - 1, at = pair.hash & mask, next;
    while (index->pairs.items[at].group != pair.group) at = (at + 1) & mask;
    for (next = (at + 1) & mask; index->pairs.items[next].group; next = (next + 1) & mask) {
        if (((next - index->pairs.items[next].hash) & mask) < ((next - at) & mask)) continue; /* it may not move before its home */
        index->pairs.items[at] = index->pairs.items[next];
        at = next;
    }
    memset(index->pairs.items + at, 0, sizeof(Pair));
    index->live_pairs--;
}

#endif
