/* Programs: sides of conjunctions that are neither an equality nor a plain range of numbers.

   A program is the flat form of a ValueSet as palio.matching.programs writes it: which kinds it has parts for,
   and each part as flips or as a decision tree. All offsets count bytes from the program's beginning; numbers of
   eight bytes may lie at any multiple of four. Running one cannot fail and takes no memory. */

#ifndef PALIO_PROGRAMS_H
#define PALIO_PROGRAMS_H

#include "searching.h"
#include "values.h"

enum { NODE_NOTHING, NODE_EVERYTHING, NODE_NUMBERS, NODE_TEXTS, NODE_ENDS_WITH, NODE_CONTAINS, NODE_GLOB, NODE_HAS,
       NODE_PATH };

#define GLOB_WORDS_MOST 40 /* 1,024 characters take up at most 2,050 places */

static int texts_compare(const uint8_t *left, uint32_t left_length, const uint8_t *right, uint32_t right_length) {
    uint32_t common = left_length < right_length ? left_length : right_length;
    int order = common ? memcmp(left, right, common) : 0;
    if (order) return order;
    return left_length < right_length ? -1 : left_length > right_length;
}

/* One code point; texts are valid UTF-8 (lone surrogates, if any, as three bytes each). */
static uint32_t next_character(const uint8_t **at, const uint8_t *end) {
    const uint8_t *text = *at;
    uint32_t first = *text++, more = 0, character = first;
    if (first >= 0xF0) { more = 3; character = first & 7; }
    else if (first >= 0xE0) { more = 2; character = first & 15; }
    else if (first >= 0xC0) { more = 1; character = first & 31; }
    while (more-- && text < end) character = character << 6 | (*text++ & 63);
    *at = text;
    return character;
}

/* into |= (state & places) << by, over all words */
static void hand_on(uint64_t *into, const uint64_t *state, const uint8_t *places, unsigned words, unsigned by) {
    uint64_t carry = 0;
    for (unsigned i = 0; i < words; i++) {
        uint64_t moving = state[i] & load_bits(places + 8 * i);
        into[i] |= moving << by | carry;
        carry = moving >> (64 - by);
    }
}

/* The machine of palio.model.texts, word by word instead of on one long integer. */
static int glob_holds(const uint8_t *node, const uint8_t *text, uint32_t length) {
    unsigned words = load_word(node + 12), count = load_word(node + 16);
    const uint8_t *first = node + 20, *last = first + 8 * words, *stars = last + 8 * words;
    const uint8_t *borders = stars + 8 * words, *insides = borders + 8 * words, *tails = insides + 8 * words;
    const uint8_t *anything = tails + 8 * words, *characters = anything + 8 * words, *masks = characters + 4 * count;
    const uint8_t *end = text + length;
    uint64_t state[GLOB_WORDS_MOST], moved[GLOB_WORDS_MOST], before[GLOB_WORDS_MOST], any = 0;
    if (words > GLOB_WORDS_MOST) return 0;
    memcpy(state, first, 8 * words);
    while (text < end) {
        uint32_t character = next_character(&text, end);
        unsigned low = 0, high = count;
        while (low < high) {
            unsigned middle = (low + high) / 2;
            if (load_word(characters + 4 * middle) < character) low = middle + 1;
            else high = middle;
        }
        for (unsigned i = 0; i < words; i++) moved[i] = state[i] & load_bits(anything + 8 * i);
        if (low < count && load_word(characters + 4 * low) == character)
            hand_on(moved, state, masks + (size_t)8 * words * low, words, 1);
        if (character == '/') {
            for (unsigned i = 0; i < words; i++) {
                uint64_t next = i + 1 < words ? state[i + 1] & load_bits(insides + 8 * (i + 1)) : 0;
                moved[i] |= (state[i] & load_bits(insides + 8 * i)) >> 1 | next << 63;
                moved[i] |= state[i] & load_bits(borders + 8 * i);
            }
        } else {
            for (unsigned i = 0; i < words; i++)
                moved[i] |= state[i] & (load_bits(stars + 8 * i) | load_bits(insides + 8 * i));
            hand_on(moved, state, borders, words, 1);
        }
        memcpy(before, moved, 8 * words);
        hand_on(moved, before, borders, words, 2);
        memcpy(before, moved, 8 * words);
        hand_on(moved, before, stars, words, 1);
        memcpy(before, moved, 8 * words);
        hand_on(moved, before, tails, words, 2);
        memcpy(before, moved, 8 * words);
        hand_on(moved, before, anything, words, 1);
        any = 0;
        for (unsigned i = 0; i < words; i++) any |= state[i] = moved[i];
        if (!any) return 0;
    }
    any = 0;
    for (unsigned i = 0; i < words; i++) any |= state[i] & load_bits(last + 8 * i);
    return any != 0;
}

#include "tables.h"

/* An odd number of flips at or below the value. */
static int flips_hold(const uint8_t *node, Value value) {
    uint32_t count = load_word(node + 4), low = 0, high = count;
    const uint8_t *entries = node + 8;
    int text = load_word(node) == NODE_TEXTS;
    const uint8_t *bytes = entries + 4 * ((size_t)count + 1);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int at_or_below;
        if (text) {
            uint32_t start = load_word(entries + 4 * (size_t)middle), stop = load_word(entries + 4 * ((size_t)middle + 1));
            at_or_below = texts_compare(bytes + start, stop - start, value.as.text, value.length) <= 0;
        } else if (value.kind == KIND_FLOAT) {
            at_or_below = load_double(entries + 8 * (size_t)middle) <= value.as.real;
        } else {
            at_or_below = load_integer(entries + 8 * (size_t)middle) <= value.as.integer;
        }
        if (at_or_below) low = middle + 1;
        else high = middle;
    }
    return low & 1;
}

/* Whether a value is in the set whose table of parts lies at `parts`. */
static int program_holds(const uint8_t *program, uint32_t parts, Value value, uint64_t *steps) {
    uint32_t at;
    ++*steps;
    if (value.kind >= KIND_ABSENT) return (int)load_word(program + parts);
    at = load_word(program + parts + 4 + 4 * value.kind);
    for (;;) {
        const uint8_t *node = program + at;
        int yes = 0;
        switch (load_word(node)) {
        case NODE_NOTHING:
            return 0;
        case NODE_EVERYTHING:
            return 1;
        case NODE_TABLE:
            yes = table_holds(node, value.as.text, value.length, steps);
            break;
        case NODE_NUMBERS:
        case NODE_TEXTS:
            return flips_hold(node, value);
        case NODE_ENDS_WITH: {
            uint32_t length = load_word(node + 12);
            yes = length <= value.length && same_bytes(value.as.text + (value.length - length), node + 16, length);
            break;
        }
        case NODE_CONTAINS:
            yes = text_find(value.as.text, value.as.text + value.length, node + 16, load_word(node + 12), steps) != NULL;
            break;
        case NODE_GLOB:
            *steps += value.length;
            yes = glob_holds(node, value.as.text, value.length);
            break;
        case NODE_PATH:
            yes = path_holds(node + 12, value.as.text, value.length, steps);
            break;
        default: /* NODE_HAS: elements are no lists themselves, so this goes one level deep */
            for (uint32_t i = 0; i < value.length && !yes; i++)
                yes = program_holds(program, load_word(node + 12), value.as.elements[i], steps);
        }
        at = load_word(node + (yes ? 4 : 8));
    }
}

#endif
