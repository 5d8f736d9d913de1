/* What matching needs besides the index, kept from one tile of events to the next: one a thread. */

#ifndef PALIO_WORKSPACE_H
#define PALIO_WORKSPACE_H

#include "lone.h"
#include "updates.h"

typedef struct { uint32_t group, event; } Visit;
typedef struct { uint32_t event, count; size_t start : 63, are_ids : 1; } Segment; /* slots that were found, or the ids for which these stand */
typedef struct { uint64_t partners; uint32_t hash, value, attribute; } Asker; /* a value that is part of some pair */
typedef struct { uint32_t hash, first, second, group; } Probe;                /* two values, and who seems to have them */
typedef struct { uint32_t value, group; } Hit;                                /* a factor or an element, and whose key it is */
typedef struct { uint32_t event; Hit hit; } EventHit;
typedef struct { uint32_t place, first; } Sighting; /* a gram of a text that some factor is filed under */

typedef struct {
    /* results, event by event: either slots, or, where id_numbers says what they stand for, ids and rows */
    Words slots;
    VECTOR(int64_t) ids, rows;
    const int64_t *id_numbers;
    int64_t rows_total; /* of the whole batch */
    PyObject *const *id_objects; /* by slot, where an event alone is going to hand them out; otherwise NULL */
    /* the events of a tile */
    const double **numbers; /* by attribute: the number of each event; all NaN where there is no column */
    size_t attributes;
    VECTOR(double) number_memory;
    Words values, value_counts; /* the interned values of each event */
    uint32_t stride;            /* as many as an event may have of them */
    Words presences;            /* keys that stand for presence, likewise */
    VECTOR(EventHit) event_hits; /* what else the events have of interned values: any number, each once an event; */
    VECTOR(Hit) hits;            /* the same event by event, */
    Words hit_starts;            /* and where each event's begin */
    uint64_t *hit_bits;          /* a bit for each interned value that has been hit in the value at hand */
    VECTOR(Sighting) sightings;
    VECTOR(uint8_t) folded; /* a text whose letters are small */
    uint64_t steps; /* how often anything was looked up or compared, at most 64 bytes each: so that a test can count */
    Words lines;                /* the attributes and views that have numbers in this tile */
    uint64_t *demanded;         /* a bit for each interned value that the event at hand has */
    size_t demanded_words;
    VECTOR(Visit) visits;
    VECTOR(Segment) segments;
    Words found, gathered;
    VECTOR(uint64_t) bitmaps;
    VECTOR(Placed) placed;
    VECTOR(double) sorted_numbers;
    VECTOR(const Block *) lone_blocks;
    VECTOR(Lone) lones;
    Words sorted_order, sorted_at, sorted; /* sorted: the attributes for which there is an order */
    VECTOR(Asker) askers;
    VECTOR(Probe) probes;
    VECTOR(uint64_t) stamps; /* a bit for each slot, zero between uses */
    Words tile_order, tile_order_at; /* all events of the tile in the order of an attribute */
    uint32_t members[TILE];          /* which of a group's events an event of the tile is, + 1 */
    uint32_t events;
    const Column **columns; /* by attribute, NULL if absent */
    int64_t row;            /* of the tile's first event */
    double absent[TILE];
} Workspace;

static void workspace_fit(Workspace *work, const Index *index) {
    size_t words = index->values.count / 64 + 1;
    if (work->attributes < index->attributes.count) {
        size_t wanted = index->attributes.count + 16;
        work->numbers = realloc(work->numbers, wanted * sizeof *work->numbers);
        work->columns = realloc(work->columns, wanted * sizeof *work->columns);
        if (!work->numbers || !work->columns) out_of_memory();
        if (!work->attributes)
            for (unsigned i = 0; i < TILE; i++) work->absent[i] = (double)NAN;
        for (size_t i = work->attributes; i < wanted; i++) {
            work->numbers[i] = work->absent;
            work->columns[i] = NULL;
        }
        work->attributes = wanted;
    }
    if (work->demanded_words < words) {
        words += words / 4;
        free(work->demanded);
        free(work->hit_bits);
        work->demanded = allocate_zeroed(words * 8);
        work->hit_bits = allocate_zeroed(words * 8);
        work->demanded_words = words;
    }
}

static void workspace_free(Workspace *work) {
    RELEASE(work->slots);
    RELEASE(work->ids);
    RELEASE(work->rows);
    RELEASE(work->gathered);
    free(work->numbers);
    free(work->columns);
    free(work->demanded);
    free(work->hit_bits);
    RELEASE(work->event_hits);
    RELEASE(work->hits);
    RELEASE(work->hit_starts);
    RELEASE(work->sightings);
    RELEASE(work->folded);
    RELEASE(work->number_memory);
    RELEASE(work->values);
    RELEASE(work->value_counts);
    RELEASE(work->presences);
    RELEASE(work->lines);
    RELEASE(work->visits);
    RELEASE(work->segments);
    RELEASE(work->found);
    RELEASE(work->bitmaps);
    RELEASE(work->placed);
    RELEASE(work->lone_blocks);
    RELEASE(work->lones);
    RELEASE(work->sorted_numbers);
    RELEASE(work->sorted_order);
    RELEASE(work->sorted_at);
    RELEASE(work->stamps);
    RELEASE(work->sorted);
    RELEASE(work->askers);
    RELEASE(work->probes);
    RELEASE(work->tile_order);
    RELEASE(work->tile_order_at);
    memset(work, 0, sizeof *work);
}

#endif
