/* The yardstick for texts: the counting matcher, where equalities are looked up and every other condition is asked by the
   C library's memmem. For each event each condition that holds counts for its conjunction; a conjunction whose
   count is that of its conditions matches, and with it its subscription. One thread, plain arrays, no cleverness. */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CONTAINS, ENDS_WITH, MATCHES, EQUALS };

typedef struct { int32_t attribute, kind, conjunction; const uint8_t *text; int64_t length; } Condition;

typedef struct {
    int64_t asked, looked_up, conjunctions, subscriptions;
    int32_t attributes;
    Condition *asking, *equalities; /* equalities by attribute and text */
    const int32_t *boxes;           /* subscription and conditions of each conjunction */
    uint8_t *counted, *matched;
} Asking;

static int by_text(const void *left, const void *right) {
    const Condition *a = left, *b = right;
    int64_t common = a->length < b->length ? a->length : b->length;
    int order = a->attribute - b->attribute;
    if (!order) order = memcmp(a->text, b->text, (size_t)common);
    return order ? order : a->length < b->length ? -1 : a->length > b->length;
}

void *asking_build(int64_t conditions, int64_t conjunctions, int64_t subscriptions, int32_t attributes, const uint8_t *texts,
                   const int64_t *starts, const int32_t *asked, const int32_t *boxes) {
    Asking *asking = calloc(1, sizeof *asking);
    asking->conjunctions = conjunctions;
    asking->subscriptions = subscriptions;
    asking->attributes = attributes;
    asking->boxes = boxes;
    asking->asking = malloc(sizeof(Condition) * (size_t)(conditions + 1));
    asking->equalities = malloc(sizeof(Condition) * (size_t)(conditions + 1));
    asking->counted = malloc((size_t)conjunctions + 1);
    asking->matched = malloc((size_t)subscriptions + 1);
    for (int64_t i = 0; i < conditions; i++, asked += 3) {
        Condition one = {asked[0], asked[1], asked[2], texts + starts[i], starts[i + 1] - starts[i]};
        if (one.kind == EQUALS) asking->equalities[asking->looked_up++] = one;
        else asking->asking[asking->asked++] = one;
    }
    qsort(asking->equalities, (size_t)asking->looked_up, sizeof(Condition), by_text);
    return asking;
}

static int holds(const Condition *one, const uint8_t *text, int64_t length) {
    const uint8_t *end = text + length, *part = one->text, *stop = one->text + one->length;
    if (one->kind == CONTAINS) return memmem(text, (size_t)length, one->text, (size_t)one->length) != NULL;
    if (one->kind == ENDS_WITH)
        return one->length <= length && !memcmp(end - one->length, one->text, (size_t)one->length);
    if (memchr(text, '/', (size_t)length)) return 0;
    while (part < stop) { /* pieces, with a zero between */
        const uint8_t *next = memchr(part, 0, (size_t)(stop - part));
        if (!next) next = stop;
        text = memmem(text, (size_t)(end - text), part, (size_t)(next - part));
        if (!text) return 0;
        text += next - part;
        part = next + 1;
    }
    return 1;
}

static void look_up(const Asking *asking, Condition wanted) {
    int64_t low = 0, high = asking->looked_up;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (by_text(asking->equalities + middle, &wanted) < 0) low = middle + 1;
        else high = middle;
    }
    for (; low < asking->looked_up && !by_text(asking->equalities + low, &wanted); low++)
        asking->counted[asking->equalities[low].conjunction]++;
}

int64_t asking_match(void *built, int64_t events, const uint8_t *texts, const int64_t *starts, const int64_t *owners) {
    const Asking *asking = built;
    int64_t total = 0;
    for (int64_t e = 0; e < events; e++, owners += asking->attributes) {
        memset(asking->counted, 0, (size_t)asking->conjunctions);
        memset(asking->matched, 0, (size_t)asking->subscriptions);
        for (int32_t a = 0; a < asking->attributes; a++)
            for (int64_t v = owners[a]; v < owners[a + 1]; v++)
                look_up(asking, (Condition){a, EQUALS, 0, texts + starts[v], starts[v + 1] - starts[v]});
        for (const Condition *one = asking->asking; one < asking->asking + asking->asked; one++) {
            const int64_t v = owners[one->attribute];
            if (v < owners[one->attribute + 1] && holds(one, texts + starts[v], starts[v + 1] - starts[v]))
                asking->counted[one->conjunction]++;
        }
        for (int64_t i = 0; i < asking->conjunctions; i++)
            if (asking->counted[i] == asking->boxes[2 * i + 1]) asking->matched[asking->boxes[2 * i]] = 1;
        for (int64_t i = 0; i < asking->subscriptions; i++) total += asking->matched[i];
    }
    return total;
}
