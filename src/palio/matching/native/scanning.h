/* What an event's texts and lists have of interned values: factors anywhere in a text, and each element of a list.

   There may be any number of these, so they are no part of the fixed room that an event has for its values: they are
   collected as hits, each once an event, and brought together event by event when all columns have been read.

   A text is gone through once for each class of grams that its attribute has factors under. The table is far larger than
   the caches, so the hashes of some places are computed first and what they lead to is asked for; then it is looked at, and
   so on with the factors found there. */

#ifndef PALIO_SCANNING_H
#define PALIO_SCANNING_H

#include "folding.h"

#define PLACES_TOGETHER 64u
#define SIGHTINGS_AHEAD 8u /* for a factor, and again as many for its text */

/* An event has an interned value. */
INLINE void note_hit(Index *index, Workspace *work, uint32_t number, uint32_t event) {
    EventHit found = {event, {number, 0}};
    if (bit_of(work->hit_bits, number)) return;
    flip(work->hit_bits, number);
    found.hit.group = index->values.items[number].group;
    PUSH(work->event_hits, found);
    if (!index->mapped) COUNT_UP(index->values.items[number].seen);
}

/* Whoever is filed under the gram with this hash. Two grams may have one mark: so the search goes on to a free place. */
INLINE void note_sightings(const Index *index, Workspace *work, uint64_t hash, uint32_t place) {
    const size_t mask = index->grams.count - 1;
    for (size_t at = (size_t)hash & mask; index->grams.items[at].first; at = (at + 1) & mask)
        if ((index->grams.items[at].mark & ~GRAM_COUNT_MOST) == gram_mark(hash)) {
            Sighting sighting = {place, index->grams.items[at].first};
            PUSH(work->sightings, sighting);
        }
}

/* The grams of one class in a text. */
static void sight_grams(const Index *index, Workspace *work, uint64_t seed, uint32_t size, const uint8_t *text, uint32_t length) {
    const size_t mask = index->grams.count - 1;
    const uint32_t places = length - size + 1;
    const uint64_t kept = size < 8 ? ((uint64_t)1 << 8 * size) - 1 : UINT64_MAX;
    uint64_t hashes[PLACES_TOGETHER];
    work->steps += places;
    for (uint32_t first = 0; first < places; first += PLACES_TOGETHER) {
        const uint32_t count = places - first < PLACES_TOGETHER ? places - first : PLACES_TOGETHER;
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t place = first + i;
            if (size <= 8 && length - place >= 8) hashes[i] = gram_hash_short(seed, load_gram(text + place) & kept);
            else hashes[i] = gram_hash(seed, text + place, size);
            PREFETCH(index->grams.items + (hashes[i] & mask));
        }
        for (uint32_t i = 0; i < count; i++) note_sightings(index, work, hashes[i], first + i);
    }
}

/* The factors that a text has. */
static void scan_text(Index *index, Workspace *work, uint32_t number, uint32_t kind, const uint8_t *text, uint32_t length,
                      uint32_t event) {
    const Interned *values = index->values.items;
    work->sightings.count = 0;
    for (uint32_t classes = index->attributes.items[number].grams; classes; classes &= classes - 1) {
        const uint32_t class = LOWEST_BIT(classes);
        if (GRAM_SIZES[class] > length) break;
        sight_grams(index, work, gram_seed(number, kind, class), GRAM_SIZES[class], text, length);
    }
    for (size_t i = 0; i < work->sightings.count; i++) {
        const Sighting sighting = work->sightings.items[i];
        if (i + 2 * SIGHTINGS_AHEAD < work->sightings.count)
            PREFETCH(values + work->sightings.items[i + 2 * SIGHTINGS_AHEAD].first);
        if (i + SIGHTINGS_AHEAD < work->sightings.count)
            PREFETCH(index->arena.words.items + values[work->sightings.items[i + SIGHTINGS_AHEAD].first].payload);
        for (uint32_t one = sighting.first; one; one = values[one].next) {
            const Interned *factor = values + one;
            const uint32_t start = sighting.place - factor->gram_at;
            work->steps++;
            if (factor->gram_at > sighting.place || factor->length > length || start > length - factor->length) continue;
            if (factor->kind != kind || factor->attribute != number) continue; /* another gram with this hash */
            if (same_bytes(index->arena.words.items + factor->payload, text + start, factor->length))
                note_hit(index, work, one, event);
        }
    }
}

/* What one element of a list has. */
static void note_element(Index *index, Workspace *work, uint32_t number, Value element, uint32_t event) {
    const Attribute *attribute = index->attributes.items + number;
    uint32_t kind, beginning, found;
    uint64_t payload;
    if (!equality_payload(element, &kind, &payload)) return;
    if (attribute->equality >> (kind | KIND_ELEMENT) & 1) {
        work->steps++;
        kind |= KIND_ELEMENT;
        found = value_find(index, equality_hash(number, kind, payload, element.as.text, element.length), number, kind, payload,
                           element.as.text, element.length);
        if (found) note_hit(index, work, found, event);
    }
    if (element.kind != KIND_STRING && element.kind != KIND_BYTES) return;
    beginning = kind_of_beginning(element.kind) | KIND_ELEMENT;
    for (uint32_t end = 0; end < 2; end++) { /* how it begins, how it ends */
        if (!(attribute->equality >> (beginning + end) & 1)) continue;
        for (uint64_t lengths = end ? attribute->suffixes : attribute->prefixes; lengths; lengths &= lengths - 1) {
            const uint32_t length = LOWEST_BIT(lengths) + 1;
            const uint8_t *text = element.as.text + (end ? element.length - length : 0);
            if (length > element.length) break;
            work->steps++;
            found = value_find(index, equality_hash(number, beginning + end, 0, text, length), number, beginning + end, 0, text,
                               length);
            if (found) note_hit(index, work, found, event);
        }
    }
    if (attribute->equality >> (beginning + 2) & 1)
        scan_text(index, work, number, beginning + 2, element.as.text, element.length, event);
    kind = KIND_FOLDED | KIND_ELEMENT;
    if (element.kind == KIND_STRING && attribute->equality >> kind & 1) {
        const uint32_t length = fold_text(work, element.as.text, element.length);
        const uint8_t *folded = work->folded.items;
        work->steps++;
        found = value_find(index, equality_hash(number, kind, 0, folded, length), number, kind, 0, folded, length);
        if (found) note_hit(index, work, found, event);
    }
}

/* What a value has of factors or elements. */
static void note_hits(Index *index, Workspace *work, uint32_t number, Value value, uint32_t event) {
    const size_t first = work->event_hits.count;
    if (value.kind == KIND_LIST)
        for (uint32_t i = 0; i < value.length; i++) note_element(index, work, number, value.as.elements[i], event);
    else if (index->attributes.items[number].equality >> (kind_of_beginning(value.kind) + 2) & 1)
        scan_text(index, work, number, kind_of_beginning(value.kind) + 2, value.as.text, value.length, event);
    for (size_t i = first; i < work->event_hits.count; i++) flip(work->hit_bits, work->event_hits.items[i].hit.value);
}

/* Bring the hits of a tile together event by event. */
static void gather_hits(Workspace *work) {
    uint32_t *starts, total = 0;
    RESERVE(work->hit_starts, (size_t)work->events + 2);
    starts = work->hit_starts.items;
    memset(starts, 0, ((size_t)work->events + 2) * 4);
    if (!work->event_hits.count) return;
    RESERVE(work->hits, work->event_hits.count);
    for (size_t i = 0; i < work->event_hits.count; i++) starts[work->event_hits.items[i].event + 2]++;
    for (uint32_t e = 2; e < work->events + 2; e++) starts[e] = total += starts[e];
    for (size_t i = 0; i < work->event_hits.count; i++)
        work->hits.items[starts[work->event_hits.items[i].event + 1]++] = work->event_hits.items[i].hit;
}

#endif
