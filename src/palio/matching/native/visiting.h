/* The groups that events lead to, and the loose records there.

   An event has hundreds of pairs of values to ask for, and of what it asks for next to nothing is in the caches. So
   several events take each step together: all their pairs are listed, then looked up, then the groups that were found are
   visited; and in each of these lists what comes some places further along is asked for in advance. */

#ifndef PALIO_VISITING_H
#define PALIO_VISITING_H

#include "sweeping.h"

#define EVENTS_TOGETHER 8u /* their lists stay in the second cache */
#define PAIRS_AHEAD 32u
#define GROUPS_AHEAD 16u   /* for what a group says of its records, and again as many for the group itself */
#define LINE_WORDS 16u
#define LINES_AHEAD 4u     /* of a group's records */
#define RECORDS_AHEAD 8u   /* of a group, whose programs are asked for before it is visited; then each for as many further on */

/* Ask for what a record has to be asked. */
INLINE void ask_for_program(const Index *index, const uint32_t *record) {
    const uint32_t *program;
    if (!programs_of(record)) return;
    program = program_at(index, record[record_words(record) - programs_of(record)]);
    PREFETCH(program);
    PREFETCH(program + LINE_WORDS);
}

/* The loose records of a group that an event satisfies. */
static void check_loose(const Index *index, Workspace *work, const Group *group, uint32_t event) {
    const uint32_t skipped = vouched(index, group), *end = loose_end(index, group);
    uint32_t *found;
    RESERVE(work->found, work->found.count + group->loose);
    found = work->found.items + work->found.count;
    for (const uint32_t *record = loose_records(index, group), *next; record < end; record = next) {
        const uint32_t equalities = equalities_of(record), ranges = ranges_of(record), programs = programs_of(record);
        const uint32_t *range = record + RECORD_HEAD + equalities;
        int holds = record[0] != NOWHERE;
        next = range + RANGE_WORDS * ranges + programs;
        for (uint32_t i = skipped; i < equalities; i++) holds &= is_demanded(work, record[RECORD_HEAD + i]);
        for (uint32_t i = 0; holds && i < ranges; i++, range += RANGE_WORDS) {
            const double number = work->numbers[range[0]][event];
            holds = (load_double(range + 1) <= number) & (number < load_double(range + 3));
        }
        if (programs && holds) holds = programs_hold(index, work, range, programs, event);
        *found = record[0]; /* there is room for all; it stays only if it holds */
        found += holds;
    }
    work->found.count = (size_t)(found - work->found.items);
}

static void visit(const Index *index, Workspace *work, uint32_t number, uint32_t event) {
    const Group *group = index->groups.items + number;
    if (group->chunk) check_loose(index, work, group, event);
    if (group->block) {
        Visit later = {number, event};
        PUSH(work->visits, later);
    }
}

/* List the pairs of an event's values that can be in use. */
static void list_pairs(const Index *index, Workspace *work, const uint32_t *values, uint32_t count) {
    uint32_t kept = 0;
    Probe *probe;
    RESERVE(work->askers, count);
    for (uint32_t i = 0; i < count; i++) {
        const Interned *value = index->values.items + values[i];
        if (!value->pairs) continue;
        work->askers.items[kept++] = (Asker){index->attributes.items[value->attribute].partners, value_hash(values[i]),
                                             values[i], value->attribute & 63};
    }
    RESERVE(work->probes, work->probes.count + (size_t)kept * kept / 2);
    probe = work->probes.items + work->probes.count;
    for (uint32_t i = 0; i < kept; i++) {
        const Asker first = work->askers.items[i];
        for (uint32_t j = i + 1; j < kept; j++) {
            const Asker *second = work->askers.items + j;
            *probe = (Probe){first.hash + second->hash, first.value, second->value, 0};
            probe += first.partners >> second->attribute & 1;
        }
    }
    work->probes.count = (size_t)(probe - work->probes.items);
}

/* Look the listed pairs of one event up; those that some group may have are appended to the probes that succeeded. */
static size_t look_up_pairs(const Index *index, Workspace *work, size_t start, size_t stop, size_t succeeded) {
    Probe *probes = work->probes.items;
    const size_t mask = index->pairs.count - 1, ahead = work->probes.count - PAIRS_AHEAD;
    for (size_t i = start; i < stop; i++) {
        Probe probe = probes[i];
        if (work->probes.count > PAIRS_AHEAD && i < ahead) PREFETCH(index->pairs.items + (probes[i + PAIRS_AHEAD].hash & mask));
        probe.group = pair_guess(index, probe.hash);
        probes[succeeded] = probe;
        succeeded += probe.group != 0;
    }
    return succeeded;
}

/* Ask for what the visits to come are going to read. */
INLINE void ask_for_groups(const Index *index, const Probe *probe, const Probe *end) {
    if (end - probe > (ptrdiff_t)(2 * GROUPS_AHEAD)) PREFETCH(index->groups.items + probe[2 * GROUPS_AHEAD].group);
    if (end - probe > (ptrdiff_t)GROUPS_AHEAD) {
        const Group *group = index->groups.items + probe[GROUPS_AHEAD].group;
        const uint32_t *chunk = index->arena.words.items + group->chunk;
        for (uint32_t word = 0; word < group->used && word < LINES_AHEAD * LINE_WORDS; word += LINE_WORDS) PREFETCH(chunk + word);
    }
}

/* Ask for what the first loose records of a group have to be asked. */
INLINE void ask_for_records(const Index *index, const Group *group) {
    const uint32_t *record = loose_records(index, group), *end = loose_end(index, group);
    if (!group->chunk) return;
    PREFETCH(index->values.items + group->key);
    for (unsigned i = 0; i < RECORDS_AHEAD && record < end; i++, record += record_words(record)) ask_for_program(index, record);
}

/* The groups of the factors and elements that an event has; there may be many, side by side in one list. */
static void visit_hits(const Index *index, Workspace *work, uint32_t event) {
    const Hit *hit = work->hits.items + work->hit_starts.items[event], *end = work->hits.items + work->hit_starts.items[event + 1];
    for (; hit < end; hit++) {
        if (end - hit > (ptrdiff_t)(2 * GROUPS_AHEAD)) PREFETCH(index->groups.items + hit[2 * GROUPS_AHEAD].group);
        if (end - hit > (ptrdiff_t)GROUPS_AHEAD)
            PREFETCH(index->arena.words.items + index->groups.items[hit[GROUPS_AHEAD].group].chunk);
        if (end - hit > (ptrdiff_t)(GROUPS_AHEAD / 2)) ask_for_records(index, index->groups.items + hit[GROUPS_AHEAD / 2].group);
        if (hit->group) visit(index, work, hit->group, event);
    }
}

/* Visit all groups that events `first` to `last - 1` lead to. */
static void visit_together(const Index *index, Workspace *work, uint32_t first, uint32_t last) {
    const uint32_t stride = work->stride;
    size_t ends[EVENTS_TOGETHER], succeeded = 0, at = 0;
    work->probes.count = 0;
    for (uint32_t event = first; event < last; event++) {
        list_pairs(index, work, work->values.items + (size_t)event * stride, work->value_counts.items[2 * event]);
        ends[event - first] = work->probes.count;
    }
    for (size_t i = 0; i < work->probes.count && i < PAIRS_AHEAD; i++)
        PREFETCH(index->pairs.items + (work->probes.items[i].hash & (index->pairs.count - 1)));
    for (uint32_t event = first; event < last; event++) {
        const size_t stop = ends[event - first];
        succeeded = look_up_pairs(index, work, at, stop, succeeded);
        at = stop;
        ends[event - first] = succeeded;
    }
    for (size_t i = 0; i < succeeded && i < 2 * GROUPS_AHEAD; i++) PREFETCH(index->groups.items + work->probes.items[i].group);
    at = 0;
    for (uint32_t event = first; event < last; event++) {
        const uint32_t *values = work->values.items + (size_t)event * stride, count = work->value_counts.items[2 * event];
        const uint32_t *presences = work->presences.items + (size_t)event * stride;
        const Probe *end = work->probes.items + succeeded;
        const size_t start = work->found.count;
        Segment segment;
        mark_demanded(work, event);
        if (index->groups.count && index->groups.items[0].live) visit(index, work, 0, event);
        for (uint32_t i = 0; i < count; i++)
            if (index->values.items[values[i]].group) visit(index, work, index->values.items[values[i]].group, event);
        for (uint32_t i = 0; i < work->value_counts.items[2 * event + 1]; i++)
            visit(index, work, index->values.items[presences[i]].group, event);
        visit_hits(index, work, event);
        for (; at < ends[event - first]; at++) {
            const Probe *probe = work->probes.items + at;
            uint32_t group = probe->group, key = probe->first, partner = probe->second;
            ask_for_groups(index, probe, end);
            if (partner < key) key = probe->second, partner = probe->first;
            if (!group_has_key(index, group, key, partner)) group = pair_find(index, key, partner);
            if (group) visit(index, work, group, event);
        }
        mark_demanded(work, event);
        segment = (Segment){event, (uint32_t)(work->found.count - start), start, 0};
        if (segment.count) PUSH(work->segments, segment);
    }
}

#endif
