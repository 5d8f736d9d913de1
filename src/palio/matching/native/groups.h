/* Groups: conjunctions found by the same key, and how they get there and away.

   A conjunction enters as a record of words in the arena:

       slot | counts | equalities ... | ranges (attribute, low, high) ... | programs ...

   Equalities are interned values that an event has to have: values proper, beginnings, ends and factors of texts, elements
   of lists, the presence of an attribute; or that it must not have, with the bit FORBIDDEN. Its group is that of its rarest
   equality proper, or, where that one is common, of its two rarest (factors and elements are in no pair: an event may
   have thousands of them); without one it is that of the rarest attribute that it needs to be present; without any,
   group 0. Which is rarest is known from the events observed or, before there are enough, from the filters
   themselves. The equalities that make up the key come first in the record.

   Where even the rarest attribute of some ranges is common, its being there tells little, and many groups of a few
   hundred cost an event more than a single one of all of them: such ranges are pooled in group 0, as long as it has no more
   than a block of them. So whoever is there in vain costs any event one block at the most.

   Records lie loose, in a chunk of the arena, until there are enough of them (`settling_size`); then they become a block. A
   chunk that is full is moved to a larger one: most groups have a handful of records, which an event should find side by side. A
   block is merged with its elders that are not larger, so that there are only logarithmically many and each conjunction moves
   logarithmically often. A group keyed by one value that gets crowded first chooses anew for all members. */

#ifndef PALIO_GROUPS_H
#define PALIO_GROUPS_H

#include "factors.h"

#define CROWDED 32u         /* a key of one value with more members is worth being made a pair */
#define COMMON 16u          /* a value with more uses is paired from the beginning */
#define OBSERVED_ENOUGH 512u
#define POOL_MOST BLOCK_MOST
#define COMMON_EVENTS 4u    /* an attribute that one of so many events has is common, */
#define COMMON_FILTERS 16u  /* and before they are observed, one that one of so many conjunctions needs */

#define RECORD_HEAD 2u
#define RANGE_WORDS 5u
#define CHUNK_HEAD 1u /* words in all */
#define COUNT_MOST 1023u

INLINE uint32_t equalities_of(const uint32_t *record) { return record[1] & 1023; }
INLINE uint32_t ranges_of(const uint32_t *record) { return record[1] >> 10 & 1023; }
INLINE uint32_t programs_of(const uint32_t *record) { return record[1] >> 20 & 1023; }
INLINE uint32_t record_words(const uint32_t *record) {
    return RECORD_HEAD + equalities_of(record) + RANGE_WORDS * ranges_of(record) + programs_of(record);
}

typedef VECTOR(Rank) Ranks;

/* Where in the order of blocks a record belongs. */
static Rank record_rank(const uint32_t *record, uint32_t group, uint32_t at) {
    const uint32_t *range = record + RECORD_HEAD + equalities_of(record);
    uint64_t attributes = 0;
    for (uint32_t i = 0; i < ranges_of(record); i++, range += RANGE_WORDS) attributes |= (uint64_t)1 << (range[0] & 63);
    return rank_of(attributes, group, at);
}

static void ranks_sort(Ranks *ranks) {
    if (ranks->count) qsort(ranks->items, ranks->count, sizeof *ranks->items, rank_order);
}

#define FORBIDDEN ((uint32_t)1 << 31)

/* Whether an equality can be a key, and whether it can be one of a pair. */
INLINE int can_be_key(const Index *index, uint32_t equality) {
    return !(equality & FORBIDDEN) && index->values.items[equality].kind != KIND_PRESENCE;
}
INLINE int can_be_paired(const Index *index, uint32_t equality) {
    const uint32_t kind = index->values.items[equality].kind;
    return !(kind & KIND_ELEMENT) && !kind_is_factor(kind);
}

/* A program in the arena: words in all, attribute, then the bytes. */
INLINE const uint32_t *program_at(const Index *index, uint32_t offset) { return index->arena.words.items + offset; }

static uint32_t program_store(Index *index, uint32_t attribute, const uint8_t *bytes, uint32_t length) {
    uint32_t words = 2 + (length + 3) / 4, offset = arena_take(&index->arena, words);
    uint32_t *program = index->arena.words.items + offset;
    program[0] = words;
    program[1] = attribute;
    memcpy(program + 2, bytes, length);
    return offset;
}

static void program_free(Index *index, uint32_t offset) {
    arena_give_back(&index->arena, offset, index->arena.words.items[offset]);
}

/* Keys */

static double rarity(const Index *index, uint32_t value) {
    const Interned *entry = index->values.items + value;
    if (index->observed >= OBSERVED_ENOUGH) return (double)entry->seen + 1e-6 * entry->uses;
    if (entry->kind != KIND_PRESENCE) return entry->uses;
    return index->attributes.items[index->attributes.items[entry->attribute].base].uses;
}

/* Whether an attribute is there so often, as far as one knows, that it is no good as a key. */
static int is_common(const Index *index, uint32_t presence) {
    const Interned *entry = index->values.items + presence;
    if (index->observed >= OBSERVED_ENOUGH) return (uint64_t)entry->seen * COMMON_EVENTS >= index->observed;
    return rarity(index, presence) * COMMON_FILTERS >= (double)index->conjunctions;
}

/* How many conjunctions more may be pooled. */
static uint32_t pool_room(const Index *index) {
    const uint32_t live = index->groups.count ? index->groups.items[0].live : 0;
    return live < POOL_MOST ? POOL_MOST - live : 0;
}

typedef struct { uint32_t key, partner; } Key;

/* Put the rarest equality at or behind `front` that can be a key there (of a pair, if it is to be the second); whether
   there is one. */
static int bring_rarest(const Index *index, uint32_t *equalities, uint32_t count, uint32_t front) {
    uint32_t rarest = count, value;
    for (uint32_t i = front; i < count; i++) {
        if (!can_be_key(index, equalities[i]) || (front && !can_be_paired(index, equalities[i]))) continue;
        if (rarest == count || rarity(index, equalities[i]) < rarity(index, equalities[rarest])) rarest = i;
    }
    if (rarest == count) return 0;
    value = equalities[rarest];
    equalities[rarest] = equalities[front];
    equalities[front] = value;
    return 1;
}

/* The key that suits a record best, where `room` is left in the pool; its equalities are put into the order that goes with it. */
static Key choose_key(const Index *index, uint32_t *record, uint32_t room) {
    uint32_t count = equalities_of(record), *equalities = record + RECORD_HEAD;
    const uint32_t *ranges = equalities + count, *programs = ranges + RANGE_WORDS * ranges_of(record);
    Key key = {0, 0};
    double best = 0;
    if (count && bring_rarest(index, equalities, count, 0)) {
        key.key = equalities[0];
        if (count > 1 && index->values.items[key.key].uses > COMMON && can_be_paired(index, key.key)
            && bring_rarest(index, equalities, count, 1)) {
            key.partner = equalities[1];
            if (key.partner < key.key) key = (Key){key.partner, key.key};
        }
        return key;
    }
    for (uint32_t i = 0; i < count + ranges_of(record) + programs_of(record); i++) {
        uint32_t presence;
        double rare;
        if (i < count) {
            if (equalities[i] & FORBIDDEN) continue;
            presence = equalities[i];
        } else if (i < count + ranges_of(record)) {
            presence = index->attributes.items[ranges[RANGE_WORDS * (i - count)]].presence;
        } else {
            const uint32_t *program = program_at(index, programs[i - count - ranges_of(record)]);
            if (program[2]) continue; /* it allows absence */
            presence = index->attributes.items[program[1]].presence;
        }
        rare = rarity(index, presence);
        if (!key.key || rare < best) key.key = presence, best = rare;
    }
    if (key.key && room && !count && !programs_of(record) && is_common(index, key.key)) key.key = 0;
    return key;
}

static uint32_t group_for(Index *index, Key key) {
    Group group = {0};
    uint32_t number = 0;
    if (!index->groups.count) PUSH(index->groups, group); /* group 0: without a key */
    if (!key.key) return 0;
    number = key.partner ? pair_find(index, key.key, key.partner) : index->values.items[key.key].group;
    if (number) return number;
    group.key = key.key;
    group.partner = key.partner;
    if (index->free_group) {
        number = index->free_group - 1;
        index->free_group = index->groups.items[number].chunk;
        index->groups.items[number] = group;
    } else {
        number = (uint32_t)index->groups.count;
        PUSH(index->groups, group);
    }
    if (key.partner) {
        Interned *first = index->values.items + key.key, *second = index->values.items + key.partner;
        first->pairs++;
        second->pairs++;
        index->attributes.items[first->attribute].partners |= (uint64_t)1 << (second->attribute & 63);
        index->attributes.items[second->attribute].partners |= (uint64_t)1 << (first->attribute & 63);
        pair_add(index, (Pair){pair_hash(key.key, key.partner), number});
    } else {
        index->values.items[key.key].group = number;
    }
    return number;
}

/* How many of a record's equalities the group's key vouches for. */
INLINE uint32_t vouched(const Index *index, const Group *group) {
    if (group->partner) return 2;
    return group->key && index->values.items[group->key].kind != KIND_PRESENCE;
}

/* How many loose records of a group become a block. Groups with equalities for a key are many, so there memory counts as
   well; all others are visited by nearly every event. */
static uint32_t settling_size(const Index *index, const Group *group) {
    return vouched(index, group) ? BLOCK_LEAST : BLOCK_LEAST / 2;
}

/* Places */

static Place *place_of(Index *index, uint32_t slot, uint32_t group, uint32_t block, uint32_t offset) {
    uint32_t next = index->slots.items[slot];
    while (next) {
        Place *place = index->places.items + (next - 1);
        if (place->group == group && place->block == block && place->offset == offset) return place;
        next = place->next;
    }
    return NULL; /* cannot be */
}

static void place_new(Index *index, uint32_t slot, uint32_t group, uint32_t block, uint32_t offset) {
    Place place = {index->slots.items[slot], group, block, offset};
    uint32_t number;
    if (index->free_place) {
        number = index->free_place - 1;
        index->free_place = index->places.items[number].next;
        index->places.items[number] = place;
    } else {
        number = (uint32_t)index->places.count;
        PUSH(index->places, place);
    }
    if (place.next) index->several = 1;
    index->slots.items[slot] = number + 1;
}

/* Loose records */

/* Where a group's loose records begin, and where they end. */
INLINE uint32_t *loose_records(const Index *index, const Group *group) {
    return index->arena.words.items + group->chunk + CHUNK_HEAD;
}
INLINE uint32_t *loose_end(const Index *index, const Group *group) { return index->arena.words.items + group->chunk + group->used; }

/* Append a copy of the record (which does not lie in the arena); returns its offset in the chunk. */
static uint32_t loose_append(Index *index, uint32_t group_number, const uint32_t *record) {
    Group *group = index->groups.items + group_number;
    const uint32_t needed = record_words(record), chunk = group->chunk, before = chunk ? index->arena.words.items[chunk] : 0;
    uint32_t offset;
    if (!chunk || before - group->used < needed) {
        const uint32_t wanted = arena_rounded(chunk ? group->used + (before / 2 > needed ? before / 2 : needed) : CHUNK_HEAD + needed);
        group->chunk = arena_take(&index->arena, wanted);
        if (chunk) {
            memcpy(index->arena.words.items + group->chunk, index->arena.words.items + chunk, (size_t)group->used * 4);
            arena_give_back(&index->arena, chunk, before);
        } else {
            group->used = CHUNK_HEAD;
        }
        index->arena.words.items[group->chunk] = wanted;
    }
    offset = group->used;
    memcpy(index->arena.words.items + group->chunk + offset, record, (size_t)needed * 4);
    group->used += needed;
    group->loose++;
    return offset;
}

/* Copy a group's live loose records into a buffer, each followed by the number of its place, and give the chunk
   back. The caller gives every place its new name. */
static void loose_collect(Index *index, uint32_t group_number, Words *buffer) {
    Group *group = index->groups.items + group_number;
    const uint32_t *words = index->arena.words.items + group->chunk;
    if (!group->chunk) return;
    for (uint32_t at = CHUNK_HEAD, length; at < group->used; at += length) {
        length = record_words(words + at);
        if (words[at] == NOWHERE) continue;
        RESERVE(*buffer, buffer->count + length + 1);
        memcpy(buffer->items + buffer->count, words + at, (size_t)length * 4);
        buffer->count += length;
        buffer->items[buffer->count++] = (uint32_t)(place_of(index, words[at], group_number, NOWHERE, at) - index->places.items);
    }
    arena_give_back(&index->arena, group->chunk, words[0]);
    group->chunk = group->used = group->loose = group->loose_dead = 0;
}

static void extra_free(Index *index, uint32_t extra) {
    const uint32_t *words = index->arena.words.items + extra;
    arena_give_back(&index->arena, extra, 2 + words[0] + words[1]);
}

/* Blocks of groups */

static void block_enter(Index *index, uint32_t group_number, Block *block) {
    Group *group = index->groups.items + group_number;
    uint32_t number;
    if (index->free_block) {
        number = index->free_block - 1;
        index->free_block = (uint32_t)(uintptr_t)index->blocks.items[number] >> 1;
        index->blocks.items[number] = block;
    } else {
        number = (uint32_t)index->blocks.count;
        PUSH(index->blocks, block);
    }
    block->group = group_number;
    block->next = group->block;
    group->block = number + 1;
}

/* A free entry of the table of blocks holds the next free one, shifted and odd, so that it is no pointer. */
INLINE int block_is_there(const Block *block) { return !((uintptr_t)block & 1); }

static void block_leave(Index *index, uint32_t number) {
    Block *block = index->blocks.items[number];
    uint32_t *link = &index->groups.items[block->group].block;
    while (*link != number + 1) link = &index->blocks.items[*link - 1]->next;
    *link = block->next;
    index->blocks.items[number] = (Block *)((uintptr_t)index->free_block << 1 | 1);
    index->free_block = number + 1;
}

/* Replace one or two blocks of a group by their merge. */
static void blocks_merge(Index *index, uint32_t first, uint32_t second) {
    uint32_t group_number = index->blocks.items[first]->group, numbers[2] = {first, second}, number, *moved[2] = {NULL, NULL};
    const Block *old[2] = {index->blocks.items[first], second == NOWHERE ? NULL : index->blocks.items[second]};
    Block *merged;
    for (int s = 0; s < 2 && old[s]; s++) moved[s] = allocate(sizeof **moved * ((size_t)old[s]->size + 1));
    merged = block_merge(old, moved, merged_order(old, moved));
    block_enter(index, group_number, merged); /* before the old ones leave, so that no two share a number */
    number = index->groups.items[group_number].block - 1;
    for (int s = 0; s < 2 && old[s]; s++)
        for (uint32_t before = 0; before < old[s]->size; before++) {
            Place *place;
            if (moved[s][before] == NOWHERE) continue;
            place = place_of(index, block_slots(old[s])[before], group_number, numbers[s], before);
            if (place) place->block = number, place->offset = moved[s][before];
        }
    for (int s = 0; s < 2 && old[s]; s++) {
        block_leave(index, numbers[s]);
        block_free((Block *)old[s]);
        free(moved[s]);
    }
}

/* Make the loose records of a group a block, and merge it with elders of no greater size. */
static void group_settle(Index *index, uint32_t group_number) {
    const uint32_t skipped = vouched(index, index->groups.items + group_number);
    Words buffer = {0}, slots = {0}, extras = {0}, members = {0};
    VECTOR(Range) ranges = {0};
    Ranks ranks = {0};
    uint32_t number;
    loose_collect(index, group_number, &buffer);
    for (size_t at = 0; at < buffer.count; at += record_words(buffer.items + at) + 1)
        PUSH(ranks, record_rank(buffer.items + at, 0, (uint32_t)at));
    ranks_sort(&ranks);
    for (size_t r = 0; r < ranks.count; r++) {
        const uint32_t *record = buffer.items + ranks.items[r].at;
        uint32_t equalities = equalities_of(record) - skipped, programs = programs_of(record), extra = 0;
        const uint32_t *entry = record + RECORD_HEAD + skipped + equalities;
        for (uint32_t i = 0; i < ranges_of(record); i++, entry += RANGE_WORDS) {
            Range range = {entry[0], (uint32_t)slots.count, load_double(entry + 1), load_double(entry + 3)};
            PUSH(ranges, range);
        }
        if (equalities + programs) {
            uint32_t *words;
            extra = arena_take(&index->arena, 2 + equalities + programs);
            words = index->arena.words.items + extra;
            words[0] = equalities;
            words[1] = programs;
            memcpy(words + 2, record + RECORD_HEAD + skipped, (size_t)equalities * 4);
            memcpy(words + 2 + equalities, entry, (size_t)programs * 4);
        }
        PUSH(slots, record[0]);
        PUSH(extras, extra);
        PUSH(members, record[record_words(record)]);
    }
    if (slots.count) {
        block_enter(index, group_number,
                    block_from_ranges((uint32_t)slots.count, slots.items, extras.items, ranges.items, (uint32_t)ranges.count));
        number = index->groups.items[group_number].block - 1;
        for (uint32_t i = 0; i < slots.count; i++) {
            Place *place = index->places.items + members.items[i];
            place->block = number;
            place->offset = i;
        }
        for (;;) {
            const Block *block = index->blocks.items[index->groups.items[group_number].block - 1], *elder;
            if (!block->next) break;
            elder = index->blocks.items[block->next - 1];
            if (elder->size > block->size || elder->size + block->size > BLOCK_MOST) break;
            blocks_merge(index, block->next - 1, index->groups.items[group_number].block - 1);
        }
    }
    RELEASE(buffer);
    RELEASE(slots);
    RELEASE(extras);
    RELEASE(members);
    RELEASE(ranges);
    RELEASE(ranks);
}

#endif
