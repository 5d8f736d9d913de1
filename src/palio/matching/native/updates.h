/* Adding and removing. Each costs, amortised, a constant number of hash probes and logarithmically many moves. */

#ifndef PALIO_UPDATES_H
#define PALIO_UPDATES_H

#include "groups.h"

/* So many loose records become a block. */
static uint32_t block_limit(const Index *index, uint32_t group) {
    return index->building ? BLOCK_MOST : settling_size(index, index->groups.items + group);
}

/* Forget a group without live members. */
static void group_free(Index *index, uint32_t number) {
    Group *group = index->groups.items + number;
    uint32_t key = group->key, partner = group->partner;
    Words nothing = {0};
    loose_collect(index, number, &nothing);
    RELEASE(nothing);
    while (group->block) {
        Block *block = index->blocks.items[group->block - 1];
        block_leave(index, group->block - 1);
        block_free(block);
    }
    if (!key) return; /* group 0 stays */
    if (partner) {
        pair_remove(index, (Pair){pair_hash(key, partner), number});
        index->values.items[key].pairs--;
        index->values.items[partner].pairs--;
    } else {
        index->values.items[key].group = 0;
    }
    memset(group, 0, sizeof *group);
    group->key = NOWHERE;
    group->chunk = index->free_group;
    index->free_group = number + 1;
}

/* Take out all loose records and let each choose its group again; `stay` keeps them here, only closer together. */
static void group_reshuffle(Index *index, uint32_t number, int stay) {
    Words buffer = {0};
    loose_collect(index, number, &buffer);
    for (size_t at = 0, length; at < buffer.count; at += length + 1) {
        uint32_t *record = buffer.items + at, to = number, offset;
        Place *place;
        length = record_words(record);
        if (!stay) to = group_for(index, choose_key(index, record, pool_room(index)));
        offset = loose_append(index, to, record);
        place = index->places.items + record[length];
        place->group = to;
        place->offset = offset;
        if (to == number) continue;
        index->groups.items[number].live--;
        index->groups.items[to].live++;
        if (index->groups.items[to].loose >= block_limit(index, to)) group_settle(index, to);
    }
    RELEASE(buffer);
    if (!index->groups.items[number].live) group_free(index, number);
}

/* Whether some loose record has another equality than the key that makes a pair with it. */
static int could_be_paired(const Index *index, const Group *group) {
    const uint32_t *end = loose_end(index, group);
    if (!can_be_paired(index, group->key)) return 0;
    for (const uint32_t *record = loose_records(index, group); record < end; record += record_words(record)) {
        if (record[0] == NOWHERE) continue;
        for (uint32_t i = 1; i < equalities_of(record); i++)
            if (can_be_key(index, record[RECORD_HEAD + i]) && can_be_paired(index, record[RECORD_HEAD + i])) return 1;
    }
    return 0;
}

/* A conjunction is going to be added: count it, also for the values that it demands. */
static void count_uses(Index *index, const uint32_t *record) {
    index->conjunctions++;
    for (uint32_t i = 0; i < equalities_of(record); i++) index->values.items[record[RECORD_HEAD + i] & ~FORBIDDEN].uses++;
}

/* File a conjunction in a group; its record is in the caller's memory. */
static void index_file(Index *index, uint32_t number, const uint32_t *record) {
    const uint32_t offset = loose_append(index, number, record);
    Group *group = index->groups.items + number;
    place_new(index, record[0], number, NOWHERE, offset);
    group->live++;
    if (group->loose >= block_limit(index, number)) group_settle(index, number);
}

/* Add a conjunction that has been counted. */
static void index_add(Index *index, uint32_t *record) {
    const uint32_t number = group_for(index, choose_key(index, record, pool_room(index)));
    const Group *group;
    index_file(index, number, record);
    group = index->groups.items + number;
    if (!group->partner && group->loose && group->loose % CROWDED == 0 && vouched(index, group) && could_be_paired(index, group))
        group_reshuffle(index, number, 0);
}

/* Add conjunctions that have been counted, many at once: group by group, and each group's in the order of blocks. So what
   becomes a block lies loose only for a moment, and the next group does with the same memory. */
static void index_add_staged(Index *index, Words *staged) {
    Ranks ranks = {0};
    uint32_t room = pool_room(index);
    for (size_t at = 0; at < staged->count; at += record_words(staged->items + at)) {
        uint32_t *record = staged->items + at;
        const uint32_t group = group_for(index, choose_key(index, record, room));
        if (!group && room) room--;
        PUSH(ranks, record_rank(record, group, (uint32_t)at));
    }
    ranks_sort(&ranks);
    for (size_t i = 0; i < ranks.count; i++) {
        const uint32_t group = ranks.items[i].group;
        index_file(index, group, staged->items + ranks.items[i].at);
        if ((i + 1 == ranks.count || ranks.items[i + 1].group != group)
            && index->groups.items[group].loose >= settling_size(index, index->groups.items + group))
            group_settle(index, group);
    }
    RELEASE(ranks);
    staged->count = 0;
}

/* Take out what is dead if there is much of it. */
static void block_tidy(Index *index, uint32_t number) {
    Block *block = index->blocks.items[number];
    uint32_t live = block->size - block->dead;
    if (!live) {
        block_leave(index, number);
        block_free(block);
    } else if (block->dead * 4 > block->size) {
        uint32_t elder = block->next;
        if (elder && index->blocks.items[elder - 1]->size + live <= BLOCK_MOST / 2) blocks_merge(index, elder - 1, number);
        else blocks_merge(index, number, NOWHERE);
    }
}

/* Remove all conjunctions of a slot. */
static void index_remove(Index *index, uint32_t slot) {
    Words values = {0};
    while (index->slots.items[slot]) {
        uint32_t number = index->slots.items[slot] - 1;
        Place place = index->places.items[number];
        Group *group = index->groups.items + place.group;
        uint32_t skipped = vouched(index, group), *words = index->arena.words.items;
        index->slots.items[slot] = place.next;
        index->places.items[number].next = index->free_place;
        index->free_place = number + 1;
        values.count = 0;
        if (place.block == NOWHERE) {
            uint32_t *record = words + group->chunk + place.offset, equalities = equalities_of(record);
            const uint32_t *programs = record + record_words(record) - programs_of(record);
            for (uint32_t i = 0; i < equalities; i++) PUSH(values, record[RECORD_HEAD + i]);
            for (uint32_t i = 0; i < programs_of(record); i++) program_free(index, programs[i]);
            record[0] = NOWHERE;
            group->loose_dead++;
        } else {
            Block *block = index->blocks.items[place.block];
            if (skipped > 0) PUSH(values, group->key);
            if (skipped > 1) PUSH(values, group->partner);
            flip(block_dead(block), place.offset);
            block->dead++;
            if (block->extras && block_extras(block)[place.offset]) {
                uint32_t extra = block_extras(block)[place.offset];
                for (uint32_t i = 0; i < words[extra]; i++) PUSH(values, words[extra + 2 + i]);
                for (uint32_t i = 0; i < words[extra + 1]; i++) program_free(index, words[extra + 2 + words[extra] + i]);
                extra_free(index, extra);
                block_extras(block)[place.offset] = 0;
                flip(block_extra_bits(block), place.offset);
            }
        }
        group->live--;
        index->conjunctions--;
        if (!group->live) group_free(index, place.group);
        else if (place.block != NOWHERE) block_tidy(index, place.block);
        else if (group->loose_dead > 16 + group->loose / 2) group_reshuffle(index, place.group, 1);
        for (size_t i = 0; i < values.count; i++) value_release(index, values.items[i] & ~FORBIDDEN);
    }
    RELEASE(values);
}

/* The end of building in bulk: what is loose and many becomes blocks, and blocks become as large as they may. */
static void index_finish(Index *index) {
    index->building = 0;
    for (uint32_t number = 0; number < index->groups.count; number++) {
        Group *group = index->groups.items + number;
        uint32_t at;
        if (group->key == NOWHERE) continue;
        if (group->loose - group->loose_dead >= settling_size(index, group)) group_settle(index, number);
        group = index->groups.items + number;
        at = group->block;
        while (at && index->blocks.items[at - 1]->next) {
            const Block *block = index->blocks.items[at - 1], *elder = index->blocks.items[block->next - 1];
            if (block->size + elder->size <= BLOCK_MOST) {
                blocks_merge(index, block->next - 1, at - 1);
                at = group->block;
            } else {
                at = block->next;
            }
        }
    }
}

/* Number the slots anew, as the conjunctions lie in blocks; `numbers` gets the new number of each.

   Then what a block finds are slots in a row, and what lies there by slot is read from one end to the other. */
static void index_renumber(Index *index, Words *numbers) {
    const uint32_t count = (uint32_t)index->slots.count;
    uint32_t next = 0, *heads = allocate((size_t)count * 4);
    RESERVE(*numbers, (size_t)count + 1);
    numbers->count = count;
    memset(numbers->items, 0xFF, (size_t)count * 4); /* NOWHERE */
#define RENUMBER(slot) do { \
        if (numbers->items[slot] == NOWHERE) numbers->items[slot] = next++; \
        (slot) = numbers->items[slot]; \
    } while (0)
    for (size_t b = 0; b < index->blocks.count; b++) {
        Block *block = index->blocks.items[b];
        if (!block_is_there(block)) continue;
        for (uint32_t i = 0; i < block->size; i++)
            if (!bit_of(block_dead(block), i)) RENUMBER(block_slots(block)[i]);
        block_note_slots(block);
    }
    for (size_t g = 0; g < index->groups.count; g++) {
        const Group *group = index->groups.items + g;
        if (group->key == NOWHERE || !group->chunk) continue;
        for (uint32_t *record = loose_records(index, group); record < loose_end(index, group); record += record_words(record))
            if (record[0] != NOWHERE) RENUMBER(record[0]);
    }
#undef RENUMBER
    for (uint32_t slot = 0; slot < count; slot++) {
        if (numbers->items[slot] == NOWHERE) numbers->items[slot] = next++;
        heads[numbers->items[slot]] = index->slots.items[slot];
    }
    if (count) memcpy(index->slots.items, heads, (size_t)count * 4);
    free(heads);
}

static void index_free(Index *index) {
    if (!index->mapped) {
        for (size_t i = 0; i < index->blocks.count; i++)
            if (block_is_there(index->blocks.items[i])) block_free(index->blocks.items[i]);
        RELEASE(index->arena.words);
        RELEASE(index->attributes);
        RELEASE(index->values);
        RELEASE(index->groups);
        RELEASE(index->places);
        RELEASE(index->slots);
        RELEASE(index->value_table);
        RELEASE(index->pairs);
        RELEASE(index->grams);
    } else {
        for (size_t i = 0; i < index->blocks.count; i++)
            if (block_is_there(index->blocks.items[i])) free(index->blocks.items[i]);
    }
    RELEASE(index->blocks);
}

/* All memory of the index but the caller's ids. */
static uint64_t index_bytes(const Index *index) {
    uint64_t bytes = sizeof *index + index->arena.words.capacity * 4 + index->attributes.capacity * sizeof(Attribute)
        + index->values.capacity * sizeof(Interned) + index->groups.capacity * sizeof(Group)
        + index->places.capacity * sizeof(Place) + index->slots.capacity * 4
        + index->value_table.capacity * sizeof(Lookup) + index->pairs.capacity * sizeof(Pair)
        + index->grams.capacity * sizeof(Gram) + index->blocks.capacity * sizeof(Block *);
    for (size_t i = 0; i < index->blocks.count; i++)
        if (block_is_there(index->blocks.items[i])) bytes += sizeof(Block) + index->blocks.items[i]->bytes;
    return bytes;
}

#endif
