/* Factors: texts of which an event's text has to have one somewhere, found in one pass over it, however many there are.

   A factor is filed under one *gram* of its own: a few bytes of it, 8 where it has as many. All grams are in one open
   table, by their hash. An event's text asks for the gram at each of its places, and what is filed under a gram that is
   there is a candidate: its bytes are compared with those around the place, and that is all. So a text costs a look
   into the table for each place and each class (size) of grams in use, and a comparison of at most 64 bytes for
   each candidate; nothing else grows with the number of factors.

   Which of its grams a factor is filed under is decided when it comes: the one under which the fewest are; so what many
   factors have in common, a factor is not found by, as long as it has something else. Where even that gram is crowded, it
   tries the longer ones that it has room for. Adding and removing are a few looks into the table and a link in a list;
   nothing is ever built anew, unlike with an automaton.

   (Wu and Manber file patterns under a block of their beginnings, and shift; with a million patterns there is nothing to
   shift over. What an automaton is ahead in, one step a place whatever is there, costs it a cache line a step at this size.)

   Invariants: a factor is in exactly one list, that of a gram at `gram_at` of its text; the first of a list has no
   `previous`; an attribute's `grams` has the class of each of its factors, and may have more. */

#ifndef PALIO_FACTORS_H
#define PALIO_FACTORS_H

#include "interning.h"

#define GRAM_CLASSES 8u
#define GRAM_USUAL 5u      /* the class of what is long enough; */
#define GRAM_CROWDED 32u   /* with so many under one gram, longer ones are tried */
#define GRAMS_TRIED 16u    /* of one factor; each is a cache line */
#define GRAM_MARK_SHIFT 12u
#define GRAM_COUNT_MOST 4095u /* more are not counted, nor counted down again until all are gone */

static const uint8_t GRAM_SIZES[GRAM_CLASSES] = {1, 2, 3, 4, 6, 8, 16, 32};

/* What is common to all grams of an attribute, a kind and a class. */
INLINE uint64_t gram_seed(uint32_t attribute, uint32_t kind, uint32_t class) {
    return ((uint64_t)attribute << 8 | (uint64_t)kind << 3 | class) * UINT64_C(0x9e3779b97f4a7c15);
}

INLINE uint64_t gram_mixed(uint64_t bits) {
    bits *= UINT64_C(0x9fb21c651e98df25);
    bits ^= bits >> 32;
    bits *= UINT64_C(0xd6e8feb86659fd93);
    return bits ^ bits >> 32;
}

/* The hash of a gram of up to 8 bytes, given in a word. */
INLINE uint64_t gram_hash_short(uint64_t seed, uint64_t bits) { return gram_mixed(bits ^ seed); }

static uint64_t gram_hash(uint64_t seed, const uint8_t *text, uint32_t size) {
    uint8_t bytes[8] = {0};
    if (size <= 8) {
        memcpy(bytes, text, size);
        return gram_hash_short(seed, load_gram(bytes));
    }
    for (uint32_t at = 0; at < size; at += 8) seed = gram_mixed(load_gram(text + at) ^ seed);
    return seed;
}

INLINE uint32_t gram_mark(uint64_t hash) { return (uint32_t)(hash >> 32) & ~GRAM_COUNT_MOST; }

/* The hash of the gram that a factor is filed under. */
static uint64_t factor_hash(const Index *index, uint32_t number) {
    const Interned *value = index->values.items + number;
    return gram_hash(gram_seed(value->attribute, value->kind, value->gram_class),
                     (const uint8_t *)(index->arena.words.items + value->payload) + value->gram_at,
                     GRAM_SIZES[value->gram_class]);
}

/* Where a gram is in the table, or where it would be put. Two grams may have one mark, so who is there is asked. */
static size_t gram_place(const Index *index, uint64_t hash) {
    const size_t mask = index->grams.count - 1;
    size_t at = (size_t)hash & mask;
    while (index->grams.items[at].first
           && ((index->grams.items[at].mark & ~GRAM_COUNT_MOST) != gram_mark(hash)
               || factor_hash(index, index->grams.items[at].first) != hash))
        at = (at + 1) & mask;
    return at;
}

static void grams_grow(Index *index) {
    const size_t before = index->grams.count, wanted = before ? before * 2 : 64, mask = wanted - 1;
    Gram *old = index->grams.items;
    index->grams.items = allocate_pages(wanted * sizeof(Gram));
    memset(index->grams.items, 0, wanted * sizeof(Gram));
    index->grams.count = index->grams.capacity = wanted;
    for (size_t i = 0; i < before; i++) {
        size_t at;
        if (!old[i].first) continue;
        at = (size_t)factor_hash(index, old[i].first) & mask;
        while (index->grams.items[at].first) at = (at + 1) & mask;
        index->grams.items[at] = old[i];
    }
    free(old);
}

/* The least crowded gram of a class in a text: where it is, and how many are under it already. */
static uint32_t least_crowded(const Index *index, const Interned *value, uint32_t class, uint32_t *at) {
    const uint8_t *text = (const uint8_t *)(index->arena.words.items + value->payload);
    const uint32_t size = GRAM_SIZES[class], places = value->length - size + 1;
    const uint32_t step = places > GRAMS_TRIED ? places / GRAMS_TRIED : 1;
    const uint64_t seed = gram_seed(value->attribute, value->kind, class);
    uint32_t least = NOWHERE;
    for (uint32_t place = 0; place < places && least; place += step) {
        const Gram gram = index->grams.items[gram_place(index, gram_hash(seed, text + place, size))];
        const uint32_t crowd = gram.first ? gram.mark & GRAM_COUNT_MOST : 0;
        if (crowd < least) least = crowd, *at = place;
    }
    return least;
}

static void factor_enter(Index *index, uint32_t number) {
    Interned *value = index->values.items + number;
    uint32_t class = 0, at = 0, crowd;
    uint64_t hash;
    Gram *gram;
    if ((uint64_t)(index->live_grams + 1) * 2 > (uint64_t)index->grams.count) grams_grow(index);
    while (class < GRAM_USUAL && GRAM_SIZES[class + 1] <= value->length) class++;
    crowd = least_crowded(index, value, class, &at);
    while (crowd > GRAM_CROWDED && class + 1 < GRAM_CLASSES && GRAM_SIZES[class + 1] <= value->length)
        crowd = least_crowded(index, value, ++class, &at);
    value->gram_class = (uint8_t)class;
    value->gram_at = (uint8_t)at;
    index->attributes.items[value->attribute].grams |= 1u << class;
    hash = factor_hash(index, number);
    gram = index->grams.items + gram_place(index, hash);
    if (!gram->first) {
        gram->mark = gram_mark(hash);
        index->live_grams++;
    } else {
        index->values.items[gram->first].previous = number;
    }
    value->next = gram->first;
    value->previous = 0;
    gram->first = number;
    if ((gram->mark & GRAM_COUNT_MOST) < GRAM_COUNT_MOST) gram->mark++;
}

static void factor_leave(Index *index, uint32_t number) {
    Interned *value = index->values.items + number;
    const uint64_t hash = factor_hash(index, number);
    const size_t mask = index->grams.count - 1;
    size_t at = gram_place(index, hash), next;
    Gram *gram = index->grams.items + at;
    if (value->next) index->values.items[value->next].previous = value->previous;
    if (value->previous) index->values.items[value->previous].next = value->next;
    else gram->first = value->next;
    if (gram->first) {
        if ((gram->mark & GRAM_COUNT_MOST) < GRAM_COUNT_MOST) gram->mark--;
        return;
    }
    for (next = (at + 1) & mask; index->grams.items[next].first; next = (next + 1) & mask) {
        const size_t home = (size_t)factor_hash(index, index->grams.items[next].first) & mask;
        if (((next - home) & mask) < ((next - at) & mask)) continue; /* it may not move before its home */
        index->grams.items[at] = index->grams.items[next];
        at = next;
    }
    index->grams.items[at] = (Gram){0, 0};
    index->live_grams--;
}

#endif
